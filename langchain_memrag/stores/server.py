"""A database product beside Postgres: what every one of them must be able to say of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar
from uuid import UUID

from langchain_memrag.stores.base import GraphStore, SearchIndex
from langchain_memrag.stores.cache import Cache

__all__ = ["CacheServer", "GraphServer", "SearchServer", "Server"]


class Server(ABC):
    """A connection to an engine that holds a copy of what the record knows.

    Nothing connects before the first use; a server may be away at any time.

    Attributes:
        engine: Its name, as in errors and reports.
    """

    engine: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """Where it is, without credentials."""

    @abstractmethod
    def knows(self, memory: UUID) -> bool:
        """Whether the data here are those of a memory; an empty server, or one that lost its data, says no.

        Args:
            memory: Names the record's database and schema. Spaces of two memories have the same numbers.

        Raises:
            ConfigurationError: The data here belong to another memory.
            StoreUnavailableError: The engine cannot be reached.
        """

    @abstractmethod
    def adopt(self, memory: UUID) -> None:
        """Note here which memory the data belong to; noted once, it stays.

        Raises:
            ConfigurationError: The data here belong to another memory; nothing was changed.
            StoreUnavailableError: The engine cannot be reached.
        """

    @abstractmethod
    def version(self) -> str:
        """The version of the server; also the way to see whether it answers.

        Raises:
            StoreUnavailableError: The engine cannot be reached.
        """

    @abstractmethod
    def close(self) -> None:
        """Let all connections go; it cannot be used again."""


class SearchServer(Server):
    """A server that can play the role of the search index."""

    @abstractmethod
    def index(self, embedder: int | None, width: int | None) -> SearchIndex:
        """The index of an embedder's vectors.

        Args:
            embedder: Its number in the record; `None` for an index of words alone.
            width: Dimensions of its vectors.
        """

    @abstractmethod
    def drop(self, embedder: int | None) -> bool:
        """Drop the index of an embedder that nobody searches by any more; tells whether there was one.

        Raises:
            StoreUnavailableError: The engine cannot be reached.
        """


class GraphServer(Server, GraphStore):
    """A server that can play the role of the graph."""


class CacheServer(Server, Cache):
    """A server that can play the role of the cache."""
