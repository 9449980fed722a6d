"""Kills, crashes, leftovers, and everything that keeps a server from starting."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest

from langchain_memrag.errors import ConfigurationError, MissingDependencyError, StoreUnavailableError
from langchain_memrag.stores._embedded import posix
from langchain_memrag.stores._embedded.account import Detached, choose_account
from langchain_memrag.stores._embedded.binaries import find_binaries
from langchain_memrag.stores.embedded import EmbeddedPostgres

from .processes import Opener, eventually, kill_server, postmaster, server_lives, stop_leftovers, value


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A live process that has nothing to do with any server."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("major", [16, 18])
def test_an_orphan_is_adopted_and_stopped(tmp_path: Path, major: Literal[16, 18]) -> None:
    folder = tmp_path / "memrag"
    EmbeddedPostgres.open(folder, major=major).close()
    openers = [Opener(folder, major=major) for _ in range(2)]
    [pid] = {opener.postmaster() for opener in openers}
    for opener in openers:
        opener.kill()
    assert server_lives(folder)
    with EmbeddedPostgres.open(folder, major=major) as server:
        assert postmaster(folder) == pid
        assert value(server, "SELECT 1") == 1
    assert not server_lives(folder)


def test_a_killed_opener_does_not_count(folder: Path) -> None:
    killed = Opener(folder)
    killed.postmaster()
    with EmbeddedPostgres.open(folder) as server:
        killed.kill()
        assert value(server, "SELECT 1") == 1
    assert not server_lives(folder)


@pytest.mark.parametrize("major", [16, 18])
def test_a_killed_server_is_restarted_with_what_was_committed(tmp_path: Path, major: Literal[16, 18]) -> None:
    folder = tmp_path / "memrag"
    first = EmbeddedPostgres.open(folder, major=major)
    other = Opener(folder, major=major)
    other.postmaster()
    with psycopg.connect(first.url) as connection:
        connection.execute("CREATE TABLE said AS SELECT generate_series(1, 1000) AS n")
    kill_server(folder)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first.url)
    second = EmbeddedPostgres.open(folder, major=major)
    assert second.url == first.url
    for handle in (first, second):
        assert value(handle, "SELECT count(*) FROM said") == 1000
    first.close()
    second.close()
    assert server_lives(folder)  # the other process has it open, and never noticed
    other.leave()
    assert not server_lives(folder)


def test_a_killed_server_is_nothing_to_wait_for_when_closing(folder: Path) -> None:
    with EmbeddedPostgres.open(folder):
        kill_server(folder)
    assert not server_lives(folder)
    EmbeddedPostgres.open(folder).close()


def test_a_pid_that_is_somebody_elses_by_now(folder: Path, stranger: subprocess.Popen[bytes]) -> None:
    with EmbeddedPostgres.open(folder):
        lines = (folder / "pgdata" / "postmaster.pid").read_text().splitlines()
        kill_server(folder)
    lines[0] = str(stranger.pid)
    (folder / "pgdata" / "postmaster.pid").write_text("\n".join(lines) + "\n")
    (folder / "pgdata" / ".s.PGSQL.5432.lock").write_text("\n".join(lines[:5]) + "\n")
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
        assert postmaster(folder) != stranger.pid
    assert stranger.poll() is None


def test_a_pid_reused_while_the_folder_is_open_is_not_signalled(
    folder: Path, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled: list[int] = []
    with EmbeddedPostgres.open(folder):
        lines = (folder / "pgdata" / "postmaster.pid").read_text().splitlines()
        kill_server(folder)
        lines[0] = str(stranger.pid)
        (folder / "pgdata" / "postmaster.pid").write_text("\n".join(lines) + "\n")
        monkeypatch.setattr(os, "kill", lambda pid, _: signalled.append(pid))
    assert signalled == []


def test_a_copy_of_a_folder_in_use_is_not_the_folder(folder: Path, tmp_path: Path) -> None:
    with EmbeddedPostgres.open(folder) as original:
        with psycopg.connect(original.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE said AS SELECT 'yes' AS words")
            connection.execute("CHECKPOINT")
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".s.PGSQL.5432"))
        assert (copy / "pgdata" / "postmaster.pid").exists()
        with EmbeddedPostgres.open(copy) as second:
            assert postmaster(copy) != postmaster(folder)
            with psycopg.connect(second.url) as connection:
                connection.execute("DROP TABLE said")
        assert value(original, "SELECT words FROM said") == "yes"


def test_a_server_that_another_program_started_is_left_alone(folder: Path) -> None:
    binaries = find_binaries(18)
    data, log = (
        os.open(folder / "pgdata", os.O_RDONLY),
        os.open(folder / "other.log", os.O_WRONLY | os.O_CREAT),
    )
    account = choose_account(binaries, os.geteuid())
    arguments = [
        "-D", account.data_argument(folder / "pgdata", data),
        "-c", "listen_addresses=", "-c", "unix_socket_directories=.",
    ]  # fmt: skip
    process = account.start("postgres", arguments, fds=[data], log=log)
    try:
        pid_file = folder / "pgdata" / "postmaster.pid"
        eventually(lambda: pid_file.exists() and "ready" in pid_file.read_text(), "it does not start")
        pid_file.write_text(pid_file.read_text().replace("ready", "standby"))  # not to be adopted either
        with pytest.raises(ConfigurationError, match=f"pid {process.pid}"):
            EmbeddedPostgres.open(folder)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        os.close(data)
        os.close(log)


KILLED_BY_ITSELF = """
import os, signal
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
from langchain_memrag.stores._embedded import cluster, posix
"""


@pytest.mark.parametrize("place", ["cluster._make_durable", "cluster._initdb_arguments"])
def test_killed_while_the_data_directory_is_made(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "memrag"
    opener = Opener(folder, before=f"{KILLED_BY_ITSELF}\n{place} = die")
    assert opener.process.wait(60) == -signal.SIGKILL
    opener.kill()
    assert list(folder.glob(".initdb-*"))
    assert not (folder / "pgdata").exists()
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert not list(folder.glob(".initdb-*"))


@pytest.mark.parametrize("files", [1, 100, 900])
def test_killed_in_the_middle_of_initdb(tmp_path: Path, files: int) -> None:
    folder = tmp_path / "memrag"
    opener = Opener(folder)
    eventually(
        lambda: sum(len(names) for _, _, names in os.walk(folder)) >= files or (folder / "pgdata").exists(),
        "initdb does not start",
    )
    opener.kill()
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert not server_lives(folder)


def test_killed_while_the_server_starts(folder: Path) -> None:
    # The first answer it looks for is before the start, the second one after.
    before = f"""{KILLED_BY_ITSELF}
answers = iter([lambda: False, die])
posix.PosixServer._answers = lambda self: next(answers)()
"""
    opener = Opener(folder, before=before)
    assert opener.process.wait(60) == -signal.SIGKILL
    opener.kill()
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert not server_lives(folder)


def test_killed_while_the_server_stops(folder: Path) -> None:
    opener = Opener(folder, before=f"{KILLED_BY_ITSELF}\nposix.PosixServer._gone_within = die")
    opener.postmaster()
    opener.process.communicate("close\n", timeout=60)
    assert opener.process.returncode == -signal.SIGKILL
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert not server_lives(folder)


def test_interrupted_while_the_server_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(server: posix.PosixServer, deadline: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(posix.PosixServer, "_wait_or_give_up", interrupt)
    with pytest.raises(KeyboardInterrupt):
        EmbeddedPostgres.open(folder)
    eventually(lambda: not server_lives(folder), "the server is left running")


def test_a_server_that_never_answers_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posix, "_START_SECONDS", 1.0)
    monkeypatch.setattr(posix.PosixServer, "_answers", lambda self: False)
    with pytest.raises(StoreUnavailableError, match=r"does not answer(.|\n)*ready to accept connections"):
        EmbeddedPostgres.open(folder)
    monkeypatch.undo()
    EmbeddedPostgres.open(folder).close()  # it was only slow, and is adopted
    assert not server_lives(folder)


def test_a_server_that_does_not_stop_in_time_is_stopped_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posix, "_STOP_SECONDS", 0.5)
    server = EmbeddedPostgres.open(folder)
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE said AS SELECT 'yes' AS words")
    checkpointer = value(server, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    os.kill(int(str(checkpointer)), signal.SIGSTOP)  # a fast shutdown waits for it
    server.close()
    assert not server_lives(folder)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT words FROM said") == "yes"


def test_less_memory_than_asked_for_is_enough(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = posix.server_settings

    def greedy(*, small: bool) -> dict[str, str]:
        return usual(small=small) | ({} if small else {"shared_buffers": "7TB", "huge_pages": "off"})

    monkeypatch.setattr(posix, "server_settings", greedy)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SHOW shared_buffers") == "32MB"


def test_a_server_killed_while_starting_gets_a_second_chance(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, spawned = posix.PosixServer._spawn, []

    def spawn(server: posix.PosixServer, *arguments: Any) -> Detached:
        spawned.append(usual(server, *arguments))
        if len(spawned) == 1:
            spawned[0].kill()
        return spawned[-1]

    monkeypatch.setattr(posix.PosixServer, "_spawn", spawn)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert len(spawned) == 2


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    with (folder / "pgdata" / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = on\n")
    with pytest.raises(StoreUnavailableError, match="no_such_setting") as caught:
        EmbeddedPostgres.open(folder)
    assert caught.value.engine == "postgres"
    assert caught.value.operation == "open"
    assert str(folder / "server.log") in str(caught.value)
    assert not server_lives(folder)


def test_a_failed_open_leaves_nothing_behind(folder: Path) -> None:
    for _ in range(3):
        with pytest.raises(ConfigurationError):
            EmbeddedPostgres.open(folder, major=16)
    with EmbeddedPostgres.open(folder):
        pass
    assert not server_lives(folder)


def test_a_deleted_folder_can_be_closed(folder: Path, tmp_path: Path) -> None:
    server = EmbeddedPostgres.open(folder)
    shutil.rmtree(folder)
    server.close()
    # The server finds out within a minute; no need to wait for it here.
    assert stop_leftovers(tmp_path)
    eventually(lambda: not stop_leftovers(tmp_path), "it does not stop")


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(ConfigurationError, match="not a folder"):
            EmbeddedPostgres.open(path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "~no-such-user/x"])
def test_a_name_that_no_folder_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError):
        EmbeddedPostgres.open(Path(name) if name.startswith("~") else tmp_path / name)


@pytest.mark.parametrize(("made_by", "opened_by"), [(16, 18), (18, 16)])
def test_another_version_of_postgres(
    tmp_path: Path, made_by: Literal[16, 18], opened_by: Literal[16, 18]
) -> None:
    EmbeddedPostgres.open(tmp_path, major=made_by).close()
    with pytest.raises(ConfigurationError, match=f"PostgreSQL {made_by}.*major={made_by}"):
        EmbeddedPostgres.open(tmp_path, major=opened_by)
    EmbeddedPostgres.open(tmp_path, major=made_by).close()


def test_a_version_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="16 and 18"):
        EmbeddedPostgres.open(tmp_path, major=17)  # type: ignore[arg-type]


def test_somebody_elses_data_directory(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="postgresql://"):
        EmbeddedPostgres.open(folder / "pgdata")
    (tmp_path / "other" / "pgdata").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="not a PostgreSQL data directory"):
        EmbeddedPostgres.open(tmp_path / "other")


def test_without_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"\[embedded\].*Alpine.*postgresql://") as caught:
        EmbeddedPostgres.open(tmp_path / "memrag")
    assert caught.value.extra == "embedded"


NO_ROOM = """
set -e
mount -t tmpfs -o size={size}m none "$1"
exec "$2" -c "{code}" "$1"
"""
OPENS = """
import sys
from pathlib import Path
from langchain_memrag.errors import StoreUnavailableError
from langchain_memrag.stores.embedded import EmbeddedPostgres
try:
    EmbeddedPostgres.open(Path(sys.argv[1]) / 'memrag')
except StoreUnavailableError as error:
    print(error)
    assert not list(Path(sys.argv[1]).rglob('.initdb-*')), 'what was begun takes up the little room'
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
@pytest.mark.parametrize("megabytes", [2, 20])
def test_a_full_disk(tmp_path: Path, megabytes: int) -> None:
    script = NO_ROOM.format(size=megabytes, code=OPENS)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("this container does not allow mounts")
    assert "no space left on the disk" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
