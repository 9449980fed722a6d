"""Where a Redis server is, and how it is used: never with a word of the credentials in a repr."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from langchain_memrag.errors import ConfigurationError

__all__ = ["RedisOptions", "label_of"]

SCHEMES: Final = ("redis", "rediss", "unix")

_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{1,40}")


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """How a cache uses its server.

    Attributes:
        prefix: What all keys start with.
        timeout: Seconds that the server may take for one command; a cache that is slower is no help.
        connect_timeout: Seconds to wait for a connection.
        pool_size: Connections at most.
        most_values: Values kept of one space, the newest.
    """

    prefix: str = "memrag"
    timeout: float = 0.25
    connect_timeout: float = 0.5
    pool_size: int = 32
    most_values: int = 256

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise ConfigurationError("the prefix of Redis keys must be letters, digits, _, . or -")
        if min(self.timeout, self.connect_timeout) <= 0 or min(self.pool_size, self.most_values) < 1:
            raise ConfigurationError("the timeouts and sizes of Redis must be above 0")


def label_of(url: str) -> str:
    """Scheme, host, port and database of a URL: fit for messages.

    Raises:
        ConfigurationError: It is not the URL of a Redis server. The message repeats nothing of it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("the URL of Redis cannot be read; escape special characters in it") from None
    if parts.scheme not in SCHEMES:
        raise ConfigurationError(f"the URL of Redis must start with one of {', '.join(SCHEMES)}, then ://")
    if parts.scheme == "unix":
        if not parts.path:
            raise ConfigurationError("the URL of Redis names no socket")
        return f"unix://{parts.path}"
    if not host:
        raise ConfigurationError("the URL of Redis names no host")
    number = parts.path.strip("/")
    if number and not number.isdecimal():
        raise ConfigurationError("the path of a Redis URL is the number of its database, such as /0")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port or 6379}/{number or 0}"
