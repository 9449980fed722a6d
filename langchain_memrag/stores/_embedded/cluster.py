"""A new data directory: made beside its place, made durable, then renamed into it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from langchain_memrag.errors import StoreUnavailableError
from langchain_memrag.stores._embedded.account import Account
from langchain_memrag.stores._embedded.folder import INITDB_PREFIX, DataFolder, is_full, no_room
from langchain_memrag.stores._embedded.settings import DATABASE, USER

_INITDB_SECONDS = 120
_SYNC_THREADS = 16
_LOCALE = "C.UTF-8"


def create_cluster(folder: DataFolder, account: Account, major: int) -> None:
    """Make `folder.pgdata`, with the database in it; killed half way, nothing of that name exists.

    Raises:
        StoreUnavailableError: initdb failed, or the disk is full.
    """
    folder.sweep()
    making = Path(tempfile.mkdtemp(prefix=INITDB_PREFIX, dir=folder.path))
    fd = os.open(making, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        initialiser = account.initialiser()
        initialiser.give(fd)
        data = initialiser.data_argument(making, fd)
        _run(folder, initialiser, "initdb", ["-D", data, *_initdb_arguments(major)], fd=fd)
        _run(
            folder,
            initialiser,
            "postgres",
            # Nothing is lost without fsync here: everything is synced below, before it gets its name.
            ["--single", "-F", "-D", data, "-c", "exit_on_error=on", "postgres"],
            fd=fd,
            stdin=f"CREATE DATABASE {DATABASE} STRATEGY = file_copy\n",
        )
        os.stat("PG_VERSION", dir_fd=fd)  # where a program ignores SIGCHLD, initdb seems never to fail
        account.give(fd)
        _make_durable(making)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)  # on a full disk it is in the way
        raise
    finally:
        os.close(fd)
    making.rename(folder.pgdata)
    _sync(folder.path)


def _initdb_arguments(major: int) -> list[str]:
    arguments = [
        f"--username={USER}",
        "--encoding=UTF8",
        f"--locale={_LOCALE}",
        "--auth-local=trust",  # who reaches the socket got into a directory of mode 0700
        "--auth-host=reject",
        "--no-instructions",
        # Syncs a thousand files one by one, which takes seconds; we do it in parallel.
        "--no-sync",
    ]
    if major >= 17:
        # Collation that does not change with the system's C library.
        arguments += ["--locale-provider=builtin", f"--builtin-locale={_LOCALE}"]
    return arguments


def _run(
    folder: DataFolder, account: Account, program: str, arguments: list[str], *, fd: int, stdin: str = ""
) -> None:
    try:
        done = account.run(program, arguments, fd=fd, stdin=stdin, timeout=_INITDB_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise _failed(folder, f"{program} took more than {_INITDB_SECONDS} s") from error
    if done.returncode == 0:
        return
    if "invalid locale name" in done.stderr and f"--locale={_LOCALE}" in arguments:
        # A system without this locale (it is older than glibc 2.35, say): plain C sorts the same way.
        plain = ["--locale=C" if each == f"--locale={_LOCALE}" else each for each in arguments]
        _run(folder, account, program, plain, fd=fd, stdin=stdin)
        return
    if is_full(done.stdout + done.stderr):
        raise no_room(folder.path)
    advice = ""
    if "could not look up effective user ID" in done.stderr:
        advice = " (give this uid an entry in /etc/passwd, or give a postgresql:// URL)"
    output = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
    raise _failed(folder, f"{program} ended with {done.returncode}{advice}:\n{output}")


def _failed(folder: DataFolder, what: str) -> StoreUnavailableError:
    message = f"the data directory in {folder.path} could not be made: {what}"
    return StoreUnavailableError(message, engine="postgres", operation="open")


def _make_durable(root: Path) -> None:
    """Sync every file and directory: all at once, so that they share the disk's commits."""
    with ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="memrag-sync") as pool:
        for _ in pool.map(_sync, _everything(root)):
            pass


def _everything(root: Path) -> Iterator[Path]:
    for folder, _, files in os.walk(root):
        yield from (Path(folder, name) for name in files)
        yield Path(folder)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
