"""PostgreSQL in a folder: started with its first user, stopped with its last.

```python
with EmbeddedPostgres.open(Path(".memrag")) as server:
    psycopg.connect(server.url)
```

Every open handle, in whichever process, holds a shared lock on the folder. Who closes and finds no other
holder stops the server. A process that dies loses its lock without stopping anything: the next one to
open the folder adopts the server, and stops it in turn.

The server runs in a session of its own, so Ctrl-C does not reach it. A forked child inherits the URL but is
not a holder: its copy of the handle is dead, closing it does nothing, and it opens the folder anew
if it wants the server to stay.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from langchain_memrag.errors import ConfigurationError, MemRAGError
from langchain_memrag.stores._embedded.folder import DataFolder, explained
from langchain_memrag.stores._embedded.locks import FileLock, alone

__all__ = ["EmbeddedPostgres"]

_logger = logging.getLogger(__name__)

# Longer than a start or a stop may take, so that whoever waits sees how it ended.
_OTHERS_SECONDS = 150.0

_open_handles: set[EmbeddedPostgres] = set()


class _Server(Protocol):
    def ensure_running(self) -> str: ...

    def stop(self) -> None: ...


class EmbeddedPostgres:
    """One data folder, one PostgreSQL server, shared by every process that opens it.

    Made by `open`. Safe to use from threads; each handle is closed once, by whoever opened it, or at the
    end of the process.
    """

    def __init__(self, folder: DataFolder, server: _Server, opener: FileLock, url: str) -> None:
        self._folder = folder
        self._server = server
        self._opener = opener
        self._url = url
        self._closing = threading.Lock()
        _open_handles.add(self)

    @classmethod
    def open(cls, folder: Path, *, major: Literal[16, 18] = 18) -> EmbeddedPostgres:
        """Open the server of `folder`: join the running one, or start it, creating the data first.

        Args:
            folder: The data folder; created, with its parents, if it is not there.
            major: The version of PostgreSQL. A folder stays with the one that made it.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
            ConfigurationError: The folder cannot be used, or this system does not let PostgreSQL run.
            StoreUnavailableError: The server does not start: a full disk, or still replaying after a crash.
        """
        prepared = DataFolder.prepare(folder)
        server = _server_of(prepared, major)
        with explained(prepared.path), alone(prepared.change_lock, timeout=_OTHERS_SECONDS, operation="open"):
            opener = FileLock(prepared.openers_lock)
            try:
                _join(prepared, opener)
                url = server.ensure_running()
            except BaseException:
                opener.release()
                raise
            return cls(prepared, server, opener, url)

    @property
    def url(self) -> str:
        """The database, for `psycopg.connect` and `psycopg_pool`. On Windows it has a password in it."""
        return self._url

    @property
    def folder(self) -> Path:
        """The data folder, absolute."""
        return self._folder.path

    def close(self) -> None:
        """Leave the server; the last one to leave stops it and waits until it is gone. Idempotent."""
        # Before the lock, which another thread may have held when a child was forked.
        if not self._opener.is_open():  # closed already, or the copy of a handle in a forked child
            return
        with self._closing:
            _open_handles.discard(self)
            if not self._opener.is_open():
                return
            try:
                with alone(self._folder.change_lock, timeout=_OTHERS_SECONDS, operation="close"):
                    try:
                        if self._opener.try_exclusive():
                            self._server.stop()
                    finally:
                        # Before the change lock: whoever takes that next must find this one free.
                        self._opener.release()
            except FileNotFoundError:
                # The folder was deleted or moved. A server whose data directory is gone ends by itself.
                _logger.debug("the data folder %s is gone", self._folder.path)
            finally:
                self._opener.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EmbeddedPostgres({str(self._folder.path)!r})"  # not the URL, which may have a password


def _join(folder: DataFolder, opener: FileLock) -> None:
    if not opener.try_shared():
        # Of us, only one who is stopping the server has it alone, and that one has the change lock too.
        raise ConfigurationError(
            f"{folder.openers_lock} is locked by another program: stop it, or choose another folder"
        )


def _server_of(folder: DataFolder, major: int) -> _Server:
    if sys.platform == "win32":
        from langchain_memrag.stores._embedded.windows import WindowsServer

        return WindowsServer(folder, major)
    else:  # noqa: RET505 - type checkers see one branch per platform
        from langchain_memrag.stores._embedded.posix import PosixServer

        return PosixServer(folder, major)


@atexit.register
def _close_at_exit() -> None:
    """Close what was left open. Runs no program: Python starts no processes at this point."""
    for handle in list(_open_handles):
        try:
            handle.close()
        except (MemRAGError, OSError) as error:
            _logger.warning("closing %r at exit failed: %s", handle, error)
