"""The engines beside Postgres: which there are, and what plays which role on them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from uuid import UUID

from langchain_memrag.engine.copies import Copies, EntryCopies, GraphCopies
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.projection import Projection
from langchain_memrag.engine.threads import Threads
from langchain_memrag.ranking import Recipe
from langchain_memrag.stores.base import Clock, GraphStore, SearchIndex, Vector, View
from langchain_memrag.stores.cache import Cache, ProcessCache
from langchain_memrag.stores.postgres.projections import ProjectionStore
from langchain_memrag.stores.server import CacheServer, GraphServer, SearchServer, Server
from langchain_memrag.stores.urls import open_cache_server, open_graph_server, open_search_server

__all__ = ["Beside", "Servers", "open_servers"]

T = TypeVar("T", bound=Server)

Kept = Literal["process", "none"]
"""Where recalls are kept without an engine: in the process, or nowhere."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The connections; `None` where Postgres plays the role.

    Attributes:
        search: Of the search index.
        graph: Of the graph.
        cache: Of the cache; `process` or `none` where it is no server.
        own: Those that were made here, and are closed with the memory; what a caller made is his.
    """

    search: SearchServer | None = None
    graph: GraphServer | None = None
    cache: CacheServer | Kept = "process"
    own: tuple[Server, ...] = ()

    def close(self) -> None:
        """Let the connections go that were made here."""
        with contextlib.ExitStack() as stack:
            for server in self.own:
                stack.callback(server.close)


def open_servers(
    search: str | SearchServer | None, graph: str | GraphServer | None, cache: str | CacheServer
) -> Servers:
    """Make the connections; nothing is connected yet.

    Raises:
        ConfigurationError: A URL cannot be read, or names an engine that cannot play the role.
        MissingDependencyError: A client is not installed.
    """
    with contextlib.ExitStack() as stack:
        own: list[Server] = []

        def noted(server: T, given: object) -> T:
            if isinstance(given, str):
                own.append(server)
                stack.callback(server.close)
            return server

        searching = None if search is None else noted(open_search_server(search), search)
        walking = None if graph is None else noted(open_graph_server(graph), graph)
        keeping = _kept(cache) or noted(open_cache_server(cache), cache)
        stack.pop_all()
        return Servers(searching, walking, keeping, tuple(own))


def _kept(cache: str | CacheServer) -> Kept | None:
    return "process" if cache == "process" else "none" if cache == "none" else None


class Beside:
    """The engines of one open memory.

    Args:
        servers: Their connections.
        marks: Where work for them is marked.
        indexing: Knows the embedder, and the vectors.
        recipe: Gives terms their impact.
        clock: Gives the time.
        threads: Where it is asked whether one is back.

    Attributes:
        search: The engine of the search index, if there is one.
        graph: The engine of the graph, if there is one.
        cache: Where recalls are kept.
        copies: What the engines hold.
    """

    def __init__(
        self,
        servers: Servers,
        marks: ProjectionStore,
        indexing: Indexing,
        recipe: Recipe,
        clock: Clock,
        threads: Threads,
    ) -> None:
        self._servers = servers
        self._indexes: dict[int | None, SearchIndex] = {}
        self._indexing = indexing
        search, graph, cache = servers.search, servers.graph, servers.cache
        self.search: Projection[SearchIndex] | None = None
        if search is not None:
            server = search
            self.search = Projection("search", search, lambda: self._index(server), marks, clock, threads)
        self.graph: Projection[GraphStore] | None = None
        if graph is not None:
            store = graph
            self.graph = Projection("graph", graph, lambda: store, marks, clock, threads)
        self.cache: Projection[Cache] | Cache | None
        if isinstance(cache, CacheServer):
            values = cache
            self.cache = Projection("cache", cache, lambda: values, marks, clock, threads)
        else:
            self.cache = ProcessCache() if cache == "process" else None
        copies: list[Copies[Any]] = []
        if self.search is not None:
            copies.append(EntryCopies(self.search, self._vectors, recipe))
        if self.graph is not None:
            copies.append(GraphCopies(self.graph))
        self.copies = tuple(copies)

    @property
    def projections(self) -> tuple[Projection[Any], ...]:
        """All engines."""
        found = (self.search, self.graph, self.cache)
        return tuple(one for one in found if isinstance(one, Projection))

    def open(self) -> None:
        """Meet the engines; see `Projection.open`."""
        for projection in self.projections:
            projection.open()

    def drop_index(self, embedder: int) -> None:
        """Drop what the engine of the search index holds of an embedder.

        Raises:
            StoreUnavailableError: It is away.
        """
        if self._servers.search is not None:
            self._servers.search.drop(embedder)

    def close(self) -> None:
        """Let all connections go."""
        self._servers.close()

    def _vectors(self, space: int, records: Sequence[UUID]) -> Mapping[tuple[UUID, View, int], Vector]:
        return self._indexing.search.vectors(space, records)

    def _index(self, server: SearchServer) -> SearchIndex:
        key = self._indexing.embedder_id
        registered = self._indexing.registered
        if key not in self._indexes:
            self._indexes[key] = server.index(key, registered.width if registered else None)
        return self._indexes[key]
