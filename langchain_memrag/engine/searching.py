"""Asking the engine that was named for a role, and Postgres where it cannot answer.

Postgres holds all that the others hold. So an engine that is away, late, or behind with this space costs
the recall time, and not a hit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.projection import Projection
from langchain_memrag.errors import StoreError
from langchain_memrag.stores.base import (
    GraphFind,
    GraphStore,
    RawHit,
    SearchFilter,
    SearchIndex,
    Signal,
)
from langchain_memrag.stores.postgres.projections import Projected

__all__ = ["Answer", "Searching"]

S = TypeVar("S")
R = TypeVar("R")

SHARE: Final = 0.5
"""Of an arm's time, what an engine beside Postgres may take; the rest is for Postgres to answer instead."""

Behind = frozenset[Projected]
"""The roles whose engine does not hold all of a space."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """What was found.

    Attributes:
        found: The hits.
        missing: Why the engine that was named for the role did not find them; empty where it did.
    """

    found: R
    missing: str = ""


class Searching:
    """The arms of a recall, on whichever engine can answer.

    Args:
        indexing: The search index in Postgres.
        graph: The graph in Postgres.
        other_search: The engine that was named for the search index.
        other_graph: The engine that was named for the graph.
    """

    def __init__(
        self,
        indexing: Indexing,
        graph: GraphStore,
        other_search: Projection[SearchIndex] | None,
        other_graph: Projection[GraphStore] | None,
    ) -> None:
        self._indexing = indexing
        self._graph = graph
        self._other_search = other_search
        self._other_graph = other_graph

    def search(
        self, signals: Sequence[Signal], where: SearchFilter, timeout: float, behind: Behind
    ) -> Answer[list[list[RawHit]]]:
        """See `SearchIndex.search`."""

        def ask(store: SearchIndex, seconds: float) -> list[list[RawHit]]:
            return store.search(signals, where, timeout=seconds)

        asked = _Asked(self._other_search, "search", "search" in behind)
        return _answered(asked, self._indexing.search, ask, timeout)

    def expand(
        self,
        where: SearchFilter,
        seeds: Sequence[str],
        timeout: float,
        behind: Behind,
        *,
        hops: int,
        limit: int,
    ) -> Answer[list[GraphFind]]:
        """See `GraphStore.expand`."""

        def ask(store: GraphStore, seconds: float) -> list[GraphFind]:
            return store.expand(where, seeds, hops=hops, limit=limit, timeout=seconds)

        asked = _Asked(self._other_graph, "walk the graph", "graph" in behind)
        return _answered(asked, self._graph, ask, timeout)


@dataclass(frozen=True, slots=True)
class _Asked(Generic[S]):
    """The engine that was named for a role, if there is one.

    Attributes:
        behind: Whether it does not hold all of the space.
    """

    engine: Projection[S] | None
    operation: str
    behind: bool


def _answered(asked: _Asked[S], own: S, ask: Callable[[S, float], R], timeout: float) -> Answer[R]:
    other = asked.engine
    if other is None:
        return Answer(ask(own, timeout))
    started = time.monotonic()
    try:
        if not asked.behind:
            return Answer(other.use(asked.operation, lambda store: ask(store, timeout * SHARE), reads=True))
        # It is behind for a moment after every write; only one that is away is worth a word.
        other.check(asked.operation)
        missing = ""
    except StoreError as error:
        missing = f"{error.engine}: {type(error).__name__}; postgres answered instead"
    left = timeout - (time.monotonic() - started)
    return Answer(ask(own, max(left, timeout * (1 - SHARE))), missing)
