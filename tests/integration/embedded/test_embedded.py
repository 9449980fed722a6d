"""Opening, sharing and closing a data folder, by processes, threads and forks."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from langchain_memrag.stores import embedded
from langchain_memrag.stores._embedded.locks import alone
from langchain_memrag.stores.embedded import EmbeddedPostgres

from .processes import Opener, postmaster, server_lives, value


@pytest.mark.parametrize("major", [16, 18])
def test_what_was_written_is_there_after_reopening(tmp_path: Path, major: Literal[16, 18]) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    with EmbeddedPostgres.open(folder, major=major) as server:
        assert server.folder == folder
        with psycopg.connect(server.url) as connection:
            assert connection.info.server_version // 10_000 == major
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE TABLE said (words text, meaning vector(2))")
            connection.execute("INSERT INTO said VALUES (%s, %s)", ("Ann lives in 上海 😀", "[1,2]"))
    assert not server_lives(folder)
    with EmbeddedPostgres.open(folder, major=major) as server:
        assert value(server, "SELECT words FROM said") == "Ann lives in 上海 😀"
    assert not server_lives(folder)
    assert not (folder / "pgdata" / "postmaster.pid").exists()


def test_a_pool_accepts_the_url(folder: Path) -> None:
    with (
        EmbeddedPostgres.open(folder) as server,
        ConnectionPool(server.url, min_size=1, max_size=2) as pool,
        pool.connection() as connection,
    ):
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_two_handles_of_one_process(folder: Path) -> None:
    first = EmbeddedPostgres.open(folder)
    second = EmbeddedPostgres.open(folder)
    assert first.url == second.url
    first.close()
    first.close()
    assert value(second, "SELECT 1") == 1
    second.close()
    assert not server_lives(folder)
    second.close()


def test_many_threads(folder: Path) -> None:
    start = threading.Barrier(12)

    def use(number: int) -> int:
        start.wait()
        with EmbeddedPostgres.open(folder) as server:
            return int(str(value(server, f"SELECT {number}")))

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(use, range(12))) == list(range(12))
    assert not server_lives(folder)


def test_opened_at_the_moment_when_the_last_one_has_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = EmbeddedPostgres.open(folder)
    opened: list[EmbeddedPostgres] = []

    @contextmanager
    def followed_at_once(path: Path, *, timeout: float, operation: str) -> Iterator[None]:
        with alone(path, timeout=timeout, operation=operation):
            yield
        if operation == "close":
            with ThreadPoolExecutor(1) as pool:
                opened.append(pool.submit(EmbeddedPostgres.open, folder).result())

    with monkeypatch.context() as patch:
        patch.setattr(embedded, "alone", followed_at_once)
        first.close()
    assert value(opened[0], "SELECT 1") == 1
    opened[0].close()
    assert not server_lives(folder)


def test_threads_may_close_the_same_handle(folder: Path) -> None:
    server = EmbeddedPostgres.open(folder)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: server.close(), range(8)))
    assert not server_lives(folder)


def test_ten_processes_open_a_new_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "memrag"
    openers = [Opener(folder) for _ in range(10)]
    assert len({opener.postmaster() for opener in openers}) == 1
    for opener in openers[:-1]:
        opener.leave()
    assert server_lives(folder)
    openers[-1].leave()
    assert not server_lives(folder)


def test_ten_processes_leave_at_once(folder: Path) -> None:
    openers = [Opener(folder) for _ in range(10)]
    for opener in openers:
        opener.postmaster()
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(Opener.leave, openers))
    assert not server_lives(folder)


def test_the_end_of_a_process_closes_what_it_left_open(folder: Path) -> None:
    first, second = Opener(folder), Opener(folder)
    assert first.postmaster() == second.postmaster()
    first.leave("exit")
    assert server_lives(folder)
    second.leave("exit")
    assert not server_lives(folder)


def test_ctrl_c_does_not_reach_the_server(folder: Path) -> None:
    with EmbeddedPostgres.open(folder):
        pid = postmaster(folder)
        assert os.getsid(pid) == os.getpgid(pid) == pid


def _in_child(code: object) -> int:
    """Run a function in a forked child; its pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads may run: none holds our locks
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            code()  # type: ignore[operator]
            status = 0
        finally:
            os._exit(status)
    return pid


def _status(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_ends_nothing_of_its_parents(folder: Path) -> None:
    server = EmbeddedPostgres.open(folder)
    assert _status(_in_child(server.close)) == 0
    assert value(server, "SELECT 1") == 1
    assert _status(_in_child(lambda: EmbeddedPostgres.open(folder).close())) == 0
    assert value(server, "SELECT 1") == 1
    server.close()
    assert not server_lives(folder)


def test_a_forked_child_does_not_keep_the_server_alive(folder: Path) -> None:
    server = EmbeddedPostgres.open(folder)
    child = _in_child(signal.pause)
    try:
        server.close()
        assert not server_lives(folder)
    finally:
        os.kill(child, signal.SIGKILL)
        _status(child)


def test_a_forked_child_that_opens_anew_keeps_the_server(folder: Path) -> None:
    opened, leave = os.pipe(), os.pipe()
    server = EmbeddedPostgres.open(folder)

    def child() -> None:
        again = EmbeddedPostgres.open(folder)
        os.write(opened[1], b"!")
        os.read(leave[0], 1)
        assert value(again, "SELECT 1") == 1
        again.close()

    pid = _in_child(child)
    os.read(opened[0], 1)
    server.close()
    assert server_lives(folder)
    os.write(leave[1], b"!")
    assert _status(pid) == 0
    assert not server_lives(folder)
    for fd in (*opened, *leave):
        os.close(fd)


def test_all_connections_taken_is_no_reason_to_refuse(folder: Path) -> None:
    with EmbeddedPostgres.open(folder) as server:
        taken = [psycopg.connect(server.url) for _ in range(100)]
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(server.url)
        pid = postmaster(folder)
        with EmbeddedPostgres.open(folder) as second:
            assert second.url == server.url
        assert postmaster(folder) == pid
        for connection in taken:
            connection.close()


def test_closing_ends_open_connections(folder: Path) -> None:
    server = EmbeddedPostgres.open(folder)
    connection = psycopg.connect(server.url)
    connection.execute("CREATE TABLE t (x int)")
    server.close()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()
