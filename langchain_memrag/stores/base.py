"""The roles that a store can play: few methods, batches first, ids and raw scores out.

A role knows spaces, never users. `SearchIndex` and `GraphStore` are projections of the record in
Postgres: every write is an upsert keyed by record, so that doing it again changes nothing.
A new engine is one module here, one line in `urls.py` and one entry in the contract suites.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from langchain_memrag.records import Entity, Layer, Relation, RelationType, Role, Source

__all__ = [
    "Clock",
    "DenseSignal",
    "Draft",
    "GraphBatch",
    "GraphFind",
    "GraphSource",
    "GraphStore",
    "IndexEntry",
    "LexicalSignal",
    "MentionedEntity",
    "RawHit",
    "RelatedPair",
    "SearchFilter",
    "SearchIndex",
    "Signal",
    "Stored",
    "Transaction",
    "Vector",
    "View",
]

Vector = NDArray[np.float32]
"""A unit-length embedding of shape `(width,)`."""

View = Literal["turn", "pair", "fact", "procedure", "chunk"]
"""How a record was rendered before it was indexed; a record may stand in the index in several."""

Clock = Callable[[], datetime]
"""Gives the time: aware, UTC."""


class Transaction:
    """A transaction of the record's database, opaque to whoever hands it on.

    A projection that lives in the same database joins it; every other one ignores it.
    """


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn, validated and normalised, about to be recorded."""

    id: UUID
    role: Role
    content: str
    speaker: str | None
    occurred_at: datetime
    utc_offset: int
    source: Source
    key: str | None
    expires_at: datetime | None
    metadata: str
    """JSON, as text."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a draft ended: a new episode, or the one that had its key already."""

    id: UUID
    seq: int
    new: bool


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One view of one part of one record, ready to be searched.

    Attributes:
        space: Whose it is.
        record: The record that a hit collapses to.
        layer: The record's layer.
        view: How it was rendered.
        part: From 0; a long text has several.
        sources: Records whose words it contains: the record itself and, for a pair, the one before.
        session: The record's session, for filters.
        agent: The record's agent, for filters.
        role: The record's role, for filters.
        occurred_at: When it was said, for filters.
        expires_at: The earliest expiry of its sources.
        vector: Unit length, or `None` where there is no embedder.
        terms: Term hash to impact (BM25's document part); may be empty.
    """

    space: int
    record: UUID
    layer: Layer
    view: View
    part: int
    sources: tuple[UUID, ...]
    session: str | None
    agent: str | None
    role: Role
    occurred_at: datetime
    expires_at: datetime | None
    vector: Vector | None
    terms: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class DenseSignal:
    """Nearest entries to a vector, by inner product of unit vectors (the cosine)."""

    name: str
    views: tuple[View, ...]
    depth: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class LexicalSignal:
    """Entries that hold weighted terms: the score is the sum of weight times impact.

    Attributes:
        terms: Term hash to query weight (idf times query frequency), decided by the engine.
    """

    name: str
    views: tuple[View, ...]
    depth: int
    terms: Mapping[int, float]


Signal = DenseSignal | LexicalSignal


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What a search may return. All conditions must hold.

    Attributes:
        spaces: Spaces that may be read; never empty.
        now: Entries that expire at or before it are never returned.
        since: Said at or after it.
        until: Said before it.
    """

    spaces: tuple[int, ...]
    now: datetime
    session: str | None = None
    agent: str | None = None
    roles: tuple[Role, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        if not self.spaces:
            raise ValueError("a search needs at least one space")

    @property
    def narrows(self) -> bool:
        """Whether it asks for more than space and expiry."""
        return any((self.session, self.agent, self.roles is not None, self.since, self.until))


@dataclass(frozen=True, slots=True)
class RawHit:
    """An entry that a signal found: ids and the engine's own score, never text."""

    space: int
    record: UUID
    view: View
    part: int
    score: float


class SearchIndex(ABC):
    """Finds records by vector and by words.

    Attributes:
        engine: Its name, as in errors and reports.
        transactional: Whether its writes join a `Transaction` of the record's database.
    """

    engine: ClassVar[str]
    transactional: ClassVar[bool] = False

    @abstractmethod
    def upsert(self, entries: Sequence[IndexEntry], *, within: Transaction | None = None) -> None:
        """Put entries in; an entry of the same (space, record, view, part) is replaced.

        Args:
            entries: Of one space or several.
            within: The transaction to join, where the engine can.

        Raises:
            ConfigurationError: A vector's width is not that of the index.
            StoreUnavailableError: The engine cannot be reached.
        """

    @abstractmethod
    def search(
        self, signals: Sequence[Signal], where: SearchFilter, *, timeout: float | None = None
    ) -> list[list[RawHit]]:
        """Run all signals, in one round trip where the engine can.

        Args:
            signals: What to look for.
            where: What may be returned; applied inside the query, before ranking.
            timeout: Seconds that the engine may take, counted from when a connection is at hand; the
                engine stops the work by itself when they are over.

        Returns:
            One list a signal, in the order asked; each best first, at most `depth` long, ties by
            newest record first. A lexical hit has a score above 0.

        Raises:
            StoreUnavailableError: The engine cannot be reached or was too slow.
        """

    @abstractmethod
    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """Remove every entry whose sources include one of the records.

        Returns:
            How many entries went.
        """

    @abstractmethod
    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """Remove every entry of a space; returns how many went."""

    @abstractmethod
    def count(self, space: int) -> int:
        """How many entries a space has, the expired included."""

    @abstractmethod
    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """How many entries have one of these records among their sources, the expired included."""

    def unprepared(self) -> list[int]:
        """Spaces that have grown so big that `prepare` would make their searches faster."""
        return []

    def prepare(self, space: int) -> None:  # noqa: B027 - most engines have nothing to prepare
        """Build, in the background and without holding up anyone, what makes a big space fast."""


@dataclass(frozen=True, slots=True)
class MentionedEntity:
    """An entity that a record mentions."""

    record: UUID
    key: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class RelatedPair:
    """A relation that a record supports. Undirected types have `source < target`."""

    record: UUID
    source: str
    target: str
    type: RelationType
    predicate: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A record that the graph knows, and from when on it must not be returned."""

    record: UUID
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """What some records say about entities. Upserting it replaces what those records said before.

    Attributes:
        sources: All records of the batch, those without entities included.
    """

    sources: tuple[GraphSource, ...]
    mentions: tuple[MentionedEntity, ...] = ()
    relations: tuple[RelatedPair, ...] = ()

    def only(self, records: Collection[UUID]) -> GraphBatch:
        """The part of it that these records say."""
        return GraphBatch(
            tuple(source for source in self.sources if source.record in records),
            tuple(mention for mention in self.mentions if mention.record in records),
            tuple(relation for relation in self.relations if relation.record in records),
        )


@dataclass(frozen=True, slots=True)
class GraphFind:
    """A record reached from the seeds.

    Attributes:
        record: Its id.
        score: 0 to 1; falls with distance and with how common the entities on the way are.
        path: Entity names from a seed to the entity that the record mentions.
    """

    record: UUID
    score: float
    path: tuple[str, ...] = field(default=())


class GraphStore(ABC):
    """Entities, which records mention them, and how they relate; all per space."""

    engine: ClassVar[str]
    transactional: ClassVar[bool] = False

    @abstractmethod
    def upsert(self, space: int, batch: GraphBatch, *, within: Transaction | None = None) -> None:
        """Record what the batch's records say; what those records said before is replaced.

        A known entity keeps its name; a type of `other` never replaces a better one; other spellings
        become aliases.
        """

    @abstractmethod
    def entities(self, space: int, keys: Sequence[str]) -> list[Entity]:
        """The entities with these keys that some record mentions, in the order asked."""

    @abstractmethod
    def neighbours(self, space: int, key: str, *, limit: int = 50) -> list[Relation]:
        """Relations that touch an entity, best supported first, ties by key."""

    @abstractmethod
    def expand(
        self,
        where: SearchFilter,
        seeds: Sequence[str],
        *,
        hops: int = 1,
        fanout: int = 16,
        limit: int = 50,
        timeout: float | None = None,
    ) -> list[GraphFind]:
        """Records that mention the seeds or what they are related to, bounded at every step.

        Args:
            where: Spaces that may be read, and the time by which expiry is judged. What else it asks
                for (session, role, time) is left to the caller, who knows the records.
            seeds: Entity keys.
            hops: 0 for records that mention a seed; 1 or 2 to follow relations. At most 2.
            fanout: How many relations are followed from one entity, best supported first.
            limit: How many records at most.
            timeout: As for `SearchIndex.search`.

        Returns:
            Best first, each record once, ties by newest record first.
        """

    @abstractmethod
    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """Take back what these records said; entities and relations left without a source go.

        Returns:
            How many mentions, entities and relations went, in total.
        """

    @abstractmethod
    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """Remove all of a space; returns how many entities and relations went."""

    @abstractmethod
    def counts(self, space: int) -> tuple[int, int]:
        """How many entities and relations a space has."""

    @abstractmethod
    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """How many mentions and supported relations these records still have."""
