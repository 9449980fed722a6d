"""Forgetting: erase from every store in one go, then look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import ErasureReport, Scope, StoreCount
from langchain_memrag.stores.base import GraphStore
from langchain_memrag.stores.postgres.checkpoints import CheckpointEraser
from langchain_memrag.stores.postgres.erasing import Choice, RecordEraser
from langchain_memrag.stores.postgres.records import RecordStore

__all__ = ["Eraser", "Selection"]


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


class Eraser:
    """Erases from the record, the index and the graph in one transaction where they share a database.

    Args:
        records: Finds the user.
        episodes: Erases episodes and their marks.
        graph: Erases what they said of entities.
        indexing: Erases index entries.
        checkpoints: Erases the checkpoints of threads, on request.
    """

    def __init__(
        self,
        records: RecordStore,
        episodes: RecordEraser,
        graph: GraphStore,
        indexing: Indexing,
        checkpoints: CheckpointEraser,
    ) -> None:
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
        return work.erased, [
            _count("postgres", "episodes", len(work.erased)),
            _count(search.engine, "entries", entries),
            _count(self._graph.engine, "graph", graph),
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
        return tuple(found for found in seen if found.count)


def _count(store: str, kind: str, count: int) -> StoreCount:
    return StoreCount(store=store, kind=kind, count=count)
