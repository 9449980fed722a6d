"""Every graph engine keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from langchain_memrag.stores.base import GraphStore
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.testing.contracts import GraphStoreContract
from tests.integration.conftest import Guarded

from .engines import GRAPH_ENGINES, add_space


class TestGraph(GraphStoreContract):
    @pytest.fixture(params=sorted(GRAPH_ENGINES))
    def graph(self, request: pytest.FixtureRequest) -> Iterator[GraphStore]:
        with GRAPH_ENGINES[request.param](request) as graph:
            yield graph

    @pytest.fixture
    def new_space(self, database: Database) -> Callable[[], int]:
        return lambda: add_space(database)


class TestGraphOverTcp(GraphStoreContract):
    """A server that asks for a password."""

    @pytest.fixture
    def postgres_url(self, guarded: Guarded) -> str:
        return guarded.url()

    @pytest.fixture
    def graph(self, request: pytest.FixtureRequest) -> Iterator[GraphStore]:
        with GRAPH_ENGINES["postgres"](request) as graph:
            yield graph

    @pytest.fixture
    def new_space(self, database: Database) -> Callable[[], int]:
        return lambda: add_space(database)
