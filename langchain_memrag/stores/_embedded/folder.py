"""The data folder: what lies where in it, and what is said when it cannot be used.

```
FOLDER/
├── .gitignore       `*`: a memory is nobody's source code
├── locks/           change: held while the server starts or stops
│                    openers: held, shared, by every open handle of every process
│                    server: held by the server's own processes as long as one of them lives
├── pgdata/          PostgreSQL's data directory, its socket included
├── server.log       of the running server, and server.log.1 of the one before
└── .initdb-*        a data directory in the making (left behind by a kill, removed by the next opener)
```
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from langchain_memrag.errors import ConfigurationError, MemRAGError, StoreUnavailableError

INITDB_PREFIX = ".initdb-"
_LOG_TAIL_BYTES = 4096
_LOG_TAIL_LINES = 12
_OURS = frozenset({".gitignore", "locks", "pgdata", "server.log", "server.log.1"})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_SAYS_NO_ROOM = ("No space left on device", "Disk quota exceeded", "Check free disk space")
_NO_WRITE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_A_FOLDER = frozenset({errno.ENOTDIR, errno.EEXIST})
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO})


@dataclass(frozen=True)
class DataFolder:
    """The paths of one data folder, absolute and without symbolic links."""

    path: Path

    @classmethod
    def prepare(cls, folder: Path) -> DataFolder:
        """Create the folder as far as needed and check that it can be used.

        Raises:
            ConfigurationError: It is a file, not writable, or holds something else.
            StoreUnavailableError: The disk is full.
        """
        with explained(folder):
            try:
                path = Path(os.path.realpath(folder.expanduser()))
            except (RuntimeError, ValueError) as error:  # no home folder; a NUL in the name
                raise ConfigurationError(f"{str(folder)!r} is not a usable folder name: {error}") from error
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (path / "PG_VERSION").exists():
                raise ConfigurationError(
                    f"{path} is itself a PostgreSQL data directory, made by another program: "
                    "choose an empty folder, or start that server and give its postgresql:// URL"
                )
            prepared = cls(path)
            prepared._ignore_in_git()
            prepared._locks.mkdir(mode=0o700, exist_ok=True)
            prepared.give_to_owner(prepared._locks)
        return prepared

    @property
    def pgdata(self) -> Path:
        """PostgreSQL's data directory."""
        return self.path / "pgdata"

    @property
    def log(self) -> Path:
        """The log of the running (or last) server."""
        return self.path / "server.log"

    @property
    def change_lock(self) -> Path:
        """Held alone while a server is started or stopped."""
        return self._locks / "change"

    @property
    def openers_lock(self) -> Path:
        """Held, shared, by each open handle."""
        return self._locks / "openers"

    @property
    def server_lock(self) -> Path:
        """Held by the server's processes, which inherit it."""
        return self._locks / "server"

    @property
    def _locks(self) -> Path:
        return self.path / "locks"

    def give_to_owner(self, path: Path) -> None:
        """Hand what root just created to the folder's owner, who may open it without root later."""
        if sys.platform != "win32" and os.geteuid() == 0:
            owner = self.path.stat()
            if owner.st_uid != 0:
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def check_version(self, major: int) -> None:
        """Refuse a data directory that PostgreSQL `major` cannot read."""
        try:
            found = (self.pgdata / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise ConfigurationError(
                f"{self.pgdata} is not a PostgreSQL data directory: move it away, or choose another folder"
            ) from None
        if found != str(major):
            raise ConfigurationError(
                f"{self.path} was made by PostgreSQL {found}, which PostgreSQL {major} cannot read: "
                f"open it with major={found} or choose another folder"
            )

    def sweep(self) -> None:
        """Remove data directories that an opener was killed in the middle of making."""
        for leftover in self.path.glob(f"{INITDB_PREFIX}*"):
            # A killed opener's initdb may still write there; what is in the way is swept next time.
            shutil.rmtree(leftover, ignore_errors=True)

    def open_log(self) -> int:
        """Start a new log, keep the one before, and return a descriptor that appends to it."""
        if self.log.exists():
            self.log.replace(self.log.with_name("server.log.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(self.log, flags, 0o600)
        self.give_to_owner(self.log)
        return fd

    def log_tail(self) -> str:
        """The last lines of the server's log; its settings keep users' text out of it."""
        try:
            with self.log.open("rb") as stream:
                stream.seek(max(0, stream.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                text = stream.read().decode("utf-8", "replace")
        except OSError as error:
            return f"(no server log: {error.strerror})"
        return "\n".join(text.splitlines()[-_LOG_TAIL_LINES:]) or "(the server log is empty)"

    def _ignore_in_git(self) -> None:
        names = {entry.name for entry in self.path.iterdir() if not entry.name.startswith(INITDB_PREFIX)}
        # In a folder that holds other files too, `*` would hide those from git.
        if ".gitignore" in names or names - _OURS:
            return
        ignore = self.path / ".gitignore"
        ignore.write_text("*\n", encoding="ascii")
        self.give_to_owner(ignore)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn an `OSError` about the folder into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise _explain(error, folder) from error


def is_full(output: str) -> bool:
    """Whether PostgreSQL's output says that the disk is full."""
    return any(sign in output for sign in _SAYS_NO_ROOM)


def no_room(folder: Path) -> StoreUnavailableError:
    """The error for a full disk."""
    return StoreUnavailableError(
        f"no space left on the disk of {folder}: free some and try again", engine="postgres", operation="open"
    )


def _explain(error: OSError, folder: Path) -> MemRAGError:
    if error.errno in _NO_ROOM:
        return no_room(folder)
    if error.errno in _NO_WRITE:
        return ConfigurationError(
            f"{folder} cannot be written ({error.strerror}: {error.filename}): "
            "choose another folder, or make it and everything in it writable for this user"
        )
    if error.errno in _NOT_A_FOLDER:
        return ConfigurationError(f"{folder} is not a folder: choose another path, or remove the file there")
    if error.errno in _PASSING:
        return StoreUnavailableError(
            f"{folder} cannot be used just now ({error.strerror})", engine="postgres", operation="open"
        )
    return ConfigurationError(f"{folder} cannot be used ({error.strerror}): choose a folder on a local disk")
