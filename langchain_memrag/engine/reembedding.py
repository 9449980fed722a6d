"""Moving a memory to another embedder while recall keeps answering with the one it has.

The new vectors grow in a table of their own. Whoever is stopped, or killed, in the middle leaves the old
ones whole, and goes on where he was. Only when nothing is missing does the memory change over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count, groupby
from typing import Final
from uuid import UUID

from langchain_memrag.engine.embedding import Fingerprint, same_embedder
from langchain_memrag.engine.flow import Documents, Flow, Recognition
from langchain_memrag.engine.reindexing import Progress
from langchain_memrag.engine.views import entry_of, view_texts
from langchain_memrag.errors import ConfigurationError, StoreError
from langchain_memrag.ranking import Recipe
from langchain_memrag.stores.postgres.embedders import EmbedderRegistry, RegisteredEmbedder
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.reembedding import PORTION, Reembedding

__all__ = ["Reembedder"]

PATIENCE: Final = 3
"""Rounds after which it changes over though others have just written."""

SPARE: Final = 1_000
"""Entries that may lack a vector then, for the moment that it takes to make them."""

_BEFORE_ANYTHING: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Tally:
    """How many entries are done; more may be written meanwhile than there were."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def add(self, count: int) -> None:
        self._done = min(self._total, self._done + count)
        self._progress(self._done, self._total)


class Reembedder:
    """Moves a memory to another embedder.

    Args:
        registry: Knows the embedder that is searched by.
        vectors: The second table.
        episodes: What was said.
        recipe: Says how a turn is rendered.
    """

    def __init__(
        self,
        registry: EmbedderRegistry,
        vectors: Reembedding,
        episodes: EpisodeReader,
        recipe: Recipe,
    ) -> None:
        self._registry = registry
        self._vectors = vectors
        self._episodes = episodes
        self._recipe = recipe

    def move(self, *, progress: Progress, stop: Callable[[], bool]) -> Flow[bool]:
        """Embed everything anew, then change over.

        The flow must be driven with the new embedder.

        Args:
            progress: Told after each portion.
            stop: Asked between two portions.

        Returns:
            Whether the memory is at the new embedder now; false where it was stopped.

        Raises:
            ConfigurationError: The embedder cannot be used; the memory is as it was.
            StoreError: It failed in the middle; the memory is as it was.
        """
        reply = yield Recognition()
        if reply.refusal is not None:
            raise reply.refusal
        if reply.fingerprint is None:
            raise ConfigurationError(f"reembed: the new embedder failed ({reply.failure})")
        seen = reply.fingerprint
        active = self._registry.active()
        if active is not None and same_embedder(Fingerprint(active.name, active.width, active.probes), seen):
            return True
        if active is None:
            raise ConfigurationError(
                "reembed: this memory has no embedder yet; open it with one, and what is stored is embedded"
            )
        target = self._vectors.begin(seen.name, seen.width, seen.probes)
        total = self._vectors.count_missing(target)
        tally = _Tally(total, progress)
        tally.add(0)
        stuck: frozenset[UUID] = frozenset()
        for number in count(1):
            left = yield from self._round(target, tally, stop)
            if left is None:
                return False
            spare = 0 if number <= PATIENCE else SPARE
            if not left and self._vectors.finish(target, spare=spare):
                # From now on who writes has the new one, so there is no more than this.
                yield from self._round(target, tally, stop)
                progress(total, total)
                return True
            # What is left once may just have been written; what is left twice will be the next time, too.
            if stuck & left:
                raise StoreError(
                    f"{len(stuck & left)} turns were indexed in a way that this memory does not know; "
                    "run `memrag reindex --engine postgres` first",
                    engine="postgres",
                    operation="reembed",
                )
            stuck = left
        raise AssertionError("it counts on for ever")

    def drop_retired(self, drop_copy: Callable[[int], None]) -> int:
        """Drop the vectors of embedders that are not searched by any more; returns of how many.

        Args:
            drop_copy: Drops those of the engine of the search index, given the embedder's number.
        """
        retired = self._vectors.retired()
        for embedder in retired:
            drop_copy(embedder)
            self._vectors.drop(embedder)
        return len(retired)

    def _round(
        self, target: RegisteredEmbedder, tally: _Tally, stop: Callable[[], bool]
    ) -> Flow[frozenset[UUID] | None]:
        """Go once over what is missing; gives the turns that still lack some, `None` if it was stopped."""
        after: tuple[int, UUID] | None = None
        left: frozenset[UUID] = frozenset()
        while not stop():
            waiting = self._vectors.missing(target, after)
            after = waiting[-1] if waiting else None
            for space, group in groupby(waiting, key=lambda one: one[0]):
                added, lacking = yield from self._embed(target, space, [record for _, record in group])
                tally.add(added)
                left |= lacking
            # The end, for this time: those who write without a pause would put it off for ever.
            if len(waiting) < PORTION:
                return left
        return None

    def _embed(
        self, target: RegisteredEmbedder, space: int, records: list[UUID]
    ) -> Flow[tuple[int, frozenset[UUID]]]:
        # What has expired, and is not erased yet, has entries too.
        read = self._episodes.to_index(space, records, _BEFORE_ANYTHING)
        views = [view for pair in read for view in view_texts(*pair, self._recipe)]
        # Without any they were forgotten in this moment, or are left over.
        reply = yield Documents(tuple(view.text for view in views))
        if reply.refusal is not None:
            raise reply.refusal
        if views and not reply.vectors:
            raise StoreError(
                f"the new embedder failed ({reply.failure}); run it again to go on",
                engine="embedder",
                operation="reembed",
            )
        entries = {
            (view.episode.id, view.view, view.part): entry_of(view, space, vector, self._recipe)
            for view, vector in zip(views, reply.vectors, strict=True)
        }
        return self._vectors.write(target, space, records, entries)
