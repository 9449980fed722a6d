"""What a location means: a data folder with an embedded server, or the URL of one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.postgres.database import Database

if TYPE_CHECKING:
    from langchain_memrag.stores.embedded import EmbeddedPostgres

__all__ = ["Opened", "open_database"]

_POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that is fit to use, and the server to let go after it.

    Attributes:
        label: Where it is, without credentials.
    """

    database: Database
    server: EmbeddedPostgres | None
    label: str

    def close(self) -> None:
        """Close connections; the last opener of an embedded server stops it."""
        self.database.close()
        if self.server is not None:
            self.server.close()


def open_database(
    location: str | os.PathLike[str], *, direct_url: str | None, schema: str, pool_size: int
) -> Opened:
    """Open the system of record.

    Args:
        location: A data folder or a `postgresql://` URL.
        direct_url: A way past a pooler; only with a URL.
        schema: Where all tables live.
        pool_size: Connections at most.

    Raises:
        ConfigurationError: Another scheme, or a size below 1.
        StoreUnavailableError: The server cannot be reached or started.
    """
    if pool_size < 1:
        raise ConfigurationError(f"pool_size must be at least 1, not {pool_size}")
    place = os.fspath(location)
    if place.startswith(_POSTGRES):
        database = Database(place, direct_url=direct_url, schema=schema, pool_size=pool_size)
        return _opened(database, None, database.label)
    if "://" in place:
        scheme = place.split("://", 1)[0]
        raise ConfigurationError(
            f"cannot keep a memory in {scheme}://; give a data folder or a postgresql:// URL"
        )
    if direct_url is not None:
        raise ConfigurationError("direct_url goes with a postgresql:// URL, not with a data folder")
    from langchain_memrag.stores.embedded import EmbeddedPostgres  # an extra brings its binaries

    server = EmbeddedPostgres.open(Path(place))
    return _opened(
        Database(server.url, schema=schema, pool_size=pool_size, prepared=True), server, str(server.folder)
    )


def _opened(database: Database, server: EmbeddedPostgres | None, label: str) -> Opened:
    opened = Opened(database, server, label)
    try:
        database.open()
    except BaseException:
        opened.close()
        raise
    return opened
