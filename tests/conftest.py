from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pytest_socket import enable_socket

from langchain_memrag.stores.embedded import EmbeddedPostgres

from .integration.services.fixtures import (  # noqa: F401 - fixtures for every folder below
    left_out,
    neo4j_url,
    new_neo4j,
    new_redis,
    qdrant_url,
    redis_url,
)


def pytest_report_header() -> str | None:
    return left_out()


@pytest.fixture(autouse=True)
def _sockets_again() -> Iterator[None]:
    """What one test switched off is on for the next; `tests/unit` switches it off for each of its own."""
    enable_socket()
    yield
    enable_socket()


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, step: timedelta) -> None:
        self.now += step


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that the whole session shares; isolate by schema.

    One of the developer's, where `MEMRAG_TEST_POSTGRES_URL` names it, else an embedded one.
    """
    if named := os.environ.get("MEMRAG_TEST_POSTGRES_URL"):
        yield named
        return
    folder = tmp_path_factory.mktemp("postgres") / "data"
    major = 16 if os.environ.get("MEMRAG_TEST_POSTGRES") == "16" else 18
    with EmbeddedPostgres.open(folder, major=major) as server:
        yield server.url
