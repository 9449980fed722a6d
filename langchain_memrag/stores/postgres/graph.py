"""The knowledge graph on Postgres: entities, mentions, relations and what supports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import cast
from uuid import UUID

from psycopg import Connection

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
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.pools import Row, piped
from langchain_memrag.stores.postgres.records import IndexingTransaction
from langchain_memrag.stores.postgres.walk import GraphWalk

__all__ = ["PostgresGraph"]


class PostgresGraph(GraphStore):
    """Entities and relations in the database of the record; its writes join the caller's transaction.

    Writers of one space must hold the lock of its row, as `RecordStore.indexing` does.

    Args:
        database: Where they are.
    """

    engine = "postgres"
    transactional = True

    def __init__(self, database: Database) -> None:
        self._database = database

    def upsert(self, space: int, batch: GraphBatch, *, within: Transaction | None = None) -> None:
        """See `GraphStore.upsert`."""
        if not batch.sources:
            return
        with self._database.joined(within, "write the graph") as connection:
            if within is None:
                self._lock(connection, space)
            if not (isinstance(within, IndexingTransaction) and within.fresh):
                self._take_back(connection, space, [source.record for source in batch.sources])
            with nullcontext() if piped(connection) else connection.pipeline():
                self._add_mentions(connection, space, batch)
                self._add_relations(connection, space, batch.relations)

    def _lock(self, connection: Connection[Row], space: int) -> None:
        """Take the lock of a space, and say that what a recall can find in it changes."""
        connection.execute(
            self._database.statement("UPDATE {schema}.space SET generation = generation + 1 WHERE id = %s"),
            (space,),
        )

    def _add_mentions(self, connection: Connection[Row], space: int, batch: GraphBatch) -> None:
        mentions = list({(one.record, one.key): one for one in batch.mentions}.values())
        if not mentions:
            return
        expiry = {source.record: source.expires_at for source in batch.sources}
        counts = Counter(one.key for one in mentions)
        first: dict[str, MentionedEntity] = {}
        names: dict[str, list[str]] = {}
        for one in mentions:
            known = first.get(one.key)
            if known is None or (known.type == "other" and one.type != "other"):
                first[one.key] = (
                    one if known is None else MentionedEntity(one.record, one.key, known.name, one.type)
                )
            if one.name not in names.setdefault(one.key, []):
                names[one.key].append(one.name)
        keys = sorted(counts)
        connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.entity AS e (space, key, name, type, mentions, aliases)"
                " SELECT %(space)s, key, name, type, mentions, aliases::text[]"
                " FROM unnest(%(keys)s::text[], %(names)s::text[], %(types)s::text[], %(counts)s::integer[],"
                " %(aliases)s::text[]) AS n (key, name, type, mentions, aliases)"
                " ON CONFLICT (space, key) DO UPDATE SET mentions = e.mentions + excluded.mentions,"
                " type = CASE WHEN e.type = 'other' THEN excluded.type ELSE e.type END,"
                " aliases = CASE WHEN excluded.name = e.name AND excluded.aliases = '{{}}' THEN e.aliases ELSE"
                "  ARRAY(SELECT DISTINCT a FROM unnest(e.aliases || excluded.aliases || excluded.name) a"
                "   WHERE a <> e.name ORDER BY a) END"
            ),
            {
                "space": space,
                "keys": keys,
                "names": [first[key].name for key in keys],
                "types": [first[key].type for key in keys],
                "counts": [counts[key] for key in keys],
                "aliases": [_array([name for name in names[key] if name != first[key].name]) for key in keys],
            },
        )
        connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.mention (space, record, key, expires_at)"
                " SELECT %s, record, key, coalesce(expires_at, 'infinity')"
                " FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[]) AS m (record, key, expires_at)"
            ),
            (
                space,
                [one.record for one in mentions],
                [one.key for one in mentions],
                [expiry.get(one.record) for one in mentions],
            ),
        )

    def _add_relations(
        self, connection: Connection[Row], space: int, relations: Sequence[RelatedPair]
    ) -> None:
        support: dict[tuple[str, str, str, str], dict[UUID, RelatedPair]] = {}
        for one in relations:
            support.setdefault((one.source, one.target, one.type, one.predicate), {})[one.record] = one
        if not support:
            return
        edges = sorted(support)
        samples = [next(iter(support[edge].values())) for edge in edges]
        links = [(number, record) for number, edge in enumerate(edges, 1) for record in support[edge]]
        connection.execute(
            self._database.statement(
                "WITH edge AS MATERIALIZED (SELECT * FROM unnest(%(sources)s::text[], %(targets)s::text[],"
                "  %(types)s::text[], %(predicates)s::text[], %(weights)s::integer[], %(since)s::timestamptz[],"
                "  %(until)s::timestamptz[]) WITH ORDINALITY"
                "  AS e (source, target, type, predicate, weight, valid_from, valid_to, number)),"
                " known AS (INSERT INTO {schema}.relation AS r"
                "  (space, source, target, type, predicate, weight, valid_from, valid_to)"
                "  SELECT %(space)s, source, target, type, predicate, weight, valid_from, valid_to FROM edge"
                "  ORDER BY number ON CONFLICT (space, source, target, type, md5(predicate)) DO UPDATE"
                "  SET weight = r.weight + excluded.weight,"
                "  valid_from = coalesce(excluded.valid_from, r.valid_from),"
                "  valid_to = coalesce(excluded.valid_to, r.valid_to)"
                "  RETURNING id, source, target, type, predicate)"
                " INSERT INTO {schema}.relation_source (space, relation, record)"
                " SELECT %(space)s, known.id, link.record"
                " FROM unnest(%(numbers)s::integer[], %(records)s::uuid[]) AS link (number, record)"
                " JOIN edge ON edge.number = link.number"
                " JOIN known ON (known.source, known.target, known.type, known.predicate)"
                "  = (edge.source, edge.target, edge.type, edge.predicate)"
            ),
            {
                "space": space,
                "sources": [edge[0] for edge in edges],
                "targets": [edge[1] for edge in edges],
                "types": [edge[2] for edge in edges],
                "predicates": [edge[3] for edge in edges],
                "weights": [len(support[edge]) for edge in edges],
                "since": [one.valid_from for one in samples],
                "until": [one.valid_to for one in samples],
                "numbers": [number for number, _ in links],
                "records": [record for _, record in links],
            },
        )

    def _take_back(self, connection: Connection[Row], space: int, records: Sequence[UUID]) -> int:
        values = {"space": space, "records": list(records)}
        with connection.pipeline():
            lost_mentions = connection.execute(
                self._database.statement(
                    "WITH gone AS (DELETE FROM {schema}.mention WHERE space = %(space)s"
                    "  AND record = ANY(%(records)s) RETURNING key),"
                    " counted AS (SELECT key, count(*) AS n FROM gone GROUP BY key)"
                    " UPDATE {schema}.entity e SET mentions = e.mentions - c.n FROM counted c"
                    " WHERE e.space = %(space)s AND e.key = c.key RETURNING e.key, c.n, e.mentions"
                ),
                values,
            )
            lost_support = connection.execute(
                self._database.statement(
                    "WITH gone AS (DELETE FROM {schema}.relation_source WHERE space = %(space)s"
                    "  AND record = ANY(%(records)s) RETURNING relation),"
                    " counted AS (SELECT relation, count(*) AS n FROM gone GROUP BY relation)"
                    " UPDATE {schema}.relation r SET weight = r.weight - c.n FROM counted c"
                    " WHERE r.id = c.relation AND r.space = %(space)s RETURNING r.id, r.weight"
                ),
                values,
            )
            mentions = lost_mentions.fetchall()
            relations = lost_support.fetchall()
        lonely = [key for key, _, left in mentions if cast("int", left) <= 0]
        unsupported = [ident for ident, left in relations if cast("int", left) <= 0]
        if lonely:
            connection.execute(
                self._database.statement(
                    "DELETE FROM {schema}.entity WHERE space = %s AND key = ANY(%s) AND mentions <= 0"
                ),
                (space, lonely),
            )
        if unsupported:
            connection.execute(
                self._database.statement(
                    "DELETE FROM {schema}.relation WHERE space = %s AND id = ANY(%s) AND weight <= 0"
                ),
                (space, unsupported),
            )
        return sum(cast("int", n) for _, n, _ in mentions) + len(lonely) + len(unsupported)

    def entities(self, space: int, keys: Sequence[str]) -> list[Entity]:
        """See `GraphStore.entities`."""
        found = {
            cast("str", row[0]): Entity(
                key=cast("str", row[0]),
                name=cast("str", row[1]),
                type=cast("str", row[2]),
                aliases=tuple(cast("list[str]", row[3])),
                mentions=cast("int", row[4]),
            )
            for row in self._rows(
                "read entities",
                "SELECT key, name, type, aliases, mentions FROM {schema}.entity"
                " WHERE space = %(space)s AND key = ANY(%(keys)s)",
                {"space": space, "keys": list(keys)},
            )
        }
        return [found[key] for key in dict.fromkeys(keys) if key in found]

    def neighbours(self, space: int, key: str, *, limit: int = 50) -> list[Relation]:
        """See `GraphStore.neighbours`."""
        rows = self._rows(
            "read relations",
            "SELECT r.source, r.target, r.type, r.predicate, r.weight, r.valid_from, r.valid_to,"
            " ARRAY(SELECT s.record FROM {schema}.relation_source s WHERE s.relation = r.id"
            "  AND s.space = r.space ORDER BY s.record DESC LIMIT 100)"
            " FROM (SELECT * FROM ("
            "   (SELECT * FROM {schema}.relation WHERE space = %(space)s AND source = %(key)s"
            "    ORDER BY weight DESC, target LIMIT %(limit)s)"
            "   UNION (SELECT * FROM {schema}.relation WHERE space = %(space)s AND target = %(key)s"
            "    ORDER BY weight DESC, source LIMIT %(limit)s)) both_ways"
            "  ORDER BY weight DESC, source, target, type, predicate LIMIT %(limit)s) r"
            " ORDER BY r.weight DESC, r.source, r.target, r.type, r.predicate",
            {"space": space, "key": key, "limit": limit},
        )
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
        with self._database.transaction("walk the graph") as work:
            budget = 0 if timeout is None else max(1, int(timeout * 1000))
            work.connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true)",
                (str(budget),),
            )
            return GraphWalk(self._database, work.connection, where).finds(
                seeds, hops=hops, fanout=fanout, limit=limit
            )

    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """See `GraphStore.remove`."""
        if not records:
            return 0
        with self._database.joined(within, "remove from the graph") as connection:
            if within is None:
                self._lock(connection, space)
            return self._take_back(connection, space, records)

    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """See `GraphStore.clear`."""
        gone = 0
        with self._database.joined(within, "clear the graph") as connection:
            if within is None:
                self._lock(connection, space)
            for table in ("mention", "relation_source"):
                connection.execute(
                    self._database.statement("DELETE FROM {schema}.{table} WHERE space = %s", table=table),
                    (space,),
                )
            for table in ("entity", "relation"):
                gone += connection.execute(
                    self._database.statement("DELETE FROM {schema}.{table} WHERE space = %s", table=table),
                    (space,),
                ).rowcount
        return gone

    def counts(self, space: int) -> tuple[int, int]:
        """See `GraphStore.counts`."""
        (row,) = self._rows(
            "count the graph",
            "SELECT (SELECT count(*) FROM {schema}.entity WHERE space = %(space)s),"
            " (SELECT count(*) FROM {schema}.relation WHERE space = %(space)s)",
            {"space": space},
        )
        return cast("tuple[int, int]", row)

    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """See `GraphStore.count_of`."""
        (row,) = self._rows(
            "count the graph",
            "SELECT (SELECT count(*) FROM {schema}.mention WHERE space = %(space)s AND record = ANY(%(records)s))"
            " + (SELECT count(*) FROM {schema}.relation_source"
            "  WHERE space = %(space)s AND record = ANY(%(records)s))",
            {"space": space, "records": list(records)},
        )
        return cast("tuple[int]", row)[0]

    def _rows(self, operation: str, template: str, values: dict[str, object]) -> list[Row]:
        with self._database.connection(operation) as connection:
            return connection.execute(self._database.statement(template), values).fetchall()


def _array(values: Sequence[str]) -> str:
    """A text array as a literal, since arrays of arrays must be rectangular."""
    quoted = ('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    return "{" + ",".join(quoted) + "}"


def _relation(row: Row) -> Relation:
    source, target, kind, predicate, weight, valid_from, valid_to, records = row
    return Relation.model_validate(
        {
            "source": source,
            "target": target,
            "type": cast("RelationType", kind),
            "predicate": predicate,
            "weight": weight,
            "records": tuple(cast("list[UUID]", records)),
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
    )
