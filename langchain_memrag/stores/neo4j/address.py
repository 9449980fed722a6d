"""Where a Neo4j server is, who asks, and how: never with a word of the credentials in a repr."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from langchain_memrag.errors import ConfigurationError

__all__ = ["Neo4jAddress", "Neo4jOptions", "parse_address"]

SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")

_NAMESPACE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")


@dataclass(frozen=True, slots=True)
class Neo4jOptions:
    """How a graph uses its server.

    Attributes:
        database: Its name; the URL's path, or else the user's home database, where it is `None`.
        namespace: What all labels and constraints start with. Memories that share a database need one each,
            since the spaces of both are numbered from 1.
        pool_size: Connections at most.
        connect_timeout: Seconds to wait for a connection.
        timeout: Seconds that the server may take for one transaction.
        retry_time: Seconds during which a write that collided is tried again.
    """

    database: str | None = None
    namespace: str = "MemRAG"
    pool_size: int = 10
    connect_timeout: float = 5.0
    timeout: float = 30.0
    retry_time: float = 15.0

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            raise ConfigurationError("namespace must be letters, digits and _, beginning with a letter")
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
    """

    label: str
    user: str | None = None
    password: str = field(default="", repr=False)
    database: str | None = None


def parse_address(url: str) -> Neo4jAddress:
    """Take `neo4j://user:password@host:port/database` apart.

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
    if parts.query or parts.fragment:
        raise ConfigurationError("the URL of Neo4j takes no query; set Neo4jOptions instead")
    shown = f"[{host}]" if ":" in host else host
    return Neo4jAddress(
        label=f"{parts.scheme}://{shown}:{port or 7687}",
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        database=unquote(parts.path.strip("/")) or None,
    )
