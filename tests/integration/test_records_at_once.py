"""The system of record under many writers, under kill -9, and on another PostgreSQL."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from langchain_memrag.records import Episode, Scope
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.erasing import Choice

from .drafts import draft
from .recording import NOW, Record, alone, contents

FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else None
FILES = (Path(__file__), Path(__file__).with_name("test_records.py"))


@pytest.fixture
def record(database: Database) -> Record:
    return Record(database)


# --- at once -----------------------------------------------------------------------------------------


def _write_many(url: str, schema: str, process: int, acknowledged: multiprocessing.Queue[object]) -> None:
    database = Database(url, schema=schema, pool_size=4)
    record = Record(database)

    def work(thread: int) -> None:
        for round_ in range(10):
            own = Scope(f"user{process}-{thread}", session_id="s")
            name = f"{process}-{thread}-{round_}"
            shared, keyed = draft(f"shared {name}"), draft(f"keyed {round_}", key=f"k{round_}")
            mine = record.write(f"own {name}", scope=own)
            space, stored = record.store.record(Scope("shared", session_id="s"), [shared, keyed])
            assert contents(record.reader.episodes([space], [shared.id], NOW)) == [shared.content]
            assert len(record.history(user=own.user_id)) == round_ + 1
            acknowledged.put((own.user_id, mine[0], stored[0].id, stored[1].id))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(work, range(10)))
    database.close()


@pytest.mark.skipif(FORK is None, reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_two_processes_and_twenty_threads_lose_and_mix_nothing(postgres_url: str, record: Record) -> None:
    acknowledged: multiprocessing.Queue[object] = FORK.Queue()
    arguments = (postgres_url, record.database.schema)
    writers = [FORK.Process(target=_write_many, args=(*arguments, one, acknowledged)) for one in range(2)]
    for writer in writers:
        writer.start()
    receipts = [acknowledged.get(timeout=120) for _ in range(200)]
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    shared = record.history(user="shared")
    assert {receipt[2] for receipt in receipts} <= {episode.id for episode in shared}
    assert len(shared) == 200 + 10
    assert len({episode.seq for episode in shared}) == len(shared)
    for round_ in range(10):
        keyed = {receipt[3] for receipt in receipts if receipt[3] in _ids(shared, f"keyed {round_}")}
        assert len(keyed) == 1
    for user in {receipt[0] for receipt in receipts}:
        own = record.history(user=user)
        assert [receipt[1] for receipt in receipts if receipt[0] == user] == [one.id for one in own]
    _assert_chained(record, "shared")


def _ids(episodes: Sequence[Episode], content: str) -> set[UUID]:
    return {episode.id for episode in episodes if episode.content == content}


def _assert_chained(record: Record, user: str) -> None:
    """Every turn's predecessor is the one before it by sequence."""
    with record.database.connection("test") as connection:
        query = "SELECT id, predecessor FROM {schema}.episode WHERE space = %s ORDER BY seq"
        rows = connection.execute(record.database.statement(query), (record.space(user),)).fetchall()
    ids = [ident for ident, _ in rows]
    assert [before for _, before in rows] == [None, *ids[:-1]]


def test_writers_and_a_forgetter_leave_no_half(record: Record) -> None:
    stop = threading.Event()
    record.write("first")
    space = record.space()

    def write(number: int) -> None:
        for round_ in range(20):
            record.write(f"{number} {round_}", f"{number} {round_} bis")

    def forget() -> None:
        while not stop.is_set():
            record.erase(Choice(session="s1"))

    forgetter = threading.Thread(target=forget)
    forgetter.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    stop.set()
    forgetter.join(30)
    left = record.history()
    assert len(left) % 2 == 0
    assert record.pending() == {episode.id for episode in left}
    record.erase(Choice())
    assert record.reader.stats(space, NOW).pending == 0


# --- killed ------------------------------------------------------------------------------------------


def _die_after(statements: int) -> None:
    """Kill this process once the server has run so many statements more."""
    execute = psycopg.Cursor.execute
    left = statements

    def counting(cursor: psycopg.Cursor[object], *args: object, **kwargs: object) -> object:
        nonlocal left
        result = execute(cursor, *args, **kwargs)
        if cursor.connection._pipeline is not None:
            cursor.connection._pipeline.sync()  # else it might still wait in a buffer
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    psycopg.Cursor.execute = counting


@pytest.mark.skipif(FORK is None, reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_killed_after_any_statement_nothing_is_half_there(record: Record) -> None:
    record.write("before", key="0")
    finished = False
    statements = 0
    while not finished:
        statements += 1
        acknowledged, acknowledge = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _die_after(statements)
                ids = record.write(*(f"{statements} {number}" for number in range(3)))
                os.write(acknowledge, b"T1")
                with record.store.indexing(record.space(), alone(ids), done=True):
                    pass
                os.write(acknowledge, b"T2")
            finally:
                os._exit(0)
        os.close(acknowledge)
        os.waitpid(child, 0)
        said = os.read(acknowledged, 10)
        os.close(acknowledged)
        found = [one for one in record.history() if one.content.startswith(f"{statements} ")]
        assert len(found) in (0, 3)
        if b"T1" in said:
            assert len(found) == 3
        pending = record.pending() & {one.id for one in found}
        assert len(pending) in (0, len(found))
        finished = b"T2" in said
        assert not (finished and pending)
        assert statements < 50
    assert statements > 8
    _assert_chained(record, "ann")


# --- other servers -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif("MEMRAG_TEST_POSTGRES" in os.environ, reason="this is the other server")
def test_all_of_this_on_postgresql_16() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, FILES)],
        env={**os.environ, "MEMRAG_TEST_POSTGRES": "16"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_server_is_the_one_that_was_asked_for(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.info.server_version // 10_000 == int(os.environ.get("MEMRAG_TEST_POSTGRES", "18"))
