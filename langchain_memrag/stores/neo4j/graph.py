"""The knowledge graph on Neo4j."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from types import TracebackType
from typing import Final, Self, TypeVar, cast
from uuid import UUID

import neo4j
from neo4j.time import DateTime

from langchain_memrag.records import Entity, Relation, RelationType
from langchain_memrag.stores.base import (
    GraphBatch,
    GraphFind,
    GraphStore,
    MentionedEntity,
    RelatedPair,
    SearchFilter,
    Transaction,
)
from langchain_memrag.stores.neo4j import cypher
from langchain_memrag.stores.neo4j.address import Neo4jOptions, parse_address
from langchain_memrag.stores.neo4j.faults import faults_mapped
from langchain_memrag.stores.spreading import DECAY, Reached, combined

__all__ = ["Neo4jGraph"]

ERASED_AT_ONCE: Final = 5_000
"""Nodes or relationships that one transaction erases: it must fit into the server's memory."""

Row = Mapping[str, object]

T = TypeVar("T")


class Neo4jGraph(GraphStore):
    """Entities and relations on a Neo4j server (5.23 or newer); its writes are transactions of its own.

    Nothing is connected before the first use, so a server that is down holds up nobody who only opens.

    Args:
        url: `neo4j://user:password@host:port/database`, or `bolt://`; `+s` for TLS.
        options: How it is used.

    Raises:
        ConfigurationError: The URL cannot be read.
    """

    engine = "neo4j"
    transactional = False

    def __init__(self, url: str, options: Neo4jOptions | None = None) -> None:
        self._options = options or Neo4jOptions()
        address = parse_address(url)
        self.label = address.label
        """Where it is, without credentials."""
        self._database = self._options.database or address.database
        with faults_mapped("read the URL"):
            self._driver = neo4j.GraphDatabase.driver(
                address.label,
                auth=None if address.user is None else (address.user, address.password),
                max_connection_pool_size=self._options.pool_size,
                connection_timeout=self._options.connect_timeout,
                connection_acquisition_timeout=2 * self._options.connect_timeout,
                max_transaction_retry_time=self._options.retry_time,
                notifications_min_severity="OFF",
                telemetry_disabled=True,
            )
        self._prepared = False
        self._preparing = Lock()

    def __repr__(self) -> str:
        return f"Neo4jGraph({self.label!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._driver.close()

    def open(self) -> None:
        """Connect, and make the constraints. The first write does the same where nobody called it.

        Raises:
            StoreUnavailableError: The server cannot be reached.
            StoreError: It refuses the login, or is too old.
        """
        self._prepare()
        self._read("connect", cypher.PING)

    def _prepare(self) -> None:
        with self._preparing:
            if self._prepared:
                return
            with faults_mapped("make constraints"), self._driver.session(database=self._database) as session:
                for statement in (*cypher.SCHEMA, cypher.WAIT_FOR_SCHEMA):
                    session.run(self._query(statement)).consume()
            self._prepared = True

    def upsert(self, space: int, batch: GraphBatch, *, within: Transaction | None = None) -> None:
        """See `GraphStore.upsert`."""
        del within  # of another database
        if not batch.sources:
            return
        records = [source.record for source in batch.sources]

        def work(tx: neo4j.ManagedTransaction) -> None:
            writing = _Writing(tx, self._text, space)
            writing.lock()
            writing.take_back(records)
            writing.add(batch)

        self._write("write the graph", work)

    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """See `GraphStore.remove`."""
        del within  # of another database
        if not records:
            return 0

        def work(tx: neo4j.ManagedTransaction) -> int:
            writing = _Writing(tx, self._text, space)
            writing.lock()
            return writing.take_back(records)

        return self._write("remove from the graph", work)

    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """See `GraphStore.clear`. What stays is the number of the space, which writers lock."""
        del within  # of another database
        entities, relations = self.counts(space)
        for statement in cypher.ERASE:
            while self._write("clear the graph", self._erasing(statement, space)) == ERASED_AT_ONCE:
                pass
        return entities + relations

    def _erasing(self, statement: str, space: int) -> Callable[[neo4j.ManagedTransaction], int]:
        def work(tx: neo4j.ManagedTransaction) -> int:
            writing = _Writing(tx, self._text, space)
            writing.lock()
            (row,) = writing.rows(statement, most=ERASED_AT_ONCE)
            return cast("int", row["n"])

        return work

    def entities(self, space: int, keys: Sequence[str]) -> list[Entity]:
        """See `GraphStore.entities`."""
        rows = self._read("read entities", cypher.ENTITIES, space=space, keys=sorted(set(keys)))
        found = {cast("str", row["key"]): _entity(row) for row in rows}
        return [found[key] for key in dict.fromkeys(keys) if key in found]

    def neighbours(self, space: int, key: str, *, limit: int = 50) -> list[Relation]:
        """See `GraphStore.neighbours`."""
        rows = self._read("read relations", cypher.NEIGHBOURS, space=space, key=key, limit=limit)
        return [_relation(row) for row in rows]

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
        """See `GraphStore.expand`."""
        values: dict[str, object] = {
            "spaces": sorted(set(where.spaces)),
            "seeds": sorted(set(seeds)),
            "fanout": fanout,
            "limit": limit,
            "now": where.now,
            "decay": DECAY,
        }
        budget = self._options.timeout if timeout is None else timeout
        # Tried once: whoever has a budget would rather have no answer than a late one.
        with (
            faults_mapped("walk the graph"),
            self._driver.session(database=self._database, default_access_mode=neo4j.READ_ACCESS) as session,
            session.begin_transaction(timeout=budget) as tx,
        ):
            rows = tx.run(self._text(cypher.expand(hops)), values).data()
        return combined(
            ((_reached(row), UUID(record)) for row in rows for record in cast("list[str]", row["records"])),
            limit,
        )

    def counts(self, space: int) -> tuple[int, int]:
        """See `GraphStore.counts`."""
        (row,) = self._read("count the graph", cypher.COUNTS, space=space)
        return cast("int", row["entities"]), cast("int", row["relations"])

    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """See `GraphStore.count_of`."""
        (row,) = self._read("count the graph", cypher.COUNT_OF, space=space, records=_ids(records))
        return cast("int", row["n"])

    def _text(self, statement: str) -> str:
        return statement.format(ns=self._options.namespace)

    def _query(self, statement: str) -> neo4j.Query:
        # The namespace is checked by its options; nothing that a user says is ever put in.
        return neo4j.Query(self._text(statement), timeout=self._options.timeout)

    def _read(self, operation: str, statement: str, **values: object) -> list[Row]:
        @neo4j.unit_of_work(timeout=self._options.timeout)
        def work(tx: neo4j.ManagedTransaction) -> list[Row]:
            result = tx.run(self._text(statement), values)
            return cast("list[Row]", list(result))

        with faults_mapped(operation), self._driver.session(database=self._database) as session:
            return session.execute_read(work)

    def _write(self, operation: str, work: Callable[[neo4j.ManagedTransaction], T]) -> T:
        self._prepare()
        timed = neo4j.unit_of_work(timeout=self._options.timeout)(work)
        with faults_mapped(operation), self._driver.session(database=self._database) as session:
            return session.execute_write(timed)


class _Writing:
    """What one transaction does to one space. Rows go in sorted, so that writers lock in one order."""

    def __init__(self, tx: neo4j.ManagedTransaction, text: Callable[[str], str], space: int) -> None:
        self._tx = tx
        self._text = text
        self._space = space

    def rows(self, statement: str, **values: object) -> list[Row]:
        values["space"] = self._space
        result = self._tx.run(self._text(statement), values)
        return cast("list[Row]", list(result))

    def lock(self) -> None:
        self.rows(cypher.LOCK)

    def take_back(self, records: Sequence[UUID]) -> int:
        """Undo what records said; gives how many mentions, entities and relations went."""
        ids = _ids(records)
        mentions = self.rows(cypher.TAKE_MENTIONS, records=ids)
        support = self.rows(cypher.TAKE_SUPPORT, records=ids)
        unsupported = [row for row in support if cast("int", row["left"]) <= 0]
        lonely = [row for row in mentions if cast("int", row["left"]) <= 0]
        touched = {cast("str", row["key"]) for row in lonely}
        touched |= {cast("str", row[end]) for row in unsupported for end in ("source", "target")}
        self.rows(cypher.SWEEP_ENTITIES, records=ids, keys=sorted(touched))
        return sum(cast("int", row["lost"]) for row in mentions) + len(lonely) + len(unsupported)

    def add(self, batch: GraphBatch) -> None:
        """Add what a batch says; whatever its records said before must be gone."""
        spoken = {one.record for one in batch.mentions} | {one.record for one in batch.relations}
        expiry = {source.record: source.expires_at for source in batch.sources}
        if not spoken:
            return
        self.rows(
            cypher.ADD_RECORDS,
            rows=[{"id": str(one), "expires_at": expiry.get(one)} for one in sorted(spoken)],
        )
        self._add_mentions(batch.mentions)
        self._add_relations(batch.relations)

    def _add_mentions(self, mentions: Sequence[MentionedEntity]) -> None:
        by_key: dict[str, dict[UUID, list[MentionedEntity]]] = {}
        for one in mentions:
            by_key.setdefault(one.key, {}).setdefault(one.record, []).append(one)
        if not by_key:
            return
        keys = sorted(by_key)
        known = {cast("str", row["key"]): _entity(row) for row in self.rows(cypher.ENTITIES, keys=keys)}
        merged = [
            _merged(known.get(key), [one for said in by_key[key].values() for one in said], len(by_key[key]))
            for key in keys
        ]
        self.rows(
            cypher.ADD_ENTITIES,
            rows=[
                {
                    "key": one.key,
                    "name": one.name,
                    "type": one.type,
                    "aliases": list(one.aliases),
                    "mentions": one.mentions,
                }
                for one in merged
            ],
        )
        self.rows(
            cypher.ADD_MENTIONS,
            rows=[{"record": str(record), "key": key} for key in keys for record in sorted(by_key[key])],
        )

    def _add_relations(self, relations: Sequence[RelatedPair]) -> None:
        support: dict[tuple[RelationType, str, str, str], dict[UUID, RelatedPair]] = {}
        for one in relations:
            edge = (one.type, one.source, one.target, one.predicate)
            support.setdefault(edge, {})[one.record] = one
        by_type: dict[RelationType, list[dict[str, object]]] = {}
        for edge in sorted(support):
            kind, source, target, predicate = edge
            sample = next(iter(support[edge].values()))
            by_type.setdefault(kind, []).append(
                {
                    "id": _statement_id(*edge),
                    "source": source,
                    "target": target,
                    "predicate": predicate,
                    "valid_from": sample.valid_from,
                    "valid_to": sample.valid_to,
                    "records": _ids(list(support[edge])),
                }
            )
        for kind, rows in by_type.items():
            self.rows(cypher.add_relations(kind), rows=rows)


def _merged(known: Entity | None, said: Sequence[MentionedEntity], records: int) -> Entity:
    """An entity after some records mentioned it: its name stays, its type only gets better."""
    names = list(dict.fromkeys(one.name for one in said))
    kind = next((one.type for one in said if one.type != "other"), "other")
    if known is None:
        return Entity(key=said[0].key, name=names[0], type=kind, aliases=tuple(names[1:]), mentions=records)
    aliases = set(known.aliases) | set(names)
    return Entity(
        key=known.key,
        name=known.name,
        type=kind if known.type == "other" else known.type,
        aliases=tuple(sorted(aliases - {known.name})),
        mentions=known.mentions + records,
    )


def _ids(records: Sequence[UUID]) -> list[str]:
    return sorted({str(record) for record in records})


def _statement_id(kind: str, source: str, target: str, predicate: str) -> str:
    """The same for the same relation, and short where a predicate is long."""
    said = json.dumps([kind, source, target, predicate], ensure_ascii=False)
    return hashlib.sha256(said.encode()).hexdigest()


def _entity(row: Row) -> Entity:
    return Entity.model_validate({**row, "aliases": tuple(cast("list[str]", row["aliases"]))})


def _reached(row: Row) -> Reached:
    path = tuple(cast("list[str]", row["path"]))
    return Reached(cast("int", row["space"]), cast("str", row["key"]), cast("float", row["score"]), path)


def _relation(row: Row) -> Relation:
    return Relation.model_validate(
        {
            **row,
            "records": tuple(UUID(one) for one in cast("list[str]", row["records"])),
            "valid_from": _time(row["valid_from"]),
            "valid_to": _time(row["valid_to"]),
        }
    )


def _time(value: object) -> datetime | None:
    return value.to_native() if isinstance(value, DateTime) else None
