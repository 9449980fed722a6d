"""Other processes that open a data folder, and what can be seen of the server's own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg

from langchain_memrag.stores._embedded.locks import FileLock
from langchain_memrag.stores.embedded import EmbeddedPostgres

SECONDS = 60.0

# Opens the folder, says the postmaster's pid, waits to be told how to leave.
OPENER = """
import sys
from pathlib import Path
from langchain_memrag.stores.embedded import EmbeddedPostgres
{before}
handle = EmbeddedPostgres.open(Path(sys.argv[1]), major=int(sys.argv[2]))
{after}
print((handle.folder / "pgdata" / "postmaster.pid").read_text().splitlines()[0], flush=True)
if sys.stdin.readline().strip() == "close":
    handle.close()
"""


class Opener:
    """A process of its own that has the folder open."""

    def __init__(
        self,
        folder: Path,
        *,
        major: int = 18,
        before: str = "",
        after: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OPENER.format(before=before, after=after), str(folder), str(major)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def postmaster(self) -> int:
        """The pid of the server it is connected to, once it has opened the folder."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        return int(line)

    def leave(self, how: str = "close") -> None:
        """Close and end, or with `exit` end without closing."""
        _, errors = self.process.communicate(f"{how}\n", timeout=SECONDS)
        assert self.process.returncode == 0, errors
        assert not errors

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def postmaster(folder: Path) -> int:
    return int((folder / "pgdata" / "postmaster.pid").read_text().splitlines()[0])


def server_lives(folder: Path) -> bool:
    """Whether any process of the folder's server is there."""
    lock = FileLock(folder / "locks" / "server")
    try:
        return not lock.try_exclusive()
    finally:
        lock.release()


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def kill_server(folder: Path) -> None:
    """The postmaster is killed with -9, and its children have noticed."""
    os.kill(postmaster(folder), signal.SIGKILL)
    eventually(lambda: not server_lives(folder), "the server's processes outlive it")


def stop_leftovers(root: Path) -> list[Path]:
    """Stop the servers below `root` that still run; the folders that had one."""
    found = []
    for pid in (entry for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with contextlib.suppress(OSError):
            if (pid / "cwd").readlink().is_relative_to(root) and (pid / "exe").readlink().name == "postgres":
                found.append((pid / "cwd").readlink())
                os.kill(int(pid.name), signal.SIGQUIT)
    return found


def value(server: EmbeddedPostgres, statement: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(statement).fetchone()
        assert row is not None
        return row[0]
