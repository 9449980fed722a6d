"""Starting, recognising and stopping the server on POSIX.

Two things are left to the kernel instead of to a pid in a file, which may be anybody's by the time it
is read:

* *Is a process of this folder's server alive?* The server inherits a lock on a file of the folder; the
  lock is free when the last of its processes is gone.
* *Is the server that answers this folder's?* Its socket lies inside the data directory. A copied
  folder has a dead copy of it.

`postgres` is run directly rather than by `pg_ctl`, which hands a command line to a shell, and hides the
exit of a server that fails to start.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import struct
import time
from pathlib import Path

import psycopg

from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.stores._embedded.account import Account, Detached, choose_account
from langchain_memrag.stores._embedded.address import PORT, SOCKET_NAME, SocketAddress
from langchain_memrag.stores._embedded.binaries import find_binaries
from langchain_memrag.stores._embedded.cluster import create_cluster
from langchain_memrag.stores._embedded.folder import DataFolder, is_full, no_room
from langchain_memrag.stores._embedded.locks import POLL_SECONDS, FileLock
from langchain_memrag.stores._embedded.settings import as_arguments, server_settings

_logger = logging.getLogger(__name__)

# After a crash the server first replays up to max_wal_size of its log.
_START_SECONDS = 120.0
_STOP_SECONDS = 60.0
_STOP_NOW_SECONDS = 15.0
_CONNECT_SECONDS = 10
_NO_MEMORY = ("could not map anonymous shared memory", "Cannot allocate memory")
_FULL = ("too many clients", "connection slots are reserved")

# Children of this process, to be reaped when they end: until then their pids look alive.
_children: list[Detached] = []


class PosixServer:
    """The one server of a data folder. Callers hold the folder's change lock."""

    def __init__(self, folder: DataFolder, major: int) -> None:
        self._folder = folder
        self._major = major
        self._address = SocketAddress(folder.pgdata)
        self._small = False
        self._refusal = ""

    def ensure_running(self) -> str:
        """Adopt the folder's server or start it; its URL.

        Raises:
            ConfigurationError: The folder or the system does not admit one.
            StoreUnavailableError: It does not start, or not in time.
        """
        _reap()
        binaries = find_binaries(self._major)
        if self._folder.pgdata.exists():
            self._folder.check_version(self._major)
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            alive = FileLock(self._folder.server_lock)
            try:
                # Free: no process of a server has it, so there is no server; the one we start takes it over.
                if alive.try_exclusive() and self._start(binaries, alive, deadline):
                    break
            finally:
                alive.drop()
            self._wait_or_give_up(deadline)
        return self._address.url()

    def stop(self) -> None:
        """Stop the server if it runs, and wait until all of its processes are gone."""
        for order, seconds in ((signal.SIGINT, _STOP_SECONDS), (signal.SIGQUIT, _STOP_NOW_SECONDS)):
            pid = self._postmaster()
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, order)
            if self._gone_within(seconds):
                self._address.remove_detour()
                return
        _logger.warning(
            "the PostgreSQL server of %s does not stop; the next one to open it adopts it", self._folder.path
        )

    def _start(self, binaries: Path, alive: FileLock, deadline: float) -> bool:
        """Start the server and wait until it answers; False if it is to be tried again, with less memory."""
        self._remove_dead_servers_files()
        made = self._folder.pgdata if self._folder.pgdata.exists() else self._folder.path
        account = choose_account(binaries, made.stat().st_uid)
        if not self._folder.pgdata.exists():
            create_cluster(self._folder, account, self._major)
        process = self._spawn(account, alive)
        try:
            while not self._answers():
                if process.poll() is not None:
                    self._explain_exit(process.returncode)
                    return False
                self._wait_or_give_up(deadline)
        except StoreUnavailableError:
            raise  # it recovers, or is full: it is left to the next opener
        except BaseException:
            # Not SIGINT: a job in a shell's background has it ignored, and so has what it starts, until
            # PostgreSQL has installed its handlers.
            process.send_signal(signal.SIGTERM)
            raise
        return True

    def _spawn(self, account: Account, alive: FileLock) -> Detached:
        data = os.open(self._folder.pgdata, os.O_RDONLY | os.O_DIRECTORY)
        log = self._folder.open_log()
        try:
            if account.uid is not None and os.fstat(data).st_uid != account.uid:
                account.give(data)
            settings = server_settings(small=self._small) | {
                "listen_addresses": "",
                "port": str(PORT),
                "unix_socket_directories": ".",  # the data directory; PostgreSQL insists on its mode 0700
                "unix_socket_permissions": "0700",
            }
            directory = account.data_argument(self._folder.pgdata, data)
            inherited = [data] if alive.fd is None else [data, alive.fd]
            process = account.start(
                "postgres", ["-D", directory, *as_arguments(settings)], fds=inherited, log=log
            )
        finally:
            os.close(data)
            os.close(log)
        _children.append(process)
        return process

    def _explain_exit(self, status: int) -> None:
        """Say why the server ended while starting, unless it can be tried again."""
        tail = self._folder.log_tail()
        if is_full(tail):
            raise no_room(self._folder.path)
        # Killed by a signal: by the system, which is short of memory, most likely.
        if self._small or not (status < 0 or any(sign in tail for sign in _NO_MEMORY)):
            raise self._failed("the PostgreSQL server ended while starting")
        self._small = True

    def _answers(self) -> bool:
        """Whether this folder's server takes connections."""
        lines = self._pid_file()
        ready = len(lines) > 7 and lines[7].strip() == "ready"
        if not ready or self._postmaster() is None:
            return False
        try:
            with psycopg.connect(self._address.url(), connect_timeout=_CONNECT_SECONDS) as connection:
                row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
        except psycopg.OperationalError as error:
            # All its connections may be taken by those who opened it before us. It is ours all the same.
            self._refusal = f" ({error})"
            return any(sign in str(error) for sign in _FULL)
        return row is not None and row[0].splitlines()[:3] == lines[:3]

    def _postmaster(self) -> int | None:
        """The pid of the live server of this folder, None if there is none that listens."""
        lines = self._pid_file()
        if not lines or not lines[0].isdigit():
            return None
        pid = int(lines[0])
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(_CONNECT_SECONDS)
            try:
                client.connect(str(self._address.folder() / SOCKET_NAME))
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            except (BlockingIOError, TimeoutError):
                return pid  # too busy to take our call, so somebody listens
            return pid if _listener(client) in (pid, None) else None

    def _pid_file(self) -> list[str]:
        """The lines of postmaster.pid: pid, directory, start, port, socket, address, memory, status."""
        try:
            return (
                (self._folder.pgdata / "postmaster.pid")
                .read_text(encoding="utf-8", errors="replace")
                .splitlines()
            )
        except FileNotFoundError:
            return []

    def _remove_dead_servers_files(self) -> None:
        """Remove what a killed server left; PostgreSQL would take a reused pid in it for a live server."""
        lines = self._pid_file()
        if not lines:
            return
        if lines[0].isdigit() and _works_in(int(lines[0]), self._folder.pgdata):
            raise ConfigurationError(
                f"{self._folder.pgdata} is in use by a PostgreSQL server that another program started "
                f"(pid {lines[0]}): stop it"
            )
        (self._folder.pgdata / "postmaster.pid").unlink(missing_ok=True)
        (self._folder.pgdata / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        alive = FileLock(self._folder.server_lock)
        try:
            while True:
                _reap()
                if alive.try_exclusive():
                    return True
                if time.monotonic() > deadline:
                    return False
                time.sleep(POLL_SECONDS)
        finally:
            alive.release()

    def _wait_or_give_up(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise self._failed(
                f"the PostgreSQL server does not answer after {_START_SECONDS:.0f} s"
                f"{self._refusal}; try again later"
            )
        time.sleep(POLL_SECONDS)

    def _failed(self, what: str) -> StoreUnavailableError:
        message = f"{what}. The end of {self._folder.log}:\n{self._folder.log_tail()}"
        return StoreUnavailableError(message, engine="postgres", operation="open")


def _listener(client: socket.socket) -> int | None:
    """The pid of the process that listens at the other end, where the system tells.

    It is 0 if that process is in a container whose processes we cannot see, and could not signal.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    pid: int = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))[0]
    return pid


def _reap() -> None:
    for process in list(_children):
        if process.poll() is not None:
            with contextlib.suppress(ValueError):  # another thread was faster
                _children.remove(process)


def _works_in(pid: int, folder: Path) -> bool:
    """Whether a process has `folder` as its working directory, as PostgreSQL's main process does."""
    try:
        return Path(f"/proc/{pid}/cwd").samefile(folder)
    except OSError:
        return False
