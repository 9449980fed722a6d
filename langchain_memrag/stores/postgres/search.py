"""The search index on Postgres: pgvector for what is meant, postings for what is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final, LiteralString, cast
from uuid import UUID

import numpy as np
from pgvector.psycopg.halfvec import HalfVector
from psycopg import Connection

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.base import (
    DenseSignal,
    IndexEntry,
    LexicalSignal,
    RawHit,
    SearchFilter,
    SearchIndex,
    Signal,
    Transaction,
)
from langchain_memrag.stores.postgres.codes import ROLES, VIEW_NAMES, VIEWS, microseconds, short_hash
from langchain_memrag.stores.postgres.columns import ColumnWriter, halfvec, halfvecs
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.entries import EntryWriter
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["PostgresSearch", "create_vector_table"]

_FILTERS: Final[Mapping[str, LiteralString]] = {
    "session": " AND {alias}.session = %(session)s",
    "agent": " AND {alias}.agent = %(agent)s",
    "roles": " AND {alias}.role = ANY(%(roles)s)",
    "since": " AND {alias}.occurred_at >= %(since{unit})s",
    "until": " AND {alias}.occurred_at < %(until{unit})s",
}


def create_vector_table(database: Database, connection: Connection[Row], embedder: int, width: int) -> None:
    """Make the table of an embedder's vectors, narrow, with a covering index; times are microseconds."""
    table = f"vector_{embedder}"
    kind = f"halfvec({int(width)})"
    connection.execute(
        database.statement(
            "CREATE TABLE {schema}.{table} (space bigint NOT NULL, occurred_at bigint NOT NULL,"
            " expires_at bigint NOT NULL, session bigint NOT NULL, agent bigint NOT NULL,"
            f" entry integer NOT NULL, view smallint NOT NULL, role smallint NOT NULL, embedding {kind} NOT NULL)",
            table=table,
        )
    )
    connection.execute(
        database.statement("ALTER TABLE {schema}.{table} ALTER embedding SET STORAGE PLAIN", table=table)
    )
    connection.execute(
        database.statement(
            "CREATE UNIQUE INDEX {index} ON {schema}.{table} (space, view, entry)"
            " INCLUDE (occurred_at, expires_at, session, agent, role, embedding)",
            table=table,
            index=f"{table}_cover",
        )
    )


class PostgresSearch(SearchIndex):
    """Dense and lexical search in the database of the record; its writes join the caller's transaction.

    Args:
        database: Where it is.
        embedder: Names the table of vectors; `None` to search by words alone.
        width: Dimensions of the vectors.
    """

    engine = "postgres"
    transactional = True

    def __init__(self, database: Database, embedder: int | None, width: int | None) -> None:
        self._database = database
        self._entries = EntryWriter(database)
        self._table = None if embedder is None else f"vector_{embedder}"
        self._width = width
        self._postings = ColumnWriter(
            database,
            "posting",
            {"space": "bigint", "term": "integer", "entry": "integer", "weight": "real", "view": "smallint"},
        )
        self._vectors = (
            None
            if self._table is None
            else ColumnWriter(
                database,
                self._table,
                {
                    "space": "bigint",
                    "occurred_at": "bigint",
                    "expires_at": "bigint",
                    "session": "bigint",
                    "agent": "bigint",
                    "entry": "integer",
                    "view": "smallint",
                    "role": "smallint",
                    "embedding": "halfvec",
                },
            )
        )

    def upsert(self, entries: Sequence[IndexEntry], *, within: Transaction | None = None) -> None:
        """See `SearchIndex.upsert`."""
        self._check_widths(entries)
        with self._database.joined(within, "index") as connection:
            ordered = sorted(entries, key=lambda entry: entry.space)
            for space, group in groupby(ordered, key=lambda entry: entry.space):
                self._upsert(connection, space, list({_key(entry): entry for entry in group}.values()))

    def _upsert(self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry]) -> None:
        self._remove(connection, space, self._standing(connection, space, entries))
        ids = self._entries.write(connection, space, entries)
        counts = [len(entry.terms) for entry in entries]
        if sum(counts):
            self._postings.write(
                connection,
                {
                    "space": np.full(sum(counts), space, np.int64),
                    "term": np.fromiter((t for entry in entries for t in entry.terms), np.int32),
                    "entry": np.repeat(np.array(ids, np.int32), counts),
                    "weight": np.fromiter((w for entry in entries for w in entry.terms.values()), np.float32),
                    "view": np.repeat(np.array([VIEWS[entry.view] for entry in entries], np.int16), counts),
                },
            )
        pairs = [
            (entry, ident) for entry, ident in zip(entries, ids, strict=True) if entry.vector is not None
        ]
        if pairs and self._vectors is not None:
            self._write_vectors(
                connection, space, [entry for entry, _ in pairs], [ident for _, ident in pairs]
            )

    def _write_vectors(
        self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry], ids: Sequence[int]
    ) -> None:
        assert self._vectors is not None
        self._vectors.write(
            connection,
            {
                "space": np.full(len(ids), space, np.int64),
                "occurred_at": np.array([microseconds(entry.occurred_at) for entry in entries], np.int64),
                "expires_at": np.array([microseconds(entry.expires_at) for entry in entries], np.int64),
                "session": np.array([short_hash(entry.session) for entry in entries], np.int64),
                "agent": np.array([short_hash(entry.agent) for entry in entries], np.int64),
                "entry": np.array(ids, np.int32),
                "view": np.array([VIEWS[entry.view] for entry in entries], np.int16),
                "role": np.array([ROLES[entry.role] for entry in entries], np.int16),
                "embedding": halfvecs([entry.vector for entry in entries if entry.vector is not None]),
            },
        )

    def _check_widths(self, entries: Sequence[IndexEntry]) -> None:
        for entry in entries:
            if entry.vector is not None and self._width is not None and len(entry.vector) != self._width:
                raise ConfigurationError(
                    f"a vector of {len(entry.vector)} dimensions does not fit an index of {self._width}: "
                    f"use the embedder the index was made with, or move it with `memrag reembed`"
                )

    def _standing(self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry]) -> list[int]:
        """What is in the index of these records and views already, whole records at a time."""
        rows = connection.execute(
            self._database.statement(
                "SELECT id FROM {schema}.entry WHERE space = %s AND (record, view, part) IN"
                " (SELECT * FROM unnest(%s::uuid[], %s::smallint[], %s::integer[]))"
            ),
            (
                space,
                [entry.record for entry in entries],
                [VIEWS[entry.view] for entry in entries],
                [entry.part for entry in entries],
            ),
        ).fetchall()
        return [cast("int", row[0]) for row in rows]

    def _remove(self, connection: Connection[Row], space: int, ids: Sequence[int]) -> int:
        if not ids:
            return 0
        connection.execute(
            self._database.statement(
                "DELETE FROM {schema}.posting p USING {schema}.entry e CROSS JOIN LATERAL unnest(e.terms) t (term)"
                " WHERE e.space = %(space)s AND e.id = ANY(%(ids)s) AND p.space = e.space AND p.view = e.view"
                " AND p.term = t.term AND p.entry = e.id"
            ),
            {"space": space, "ids": list(ids)},
        )
        if self._table is not None:
            connection.execute(
                self._database.statement(
                    "DELETE FROM {schema}.{table} v USING {schema}.entry e WHERE e.space = %(space)s"
                    " AND e.id = ANY(%(ids)s) AND v.space = e.space AND v.view = e.view AND v.entry = e.id",
                    table=self._table,
                ),
                {"space": space, "ids": list(ids)},
            )
        self._entries.remove(connection, space, ids)
        return len(ids)

    def search(
        self, signals: Sequence[Signal], where: SearchFilter, *, timeout: float | None = None
    ) -> list[list[RawHit]]:
        """See `SearchIndex.search`."""
        with self._planned("search", timeout) as connection:
            return [self._run(connection, signal, where) for signal in signals]

    @contextmanager
    def _planned(self, operation: str, timeout: float | None) -> Iterator[Connection[Row]]:
        with self._database.transaction(operation) as work:
            limit = 0 if timeout is None else max(1, int(timeout * 1000))
            work.connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true),"
                " set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)",
                (str(limit),),
            )
            yield work.connection

    def _run(self, connection: Connection[Row], signal: Signal, where: SearchFilter) -> list[RawHit]:
        values = {
            "spaces": list(where.spaces),
            "views": [VIEWS[view] for view in signal.views],
            "now": where.now,
            "now_us": microseconds(where.now),
            "depth": signal.depth,
            "session": short_hash(where.session),
            "agent": short_hash(where.agent),
            "roles": [ROLES[role] for role in where.roles or ()],
            "since": where.since,
            "until": where.until,
            "since_us": microseconds(where.since),
            "until_us": microseconds(where.until),
        }
        match signal:
            case DenseSignal():
                return self._dense(connection, signal, where, values)
            case LexicalSignal():
                return self._lexical(connection, signal, where, values)

    def _dense(
        self, connection: Connection[Row], signal: DenseSignal, where: SearchFilter, values: dict[str, object]
    ) -> list[RawHit]:
        if self._table is None:
            return []
        query = self._database.statement(
            "SELECT e.space, e.record, e.view, e.part, -v.distance FROM"
            " (SELECT space, entry, embedding <#> %(vector)s::halfvec AS distance FROM {schema}.{table} v"
            "  WHERE space = ANY(%(spaces)s) AND view = ANY(%(views)s) AND expires_at > %(now_us)s"
            + _narrowing(where, "v", "_us")
            + "  ORDER BY distance LIMIT %(depth)s) v"
            " JOIN {schema}.entry e ON e.space = v.space AND e.id = v.entry ORDER BY v.distance, e.record DESC",
            table=self._table,
        )
        rows = connection.execute(query, {**values, "vector": halfvec(signal.vector)}).fetchall()
        return [_hit(row) for row in rows]

    def _lexical(
        self,
        connection: Connection[Row],
        signal: LexicalSignal,
        where: SearchFilter,
        values: dict[str, object],
    ) -> list[RawHit]:
        narrowed = (
            " AND EXISTS (SELECT FROM {schema}.entry f WHERE f.space = p.space AND f.id = p.entry"
            + _narrowing(where, "f", "")
            + ")"
            if where.narrows
            else ""
        )
        query = self._database.statement(
            "SELECT e.space, e.record, e.view, e.part, s.score FROM (SELECT space, entry, score FROM"
            "  (SELECT p.space, p.entry, sum(p.weight * q.weight) AS score"
            "   FROM unnest(%(terms)s::integer[], %(weights)s::real[]) q (term, weight)"
            "   CROSS JOIN LATERAL (SELECT space, entry, weight FROM {schema}.posting p"
            "    WHERE p.space = ANY(%(spaces)s) AND p.view = ANY(%(views)s) AND p.term = q.term OFFSET 0) p"
            "   WHERE true" + narrowed + " GROUP BY p.space, p.entry) a"
            "  WHERE NOT EXISTS (SELECT FROM {schema}.entry x WHERE x.space = a.space AND x.id = a.entry"
            "   AND x.expires_at <= %(now)s AND x.expires_at < 'infinity')"
            "  ORDER BY score DESC, entry DESC LIMIT %(depth)s) s"
            " JOIN {schema}.entry e ON e.space = s.space AND e.id = s.entry ORDER BY s.score DESC, e.record DESC"
        )
        rows = connection.execute(
            query, {**values, "terms": list(signal.terms), "weights": list(signal.terms.values())}
        ).fetchall()
        return [_hit(row) for row in rows]

    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """See `SearchIndex.remove`."""
        with self._database.joined(within, "remove from the index") as connection:
            return self._remove(connection, space, self._of(connection, space, records))

    def _of(self, connection: Connection[Row], space: int, records: Sequence[UUID]) -> list[int]:
        rows = connection.execute(
            self._database.statement(
                "SELECT id FROM {schema}.entry WHERE space = %(space)s AND record = ANY(%(records)s) UNION"
                " SELECT entry FROM {schema}.entry_source WHERE space = %(space)s AND source = ANY(%(records)s)"
            ),
            {"space": space, "records": list(records)},
        ).fetchall()
        return [cast("int", row[0]) for row in rows]

    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """See `SearchIndex.clear`."""
        tables = ["posting", "entry_source", "term_stat", "view_stat"]
        if self._table is not None:
            tables.append(self._table)
        with self._database.joined(within, "clear the index") as connection:
            for table in tables:
                connection.execute(
                    self._database.statement("DELETE FROM {schema}.{table} WHERE space = %s", table=table),
                    (space,),
                )
            gone = connection.execute(
                self._database.statement("DELETE FROM {schema}.entry WHERE space = %s"), (space,)
            )
            return gone.rowcount

    def count(self, space: int) -> int:
        """See `SearchIndex.count`."""
        with self._database.connection("count entries") as connection:
            row = connection.execute(
                self._database.statement("SELECT count(*) FROM {schema}.entry WHERE space = %s"), (space,)
            ).fetchone()
        return cast("tuple[int]", row)[0]

    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """See `SearchIndex.count_of`."""
        with self._database.connection("count entries") as connection:
            return len(self._of(connection, space, records))


def _key(entry: IndexEntry) -> tuple[UUID, str, int]:
    return entry.record, entry.view, entry.part


def _narrowing(where: SearchFilter, alias: LiteralString, unit: LiteralString) -> LiteralString:
    given = {
        "session": where.session is not None,
        "agent": where.agent is not None,
        "roles": where.roles is not None,
        "since": where.since is not None,
        "until": where.until is not None,
    }
    clauses = "".join(_FILTERS[name] for name, wanted in given.items() if wanted)
    return clauses.replace("{alias}", alias).replace("{unit}", unit)


def _hit(row: Row) -> RawHit:
    space, record, view, part, score = cast("tuple[int, UUID, int, int, float]", row)
    return RawHit(space, record, VIEW_NAMES[view], part, float(score))
