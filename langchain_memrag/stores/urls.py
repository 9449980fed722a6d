"""What a location means: a data folder with an embedded server, or a URL; and which engine a URL names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.server import CacheServer, GraphServer, SearchServer

if TYPE_CHECKING:
    from langchain_memrag.stores.embedded import EmbeddedPostgres

__all__ = ["Opened", "open_cache_server", "open_database", "open_graph_server", "open_search_server"]

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


def open_search_server(place: str | SearchServer) -> SearchServer:
    """The engine of a search index, from its URL.

    Args:
        place: `qdrant://host:6333`, `qdrant+s://` for TLS, `qdrant://:memory:`, or a server that was made
            with options.

    Raises:
        ConfigurationError: Another scheme, or a URL that cannot be read.
        MissingDependencyError: The client is not installed.
    """
    if not isinstance(place, str):
        return place
    if not place.startswith(("qdrant:", "qdrant+s:", ":memory:")):
        raise ConfigurationError(
            f"search={_scheme(place)} is no engine of a search index; give a qdrant:// URL, or leave it "
            "out to search in Postgres"
        )
    from langchain_memrag.stores.qdrant import QdrantServer  # an extra brings its client

    return QdrantServer(place)


def open_graph_server(place: str | GraphServer) -> GraphServer:
    """The engine of the graph, from its URL.

    Args:
        place: `neo4j://user:password@host:7687`, `bolt://`, `+s` for TLS, or a server that was
            made with options.

    Raises:
        ConfigurationError: Another scheme, or a URL that cannot be read.
        MissingDependencyError: The driver is not installed.
    """
    if not isinstance(place, str):
        return place
    if not place.startswith(("neo4j:", "neo4j+", "bolt:", "bolt+")):
        raise ConfigurationError(
            f"graph={_scheme(place)} is no engine of a graph; give a neo4j:// URL, or leave it out to "
            "keep the graph in Postgres"
        )
    from langchain_memrag.stores.neo4j import Neo4jGraph  # an extra brings its driver

    return Neo4jGraph(place)


def open_cache_server(place: str | CacheServer) -> CacheServer:
    """The engine of the cache, from its URL.

    Args:
        place: `redis://:password@host:6379/0`, `rediss://`, `unix://`, or a server that was
            made with options.

    Raises:
        ConfigurationError: Another scheme, or a URL that cannot be read.
        MissingDependencyError: The client is not installed.
    """
    if not isinstance(place, str):
        return place
    if not place.startswith(("redis:", "rediss:", "unix:")):
        raise ConfigurationError(
            f"cache={_scheme(place)} is no engine of a cache; give a redis:// URL, 'process' to keep values "
            "in the process, or 'none'"
        )
    from langchain_memrag.stores.redis import RedisCache  # an extra brings its client

    return RedisCache(place)


def _scheme(place: str) -> str:
    # Whatever stands behind it may be a password.
    return f"{place.split(':', 1)[0]}:" if ":" in place else "this"
