"""Forgetting: erase from Postgres in one go, then from every engine beside it, then look.

What an engine cannot give up just now is marked in the transaction that erased it from the record: the
report says so, the background does it when the engine is back, and until then recall does not ask it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from langchain_memrag.engine.caching import RecallCache
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.projecting import Projector
from langchain_memrag.errors import ConfigurationError, StoreError
from langchain_memrag.records import ErasureReport, Scope, StoreCount
from langchain_memrag.stores.base import Clock, GraphStore
from langchain_memrag.stores.postgres.checkpoints import CheckpointEraser
from langchain_memrag.stores.postgres.erasing import Choice, RecordEraser
from langchain_memrag.stores.postgres.projections import WHOLE_SPACE, ProjectionStore
from langchain_memrag.stores.postgres.records import RecordStore

__all__ = ["Eraser", "EraserBeside", "Selection"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a user wants forgotten.

    Raises:
        ConfigurationError: Nothing, or things that contradict each other.
    """

    scope: Scope
    ids: tuple[UUID, ...] | None
    since: datetime | None
    until: datetime | None
    everything: bool
    checkpoints: bool

    def __post_init__(self) -> None:
        narrowed = (
            self.ids is not None
            or self.since is not None
            or self.until is not None
            or self.scope.session_id is not None
        )
        if self.everything and narrowed:
            raise ConfigurationError(
                "forget: everything=True goes without ids, times and session; give Scope(user_id) alone"
            )
        if not self.everything and not narrowed:
            raise ConfigurationError(
                "forget: say what: ids, since or until, a session in the scope, or everything=True"
            )
        if any(moment is not None and moment.tzinfo is None for moment in (self.since, self.until)):
            raise ConfigurationError("forget: since and until must be aware times")

    @property
    def choice(self) -> Choice:
        """The episodes that are meant."""
        return Choice(ids=self.ids, session=self.scope.session_id, since=self.since, until=self.until)


class EraserBeside:
    """Erases from the engines beside Postgres, and from the cache.

    Args:
        projector: The engines that hold copies.
        cache: What was found before.
        marks: What is left to erase.
        clock: By which it is judged whether refused work is tried again.
    """

    def __init__(
        self, projector: Projector, cache: RecallCache, marks: ProjectionStore, clock: Clock
    ) -> None:
        self._projector = projector
        self._cache = cache
        self._marks = marks
        self._clock = clock

    def erase(self, space: int, records: Sequence[UUID] | None, generation: int) -> list[StoreCount]:
        """Erase records, or all of a space, wherever an engine answers."""
        if records is not None and not records:
            return []
        # Of a cache nobody knows which values hold which words: all of the space goes.
        values = self._clear(space, None if records is None else generation)
        cached = [] if values is None else [_count(self._cache.engine, "values", values)]
        return [*self._projector.erase(space, records), *cached]

    def residue(self, space: int, records: Sequence[UUID] | None) -> list[StoreCount]:
        """What is still held; an engine that cannot be asked is named with what it has to erase."""
        if records is not None and not records:
            return []
        found = [*self._projector.residue(space, records), *self._elsewhere(space)]
        try:
            values = self._cache.count(space)
        except StoreError:
            return [*found, _count(self._cache.engine, "erasures to come", 1)]
        # What is kept of a space that lives on was found after it forgot: the cache takes nothing older.
        return [*found, _count(self._cache.engine, "values", values)] if records is None else found

    def _elsewhere(self, space: int) -> list[StoreCount]:
        """What engines that this process was not told of have still to erase."""
        here = {own.role for own in self._projector.copies} | ({"cache"} if self._cache.shared else set())
        return [
            _count(engine.name, "erasures to come", self._marks.lag(role, space).erasures)
            for role, engine in self._marks.engines().items()
            if role not in here
        ]

    def clear_left(self, stop: Callable[[], bool]) -> None:
        """Clear the spaces of which a cache was away when they were to be forgotten."""
        # Nothing else asks whether it is back where nothing is recalled.
        if not self._cache.shared or not self._cache.answers():
            return
        for space in self._marks.erasures("cache", self._clock(), limit=1000):
            # What is computed from now on may be kept; of a space that is gone, nothing may.
            if stop() or self._clear(space, self._marks.generation(space)) is None:
                return

    def _clear(self, space: int, generation: int | None) -> int | None:
        try:
            gone = self._cache.forget(space, generation)
        except StoreError as error:
            logger.warning("the cache of a forgotten text is cleared later: %s", error)
            return None
        if self._cache.shared:
            self._marks.erased("cache", space, [WHOLE_SPACE])
        return gone


class Eraser:
    """Erases from the record, the index and the graph in one transaction where they share a database.

    Args:
        records: Finds the user.
        episodes: Erases episodes and their marks.
        graph: Erases what they said of entities.
        indexing: Erases index entries.
        checkpoints: Erases the checkpoints of threads, on request.
        beside: Erases from the engines beside Postgres.
    """

    def __init__(
        self,
        records: RecordStore,
        episodes: RecordEraser,
        graph: GraphStore,
        indexing: Indexing,
        checkpoints: CheckpointEraser,
        beside: EraserBeside,
    ) -> None:
        self._beside = beside
        self._records = records
        self._episodes = episodes
        self._graph = graph
        self._indexing = indexing
        self._checkpoints = checkpoints

    def forget(self, what: Selection, *, dry_run: bool) -> ErasureReport:
        """Erase, then look whether it is gone.

        Args:
            what: What is meant.
            dry_run: Only count.
        """
        space = self._records.space_of(what.scope.user_id)
        if space is None:
            return ErasureReport(dry_run=dry_run, erased=())
        threads = self._episodes.sessions(space, what.choice) if what.checkpoints else []
        if dry_run:
            counts = [_count("postgres", "episodes", self._episodes.count(space, what.choice))]
            if what.everything:
                counts += self._sizes(space)
                counts += self._beside.residue(space, None)
            if what.checkpoints:
                counts.append(_count("postgres", "checkpoints", self._checkpoints.count(space, threads)))
            return ErasureReport(dry_run=True, erased=tuple(counts))
        erased, counts = self._erase(space, what.choice, everything=what.everything)
        if what.checkpoints:
            counts.append(_count("postgres", "checkpoints", self._checkpoints.erase(space, threads)))
        residue = self._look(space, erased, everything=what.everything)
        return ErasureReport(dry_run=False, erased=tuple(counts), residue=residue)

    def expire(self, now: datetime, limit: int, stop: Callable[[], bool]) -> None:
        """Erase what has expired, space by space."""
        for space in self._episodes.expired(now, limit):
            if stop():
                return
            self._erase(space, Choice(expired_at=now), everything=False)

    def clear_left(self, stop: Callable[[], bool]) -> None:
        """Erase what a cache could not give up when it was forgotten."""
        self._beside.clear_left(stop)

    def _erase(
        self, space: int, choice: Choice, *, everything: bool
    ) -> tuple[tuple[UUID, ...], list[StoreCount]]:
        search = self._indexing.search
        with self._episodes.erasing(space, choice) as work:
            if everything:
                entries, graph = search.clear(space, within=work), self._graph.clear(space, within=work)
                self._episodes.drop_space(work, space)
            else:
                entries = search.remove(space, work.erased, within=work)
                graph = self._graph.remove(space, work.erased, within=work)
        beside = self._beside.erase(space, None if everything else work.erased, work.generation)
        return work.erased, [
            _count("postgres", "episodes", len(work.erased)),
            _count(search.engine, "entries", entries),
            _count(self._graph.engine, "graph", graph),
            *beside,
        ]

    def _sizes(self, space: int) -> list[StoreCount]:
        search = self._indexing.search
        return [
            _count(search.engine, "entries", search.count(space)),
            _count(self._graph.engine, "graph", sum(self._graph.counts(space))),
        ]

    def _look(self, space: int, erased: tuple[UUID, ...], *, everything: bool) -> tuple[StoreCount, ...]:
        search = self._indexing.search
        seen = [_count("postgres", "episodes", self._episodes.left(space, erased))]
        if everything:
            seen += self._sizes(space)
        else:
            seen.append(_count(search.engine, "entries", search.count_of(space, erased)))
            seen.append(_count(self._graph.engine, "graph", self._graph.count_of(space, erased)))
        seen += self._beside.residue(space, None if everything else erased)
        return tuple(found for found in seen if found.count)


def _count(store: str, kind: str, count: int) -> StoreCount:
    return StoreCount(store=store, kind=kind, count=count)
