"""LangChain's graph object on the server that the memory uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_memrag.errors import ConfigurationError, MissingDependencyError
from langchain_memrag.stores.neo4j import cypher
from langchain_memrag.stores.neo4j.address import Neo4jOptions, parse_address
from langchain_memrag.stores.neo4j.connection import Neo4jConnection
from langchain_memrag.stores.neo4j.faults import faults_mapped

if TYPE_CHECKING:
    from langchain_neo4j import Neo4jGraph as LangChainGraph

__all__ = ["langchain_graph"]


def langchain_graph(url: str, options: Neo4jOptions | None = None) -> LangChainGraph:
    """LangChain's `Neo4jGraph`, for its own chains and tools.

    It sees the memory of **every** user: give it to operators, never to an agent that serves users.

    Args:
        url: As for `Neo4jGraph`; it must name a user.
        options: Of these, the database and the timeout.

    Raises:
        MissingDependencyError: `langchain-neo4j` is not installed.
        ConfigurationError: The URL cannot be read, or names no user.
        StoreUnavailableError: The server cannot be reached.
        StoreError: It refuses the login.
    """
    try:
        from langchain_neo4j import Neo4jGraph as LangChainGraph
    except ImportError as error:
        raise MissingDependencyError("LangChain's graph object", "neo4j") from error
    options = options or Neo4jOptions()
    address = parse_address(url)
    if address.user is None:
        raise ConfigurationError("LangChain's graph object needs a user in the URL of Neo4j")
    # Asked first, since LangChain's object hides what is wrong, and leaves its connections open then.
    ours = Neo4jConnection(url, options)
    try:
        ours.read("open LangChain's graph", cypher.VERSION)
    finally:
        ours.close()
    user = address.user
    # Its schema is read by APOC, which the memory does not need.
    return faults_mapped(
        "open LangChain's graph",
        lambda: LangChainGraph(
            url=address.label,
            username=user,
            password=address.password,
            database=options.database or address.database,
            timeout=options.timeout,
            refresh_schema=False,
            driver_config={"connection_timeout": options.connect_timeout, "telemetry_disabled": True},
        ),
    )
