"""The search index on Postgres: pgvector for what is meant, postings for what is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, lru_cache, partial
from itertools import groupby
from typing import Final, cast
from uuid import UUID

from psycopg import Connection, Cursor

from langchain_memrag.errors import NotFoundError, SchemaError
from langchain_memrag.stores.base import (
    DenseSignal,
    IndexEntry,
    LexicalSignal,
    RawHit,
    SearchFilter,
    SearchIndex,
    Signal,
    Transaction,
    Vector,
    View,
)
from langchain_memrag.stores.postgres.codes import VIEW_NAMES
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.dense import VectorTable, create_vector_table, vector_tables
from langchain_memrag.stores.postgres.entries import EntryWriter
from langchain_memrag.stores.postgres.lexical import Facts, LexicalPlan, Postings, TermSpread
from langchain_memrag.stores.postgres.narrowing import FEW_PERMITTED, Permitted, permitted_query
from langchain_memrag.stores.postgres.neighbours import NeighbourCopies, copies_of, drop_copies
from langchain_memrag.stores.postgres.pools import Row, piped
from langchain_memrag.stores.postgres.records import IndexingTransaction

__all__ = ["PostgresSearch", "create_vector_table"]

_FEW: Final = 4
"""Entries that are written without COPY: those of a turn or two."""

_UNVACUUMED: Final = 5_000
"""Inserted rows that are worth a vacuum."""

_EFFORT: Final = (100, 1000)
"""How many neighbours HNSW keeps in sight, at least and at most."""


class PostgresSearch(SearchIndex):
    """Dense and lexical search in the database of the record; its writes join the caller's transaction.

    Args:
        database: Where it is.
        embedder: Names the table of vectors; `None` to search by words alone.
        width: Dimensions of the vectors.
        big: Entries of a view from which a space gets a nearest-neighbour graph; by default it depends
            on the width.
    """

    engine = "postgres"
    transactional = True

    def __init__(
        self, database: Database, embedder: int | None, width: int | None, *, big: int | None = None
    ) -> None:
        self._database = database
        self._entries = EntryWriter(database)
        self._postings = Postings(database)
        self._vectors = None if embedder is None or width is None else VectorTable(database, embedder, width)
        self._copies = None if self._vectors is None else NeighbourCopies(database, self._vectors, big=big)

    def upsert(self, entries: Sequence[IndexEntry], *, within: Transaction | None = None) -> None:
        """See `SearchIndex.upsert`."""
        if self._vectors is not None:
            for entry in entries:
                if entry.vector is not None:
                    self._vectors.check(entry.vector)
        if not entries:
            return
        with self._database.joined(within, "index") as connection:
            ordered = sorted(entries, key=lambda entry: entry.space)
            for space, group in groupby(ordered, key=lambda entry: entry.space):
                unique = {(entry.record, entry.view, entry.part): entry for entry in group}
                self._upsert(connection, space, list(unique.values()), within)

    def _upsert(
        self,
        connection: Connection[Row],
        space: int,
        entries: Sequence[IndexEntry],
        within: Transaction | None,
    ) -> None:
        if isinstance(within, IndexingTransaction) and within.fresh:
            ids = within.take(len(entries))
        else:
            last, standing = self._entries.reserve(connection, space, entries)
            if last is None:
                raise NotFoundError(f"space {space} does not exist")
            self._remove(connection, space, standing)
            ids = range(last - len(entries) + 1, last + 1)
        # A few entries are sent in one go; for many, COPY is worth waiting for.
        with connection.pipeline() if len(entries) <= _FEW and not piped(connection) else nullcontext():
            self._entries.write(connection, space, entries, ids)
            self._postings.write(connection, space, entries, ids)
            if self._vectors is not None:
                self._vectors.write(connection, space, entries, ids)

    def _remove(self, connection: Connection[Row], space: int, ids: Sequence[int]) -> int:
        if not ids:
            return 0
        values = {"space": space, "ids": list(ids)}
        connection.execute(
            self._database.statement(
                "DELETE FROM {schema}.posting p USING {schema}.entry e CROSS JOIN LATERAL unnest(e.terms) t (term)"
                " WHERE e.space = %(space)s AND e.id = ANY(%(ids)s) AND p.space = %(space)s AND p.view = e.view"
                " AND p.term = t.term AND p.entry = e.id"
            ),
            values,
        )
        for table in vector_tables(self._database, connection):
            connection.execute(
                self._database.statement(
                    "DELETE FROM {schema}.{table} v USING {schema}.entry e WHERE e.space = %(space)s"
                    " AND e.id = ANY(%(ids)s) AND v.space = %(space)s AND v.view = e.view AND v.entry = e.id",
                    table=table,
                ),
                values,
            )
        for copy in copies_of(self._database, connection, space):
            connection.execute(
                self._database.statement("DELETE FROM {schema}.{copy} WHERE entry = ANY(%(ids)s)", copy=copy),
                values,
            )
        self._entries.remove(connection, space, ids)
        return len(ids)

    def search(
        self, signals: Sequence[Signal], where: SearchFilter, *, timeout: float | None = None
    ) -> list[list[RawHit]]:
        """See `SearchIndex.search`."""
        if self._vectors is not None:
            for signal in signals:
                if isinstance(signal, DenseSignal):
                    self._vectors.check(signal.vector)
        try:
            return self._search(signals, where, timeout)
        except SchemaError:
            # A copy was dropped between being read of and being read: it is not read of any more.
            return self._search(signals, where, timeout)

    def _search(
        self, signals: Sequence[Signal], where: SearchFilter, timeout: float | None
    ) -> list[list[RawHit]]:
        with self._planned("search", timeout) as connection:
            facts = self._facts(connection, signals, where)
            watermarks = self._watermarks(connection, signals, where)
            answers: list[Callable[[], list[Row]]] = []
            for signal in signals:
                match signal:
                    case DenseSignal():
                        permitted = facts.permitted() if where.narrows else None
                        answers.append(self._dense(connection, signal, where, watermarks(), permitted))
                    case LexicalSignal():
                        answers.append(self._lexical(connection, signal, where, facts.of(signal)))
            return [_ranked(answer()) for answer in answers]

    @contextmanager
    def _planned(self, operation: str, timeout: float | None) -> Iterator[Connection[Row]]:
        """A pipelined transaction in which plans follow the indexes, not the guess at a new table."""
        with self._database.transaction(operation, pipeline=True) as work:
            limit = 0 if timeout is None else max(1, int(timeout * 1000))
            work.connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true),"
                " set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),"
                " set_config('max_parallel_workers_per_gather', '0', true), set_config('work_mem', '32MB', true)",
                (str(limit),),
            )
            yield work.connection

    def _watermarks(
        self, connection: Connection[Row], signals: Sequence[Signal], where: SearchFilter
    ) -> Callable[[], Mapping[int, int]]:
        """Ask which spaces have a copy; the answer is read when it is needed."""
        depth = max((signal.depth for signal in signals if isinstance(signal, DenseSignal)), default=0)
        if self._copies is None or not depth:
            return dict
        least, most = _EFFORT
        marks = connection.execute(*self._copies.watermarks_query(where.spaces))
        connection.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)",
            (str(min(max(least, 2 * depth), most)),),
        )
        return lru_cache(maxsize=1)(lambda: dict(cast("list[tuple[int, int]]", marks.fetchall())))

    def _facts(
        self, connection: Connection[Row], signals: Sequence[Signal], where: SearchFilter
    ) -> _PendingFacts:
        """Ask what decides how a search is made; the answers are read when they are needed."""
        spreads = {
            id(signal): connection.execute(*self._postings.spread_query(signal, where))
            for signal in signals
            if isinstance(signal, LexicalSignal)
        }
        expired = connection.execute(
            self._database.statement(
                "SELECT EXISTS (SELECT FROM {schema}.entry WHERE space = ANY(%s) AND expires_at <= %s"
                " AND expires_at < 'infinity')"
            ),
            (list(where.spaces), where.now),
        )
        permitted = (
            connection.execute(*permitted_query(self._database, where)) if signals and where.narrows else None
        )
        return _PendingFacts(spreads, expired, permitted)

    def _dense(
        self,
        connection: Connection[Row],
        signal: DenseSignal,
        where: SearchFilter,
        watermarks: Mapping[int, int],
        permitted: Permitted | None,
    ) -> Callable[[], list[Row]]:
        """Send what answers a signal; the answer is read when all are under way."""
        if self._vectors is None:
            return list
        if permitted is not None:
            return connection.execute(*self._vectors.among(signal, where, permitted)).fetchall
        first = connection.execute(*self._vectors.query(signal, where, watermarks))
        if not watermarks or not where.narrows:
            return first.fetchall
        vectors = self._vectors

        def enough() -> list[Row]:
            # A graph gives up when it meets too few of those that it may return.
            rows = first.fetchall()
            if len(rows) >= signal.depth:
                return rows
            return connection.execute(*vectors.query(signal, where, {})).fetchall()

        return enough

    def _lexical(
        self, connection: Connection[Row], signal: LexicalSignal, where: SearchFilter, facts: Facts
    ) -> Callable[[], list[Row]]:
        """Send what answers a signal; the answer is read when all are under way."""
        plan = self._postings.plan(signal, where, facts)
        if plan is None:
            return list
        first = connection.execute(plan.query, plan.values)
        if plan.bound is None:
            return first.fetchall
        return partial(
            self._complete, connection, first, plan.bound, self._postings.full(signal, where, facts)
        )

    @staticmethod
    def _complete(
        connection: Connection[Row], first: Cursor[Row], bound: float, full: LexicalPlan
    ) -> list[Row]:
        """The answer to a question of which common words were spared, if that missed nothing."""
        rows = first.fetchall()
        if rows and cast("float", rows[0][5]) >= bound:
            return rows
        return connection.execute(full.query, full.values).fetchall()

    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:
        """See `SearchIndex.remove`."""
        if not records:
            return 0
        with self._database.joined(within, "remove from the index") as connection:
            self._entries.lock(connection, space)
            return self._remove(connection, space, self._entries.of_sources(connection, space, records))

    def clear(self, space: int, *, within: Transaction | None = None) -> int:
        """See `SearchIndex.clear`."""
        with self._database.joined(within, "clear the index") as connection:
            self._entries.lock(connection, space)
            drop_copies(self._database, connection, space)
            tables = ["posting", *vector_tables(self._database, connection)]
            for table in tables:
                connection.execute(
                    self._database.statement("DELETE FROM {schema}.{table} WHERE space = %s", table=table),
                    (space,),
                )
            return self._entries.clear(connection, space)

    def vectors(self, space: int, records: Sequence[UUID]) -> Mapping[tuple[UUID, View, int], Vector]:
        """What is stored of records, by record, view and part: nothing has to be embedded twice."""
        if self._vectors is None or not records:
            return {}
        with self._database.connection("read vectors") as connection:
            return self._vectors.read(connection, space, records)

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
            return len(self._entries.of_sources(connection, space, records))

    def unprepared(self) -> list[int]:
        """See `SearchIndex.unprepared`."""
        return [] if self._copies is None else self._copies.wanting()

    def prepare(self, space: int) -> None:
        """See `SearchIndex.prepare`."""
        if self._copies is not None:
            self._copies.advance(space)
        self.maintain()

    def maintain(self) -> None:
        """Vacuum what has taken many inserts, sooner than the server would do it by itself.

        Until then an index-only scan looks every new row up in its table. Worth calling after an import.
        """
        tables = ["entry", "posting", "mention"]
        with self._database.connection("vacuum") as connection:
            if self._vectors is not None:
                tables.append(self._vectors.name)
            rows = connection.execute(
                "SELECT relname::text FROM pg_catalog.pg_stat_all_tables WHERE schemaname = %s"
                " AND relname = ANY(%s) AND n_ins_since_vacuum > greatest(%s, n_live_tup / 50)",
                (self._database.schema, tables, _UNVACUUMED),
            ).fetchall()
            for (table,) in cast("list[tuple[str]]", rows):
                # Not worth waiting for whoever is at it already, autovacuum most likely.
                connection.execute(
                    self._database.statement("VACUUM (SKIP_LOCKED, ANALYZE) {schema}.{table}", table=table)
                )


class _PendingFacts:
    """What was asked before a search; each answer is read once."""

    def __init__(
        self, spreads: Mapping[int, Cursor[Row]], expired: Cursor[Row], permitted: Cursor[Row] | None
    ) -> None:
        self._spreads = spreads
        self._expired = expired
        self._permitted = permitted

    @cached_property
    def _shared(self) -> tuple[bool, Permitted | None]:
        row = self._expired.fetchone()
        few: Permitted | None = None
        if self._permitted is not None:
            few = cast("list[tuple[int, int]]", self._permitted.fetchall())
        return bool(row and row[0]), few if few is not None and len(few) <= FEW_PERMITTED else None

    def permitted(self) -> Permitted | None:
        """The entries that a narrowed search may return, if they are few."""
        return self._shared[1]

    def of(self, signal: LexicalSignal) -> Facts:
        """What decides how a lexical signal is answered."""
        rows = cast("list[tuple[int, int, float]]", self._spreads[id(signal)].fetchall())
        expired, permitted = self._shared
        return Facts({term: TermSpread(count, peak) for term, count, peak in rows}, expired, permitted)


def _ranked(rows: Sequence[Row]) -> list[RawHit]:
    hits = [
        RawHit(space, record, VIEW_NAMES[view], part, float(score))
        for space, record, view, part, score, *_ in cast("list[tuple[int, UUID, int, int, float]]", rows)
    ]
    # Ids grow with time, so of two equal hits the newer comes first, whatever the engine's order was.
    hits.sort(key=lambda hit: (hit.score, hit.record.int, -hit.part), reverse=True)
    return hits
