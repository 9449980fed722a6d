"""The knowledge graph on a Neo4j server: the extra `neo4j`."""

from __future__ import annotations

from langchain_memrag.errors import MissingDependencyError

try:
    import neo4j as _driver  # noqa: F401 - tells now, and by its extra, what is missing
except ImportError as error:
    raise MissingDependencyError("a knowledge graph on Neo4j", "neo4j") from error

from langchain_memrag.stores.neo4j.address import Neo4jOptions
from langchain_memrag.stores.neo4j.graph import Neo4jGraph
from langchain_memrag.stores.neo4j.langchain import langchain_graph

__all__ = ["Neo4jGraph", "Neo4jOptions", "langchain_graph"]
