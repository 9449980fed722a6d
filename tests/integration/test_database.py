"""Connections and transactions on real servers: healthy ones, broken ones, and ones behind a pooler."""

# What is tested here are context managers: their blocks hold more than one statement.
# ruff: noqa: PT012

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest
from pgvector.psycopg.halfvec import HalfVector

from langchain_memrag.errors import ConfigurationError, StoreError, StoreUnavailableError
from langchain_memrag.stores.postgres.database import Database

from .conftest import Guarded
from .servers import free_port

Opener = Callable[..., Database]


def one(database: Database, query: str, *values: object) -> object:
    with database.connection("test") as connection:
        row = connection.execute(query, values or None).fetchone()
    assert row is not None
    return row[0]


def spaces(database: Database) -> list[str]:
    with database.connection("test") as connection:
        rows = connection.execute(
            database.statement("SELECT key FROM {schema}.space ORDER BY key")
        ).fetchall()
    return [str(key) for (key,) in rows]


def add_space(database: Database, connection: psycopg.Connection[tuple[object, ...]], key: str) -> None:
    connection.execute(
        database.statement("INSERT INTO {schema}.space (kind, key) VALUES ('user', %s)"), (key,)
    )


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_transaction_is_kept_whole_or_not_at_all(database: Database, pipeline: bool) -> None:
    with database.transaction("test", pipeline=pipeline) as work:
        add_space(database, work.connection, "ann")
        add_space(database, work.connection, "北京")
    with pytest.raises(ZeroDivisionError), database.transaction("test", pipeline=pipeline) as work:
        add_space(database, work.connection, "bob")
        raise ZeroDivisionError
    with pytest.raises(StoreError), database.transaction("test", pipeline=pipeline) as work:
        add_space(database, work.connection, "cid")
        add_space(database, work.connection, "ann")
    assert spaces(database) == ["ann", "北京"]


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_commit_that_was_a_rollback_is_an_error(database: Database, pipeline: bool) -> None:
    with pytest.raises(StoreError), database.transaction("test", pipeline=pipeline) as work:
        add_space(database, work.connection, "ann")
        with contextlib.suppress(psycopg.Error):
            work.connection.execute("SELECT 1 / 0").fetchone()
    assert spaces(database) == []


def test_a_connection_comes_back_clean_whatever_was_done_on_it(open_database: Opener) -> None:
    database = open_database(pool_size=1)
    with database.connection("test") as connection:
        connection.execute("BEGIN")
        add_space(database, connection, "ann")
    with pytest.raises(StoreError), database.connection("test") as connection:
        connection.execute("SELECT 1 / 0")
    assert spaces(database) == []


def test_another_store_joins_a_transaction(database: Database, open_database: Opener) -> None:
    other = open_database()
    with pytest.raises(ZeroDivisionError), database.transaction("test") as work:
        with database.joined(work, "test") as connection:
            assert connection is work.connection
            add_space(database, connection, "ann")
        with other.joined(work, "test") as connection:
            assert connection is not work.connection
            add_space(database, connection, "bob")
        with database.joined(None, "test") as connection:
            add_space(database, connection, "cid")
        raise ZeroDivisionError
    assert spaces(database) == ["bob", "cid"]


def test_an_error_inside_a_joined_block_is_mapped(database: Database) -> None:
    with database.transaction("outer") as work:
        with pytest.raises(StoreError) as caught, database.joined(work, "inner") as connection:
            connection.execute("SELECT 1 / 0")
        assert caught.value.operation == "inner"
        work.connection.execute("ROLLBACK")
        work.connection.execute("BEGIN")


def test_twenty_threads_share_a_pool_of_one(open_database: Opener) -> None:
    database = open_database(pool_size=1)

    def write(number: int) -> None:
        with database.transaction("test") as work:
            add_space(database, work.connection, f"user{number:02}")

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(write, range(40)))
    assert spaces(database) == [f"user{number:02}" for number in range(40)]


def test_a_pool_that_stays_full_is_an_error_and_not_a_hang(open_database: Opener) -> None:
    database = open_database(pool_size=1, patience=0.3)
    with database.connection("outer"), pytest.raises(StoreUnavailableError, match="pool_size"):
        one(database, "SELECT 1")
    assert one(database, "SELECT 1") == 1


def test_nothing_connects_before_it_is_used() -> None:
    database = Database(f"postgresql://127.0.0.1:{free_port()}/nowhere")
    threads = threading.active_count()
    database.close()
    assert threading.active_count() == threads


def test_close_leaves_neither_threads_nor_sessions(postgres_url: str, schema: str) -> None:
    before = set(threading.enumerate())
    database = Database(f"{postgres_url}&application_name={schema}", schema=schema)
    with database.connection("test"), database.session_pool.connection():
        pass
    with psycopg.connect(postgres_url, autocommit=True) as watch:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        assert watch.execute(count, (schema,)).fetchone() == (2,)
        database.close()
        watch.execute("SELECT pg_sleep(0.2)")
        assert watch.execute(count, (schema,)).fetchone() == (0,)
    assert set(threading.enumerate()) <= before
    database.close()
    with pytest.raises(StoreUnavailableError, match="open it again"):
        one(database, "SELECT 1")


def test_times_come_back_in_utc_from_the_first_day_to_the_last(database: Database) -> None:
    moments = [
        datetime.min.replace(tzinfo=UTC),
        datetime(2025, 7, 25, 2, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ]
    with database.transaction("test") as work:
        work.connection.execute("SET LOCAL TimeZone = 'Asia/Shanghai'")
        row = work.connection.execute("SELECT %s::timestamptz[]", (moments,), binary=True).fetchone()
    assert row == (moments,)
    assert {moment.tzinfo for moment in row[0]} == {UTC}


def test_vectors_are_known_to_every_connection(database: Database) -> None:
    with database.connection("test") as connection:
        for binary in (False, True):
            row = connection.execute("SELECT %s", (HalfVector([1, 2]),), binary=binary).fetchone()
            assert [vector.to_list() for vector in row] == [[1.0, 2.0]]


def test_nothing_is_prepared_unless_asked_for(open_database: Opener) -> None:
    for prepared, expected in ((False, 0), (True, 1)):
        database = open_database(pool_size=1, prepared=prepared)
        for _ in range(10):
            one(database, "SELECT %s::int", 1)
        count = one(database, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%int%'")
        assert count == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(open_database: Opener) -> None:
    database = open_database(pool_size=2)
    parent = one(database, "SELECT pg_backend_pid()")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if one(database, "SELECT pg_backend_pid()") != parent else 2
            database.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one(database, "SELECT pg_backend_pid()") == parent


def test_sessions_killed_by_the_server_are_replaced_unseen(open_database: Opener, postgres_url: str) -> None:
    database = open_database(pool_size=4)
    barrier = threading.Barrier(4)

    def hold(_: int) -> object:
        with database.connection("test") as connection:
            barrier.wait(10)
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            return row and row[0]

    with ThreadPoolExecutor(4) as pool:
        pids = list(pool.map(hold, range(4)))
    with psycopg.connect(postgres_url, autocommit=True) as killer:
        killer.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", (pids,))
        killer.execute("SELECT pg_sleep(0.1)")
    assert [one(database, "SELECT 1") for _ in range(8)] == [1] * 8


def test_a_session_killed_in_the_middle_loses_its_transaction(database: Database, postgres_url: str) -> None:
    with pytest.raises(StoreUnavailableError), database.transaction("remember") as work:
        add_space(database, work.connection, "ann")
        pid = work.connection.info.backend_pid
        with psycopg.connect(postgres_url, autocommit=True) as killer:
            killer.execute("SELECT pg_terminate_backend(%s)", (pid,))
            killer.execute("SELECT pg_sleep(0.1)")
    assert spaces(database) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_pool_heals_when_the_server_is_back(guarded: Guarded, schema: str, how: str) -> None:
    database = Database(guarded.url(), schema=schema, patience=10)
    try:
        with database.transaction("test") as work:
            add_space(database, work.connection, "ann")
        getattr(guarded.server, how)()
        try:
            impatient = Database(guarded.url(), schema=schema, patience=0.5)
            with pytest.raises(StoreUnavailableError, match="running"):
                impatient.open()
        finally:
            guarded.server.start()
        assert spaces(database) == ["ann"]
    finally:
        database.close()


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"password": "wr0ng-s3cret"}, "password is wrong"),
        ({"user": "nobody", "password": "wr0ng-s3cret"}, "password is wrong"),
        ({"database": "nowhere"}, "no such database"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_no_password(
    guarded: Guarded, change: dict[str, str], advice: str
) -> None:
    database = Database(guarded.url(**change))
    with pytest.raises(ConfigurationError, match=advice) as caught:
        database.open()
    told = "".join(traceback.format_exception(caught.value))
    assert f"127.0.0.1:{guarded.server.port}" in str(caught.value)
    assert guarded.password not in told
    assert "s3cret" not in told


@pytest.mark.parametrize(
    "url", ["postgresql://ann:s3cret@127.0.0.1:{port}/d", "postgresql://ann:s3cret@nowhere.invalid/d"]
)
def test_an_unreachable_server_is_worth_retrying(url: str) -> None:
    database = Database(url.format(port=free_port()))
    with pytest.raises(StoreUnavailableError, match="is the address right") as caught:
        database.open()
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_server_without_free_connections_says_so(guarded: Guarded) -> None:
    with psycopg.connect(guarded.url(), autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS crowded")
        admin.execute("CREATE ROLE crowded LOGIN PASSWORD 'x' CONNECTION LIMIT 1")
    url = guarded.url(user="crowded", password="x")
    with psycopg.connect(url), pytest.raises(StoreUnavailableError, match="max_connections"):
        Database(url).open()


def test_a_stricter_default_isolation_does_no_harm(guarded: Guarded, schema: str) -> None:
    with psycopg.connect(guarded.url(), autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS strict")
        admin.execute("CREATE ROLE strict SUPERUSER LOGIN PASSWORD 'x'")
        admin.execute("ALTER ROLE strict SET default_transaction_isolation = 'serializable'")
        admin.execute("ALTER ROLE strict SET TimeZone = 'America/St_Johns'")
        admin.execute("ALTER ROLE strict SET DateStyle = 'SQL, DMY'")
    database = Database(guarded.url(user="strict", password="x"), schema=schema)
    try:
        with database.transaction("test") as work:
            row = work.connection.execute("SHOW transaction_isolation").fetchone()
            moment = work.connection.execute(
                "SELECT '2025-07-25T02:00Z'::timestamptz", binary=True
            ).fetchone()
        assert row == ("read committed",)
        assert moment == (datetime(2025, 7, 25, 2, tzinfo=UTC),)
    finally:
        database.close()


def test_a_statement_quotes_what_becomes_a_name(database: Database) -> None:
    made = database.statement("SELECT * FROM {schema}.{table} WHERE a = '{{}}'", table='odd "table')
    assert made == f'SELECT * FROM "{database.schema}"."odd ""table" WHERE a = \'{{}}\''.encode()
