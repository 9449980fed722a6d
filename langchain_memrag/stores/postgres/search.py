"""The search index on Postgres: pgvector for what is meant, postings for what is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from itertools import groupby
from typing import Final, cast
from uuid import UUID

from psycopg import Connection, Cursor

from langchain_memrag.errors import NotFoundError
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
from langchain_memrag.stores.postgres.codes import VIEW_NAMES
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.dense import VectorTable, create_vector_table, vector_tables
from langchain_memrag.stores.postgres.entries import EntryWriter
from langchain_memrag.stores.postgres.lexical import FEW_PERMITTED, Facts, LexicalPlan, Postings, TermSpread
from langchain_memrag.stores.postgres.neighbours import NeighbourCopies, copies_of, drop_copies
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["PostgresSearch", "create_vector_table"]

_FEW: Final = 4
"""Entries that are written without COPY: those of a turn or two."""

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
                self._upsert(connection, space, list(unique.values()))

    def _upsert(self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry]) -> None:
        last, standing = self._entries.reserve(connection, space, entries)
        if last is None:
            raise NotFoundError(f"space {space} does not exist")
        self._remove(connection, space, standing)
        ids = range(last - len(entries) + 1, last + 1)
        # A few entries are sent in one go; for many, COPY is worth waiting for.
        with connection.pipeline() if len(entries) <= _FEW else nullcontext():
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
        with self._planned("search", timeout) as connection:
            facts = self._facts(connection, signals, where)
            watermarks = self._watermarks(connection, signals, where)
            answers = [self._ask(connection, signal, where, facts, watermarks()) for signal in signals]
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
        if self._copies is None or not depth or where.narrows:
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
    ) -> Callable[[LexicalSignal], Facts]:
        """Ask what decides how words are scored; the answers are read when they are needed."""
        lexical = [signal for signal in signals if isinstance(signal, LexicalSignal)]
        if not lexical:
            return lambda _: Facts({}, expired=False)
        spreads = {
            id(signal): connection.execute(*self._postings.spread_query(signal, where)) for signal in lexical
        }
        expired = connection.execute(
            self._database.statement(
                "SELECT EXISTS (SELECT FROM {schema}.entry WHERE space = ANY(%s) AND expires_at <= %s"
                " AND expires_at < 'infinity')"
            ),
            (list(where.spaces), where.now),
        )
        permitted = connection.execute(*self._postings.permitted_query(where)) if where.narrows else None

        @lru_cache(maxsize=1)
        def shared() -> tuple[bool, list[tuple[int, int]] | None]:
            row = expired.fetchone()
            few = None if permitted is None else cast("list[tuple[int, int]]", permitted.fetchall())
            return bool(row and row[0]), few if few is not None and len(few) <= FEW_PERMITTED else None

        def of(signal: LexicalSignal) -> Facts:
            rows = cast("list[tuple[int, int, float]]", spreads[id(signal)].fetchall())
            some_expired, few = shared()
            spread = {term: TermSpread(count, peak) for term, count, peak in rows}
            return Facts(spread, some_expired, few)

        return of

    def _ask(
        self,
        connection: Connection[Row],
        signal: Signal,
        where: SearchFilter,
        facts: Callable[[LexicalSignal], Facts],
        watermarks: Mapping[int, int],
    ) -> Callable[[], list[Row]]:
        """Send what answers a signal; the answer is read when all are under way."""
        match signal:
            case DenseSignal():
                if self._vectors is None:
                    return list
                return connection.execute(*self._vectors.query(signal, where, watermarks)).fetchall
            case LexicalSignal():
                known = facts(signal)
                plan = self._postings.plan(signal, where, known)
                if plan is None:
                    return list
                first = connection.execute(plan.query, plan.values)
                if plan.bound is None:
                    return first.fetchall
                return partial(
                    self._complete, connection, first, plan.bound, self._postings.full(signal, where, known)
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


def _ranked(rows: Sequence[Row]) -> list[RawHit]:
    hits = [
        RawHit(space, record, VIEW_NAMES[view], part, float(score))
        for space, record, view, part, score, *_ in cast("list[tuple[int, UUID, int, int, float]]", rows)
    ]
    # Ids grow with time, so of two equal hits the newer comes first, whatever the engine's order was.
    hits.sort(key=lambda hit: (hit.score, hit.record.int, -hit.part), reverse=True)
    return hits
