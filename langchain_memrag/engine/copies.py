"""What an engine beside Postgres holds a copy of: index entries, or entities and relations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from langchain_memrag.engine.projection import Projection
from langchain_memrag.engine.views import entry_of, graph_of, view_texts
from langchain_memrag.ranking import Recipe
from langchain_memrag.records import Episode
from langchain_memrag.stores.base import GraphBatch, GraphStore, IndexEntry, SearchIndex, Vector, View
from langchain_memrag.stores.postgres.projections import Projected

__all__ = ["Copies", "Copyable", "EntryCopies", "GraphCopies", "VectorSource"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Copyable:
    """Records of one space, as an engine will hold them.

    Attributes:
        space: Whose they are.
        records: All of them, those that have nothing to copy included.
        entries: For the search index.
        graph: For the graph.
    """

    space: int
    records: tuple[UUID, ...]
    entries: Sequence[IndexEntry] = ()
    graph: GraphBatch = field(default_factory=lambda: GraphBatch(()))


class VectorSource(Protocol):
    """Gives the vectors that are stored for records."""

    def __call__(self, space: int, records: Sequence[UUID]) -> Mapping[tuple[UUID, View, int], Vector]:
        """Vectors by record, view and part."""


class Copies(ABC, Generic[S]):
    """The copies on one engine.

    Args:
        projection: The engine.
    """

    role: ClassVar[Projected]
    kind: ClassVar[str]
    """What reports call them."""

    def __init__(self, projection: Projection[S]) -> None:
        self.projection = projection

    @abstractmethod
    def made_of(self, space: int, episodes: Sequence[tuple[Episode, Episode | None]]) -> Copyable:
        """What is to be copied of stored episodes, each with the turn before it."""

    @abstractmethod
    def write(self, what: Copyable, claimed: Collection[UUID]) -> None:
        """Write some of the records."""

    @abstractmethod
    def erase(self, space: int, records: Sequence[UUID] | None) -> int:
        """Erase records, or all of a space; returns how much went."""

    @abstractmethod
    def left(self, space: int, records: Sequence[UUID] | None) -> int:
        """How much is held of records, or of a space."""


class EntryCopies(Copies[SearchIndex]):
    """Index entries.

    Args:
        projection: The engine.
        vectors: What was embedded: nothing is embedded twice.
        recipe: Gives the terms their impact.
    """

    role = "search"
    kind = "entries"

    def __init__(self, projection: Projection[SearchIndex], vectors: VectorSource, recipe: Recipe) -> None:
        super().__init__(projection)
        self._vectors = vectors
        self._recipe = recipe

    def made_of(self, space: int, episodes: Sequence[tuple[Episode, Episode | None]]) -> Copyable:
        """See `Copies.made_of`."""
        records = tuple(episode.id for episode, _ in episodes)
        vectors = self._vectors(space, records)
        views = [view for pair in episodes for view in view_texts(*pair, self._recipe)]
        entries = [
            entry_of(view, space, vectors.get((view.episode.id, view.view, view.part)), self._recipe)
            for view in views
        ]
        return Copyable(space, records, entries)

    def write(self, what: Copyable, claimed: Collection[UUID]) -> None:
        """See `Copies.write`."""
        wanted = [entry for entry in what.entries if entry.record in claimed]
        if wanted:
            self.projection.call("index", lambda store: store.upsert(wanted))

    def erase(self, space: int, records: Sequence[UUID] | None) -> int:
        """See `Copies.erase`."""
        return self.projection.use(
            "forget",
            lambda store: store.clear(space) if records is None else store.remove(space, records),
        )

    def left(self, space: int, records: Sequence[UUID] | None) -> int:
        """See `Copies.left`."""
        return self.projection.use(
            "count entries",
            lambda store: store.count(space) if records is None else store.count_of(space, records),
        )


class GraphCopies(Copies[GraphStore]):
    """Entities, mentions and relations."""

    role = "graph"
    kind = "graph"

    def made_of(self, space: int, episodes: Sequence[tuple[Episode, Episode | None]]) -> Copyable:
        """See `Copies.made_of`."""
        said = [episode for episode, _ in episodes]
        return Copyable(space, tuple(episode.id for episode in said), graph=graph_of(said))

    def write(self, what: Copyable, claimed: Collection[UUID]) -> None:
        """See `Copies.write`."""
        batch = what.graph.only(claimed)
        if batch.sources:
            self.projection.call("write the graph", lambda store: store.upsert(what.space, batch))

    def erase(self, space: int, records: Sequence[UUID] | None) -> int:
        """See `Copies.erase`."""
        return self.projection.use(
            "forget",
            lambda store: store.clear(space) if records is None else store.remove(space, records),
        )

    def left(self, space: int, records: Sequence[UUID] | None) -> int:
        """See `Copies.left`."""
        return self.projection.use(
            "count the graph",
            lambda store: sum(store.counts(space)) if records is None else store.count_of(space, records),
        )
