"""What only Postgres promises: joined transactions, statistics, plans, any width, copies of big spaces."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from psycopg import Connection

from langchain_memrag.errors import ConfigurationError, NotFoundError, StoreUnavailableError
from langchain_memrag.stores.base import DenseSignal, IndexEntry, LexicalSignal, SearchFilter
from langchain_memrag.stores.postgres.database import Database, PostgresTransaction
from langchain_memrag.stores.postgres.dense import VectorTable
from langchain_memrag.stores.postgres.entries import StatisticsReader
from langchain_memrag.stores.postgres.graph import PostgresGraph
from langchain_memrag.stores.postgres.neighbours import NeighbourCopies
from langchain_memrag.stores.postgres.search import PostgresSearch, create_vector_table
from langchain_memrag.testing.contracts.graph import says
from langchain_memrag.testing.contracts.search import NOW, make_entry, unit

from .engines import add_space

TEA, CHA = 11, -22


def open_search(
    database: Database, width: int, *, embedder: int = 1, big: int | None = None
) -> PostgresSearch:
    with database.connection("make a table") as connection:
        create_vector_table(database, connection, embedder, width)
    return PostgresSearch(database, embedder, width, big=big)


def random_entries(space: int, count: int, width: int, *, seed: int = 0) -> list[IndexEntry]:
    random = np.random.default_rng(seed)
    return [make_entry(space, vector=unit(*random.standard_normal(width), width=width)) for _ in range(count)]


def nearest(entries: list[IndexEntry], vector: np.ndarray, depth: int) -> list[object]:
    ranked = sorted(entries, key=lambda entry: -float(entry.vector @ vector))
    return [entry.record for entry in ranked[:depth]]


def found(
    index: PostgresSearch, space: int, vector: np.ndarray, depth: int = 10, **where: object
) -> list[object]:
    (hits,) = index.search(
        [DenseSignal("d", ("turn",), depth, vector)], SearchFilter(spaces=(space,), now=NOW, **where)
    )
    return [hit.record for hit in hits]


@contextmanager
def rolled_back(database: Database) -> Iterator[PostgresTransaction]:
    with database.connection("write") as connection:
        connection.execute("BEGIN")
        yield PostgresTransaction(database, connection)
        connection.execute("ROLLBACK")


class TestTransactions:
    def test_index_and_graph_join_or_vanish_together(self, database: Database) -> None:
        index, graph, space = open_search(database, 8), PostgresGraph(database), add_space(database)
        entry = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        with rolled_back(database) as work:
            index.upsert([entry], within=work)
            graph.upsert(space, says("Ann", "Bo"), within=work)
        assert (index.count(space), graph.counts(space)) == (0, (0, 0))
        with database.transaction("write") as work:
            index.upsert([entry], within=work)
            graph.upsert(space, says("Ann", "Bo"), within=work)
            assert index.count(space) == 0
        assert (index.count(space), graph.counts(space)) == (1, (2, 1))

    def test_big_batches_join_too(self, database: Database) -> None:
        index, space = open_search(database, 8), add_space(database)
        with rolled_back(database) as work:
            index.upsert(random_entries(space, 500, 8), within=work)
        assert index.count(space) == 0
        assert found(index, space, unit(1)) == []

    def test_a_space_that_is_gone(self, database: Database) -> None:
        index = open_search(database, 8)
        with pytest.raises(NotFoundError):
            index.upsert([make_entry(404, vector=unit(1))])
        assert index.count(404) == 0

    def test_every_write_makes_a_new_generation(self, database: Database) -> None:
        index, space = open_search(database, 8), add_space(database)
        entry = make_entry(space, terms={TEA: 1.0})
        seen = []
        for step in (
            lambda: None,
            lambda: index.upsert([entry]),
            lambda: index.remove(space, [entry.record]),
            lambda: index.clear(space),
        ):
            step()
            with database.connection("look") as connection:
                row = connection.execute(
                    database.statement("SELECT generation FROM {schema}.space WHERE id = %s"), (space,)
                ).fetchone()
            seen.append(row)
        assert len(set(seen)) == 4

    def test_a_search_that_takes_too_long_is_stopped(self, database: Database) -> None:
        index, space = open_search(database, 8), add_space(database)
        index.upsert(random_entries(space, 200, 8))
        release, held = threading.Event(), threading.Event()

        def hold() -> None:
            with database.transaction("hold") as work:
                work.connection.execute(database.statement("LOCK TABLE {schema}.vector_1"))
                held.set()
                release.wait(20)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(10)
        try:
            with pytest.raises(StoreUnavailableError):
                index.search(
                    [DenseSignal("d", ("turn",), 5, unit(1))],
                    SearchFilter(spaces=(space,), now=NOW),
                    timeout=0.05,
                )
        finally:
            release.set()
            holder.join()


class TestStatistics:
    def test_counts_follow_writes_and_removals(self, database: Database) -> None:
        index, reader, space = open_search(database, 8), StatisticsReader(database), add_space(database)
        first = make_entry(space, terms={TEA: 1.0, CHA: 1.0})
        second = make_entry(space, terms={TEA: 2.0})
        index.upsert([first, second, replace(first, view="pair", sources=(first.record, second.record))])
        seen = reader.statistics([space], ["turn", "pair"], [TEA, CHA, 404])
        assert seen.entries == {"turn": 2, "pair": 1}
        assert seen.frequencies == {"turn": {TEA: 2, CHA: 1}, "pair": {TEA: 1, CHA: 1}}
        index.upsert([replace(first, terms={CHA: 1.0, 7: 1.0})])
        seen = reader.statistics([space], ["turn"], [TEA, CHA, 7])
        assert (seen.entries, seen.frequencies) == ({"turn": 2}, {"turn": {TEA: 1, CHA: 1, 7: 1}})
        index.remove(space, [second.record])
        seen = reader.statistics([space], ["turn", "pair"], [TEA, CHA])
        assert seen.entries.get("turn") == 1
        assert not seen.entries.get("pair")
        assert seen.frequencies["turn"] == {CHA: 1}
        assert seen.frequencies["pair"] == {}

    def test_several_spaces_are_added_up(self, database: Database) -> None:
        index, reader = open_search(database, 8), StatisticsReader(database)
        spaces = [add_space(database) for _ in range(3)]
        index.upsert([make_entry(space, terms={TEA: 1.0}) for space in spaces])
        seen = reader.statistics(spaces[:2], ["turn"], [TEA])
        assert (seen.entries, seen.frequencies) == ({"turn": 2}, {"turn": {TEA: 2}})
        assert reader.statistics([404], ["turn"], [TEA]).entries.get("turn", 0) == 0

    def test_nothing_is_left_of_a_cleared_space(self, database: Database) -> None:
        index, space = open_search(database, 8), add_space(database)
        entry = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        index.upsert([entry, replace(entry, view="pair", sources=(entry.record, make_entry(space).record))])
        index.clear(space)
        with database.connection("look") as connection:
            for table in ("entry", "entry_source", "posting", "term_stat", "view_stat", "vector_1"):
                query = database.statement("SELECT count(*) FROM {schema}.{table}", table=table)
                assert connection.execute(query).fetchone() == (0,), table

    def test_what_is_forgotten_leaves_the_tables_of_other_embedders(self, database: Database) -> None:
        old, space = open_search(database, 8), add_space(database)
        entry = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        old.upsert([entry])
        new = open_search(database, 4, embedder=2)
        new.remove(space, [entry.record])
        assert found(old, space, unit(1)) == []
        with database.connection("look") as connection:
            query = database.statement("SELECT count(*) FROM {schema}.vector_1")
            assert connection.execute(query).fetchone() == (0,)


class TestWidths:
    @pytest.mark.parametrize(
        "width", [1, 8, 384, 1024, 1280, 1281, 1536, 3072, 3700, 3701, 4000, 5000, 16000]
    )
    def test_the_nearest_are_found(self, database: Database, width: int) -> None:
        index, space = open_search(database, width), add_space(database)
        entries = random_entries(space, 120, width)
        index.upsert(entries[:110])
        for entry in entries[110:]:
            index.upsert([entry])
        index.upsert(random_entries(add_space(database), 10, width))
        vector = unit(*np.random.default_rng(9).standard_normal(width), width=width)
        if width == 1:
            # All are +1 or -1: the newest of the equal ones.
            assert (
                found(index, space, vector)[0]
                == [e.record for e in entries if float(e.vector @ vector) > 0][-1]
            )
        else:
            # Half precision may swap neighbours that are as near as each other.
            cosines = {entry.record: float(entry.vector @ vector) for entry in entries}
            seen = [cosines[record] for record in found(index, space, vector, 5)]
            assert seen == pytest.approx(
                [cosines[record] for record in nearest(entries, vector, 5)], abs=1e-3
            )
        assert index.remove(space, [entry.record for entry in entries[:5]]) == 5
        assert len(found(index, space, vector, 200)) == 115

    @pytest.mark.parametrize("width", [0, 16001])
    def test_widths_that_no_column_holds(self, database: Database, width: int) -> None:
        with pytest.raises(ConfigurationError, match="16,000"):
            open_search(database, width)

    def test_signs_pick_and_embeddings_decide(self, database: Database) -> None:
        index, space = open_search(database, 1536), add_space(database)
        base = np.random.default_rng(4).standard_normal(1536)
        # All have the same signs: only the embeddings tell them apart.
        entries = [
            make_entry(space, vector=unit(*(base * (1 + i * np.abs(base))), width=1536)) for i in range(30)
        ]
        index.upsert(entries)
        vector = unit(*base, width=1536)
        assert found(index, space, vector, 10) == nearest(entries, vector, 10)

    def test_by_words_alone(self, database: Database) -> None:
        index, space = PostgresSearch(database, None, None), add_space(database)
        entry = make_entry(space, terms={TEA: 1.0}, vector=unit(1))
        index.upsert([entry])
        dense, lexical = index.search(
            [DenseSignal("d", ("turn",), 5, unit(1)), LexicalSignal("l", ("turn",), 5, {TEA: 1.0})],
            SearchFilter(spaces=(space,), now=NOW),
        )
        assert (dense, [hit.record for hit in lexical]) == ([], [entry.record])
        assert index.unprepared() == []


@pytest.fixture(params=[16, 1536])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


class TestCopies:
    """A space that has grown big gets a copy of its vectors with a neighbour graph."""

    COUNT = 400

    @pytest.fixture
    def space(self, database: Database) -> int:
        return add_space(database)

    @pytest.fixture
    def entries(self, space: int, width: int) -> list[IndexEntry]:
        return random_entries(space, self.COUNT, width)

    @pytest.fixture
    def index(self, database: Database, width: int, space: int, entries: list[IndexEntry]) -> PostgresSearch:
        index = open_search(database, width, big=self.COUNT)
        index.upsert(entries)
        small = add_space(database)
        index.upsert(random_entries(small, 50, width, seed=7))
        assert index.unprepared() == [space]
        index.prepare(space)
        assert index.unprepared() == []
        return index

    def plan(self, database: Database, width: int, space: int) -> str:
        table = VectorTable(database, 1, width)
        where = SearchFilter(spaces=(space,), now=NOW)
        signal = DenseSignal("d", ("turn",), 10, unit(1, width=width))
        with database.transaction("explain") as work:
            marks = work.connection.execute(
                *NeighbourCopies(database, table).watermarks_query([space])
            ).fetchall()
            query, values = table.query(signal, where, {int(str(a)): int(str(b)) for a, b in marks})
            work.connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
            return "\n".join(
                str(row[0]) for row in work.connection.execute(b"EXPLAIN " + query, values).fetchall()
            )

    def test_the_graph_finds_what_the_scan_finds(
        self, database: Database, index: PostgresSearch, space: int, entries: list[IndexEntry], width: int
    ) -> None:
        assert "vector_1_space_" in self.plan(database, width, space)
        random = np.random.default_rng(3)
        agreed = 0
        for _ in range(10):
            vector = unit(*random.standard_normal(width), width=width)
            agreed += len(set(found(index, space, vector)) & set(nearest(entries, vector, 10)))
        assert agreed >= 95

    def test_new_entries_are_found_at_once(self, index: PostgresSearch, space: int, width: int) -> None:
        fresh = random_entries(space, 1, width, seed=5)
        index.upsert(fresh)
        assert found(index, space, fresh[0].vector)[0] == fresh[0].record

    def test_removed_and_replaced_entries_leave_the_copy(
        self, database: Database, index: PostgresSearch, space: int, entries: list[IndexEntry], width: int
    ) -> None:
        gone, moved = entries[3], entries[4]
        index.remove(space, [gone.record])
        index.upsert([replace(moved, vector=(-moved.vector).astype(np.float32))])
        assert gone.record not in found(index, space, gone.vector, 100)
        assert found(index, space, -moved.vector)[0] == moved.record
        assert found(index, space, moved.vector, 500).count(moved.record) == 1
        with database.connection("look") as connection:
            query = database.statement("SELECT count(*) FROM {schema}.{t}", t=f"vector_1_space_{space}")
            assert connection.execute(query).fetchone() == (self.COUNT - 2,)

    def test_expiry_and_filters_hold(
        self, index: PostgresSearch, space: int, entries: list[IndexEntry], width: int
    ) -> None:
        target = entries[9]
        index.upsert([replace(target, expires_at=NOW, session="s")])
        assert target.record not in found(index, space, target.vector, 100)
        index.upsert([replace(target, expires_at=NOW + timedelta(days=1), session="s")])
        assert found(index, space, target.vector)[0] == target.record
        assert found(index, space, target.vector, 50, session="s") == [target.record]

    def test_the_copy_is_taken_further(
        self, database: Database, index: PostgresSearch, space: int, entries: list[IndexEntry], width: int
    ) -> None:
        fresh = random_entries(space, 60, width, seed=6)
        index.upsert(fresh)
        copies = NeighbourCopies(database, VectorTable(database, 1, width), big=self.COUNT, behind=50)
        assert copies.wanting() == [space]
        copies.advance(space)
        assert copies.wanting() == []
        everything = [*entries, *fresh]
        for entry in fresh[:5]:
            seen = found(index, space, entry.vector)
            assert seen[0] == entry.record
            assert len(set(seen)) == len(seen)
        assert len(found(index, space, unit(1, width=width), 1000)) == len(everything)

    def test_clearing_drops_the_copy(
        self, database: Database, index: PostgresSearch, space: int, width: int
    ) -> None:
        assert index.clear(space) == self.COUNT
        with database.connection("look") as connection:
            names = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace"
                " AND relname LIKE 'vector_1_space%%'",
                (database.schema,),
            ).fetchall()
        assert names == []
        assert found(index, space, unit(1, width=width)) == []

    def test_what_goes_while_it_is_copied_is_not_in_it(
        self,
        database: Database,
        width: int,
        space: int,
        entries: list[IndexEntry],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        index = open_search(database, width, big=self.COUNT)
        index.upsert(entries)
        settle = NeighbourCopies._settle

        def removed_meanwhile(self: NeighbourCopies, *args: object) -> None:
            index.remove(space, [entries[0].record])
            settle(self, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(NeighbourCopies, "_settle", removed_meanwhile)
        index.prepare(space)
        assert len(found(index, space, entries[0].vector, 500)) == self.COUNT - 1
        assert entries[0].record not in found(index, space, entries[0].vector, 500)

    def test_clearing_does_not_wait_for_who_copies(
        self,
        database: Database,
        index: PostgresSearch,
        space: int,
        width: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        index.upsert(random_entries(space, 60, width, seed=6))
        settle = NeighbourCopies._settle

        def cleared_meanwhile(self: NeighbourCopies, *args: object) -> None:
            with monkeypatch.context() as plain:
                plain.setattr(NeighbourCopies, "_settle", settle)
                clearer = threading.Thread(target=index.clear, args=(space,))
                clearer.start()
                clearer.join(20)
                assert not clearer.is_alive()
            settle(self, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(NeighbourCopies, "_settle", cleared_meanwhile)
        NeighbourCopies(database, VectorTable(database, 1, width), big=self.COUNT, behind=50).advance(space)
        monkeypatch.undo()
        assert index.count(space) == 0
        assert found(index, space, unit(1, width=width)) == []
        index.upsert(random_entries(space, self.COUNT, width))
        assert index.unprepared() == [space]
        index.prepare(space)
        assert len(found(index, space, unit(1, width=width), 1000)) == self.COUNT

    def test_a_copy_that_is_dropped_during_a_search(
        self, index: PostgresSearch, space: int, entries: list[IndexEntry], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        query = VectorTable.query
        vanished = []

        def vanishing(self: VectorTable, signal: object, where: object, marks: dict[int, int]) -> object:
            if not vanished:
                vanished.append(1)
                marks = {space + 1000: 5, **marks}
            return query(self, signal, where, marks)  # type: ignore[arg-type]

        monkeypatch.setattr(VectorTable, "query", vanishing)
        assert found(index, space, entries[0].vector)[0] == entries[0].record

    def test_one_copy_however_many_make_it(
        self, database: Database, width: int, space: int, entries: list[IndexEntry]
    ) -> None:
        index = open_search(database, width, big=self.COUNT)
        index.upsert(entries)
        makers = [threading.Thread(target=index.prepare, args=(space,)) for _ in range(4)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        index.prepare(space)
        assert index.unprepared() == []
        assert len(found(index, space, entries[0].vector, 500)) == self.COUNT


class TestPlans:
    """What recall runs reads indexes alone, whatever the planner believes of the tables."""

    @pytest.fixture
    def index(self, database: Database, width: int) -> PostgresSearch:
        index = open_search(database, width)
        for _ in range(3):
            space = add_space(database)
            entries = random_entries(space, 300, width)
            index.upsert([replace(entry, terms={1: 1.0, n % 7 + 2: 2.0}) for n, entry in enumerate(entries)])
        with database.connection("analyse") as connection:
            for table in ("entry", "posting", "vector_1", "term_stat"):
                connection.execute(database.statement("ANALYZE {schema}.{t}", t=table))
        return index

    @pytest.mark.parametrize("narrowed", [{}, {"session": "s"}, {"roles": ("user",), "since": NOW}])
    def test_indexes_only(
        self,
        database: Database,
        index: PostgresSearch,
        narrowed: dict[str, object],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        space = add_space(database)
        index.upsert([make_entry(space, terms={1: 1.0}, session="s", expires_at=NOW)])
        plans: list[str] = []
        execute = Connection.execute

        def explained(self: Connection[object], query: object, *args: object, **options: object) -> object:
            text = query if isinstance(query, bytes) else str(query).encode()
            if text.startswith((b"SELECT", b"WITH")) and b"set_config" not in text:
                rows = execute(self, b"EXPLAIN " + text, *args, **options).fetchall()
                plans.append("\n".join(str(row[0]) for row in rows))
            return execute(self, query, *args, **options)

        monkeypatch.setattr(Connection, "execute", explained)
        signals = [
            DenseSignal("d", ("turn",), 5, unit(1, width=index._vectors.width if index._vectors else 0)),
            LexicalSignal("l", ("turn", "pair"), 5, {1: 1.0, 3: 2.0}),
        ]
        index.search(signals, SearchFilter(spaces=(space, space + 1), now=NOW, **narrowed))
        StatisticsReader(database).statistics([space], ["turn"], [1, 3])
        assert len(plans) >= 5
        relations = ("entry", "posting", "vector_1", "term_stat")
        for plan in plans[:-1]:
            assert not [
                line
                for line in plan.splitlines()
                if "Seq Scan on" in line and any(r in line for r in relations)
            ], plan
        assert any("Index Only Scan using posting_term" in plan for plan in plans)
        assert any("Index Only Scan using vector_1_cover" in plan for plan in plans) or narrowed


def test_maintenance_vacuums_what_was_filled(database: Database) -> None:
    index, space = open_search(database, 8), add_space(database)
    index.upsert(random_entries(space, 5100, 8))

    def unvacuumed() -> object:
        with database.connection("look") as connection:
            row = connection.execute(
                "SELECT pg_stat_force_next_flush(), n_ins_since_vacuum FROM pg_stat_all_tables"
                " WHERE schemaname = %s AND relname = 'vector_1'",
                (database.schema,),
            ).fetchone()
        return row[1] if row else None

    deadline = time.monotonic() + 20
    while unvacuumed() != 5100 and time.monotonic() < deadline:
        time.sleep(0.05)
    index.maintain()
    while unvacuumed() != 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert unvacuumed() == 0
