"""Where Qdrant is, who asks, and how: never with a word of the key in a repr."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from urllib.request import url2pathname

from langchain_memrag.errors import ConfigurationError

__all__ = ["MEMORY", "QdrantAddress", "QdrantOptions", "parse_address"]

MEMORY: Final = ":memory:"
"""Names the client's local mode without a folder."""

PORT: Final = 6333

_WEB: Final = {"qdrant": "http", "qdrant+s": "https", "http": "http", "https": "https"}
_PREFIX: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
_YES: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Quantisation = Literal["none", "scalar", "binary"]


@dataclass(frozen=True, slots=True)
class QdrantOptions:
    """How an index uses its server.

    Attributes:
        prefix: What the names of all collections start with. Memories that share a server need one each,
            since the spaces of both are numbered from 1.
        timeout: Seconds to wait for an answer.
        prefer_grpc: Whether to talk gRPC; never with a folder or in memory.
        grpc_port: Where the server takes gRPC.
        shards: How many pieces a new collection is cut into; the server's choice where it is `None`.
        replicas: How many copies of each a new collection keeps; the server's choice where it is `None`.
        quantisation: Whether a new collection keeps small copies of its vectors in memory. They pick the
            candidates; the vectors themselves give the scores.
        on_disk: Whether a new collection keeps vectors and graph on disk.
        batch: Entries in one request at most.
    """

    prefix: str = "memrag"
    timeout: float = 10.0
    prefer_grpc: bool = False
    grpc_port: int = 6334
    shards: int | None = None
    replicas: int | None = None
    quantisation: Quantisation = "none"
    on_disk: bool = False
    batch: int = 256

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise ConfigurationError("prefix must be letters, digits and _, beginning with a letter")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ConfigurationError("the timeout of Qdrant must be a number of seconds above 0")
        if not 0 < self.grpc_port < 65_536:
            raise ConfigurationError(f"grpc_port must be a port, not {self.grpc_port}")
        for name, value in (("shards", self.shards), ("replicas", self.replicas), ("batch", self.batch)):
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {value}")
        if self.quantisation not in ("none", "scalar", "binary"):
            raise ConfigurationError("quantisation must be none, scalar or binary")


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """A URL taken apart.

    Attributes:
        label: Scheme, host and port, or the folder: fit for messages.
        url: The server's, without the key; `None` in local mode.
        key: Kept out of the repr.
        folder: Of the local mode; `None` for a server and in memory.
    """

    label: str
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    folder: str | None = None

    @property
    def local(self) -> bool:
        """Whether the client itself is the engine."""
        return self.url is None


def parse_address(url: str, options: QdrantOptions) -> tuple[QdrantAddress, QdrantOptions]:
    """Take a URL apart: `qdrant://key@host:port?prefix=...`, `qdrant:///folder`, `qdrant://:memory:`.

    Args:
        url: `qdrant` is plain HTTP, `qdrant+s` HTTPS; `http` and `https` are taken as well.
        options: What holds unless the URL's query says otherwise (`prefix`, `timeout`, `grpc`).

    Raises:
        ConfigurationError: It is not such a URL. The message repeats nothing of it but the scheme.
    """
    place, _, query = url.partition("?")
    options = _with_query(options, query)
    if place in (MEMORY, f"qdrant:{MEMORY}", f"qdrant://{MEMORY}"):
        return QdrantAddress(f"qdrant://{MEMORY}"), options
    # A URL that cannot be read is not quoted: its key is in it.
    try:
        parts = urlsplit(place)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError(
            "the URL of Qdrant cannot be read; escape special characters in it"
        ) from None
    if parts.scheme not in _WEB:
        raise ConfigurationError(
            f"the URL of Qdrant must start with one of {', '.join(_WEB)}, then ://, or be {MEMORY}"
        )
    if parts.fragment:
        raise ConfigurationError("the URL of Qdrant takes no fragment; write # in a key as %23")
    if parts.scheme == "qdrant" and not parts.netloc and parts.path:
        # Absolute, so that it stays the same folder wherever the process goes.
        folder = Path(url2pathname(parts.path)).absolute()
        return QdrantAddress(f"qdrant{folder.as_uri().removeprefix('file')}", folder=str(folder)), options
    if not host:
        raise ConfigurationError("the URL of Qdrant names no host")
    return _server(parts, host, port or PORT), options


def _server(parts: SplitResult, host: str, port: int) -> QdrantAddress:
    if parts.username and parts.password:
        raise ConfigurationError("the URL of Qdrant takes an API key alone before the @, no user")
    key = unquote(parts.username or parts.password or "")
    # It travels as a header.
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("the API key of Qdrant must be plain ASCII")
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    path = parts.path.rstrip("/")
    return QdrantAddress(
        label=f"{parts.scheme}://{where}{path}",
        url=f"{_WEB[parts.scheme]}://{where}{path}",
        key=key or None,
    )


def _with_query(options: QdrantOptions, query: str) -> QdrantOptions:
    if not query:
        return options
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise ConfigurationError("the query of Qdrant's URL cannot be read") from None
    if given.keys() - {"prefix", "timeout", "grpc"}:
        raise ConfigurationError(
            "the URL of Qdrant takes prefix, timeout and grpc; set QdrantOptions instead"
        )
    if "prefix" in given:
        options = replace(options, prefix=given["prefix"])
    if "timeout" in given:
        try:
            seconds = float(given["timeout"])
        except ValueError:
            raise ConfigurationError("the timeout of Qdrant must be a number of seconds above 0") from None
        options = replace(options, timeout=seconds)
    if "grpc" in given:
        if given["grpc"].lower() not in _YES:
            raise ConfigurationError("grpc in the URL of Qdrant must be true or false")
        options = replace(options, prefer_grpc=_YES[given["grpc"].lower()])
    return options
