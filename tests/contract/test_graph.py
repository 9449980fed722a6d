"""Every graph engine keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from langchain_memrag.stores.base import GraphStore
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.testing.contracts import GraphStoreContract

from .engines import GRAPH_ENGINES, add_space


class TestGraph(GraphStoreContract):
    @pytest.fixture(params=sorted(GRAPH_ENGINES))
    def graph(self, request: pytest.FixtureRequest) -> Iterator[GraphStore]:
        with GRAPH_ENGINES[request.param](request) as graph:
            yield graph

    @pytest.fixture
    def new_space(self, database: Database) -> Callable[[], int]:
        return lambda: add_space(database)
