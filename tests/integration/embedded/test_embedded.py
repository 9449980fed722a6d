"""Opening, sharing and closing a data folder, by processes, threads and forks."""

from __future__ import annotations

import os
import signal
import socket
import stat
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from langchain_memrag.stores.embedded import EmbeddedPostgres

from .processes import Opener, eventually, postmaster, server_lives


def value(server: EmbeddedPostgres, statement: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(statement).fetchone()
        assert row is not None
        return row[0]


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


@pytest.mark.parametrize("major", [16, 18])
def test_the_database_speaks_unicode_and_utc(tmp_path: Path, major: Literal[16, 18]) -> None:
    with EmbeddedPostgres.open(tmp_path / "memrag", major=major) as server:
        assert value(server, "SHOW server_encoding") == "UTF8"
        assert value(server, "SHOW timezone") == "UTC"
        assert value(server, "SELECT lower('ÄÉ') || upper('ß北京é')") == "äéß北京É"
        assert value(server, "SELECT 'B' < 'a'") is True  # by code point, whatever the C library says
        assert value(server, "SELECT current_database() || current_user") == "memragmemrag"


def test_it_is_durable_and_private(folder: Path) -> None:
    with EmbeddedPostgres.open(folder) as server:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert value(server, f"SHOW {setting}") == "on"
        assert value(server, "SHOW wal_compression") != "off"
        assert value(server, "SHOW jit") == "off"
        assert value(server, "SHOW listen_addresses") == ""
        # Nobody else gets as far as the socket.
        assert stat.S_IMODE((folder / "pgdata").stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "pgdata" / ".s.PGSQL.5432").stat().st_mode) == 0o700
        for file in (folder / "server.log", *(folder / "locks").iterdir()):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert not any("listen" in line and "TCP" in line for line in _sockets_of(postmaster(folder)))
    assert stat.S_IMODE((folder / "locks").stat().st_mode) == 0o700


def _sockets_of(pid: int) -> list[str]:
    """The lines of the TCP tables that belong to a socket of this process."""
    inodes = {
        os.readlink(fd)[8:-1] for fd in Path(f"/proc/{pid}/fd").iterdir() if "socket:" in os.readlink(fd)
    }
    lines = [
        line
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()
    ]
    return [f"listen TCP {line}" for line in lines[1:] if set(line.split()) & inodes]


def test_a_pool_accepts_the_url(folder: Path) -> None:
    with (
        EmbeddedPostgres.open(folder) as server,
        ConnectionPool(server.url, min_size=1, max_size=2) as pool,
        pool.connection() as connection,
    ):
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "name",
    [
        "a folder with spaces",
        "R&D; echo $(id) `id` $HOME",
        "quotes ' and \" and \\",
        "我的记忆",
        "😀 emoji",
        "100%25, one, two",
        "two\nlines",
        "-D",
        os.fsdecode(b"not utf-8 \xff"),
    ],
)
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "memrag"
    with EmbeddedPostgres.open(folder) as server:
        assert server.folder == folder
        assert value(server, "SELECT 1") == 1
        assert postmaster(folder)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_home_folder_and_a_relative_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.chdir(folder.parent)
    with (
        EmbeddedPostgres.open(Path("~/memrag")) as server,
        EmbeddedPostgres.open(Path("memrag")) as same,
    ):
        assert server.folder == same.folder == folder
        assert server.url == same.url


def test_a_deep_folder_gets_a_private_short_path(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detours = Path(tempfile.mkdtemp(prefix="d", dir="/tmp"))
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(detours))
        folder = tmp_path / ("deep" * 20) / ("深" * 20) / "memrag"
        with EmbeddedPostgres.open(folder) as server, EmbeddedPostgres.open(folder) as second:
            assert value(server, "SELECT 1") == 1
            [detour] = detours.iterdir()
            assert stat.S_IMODE(detour.stat().st_mode) == 0o700
            assert second.url == server.url
        assert list(detours.iterdir()) == []  # nothing is left of it

        # Somebody else was there first, to make us connect to a server of his.
        detour.mkdir()
        detour.chmod(0o777)
        (detour / "s").symlink_to("/nowhere")
        with EmbeddedPostgres.open(folder) as server:
            assert detour.name not in server.url
            assert value(server, "SELECT 1") == 1
    finally:
        for place in detours.iterdir():
            (place / "s").unlink()
            place.rmdir()
        detours.rmdir()


def test_the_callers_environment_does_not_reach_the_server_or_the_url(tmp_path: Path) -> None:
    env = {
        "LC_ALL": "xx_XX.not-installed",
        "LANG": "de_DE.ISO-8859-1",
        "TZ": "Asia/Shanghai",
        "PGDATA": "/nowhere",
        "PGHOST": "nowhere.invalid",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGDATABASE": "nothing",
        "PGOPTIONS": "-c nonsense=1",
        "PGSSLMODE": "require",
        "PGCLIENTENCODING": "GBK",
        "PGTARGETSESSIONATTRS": "standby",
    }
    connect = "import psycopg; assert psycopg.connect(handle.url).execute('SHOW client_encoding').fetchone() == ('UTF8',)"
    opener = Opener(tmp_path / "memrag", env=env, after=connect)
    assert opener.postmaster()
    opener.leave()


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


def test_the_server_inherits_nothing_it_should_not(folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.set_inheritable(True)
        with EmbeddedPostgres.open(folder):
            inode = os.readlink(f"/proc/self/fd/{listener.fileno()}")
            held = [os.readlink(fd) for fd in Path(f"/proc/{postmaster(folder)}/fd").iterdir() if fd.exists()]
            assert held
            assert inode not in held
            locks = [Path(name).name for name in held if f"{folder}/locks" in name]
            assert locks == ["server"]  # were it the opener's, the last one out would never be the last
            assert os.readlink(f"/proc/{postmaster(folder)}/fd/0") == "/dev/null"
            environment = Path(f"/proc/{postmaster(folder)}/environ").read_text()
            assert "PYTEST_CURRENT_TEST" in os.environ
            assert "PYTEST" not in environment


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
    child = _in_child(lambda: signal.pause())
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
        taken = []
        with pytest.raises(psycopg.OperationalError):
            for _ in range(200):
                taken.append(psycopg.connect(server.url))
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


def test_git_ignores_the_folder_but_not_its_neighbours(tmp_path: Path, made: Path) -> None:
    assert (made / ".gitignore").read_text() == "*\n"
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("")
    with EmbeddedPostgres.open(project):
        assert not (project / ".gitignore").exists()  # `*` there would hide the user's own files


def test_the_log_does_not_grow_from_start_to_start(folder: Path) -> None:
    sizes = []
    for _ in range(3):
        with EmbeddedPostgres.open(folder):
            eventually(lambda: "ready" in (folder / "server.log").read_text(), "no log")
        sizes.append((folder / "server.log").stat().st_size)
    assert max(sizes) < 2 * min(sizes)
    assert sorted(path.name for path in folder.glob("server.log*")) == ["server.log", "server.log.1"]


def test_what_users_say_does_not_reach_the_log(folder: Path) -> None:
    secret = "Zhang-wei-安娜"
    with EmbeddedPostgres.open(folder) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE said (words text PRIMARY KEY CHECK (length(words) < 99))")
            connection.execute("INSERT INTO said VALUES (%s)", (secret,))
            for statement, words in (
                ("INSERT INTO said VALUES (%s)", secret),  # in the detail of the error
                ("INSERT INTO said VALUES (%s)", secret * 20),
                ("SELECT %s::text::int", secret),  # in its first line
                ("SELECT 1/0 FROM said WHERE words = %s", secret),  # in its parameters
                (f"SELECT 1/0 FROM said WHERE words = '{secret}'", None),  # in its statement
            ):
                with pytest.raises(psycopg.Error):
                    connection.execute(statement.encode(), None if words is None else (words,))
            connection.execute(f"DO $$ BEGIN RAISE WARNING '{secret}'; END $$".encode())
            # A process that crashes is reported with what it was doing.
            with psycopg.connect(server.url, autocommit=True) as victim:
                crash = ThreadPoolExecutor(1).submit(
                    victim.execute, f"SELECT pg_sleep(60), '{secret}'".encode()
                )
                eventually(
                    lambda: (
                        connection.execute(
                            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid = %s",
                            (victim.info.backend_pid,),
                        ).fetchone()
                        == (1,)
                    ),
                    "the victim does not run",
                )
                os.kill(victim.info.backend_pid, signal.SIGSEGV)
                with pytest.raises(psycopg.OperationalError):
                    crash.result()
    log = (folder / "server.log").read_text()
    assert "was terminated by signal" in log
    assert secret[:9] not in log
    assert "安娜" not in log
