"""File locks that the operating system frees when their holder dies.

On POSIX a lock is `flock`: it belongs to the *open file description*, so two handles of one process
that opened the file separately exclude each other, and a descriptor that was inherited (by a fork, or
by the server we start) keeps the lock of the one it was copied from.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from langchain_memrag.errors import StoreUnavailableError

if sys.platform == "win32":
    from langchain_memrag.stores._embedded.windows_locks import free_lock, take_lock
else:
    import fcntl

    def take_lock(fd: int, *, exclusive: bool) -> bool:
        """Take, or convert to, a lock; False if another holder is in the way."""
        try:
            fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def free_lock(fd: int) -> None:
        """Free the lock at once, for every copy of the descriptor."""
        fcntl.flock(fd, fcntl.LOCK_UN)


POLL_SECONDS = 0.02
# O_NOFOLLOW: somebody else's symbolic link in a shared folder must not make us write elsewhere.
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)

_open_locks: set[FileLock] = set()


class FileLock:
    """One handle on one lock file.

    Never shared with a forked child: the child's copies are closed right after the fork, which frees
    nothing, so that a child neither prolongs nor ends what its parent holds.
    """

    def __init__(self, path: Path) -> None:
        self._fd: int | None = os.open(path, _OPEN_FLAGS, 0o600)
        if sys.platform != "win32" and os.geteuid() == 0:
            # The folder's owner must be able to lock it without root later.
            owner = path.parent.stat()
            os.fchown(self._fd, owner.st_uid, owner.st_gid)
        _open_locks.add(self)

    @property
    def fd(self) -> int | None:
        """The descriptor, or None once closed (or in a forked child)."""
        return self._fd

    def is_open(self) -> bool:
        """Whether this handle can hold the lock: False once closed, and in a forked child."""
        return self._fd is not None

    def try_shared(self) -> bool:
        """Take the lock beside other shared holders; False if one holds it alone."""
        return self._fd is not None and take_lock(self._fd, exclusive=False)

    def try_exclusive(self) -> bool:
        """Take the lock alone, or turn a shared one into that; False if there are other holders.

        A failed conversion gives up the shared lock: ask only when leaving.
        """
        return self._fd is not None and take_lock(self._fd, exclusive=True)

    def drop(self) -> None:
        """Close this copy only; a process that inherited the descriptor keeps the lock."""
        fd, self._fd = self._fd, None
        _open_locks.discard(self)
        if fd is not None:
            os.close(fd)

    def release(self) -> None:
        """Free the lock for good, inherited copies included, and close."""
        if self._fd is not None:
            free_lock(self._fd)
        self.drop()


@contextlib.contextmanager
def alone(path: Path, *, timeout: float, operation: str) -> Iterator[None]:
    """Hold `path` exclusively, waiting for others at most `timeout` seconds."""
    lock = FileLock(path)
    try:
        deadline = time.monotonic() + timeout
        while not lock.try_exclusive():
            if time.monotonic() > deadline:
                raise StoreUnavailableError(
                    f"another process has been starting or stopping the server of {path.parent.parent} "
                    f"for more than {timeout:.0f} s; try again",
                    engine="postgres",
                    operation=operation,
                )
            time.sleep(POLL_SECONDS)
        yield
    finally:
        lock.release()


def _close_inherited() -> None:
    for lock in list(_open_locks):
        lock.drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
