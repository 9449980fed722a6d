"""A whole memory with every engine beside Postgres: real Neo4j, real Redis, and Qdrant."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.stores.neo4j import Neo4jGraph
from langchain_memrag.stores.qdrant import QdrantOptions, QdrantServer
from langchain_memrag.stores.redis import RedisCache
from tests.integration.engine.conftest import clock, open_memory, schema  # noqa: F401 - fixtures
from tests.integration.services.namespaces import own_namespace

from .faulty import breakable, own_neo4j  # noqa: F401 - fixtures


@dataclass(frozen=True)
class Engines:
    """How a test names its engines to `MemRAG.open`."""

    search: QdrantServer | str
    graph: Neo4jGraph | str
    cache: RedisCache | str


@pytest.fixture
def graph_url(neo4j_url: str) -> Iterator[str]:
    with own_namespace(neo4j_url) as url:
        yield url


@pytest.fixture
def search_server(qdrant_url: str | None) -> Iterator[QdrantServer]:
    """A Qdrant of the test's own."""
    prefix = f"t{uuid.uuid4().hex[:12]}"
    server = QdrantServer(qdrant_url or ":memory:", QdrantOptions(prefix=prefix))
    yield server
    server.close()


@pytest.fixture
def engines(search_server: QdrantServer, graph_url: str, redis_url: str) -> Engines:
    return Engines(search_server, graph_url, redis_url)


@pytest.fixture
def full(open_memory: Callable[..., MemRAG], engines: Engines) -> MemRAG:  # noqa: F811
    """A memory with everything on its own engine."""
    return open_memory(search=engines.search, graph=engines.graph, cache=engines.cache)
