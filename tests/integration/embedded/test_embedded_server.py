"""How the server is set up: settings, paths, environment, log."""

from __future__ import annotations

import os
import signal
import socket
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import psycopg
import pytest

from langchain_memrag.stores.embedded import EmbeddedPostgres

from .processes import Opener, eventually, postmaster, value


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
    links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:")}
    assert inodes
    lines = [
        line
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()
    ]
    return [f"listen TCP {line}" for line in lines[1:] if set(line.split()) & inodes]


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
def test_any_folder_name_will_do(short: Path, name: str) -> None:
    folder = short / name / "memrag"
    with EmbeddedPostgres.open(folder) as server:
        assert server.folder == folder
        assert value(server, "SELECT 1") == 1
        assert postmaster(folder)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
    assert [entry.name for entry in short.iterdir()] == [name]


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
    connect = (
        "import psycopg\n"
        "row = psycopg.connect(handle.url).execute('SHOW client_encoding').fetchone()\n"
        "assert row == ('UTF8',)"
    )
    opener = Opener(tmp_path / "memrag", env=env, after=connect)
    assert opener.postmaster()
    opener.leave()


def test_the_server_inherits_nothing_it_should_not(folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.set_inheritable(True)
        with EmbeddedPostgres.open(folder):
            process = Path(f"/proc/{postmaster(folder)}")
            inode = str(Path(f"/proc/self/fd/{listener.fileno()}").readlink())
            held = [str(fd.readlink()) for fd in (process / "fd").iterdir()]
            assert held
            assert inode not in held
            locks = [Path(name).name for name in held if f"{folder}/locks" in name]
            assert locks == ["server"]  # were it the opener's, the last one out would never be the last
            assert (process / "fd/0").readlink() == Path("/dev/null")
            environment = (process / "environ").read_text()
            assert "PYTEST_CURRENT_TEST" in os.environ
            assert "PYTEST" not in environment


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
    with (
        EmbeddedPostgres.open(folder) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
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
        _crash_while_running(server, f"SELECT pg_sleep(60), '{secret}'")
    log = (folder / "server.log").read_text()
    assert "was terminated by signal" in log
    assert secret[:9] not in log
    assert "安娜" not in log


def _crash_while_running(server: EmbeddedPostgres, statement: str) -> None:
    """One of the server's processes crashes, which the server reports with what it was doing."""
    with (
        psycopg.connect(server.url, autocommit=True) as watcher,
        psycopg.connect(server.url, autocommit=True) as victim,
        ThreadPoolExecutor(1) as pool,
    ):
        pid = victim.info.backend_pid
        running = pool.submit(victim.execute, statement.encode())
        active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid = %s"
        eventually(lambda: watcher.execute(active, (pid,)).fetchone() == (1,), "the victim does not run")
        os.kill(pid, signal.SIGSEGV)
        with pytest.raises(psycopg.OperationalError):
            running.result()
