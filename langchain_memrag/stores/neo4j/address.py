"""Where a Neo4j server is, who asks, and how: never with a word of the credentials in a repr."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from langchain_memrag.errors import ConfigurationError

__all__ = ["Neo4jAddress", "Neo4jOptions", "parse_address"]

SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")

_NAMESPACE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")


@dataclass(frozen=True, slots=True)
class Neo4jOptions:
    """How a graph uses its server.

    Attributes:
        database: Its name; the URL's path, or else the user's home database, where it is `None`.
        namespace: What all labels and constraints start with; the URL's, or else `MemRAG`, where it is
            `None`. Memories that share a database need one each: the spaces of both are numbered from 1.
        pool_size: Connections at most.
        connect_timeout: Seconds to wait for a connection.
        timeout: Seconds that the server may take for one transaction.
        retry_time: Seconds during which a write that collided, or lost its connection, is tried again.
    """

    database: str | None = None
    namespace: str | None = None
    pool_size: int = 10
    connect_timeout: float = 5.0
    timeout: float = 30.0
    retry_time: float = 2.0

    def __post_init__(self) -> None:
        if self.namespace is not None:
            _check_namespace(self.namespace)
        if self.pool_size < 1:
            raise ConfigurationError(f"pool_size must be at least 1, not {self.pool_size}")
        if min(self.connect_timeout, self.timeout) <= 0 or self.retry_time < 0:
            raise ConfigurationError("the timeouts of Neo4j must be above 0, retry_time at least 0")


@dataclass(frozen=True, slots=True)
class Neo4jAddress:
    """A URL taken apart.

    Attributes:
        label: Scheme, host and port: fit for messages.
        user: Who logs in; `None` where the server asks for nobody.
        password: Kept out of the repr.
        database: From the URL's path.
        namespace: From its query.
    """

    label: str
    user: str | None = None
    password: str = field(default="", repr=False)
    database: str | None = None
    namespace: str | None = None


def parse_address(url: str) -> Neo4jAddress:
    """Take `neo4j://user:password@host:port/database?namespace=Mine` apart.

    Raises:
        ConfigurationError: It is not such a URL. The message repeats nothing of it but the scheme.
    """
    # A URL that cannot be read is not quoted: its password is in it.
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("the URL of Neo4j cannot be read; escape special characters in it") from None
    if parts.scheme not in SCHEMES:
        raise ConfigurationError(f"the URL of Neo4j must start with one of {', '.join(SCHEMES)}, then ://")
    if not host:
        raise ConfigurationError("the URL of Neo4j names no host")
    query = parse_qsl(parts.query, keep_blank_values=True)
    if parts.fragment or any(key != "namespace" for key, _ in query) or len(query) > 1:
        raise ConfigurationError(
            "the URL of Neo4j takes no query but ?namespace=...; escape special characters, set Neo4jOptions"
        )
    namespace = query[0][1] if query else None
    if namespace is not None:
        _check_namespace(namespace)
    shown = f"[{host}]" if ":" in host else host
    return Neo4jAddress(
        label=f"{parts.scheme}://{shown}:{port or 7687}",
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        database=unquote(parts.path.strip("/")) or None,
        namespace=namespace,
    )


def _check_namespace(namespace: str) -> None:
    # It stands in the text of every statement.
    if not _NAMESPACE.fullmatch(namespace):
        raise ConfigurationError("a namespace of Neo4j is letters, digits and _, beginning with a letter")
