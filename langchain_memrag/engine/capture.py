"""Remembering: what is said becomes episodes, then index entries and graph.

    normalise -> T1: episodes, acknowledged -> embed, terms, entities, no lock held -> T2: index, graph

After T1 nothing is raised any more: a turn that could not be indexed is safe, counted as pending, and
healed by looking for what is left to do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from langchain_memrag.engine.copies import Copyable
from langchain_memrag.engine.flow import Documents, Flow
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.projecting import Projector
from langchain_memrag.engine.turns import drafts_of
from langchain_memrag.engine.views import (
    MAX_PARTS_AT_ONCE,
    ViewText,
    entry_of,
    graph_of,
    looks_back,
    view_texts,
)
from langchain_memrag.errors import StoreError
from langchain_memrag.ranking import Recipe
from langchain_memrag.records import Episode, Receipt, Scope, Turn
from langchain_memrag.stores.base import Clock, Draft, GraphStore, IndexEntry, Stored, Vector
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.records import RecordStore

__all__ = ["Capture"]

logger = logging.getLogger(__name__)

BATCH: Final = 256
"""How many records are indexed in one transaction: bounds memory and how long a space is locked."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Stored episodes of one space, rendered."""

    space: int
    episodes: tuple[Episode, ...]
    views: tuple[ViewText, ...]


class Capture:
    """Writes episodes, and brings what is written into the index and the graph.

    Args:
        records: Writes what was said.
        episodes: Reads it back.
        graph: Entities and relations.
        indexing: The search index with its embedder.
        projector: Brings both to the engines beside Postgres.
        recipe: Gives the terms their impact.
        clock: Says when a turn is recorded.
    """

    def __init__(
        self,
        records: RecordStore,
        episodes: EpisodeReader,
        graph: GraphStore,
        indexing: Indexing,
        projector: Projector,
        recipe: Recipe,
        clock: Clock,
    ) -> None:
        self._projector = projector
        self._records = records
        self._episodes = episodes
        self._graph = graph
        self._indexing = indexing
        self._recipe = recipe
        self._clock = clock

    def remember(self, turns: Sequence[Turn], scope: Scope, *, defer: bool = False) -> Flow[Receipt]:
        """Record turns, then index them.

        Args:
            turns: Validated and normalised.
            scope: Whose they are.
            defer: Leave the indexing to the background.

        Raises:
            ConfigurationError: The embedder is not that of the index; nothing was written.
            StoreError: Nothing was written.
        """
        now = self._clock()
        drafts = drafts_of(turns, now)
        yield from self._indexing.ready()
        space, stored = self._records.record(scope, drafts)
        new = [
            _as_episode(draft, item, scope, now)
            for draft, item in zip(drafts, stored, strict=True)
            if item.new
        ]
        indexed = 0
        if new and not defer:
            indexed = yield from self._index_or_leave(space, new)
        return _receipt(stored, len(new), indexed)

    def _index_or_leave(self, space: int, new: Sequence[Episode]) -> Flow[int]:
        portions = (new[start : start + BATCH] for start in range(0, len(new), BATCH))
        if looks_back(self._recipe):
            ids = ([episode.id for episode in portion] for portion in portions)
            read = (self._episodes.to_index(space, some, self._clock()) for some in ids)
        else:  # what was just written need not be read back
            read = ([(episode, None) for episode in portion] for portion in portions)
        try:
            return (yield from self._index(self._batches(space, read, MAX_PARTS_AT_ONCE), new=True))
        except StoreError as error:
            logger.warning("left %d turns to the background: %s", len(new), error)
            return 0

    def index(self, space: int, ids: Sequence[UUID]) -> Flow[int]:
        """Index stored episodes that are marked as pending; doing it again changes nothing.

        Args:
            space: Whose they are.
            ids: Which; those that are gone are passed over.

        Returns:
            How many are wholly indexed now.

        Raises:
            StoreError: What the batches before it did stays done.
        """
        portions = (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
        read = (self._episodes.to_index(space, some, self._clock()) for some in portions)
        return (yield from self._index(self._batches(space, read)))

    def _index(self, batches: Iterable[_Batch], *, new: bool = False) -> Flow[int]:
        search = yield from self._indexing.ready()
        embeds = self._indexing.embeds
        done = 0
        for batch in batches:
            space = batch.space
            vectors: Sequence[Vector | None] = [None] * len(batch.views) if new else self._stored(batch)
            missing = [number for number, vector in enumerate(vectors) if vector is None]
            if embeds and missing:
                reply = yield Documents(tuple(batch.views[number].text for number in missing))
                vectors = _filled(vectors, missing, reply.vectors)
                # One failure is enough: the rest is indexed by words now and by vector when it is back.
                embeds = reply.failure is None
            embedded = all(vector is not None for vector in vectors)
            registered = self._indexing.registered
            embedder = registered.id if registered and any(v is not None for v in vectors) else None
            complete = embedded or not self._indexing.wants_vectors
            entries = [entry_of(view, space, vectors[i], self._recipe) for i, view in enumerate(batch.views)]
            graph = graph_of(batch.episodes)
            sources = _sources(batch.episodes, entries)
            with self._records.indexing(
                space, sources, done=complete, vectors=embedded, embedder=embedder, entries=len(entries)
            ) as work:
                kept = work.claimed
                search.upsert([entry for entry in entries if entry.record in kept], within=work)
                self._graph.upsert(space, graph.only(kept), within=work)
            done += len(kept) if complete else 0
            if kept and complete:
                self._projector.copy(Copyable(space, tuple(kept), entries, graph))
        return done

    def _stored(self, batch: _Batch) -> list[Vector | None]:
        """The vectors that were made before, so that nothing is embedded twice."""
        if not self._indexing.wants_vectors:
            return [None] * len(batch.views)
        stored = self._indexing.search.vectors(batch.space, [episode.id for episode in batch.episodes])
        return [stored.get((view.episode.id, view.view, view.part)) for view in batch.views]

    def _batches(
        self,
        space: int,
        read: Iterable[Sequence[tuple[Episode, Episode | None]]],
        most_parts: int | None = None,
    ) -> Iterator[_Batch]:
        for pairs in read:
            rendered = [(episode, view_texts(episode, before, self._recipe)) for episode, before in pairs]
            if most_parts is not None:
                rendered = [(episode, views) for episode, views in rendered if len(views) <= most_parts]
            if rendered:
                yield _Batch(
                    space,
                    tuple(episode for episode, _ in rendered),
                    tuple(view for _, views in rendered for view in views),
                )


def _filled(
    vectors: Sequence[Vector | None], missing: Sequence[int], found: Sequence[Vector]
) -> Sequence[Vector | None]:
    if not found:
        return vectors
    by_number = dict(zip(missing, found, strict=True))
    return [by_number.get(number, vector) for number, vector in enumerate(vectors)]


def _as_episode(draft: Draft, stored: Stored, scope: Scope, now: datetime) -> Episode:
    """What was just recorded, without reading it back; its metadata is never indexed."""
    return Episode.model_construct(
        id=stored.id,
        scope=scope,
        seq=stored.seq,
        role=draft.role,
        content=draft.content,
        speaker=draft.speaker,
        occurred_at=draft.occurred_at,
        utc_offset=draft.utc_offset,
        recorded_at=now,
        source=draft.source,
        key=draft.key,
        expires_at=draft.expires_at,
        metadata={},
    )


def _sources(episodes: Sequence[Episode], entries: Sequence[IndexEntry]) -> dict[UUID, set[UUID]]:
    """Each record with those whose words were read for it: they may be forgotten before it is indexed."""
    sources: dict[UUID, set[UUID]] = {episode.id: set() for episode in episodes}
    for entry in entries:
        sources[entry.record].update(entry.sources)
    return sources


def _receipt(stored: Sequence[Stored], new: int, indexed: int) -> Receipt:
    return Receipt(
        ids=tuple(item.id for item in stored),
        stored=new,
        duplicates=len(stored) - new,
        indexed=indexed,
        pending=new - indexed,
    )
