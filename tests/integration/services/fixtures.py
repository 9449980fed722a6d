"""Real servers as fixtures: one of each that the whole session shares, and as many as a test wants to have.

`MEMRAG_TEST_REDIS_URL`, `MEMRAG_TEST_NEO4J_URL` and `MEMRAG_TEST_QDRANT_URL` name other servers to use.
What a machine cannot run is skipped, or fails where `MEMRAG_REQUIRE_SERVERS` is 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import neo4j, redis

__all__ = ["left_out", "need", "neo4j_url", "new_neo4j", "new_redis", "qdrant_url", "redis_url"]

_MISSING: dict[str, Callable[[], str | None]] = {"Neo4j": neo4j.missing, "Redis": redis.missing}


def left_out() -> str | None:
    """One line on what this machine cannot run and nobody named another server for."""
    reasons = [
        f"{product} ({reason})"
        for product, missing in _MISSING.items()
        if not os.environ.get(f"MEMRAG_TEST_{product.upper()}_URL") and (reason := missing()) is not None
    ]
    return f"left out, run scripts/services.py to have them: {', '.join(reasons)}" if reasons else None


def need(product: str) -> None:
    """Skip or fail what needs a server that this machine cannot run."""
    reason = _MISSING[product]()
    if reason is None:
        return
    if os.environ.get("MEMRAG_REQUIRE_SERVERS") == "1":
        pytest.fail(f"{product} is required here, and {reason}", pytrace=False)
    pytest.skip(f"{product}: {reason}")


@pytest.fixture(scope="session")
def neo4j_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Neo4j that the whole session shares; isolate by namespace."""
    if named := os.environ.get("MEMRAG_TEST_NEO4J_URL"):
        yield named
        return
    need("Neo4j")
    server = neo4j.Neo4jServer(tmp_path_factory.mktemp("neo4j"))
    try:
        server.start()
        yield server.url
    finally:
        server.kill()  # its data go, too


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis that the whole session shares; isolate by what keys begin with."""
    if named := os.environ.get("MEMRAG_TEST_REDIS_URL"):
        yield named
        return
    need("Redis")
    server = redis.RedisServer(tmp_path_factory.mktemp("redis"))
    try:
        server.start()
        yield server.url
    finally:
        server.kill()  # its data go, too


@pytest.fixture(scope="session")
def qdrant_url() -> str | None:
    """A Qdrant server, where somebody named one; `None` stands for the client's local mode."""
    return os.environ.get("MEMRAG_TEST_QDRANT_URL") or None


@pytest.fixture
def new_neo4j(tmp_path: Path) -> Iterator[Callable[[], neo4j.Neo4jServer]]:
    """Starts servers that a test may kill; ends them after it."""
    need("Neo4j")
    started: list[neo4j.Neo4jServer] = []

    def start() -> neo4j.Neo4jServer:
        server = neo4j.Neo4jServer(tmp_path / f"neo4j-{len(started)}")
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def new_redis(tmp_path: Path) -> Iterator[Callable[..., redis.RedisServer]]:
    """Starts servers that a test may kill, by the arguments of `RedisServer`; ends them after it."""
    need("Redis")
    started: list[redis.RedisServer] = []

    def start(**options: object) -> redis.RedisServer:
        server = redis.RedisServer(tmp_path / f"redis-{len(started)}", **options)  # type: ignore[arg-type]
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()
