"""The engines that can play each role. A new one is an entry here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from uuid import uuid4

import pytest

from langchain_memrag.stores.base import GraphStore, SearchIndex
from langchain_memrag.stores.neo4j import Neo4jGraph
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.graph import PostgresGraph
from langchain_memrag.stores.postgres.search import PostgresSearch, create_vector_table
from langchain_memrag.stores.qdrant import QdrantOptions, QdrantServer
from tests.integration.services.namespaces import own_namespace

EMBEDDER = 1


SearchFactory = Callable[[Database, int], AbstractContextManager[SearchIndex]]
"""Given the record and a width, an empty index for the time of a test."""

QDRANT_URL = os.environ.get("MEMRAG_TEST_QDRANT_URL")


@contextmanager
def postgres_search(database: Database, width: int) -> Iterator[SearchIndex]:
    with database.connection("make a table") as connection:
        create_vector_table(database, connection, EMBEDDER, width)
    yield PostgresSearch(database, EMBEDDER, width)


@contextmanager
def qdrant_local(database: Database, width: int) -> Iterator[SearchIndex]:
    server = QdrantServer(":memory:")
    yield server.index(EMBEDDER, width)
    server.close()


@contextmanager
def qdrant_server(database: Database, width: int) -> Iterator[SearchIndex]:
    server = QdrantServer(str(QDRANT_URL), QdrantOptions(prefix=f"c{uuid4().hex[:12]}"))
    yield server.index(EMBEDDER, width)
    server.drop(EMBEDDER)
    server.close()


SEARCH_ENGINES: Mapping[str, SearchFactory] = {
    "postgres": postgres_search,
    "qdrant-local": qdrant_local,
    **({"qdrant-server": qdrant_server} if QDRANT_URL else {}),
}


@contextmanager
def postgres_graph(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    yield PostgresGraph(request.getfixturevalue("database"))


@contextmanager
def neo4j_graph(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    with own_namespace(request.getfixturevalue("neo4j_url")) as url, Neo4jGraph(url) as graph:
        yield graph


GRAPH_ENGINES: Mapping[str, Callable[[pytest.FixtureRequest], AbstractContextManager[GraphStore]]] = {
    "postgres": postgres_graph,
    "neo4j": neo4j_graph,
}


def add_space(database: Database) -> int:
    """A space of a user of its own, in the record."""
    with database.connection("make a space") as connection:
        row = connection.execute(
            database.statement("INSERT INTO {schema}.space (kind, key) VALUES ('user', %s) RETURNING id"),
            (uuid4().hex,),
        ).fetchone()
    assert row is not None
    return int(str(row[0]))
