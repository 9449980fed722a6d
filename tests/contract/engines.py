"""The engines that can play each role. A new one is an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import uuid4

from langchain_memrag.stores.base import GraphStore, SearchIndex
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.graph import PostgresGraph
from langchain_memrag.stores.postgres.search import PostgresSearch, create_vector_table

EMBEDDER = 1


def postgres_search(database: Database, width: int) -> SearchIndex:
    with database.connection("make a table") as connection:
        create_vector_table(database, connection, EMBEDDER, width)
    return PostgresSearch(database, EMBEDDER, width)


SEARCH_ENGINES: Mapping[str, Callable[[Database, int], SearchIndex]] = {"postgres": postgres_search}

GRAPH_ENGINES: Mapping[str, Callable[[Database], GraphStore]] = {"postgres": PostgresGraph}


def add_space(database: Database) -> int:
    """A space of a user of its own, in the record."""
    with database.connection("make a space") as connection:
        row = connection.execute(
            database.statement("INSERT INTO {schema}.space (kind, key) VALUES ('user', %s) RETURNING id"),
            (uuid4().hex,),
        ).fetchone()
    assert row is not None
    return int(str(row[0]))
