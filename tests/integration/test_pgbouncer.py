"""Behind a pooler that gives every transaction another server connection."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Scope
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.records import RecordStore
from langchain_memrag.testing.embeddings import WordHashEmbeddings

from .conftest import Guarded
from .drafts import draft
from .servers import Pooler, start_pgbouncer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def pooler(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooler]:
    folder = tmp_path_factory.mktemp("pgbouncer")
    with start_pgbouncer(folder, guarded.server, user="postgres", password=guarded.password) as pooler:
        yield pooler


@pytest.fixture
def pooled_url(pooler: Pooler) -> str:
    return pooler.url


@pytest.fixture
def schema() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


def test_the_pooler_alone_cannot_migrate_and_says_what_is_missing(pooled_url: str, schema: str) -> None:
    database = Database(pooled_url, schema=schema)
    with pytest.raises(ConfigurationError, match="direct_url"):
        database.open()


def test_many_writers_through_two_server_connections(guarded: Guarded, pooler: Pooler, schema: str) -> None:
    databases = [Database(pooler.url, direct_url=guarded.url(), schema=schema, pool_size=4) for _ in range(3)]
    try:
        stores = [RecordStore(database, lambda: NOW) for database in databases]

        def write(number: int) -> None:
            scope = Scope(f"user{number % 4}", session_id="会话")
            with pooler.explaining():
                stores[number % 3].record(scope, [draft(f"第{number}句 line {number}", key=str(number))])

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(write, range(120)))
        read = EpisodeReader(databases[0])
        said: list[str] = []
        for user in range(4):
            space = stores[0].space_of(f"user{user}")
            assert space is not None
            page = read.history(space, NOW, session="会话", limit=100, cursor=None, newest_first=False)
            said += [episode.content for episode in page.episodes]
            assert len({episode.seq for episode in page.episodes}) == 30
        assert sorted(said) == sorted(f"第{number}句 line {number}" for number in range(120))
        with databases[0].session_pool.connection() as session:
            assert session.execute("SHOW search_path").fetchone() == (f'"{schema}","public"',)
    finally:
        for database in databases:
            database.close()


def test_once_migrated_the_pooler_is_enough(guarded: Guarded, pooled_url: str, schema: str) -> None:
    first = Database(guarded.url(), schema=schema)
    first.open()
    first.close()
    database = Database(pooled_url, schema=schema)
    try:
        space, _ = RecordStore(database, lambda: NOW).record(Scope("ann"), [draft("hello")])
        assert RecordStore(database, lambda: NOW).space_of("ann") == space
    finally:
        database.close()


def test_a_whole_memory_works_through_the_pooler(guarded: Guarded, pooled_url: str, schema: str) -> None:
    options = {"direct_url": guarded.url(), "schema": schema, "embeddings": WordHashEmbeddings(64)}
    ann, bob = Scope("ann", session_id="会话"), Scope("bob")
    with MemRAG.open(pooled_url, **options) as first, MemRAG.open(pooled_url, **options) as second:
        first.remember([("user", "I moved to Lyon"), ("assistant", "里昂很美")], ann)
        second.remember("My sister lives in Zurich", bob)
        assert second.recall("Where did I move? Lyon", ann).hits[0].text == "I moved to Lyon"
        assert first.recall("里昂", ann).hits
        report = second.forget(Scope("ann"), everything=True)
        assert report.clean
        assert not first.recall("Lyon", Scope("ann")).hits
        assert first.history(bob).episodes
