"""Every search engine keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from langchain_memrag.stores.base import SearchIndex
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.testing.contracts import SearchIndexContract
from tests.integration.conftest import Guarded

from .engines import SEARCH_ENGINES, add_space


class TestSearch(SearchIndexContract):
    @pytest.fixture(params=sorted(SEARCH_ENGINES))
    def index(self, request: pytest.FixtureRequest, database: Database) -> Iterator[SearchIndex]:
        with SEARCH_ENGINES[request.param](database, self.width) as index:
            yield index

    @pytest.fixture
    def new_space(self, database: Database) -> Callable[[], int]:
        return lambda: add_space(database)


class TestSearchOverTcp(SearchIndexContract):
    """A server that asks for a password."""

    @pytest.fixture
    def postgres_url(self, guarded: Guarded) -> str:
        return guarded.url()

    @pytest.fixture
    def index(self, database: Database) -> Iterator[SearchIndex]:
        with SEARCH_ENGINES["postgres"](database, self.width) as index:
            yield index

    @pytest.fixture
    def new_space(self, database: Database) -> Callable[[], int]:
        return lambda: add_space(database)
