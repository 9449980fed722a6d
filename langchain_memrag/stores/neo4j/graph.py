"""The knowledge graph on Neo4j."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar, cast
from uuid import UUID

import neo4j

from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.records import Entity, Relation
from langchain_memrag.stores.base import GraphBatch, GraphFind, SearchFilter, Transaction
from langchain_memrag.stores.neo4j import cypher
from langchain_memrag.stores.neo4j.address import Neo4jOptions
from langchain_memrag.stores.neo4j.connection import Neo4jConnection
from langchain_memrag.stores.neo4j.reading import entity_of, reached_of, relation_of
from langchain_memrag.stores.neo4j.writing import SpaceWriting, ids
from langchain_memrag.stores.server import GraphServer
from langchain_memrag.stores.spreading import DECAY, combined

__all__ = ["Neo4jGraph"]

T = TypeVar("T")

ERASED_AT_ONCE: Final = 5_000
"""Nodes or relationships that one transaction erases: it must fit into the server's memory."""


class Neo4jGraph(GraphServer):
    """Entities and relations on a Neo4j server (5.23 or newer); its writes are transactions of its own.

    Nothing is connected before the first use, so a server that is down holds up nobody who only opens.
    After a fork, the child makes connections of its own.

    Args:
        url: `neo4j://user:password@host:port/database?namespace=Mine`, or `bolt://`; `+s` for TLS.
            Only the host is required.
        options: How it is used.

    Raises:
        ConfigurationError: The URL cannot be read.
    """

    engine = "neo4j"
    transactional = False

    def __init__(self, url: str, options: Neo4jOptions | None = None) -> None:
        self._connection = Neo4jConnection(url, options or Neo4jOptions())
        self._signed = False  # whether the data here were seen to be a memory's

    def __repr__(self) -> str:
        return f"Neo4jGraph({self.label!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def label(self) -> str:
        """Where it is, without credentials."""
        return self._connection.label

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def open(self) -> None:
        """Connect, and make the constraints. The first write does the same where nobody called it.

        Raises:
            StoreUnavailableError: The server cannot be reached.
            StoreError: It refuses the login, or is too old.
        """
        self._connection.prepare()

    def version(self) -> str:
        """See `Server.version`."""
        (row,) = self._connection.read("ask for the version", cypher.VERSION)
        return cast("str", row["version"])

    def knows(self, memory: UUID) -> bool:
        """See `Server.knows`. Data that nobody adopted, an older version's say, are nobody's yet."""
        rows = self._connection.read("ask whose graph it is", cypher.MEMORY)
        self._refuse_others(memory, [cast("str", row["id"]) for row in rows])
        self._signed = bool(rows)
        if not rows:
            self._connection.prepare_anew()
        return self._signed

    def adopt(self, memory: UUID) -> None:
        """See `Server.adopt`."""

        def work(tx: neo4j.ManagedTransaction) -> list[str]:
            rows = tx.run(self._connection.text(cypher.ADOPT), memory=str(memory))
            return [cast("str", row["id"]) for row in rows]

        self._refuse_others(memory, self._connection.write("note whose graph it is", work))
        self._signed = True

    def _refuse_others(self, memory: UUID, found: Sequence[str]) -> None:
        if any(one != str(memory) for one in found):
            raise ConfigurationError(
                f"namespace {self._connection.namespace} of {self.label} holds the graph of another memory;"
                " give this one a namespace of its own, by ?namespace=... in the URL"
            )

    def upsert(self, space: int, batch: GraphBatch, *, within: Transaction | None = None) -> None:
        """See `GraphStore.upsert`."""
        del within  # of another database
        if not batch.sources:
            return
        records = [source.record for source in batch.sources]

        def work(writing: SpaceWriting) -> None:
            writing.take_back(records)
            writing.add(batch)

        self._write("write the graph", space, work)

    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """See `GraphStore.remove`."""
        del within  # of another database
        if not records:
            return 0
        return self._write("remove from the graph", space, lambda writing: writing.take_back(records))

    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """See `GraphStore.clear`. What stays is the number of the space, which writers lock."""
        del within  # of another database
        entities, relations = self.counts(space)
        for statement in cypher.ERASE:
            while self._erase(space, statement) == ERASED_AT_ONCE:
                pass
        return entities + relations

    def _erase(self, space: int, statement: str) -> int:
        def work(writing: SpaceWriting) -> int:
            (row,) = writing.rows(statement, most=ERASED_AT_ONCE)
            return cast("int", row["n"])

        return self._write("clear the graph", space, work)

    def _write(self, operation: str, space: int, work: Callable[[SpaceWriting], T]) -> T:
        text = self._connection.text

        def seen(tx: neo4j.ManagedTransaction) -> T:
            writing = SpaceWriting(tx, text, space)
            if self._signed and not writing.known:
                raise self._lost(operation)
            return work(writing)

        return self._connection.write(operation, seen)

    def _lost(self, operation: str) -> StoreUnavailableError:
        """The connection was made anew without a word, and what it leads to is not what was there before."""
        self._signed = False
        self._connection.prepare_anew()
        return StoreUnavailableError(
            "the server lost its data; they are copied to it again", engine=self.engine, operation=operation
        )

    def entities(self, space: int, keys: Sequence[str]) -> list[Entity]:
        """See `GraphStore.entities`."""
        rows = self._connection.read("read entities", cypher.ENTITIES, space=space, keys=sorted(set(keys)))
        found = {cast("str", row["key"]): entity_of(row) for row in rows}
        return [found[key] for key in dict.fromkeys(keys) if key in found]

    def neighbours(self, space: int, key: str, *, limit: int = 50) -> list[Relation]:
        """See `GraphStore.neighbours`."""
        rows = self._connection.read("read relations", cypher.NEIGHBOURS, space=space, key=key, limit=limit)
        return [relation_of(row) for row in rows]

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
        """See `GraphStore.expand`. Without a `timeout`, that of the options holds."""
        values: dict[str, object] = {
            "spaces": sorted(set(where.spaces)),
            "seeds": sorted(set(seeds)),
            "fanout": fanout,
            "limit": limit,
            "now": where.now,
            "decay": DECAY,
        }
        rows = self._connection.read_once("walk the graph", cypher.expand(hops), values, timeout)
        if (
            not rows
            and self._signed
            and not self._connection.read_once("ask whose graph it is", cypher.MEMORY, {}, timeout)
        ):
            raise self._lost("walk the graph")
        return combined(
            ((reached_of(row), UUID(record)) for row in rows for record in cast("list[str]", row["records"])),
            limit,
        )

    def counts(self, space: int) -> tuple[int, int]:
        """See `GraphStore.counts`."""
        (row,) = self._connection.read("count the graph", cypher.COUNTS, space=space)
        return cast("int", row["entities"]), cast("int", row["relations"])

    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """See `GraphStore.count_of`."""
        (row,) = self._connection.read("count the graph", cypher.COUNT_OF, space=space, records=ids(records))
        return cast("int", row["n"])
