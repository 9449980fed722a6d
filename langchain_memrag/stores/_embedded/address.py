"""The address of a server's socket, short enough for a socket and plain enough for a URL."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote, urlencode

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores._embedded.settings import DATABASE, USER

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
_SOCKET_BYTES = 103  # macOS; Linux takes 107
_LINK = "s"


class SocketAddress:
    """Where clients find the socket that lies in `pgdata`.

    The path of a socket has about a hundred bytes at most, and libpq takes a comma for a list of hosts. Where
    the data directory's own path does not do, clients go through a symbolic link in a private
    folder of the temporary folder.
    """

    def __init__(self, pgdata: Path) -> None:
        self._pgdata = pgdata
        self._detour = not _usable(pgdata)

    def folder(self) -> Path:
        """The folder to connect to; makes the detour if there has to be one."""
        return self._make_detour() if self._detour else self._pgdata

    def url(self) -> str:
        """A URL for libpq.

        What it pins to a blank or a default would else be read from the caller's environment, which is
        meant for other servers: a PGHOSTADDR beats the host, a PGCLIENTENCODING garbles text.
        """
        pinned = {
            "host": str(self.folder()),
            "port": str(PORT),
            "hostaddr": "",
            "options": "",
            "sslmode": "disable",
            "gssencmode": "disable",
            "target_session_attrs": "any",
            "client_encoding": "UTF8",
        }
        return f"postgresql://{USER}@/{DATABASE}?{urlencode(pinned, quote_via=quote, safe='')}"

    def remove_detour(self) -> None:
        """Remove what `folder` made."""
        if self._detour:
            for parent in _parents():
                place = parent / self._name()
                if _is_private(place):
                    (place / _LINK).unlink(missing_ok=True)
                    place.rmdir()

    def _name(self) -> str:
        digest = hashlib.sha256(os.fsencode(self._pgdata)).hexdigest()[:16]
        return f"memrag-{os.geteuid()}-{digest}"

    def _make_detour(self) -> Path:
        for parent in _parents():
            place = parent / self._name()
            link = place / _LINK
            if not _usable(link):
                continue
            place.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(place):  # somebody put it there to lead us astray
                place = Path(tempfile.mkdtemp(prefix="memrag-", dir=parent))
                link = place / _LINK
            if not link.is_symlink() or link.readlink() != self._pgdata:
                link.unlink(missing_ok=True)
                link.symlink_to(self._pgdata)
            return link
        raise ConfigurationError(
            f"neither {self._pgdata} nor the temporary folder has a path short enough for a socket "
            f"({_SOCKET_BYTES} bytes): choose a shorter data folder or set TMPDIR to a shorter one"
        )


def _parents() -> tuple[Path, ...]:
    return tuple(dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"))))  # noqa: S108 - see _is_private


def _usable(folder: Path) -> bool:
    text = str(folder)
    try:
        size = len((text + "/" + SOCKET_NAME).encode("utf-8"))
    except UnicodeEncodeError:  # bytes that are not UTF-8
        return False
    return size <= _SOCKET_BYTES and "," not in text


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
