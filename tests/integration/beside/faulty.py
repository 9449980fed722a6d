"""Engines that break on demand: servers of the tests' own, and a client of Qdrant with troubles."""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from redis import Redis

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Recall, Scope
from langchain_memrag.stores.base import GraphFind, SearchFilter
from langchain_memrag.stores.cache import CacheKey
from langchain_memrag.stores.neo4j import Neo4jGraph, Neo4jOptions
from langchain_memrag.stores.qdrant import QdrantOptions, QdrantServer
from langchain_memrag.stores.redis import RedisCache
from tests.integration.services.fixtures import need
from tests.integration.services.namespaces import driver_of
from tests.integration.services.neo4j import Neo4jServer
from tests.integration.services.redis import RedisServer

__all__ = [
    "LONG",
    "ROLES",
    "SOAK",
    "Breakable",
    "ConfiguredNeo4j",
    "EngineName",
    "Trouble",
    "breakable",
    "converge",
    "eventually",
    "in_full",
    "marks",
    "own_neo4j",
    "said_by",
    "space_of",
]

SOAK = bool(os.environ.get("MEMRAG_SOAK"))

in_full = pytest.mark.skipif(not SOAK, reason="one of its kind is enough here; make soak runs all")

LONG = 60.0
"""Seconds within which everything comes right; far more than it takes."""

EngineName = Literal["redis", "neo4j", "qdrant"]

Trouble = Literal["", "dead", "slow", "refuses", "full"]

ROLES = {"redis": "cache", "neo4j": "graph", "qdrant": "search"}

_WRITES = ("upsert", "delete", "create_collection", "delete_collection")
_READS = ("count", "scroll", "collection_exists", "get_collection", "get_collections")


class FaultyClient(QdrantClient):
    """Holds points in memory as the local mode does, and behaves as if its server were in trouble."""

    def __init__(self, timeout: float) -> None:
        super().__init__(location=":memory:")
        self.trouble: Trouble = ""
        self.calls: Counter[str] = Counter()
        self.patience = timeout
        self._turn = threading.RLock()

    def create_payload_index(self, *args: object, **options: object) -> models.UpdateResult:  # type: ignore[override]
        """The local mode filters without one, and warns."""
        del args, options
        return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)

    def query_batch_points(  # type: ignore[override]
        self, collection: str, requests: Sequence[models.QueryRequest], *, timeout: int | None = None
    ) -> object:
        # The local mode compares with every vector, and warns of what is said about a graph.
        plain = [request.model_copy(update={"params": None}) for request in requests]
        ask = super().query_batch_points
        return self.through("query_batch_points", timeout, lambda: ask(collection, plain, timeout=timeout))

    def lose_everything(self) -> None:
        """Come back as a server does whose disk is gone."""
        with self._turn:
            for each in super().get_collections().collections:
                super().delete_collection(each.name)

    def through(self, name: str, timeout: object, call: Callable[[], object]) -> object:
        """Do what was asked for, or what a broken server would."""
        self.calls[name] += 1
        match self.trouble:
            case "dead":
                raise ResponseHandlingException(httpx.ConnectError("connection refused"))
            case "slow":
                time.sleep(timeout if isinstance(timeout, int) else self.patience)
                raise ResponseHandlingException(httpx.ReadTimeout("timed out"))
            case "refuses" if name in _WRITES:
                raise UnexpectedResponse(400, "Bad Request", b"{}", httpx.Headers())
            case "full" if name in _WRITES:
                raise UnexpectedResponse(500, "No space left on device", b"{}", httpx.Headers())
        with self._turn:
            return call()


def _troubled(name: str) -> Callable[..., object]:
    inner = getattr(QdrantClient, name)

    def call(self: FaultyClient, *args: object, **options: object) -> object:
        return self.through(name, options.get("timeout"), lambda: inner(self, *args, **options))

    return call


for _name in (*_WRITES, *_READS, "info"):
    setattr(FaultyClient, _name, _troubled(_name))


class CountedGraph(Neo4jGraph):
    """Knows how often it was asked."""

    asked = 0

    def expand(
        self,
        where: SearchFilter,
        seeds: Sequence[str],
        *,
        hops: int = 1,
        fanout: int = 16,
        limit: int = 50,
        timeout: float | None = None,
    ) -> list[GraphFind]:
        self.asked += 1
        return super().expand(where, seeds, hops=hops, fanout=fanout, limit=limit, timeout=timeout)


class CountedCache(RedisCache):
    """Knows how often it was asked."""

    asked = 0

    def get(self, key: CacheKey) -> bytes | None:
        self.asked += 1
        return super().get(key)


class ConfiguredNeo4j(Neo4jServer):
    """Takes more lines of its configuration, which hold from the next start on."""

    more: Sequence[str] = ()

    def command(self) -> Sequence[str]:
        command = super().command()
        with (self.folder / "conf" / "neo4j.conf").open("a") as conf:
            conf.writelines(f"{line}\n" for line in self.more)
        return command

    def wipe(self) -> None:
        """Lose all data while it is down; the first login is that of a new server."""
        shutil.rmtree(self.folder / "data")
        self._login = "neo4j"


@dataclass
class Breakable:
    """Three engines for one memory, and what may happen to them."""

    neo4j: ConfiguredNeo4j
    redis: RedisServer
    client: FaultyClient
    search: QdrantServer
    graph: CountedGraph
    cache: CountedCache
    paused: set[EngineName] = field(default_factory=set)

    @property
    def named(self) -> dict[str, object]:
        """As `MemRAG.open` takes them."""
        return {"search": self.search, "graph": self.graph, "cache": self.cache}

    def kill(self, name: EngineName) -> None:
        if name == "qdrant":
            self.client.trouble = "dead"
        else:
            self._server(name).kill()

    def revive(self, name: EngineName, *, empty: bool = False) -> None:
        """Start it again; Redis keeps nothing in any case."""
        if empty and name == "neo4j":
            self.neo4j.wipe()
        if empty and name == "qdrant":
            self.client.lose_everything()
        if name == "qdrant":
            self.client.trouble = ""
        else:
            self._server(name).start()

    def pause(self, name: EngineName) -> None:
        """Let it stand still: it takes connections, and never answers."""
        self.paused.add(name)
        if name == "qdrant":
            self.client.trouble = "slow"
        else:
            self._server(name).pause()

    def resume(self, name: EngineName) -> None:
        self.paused.discard(name)
        if name == "qdrant":
            self.client.trouble = ""
        else:
            self._server(name).resume()

    def heal_all(self) -> None:
        for name in tuple(self.paused):
            self.resume(name)

    def asked(self, name: EngineName) -> int:
        """How often recalls reached it."""
        if name == "qdrant":
            return self.client.calls["query_batch_points"]
        return self.graph.asked if name == "neo4j" else self.cache.asked

    def records_in(self, name: EngineName, space: int) -> int:
        """How much an engine holds of a space, looked for behind the product's back."""
        if name == "qdrant":
            return self._points(space)
        return self._nodes(space) if name == "neo4j" else self._keys(space)

    def _points(self, space: int) -> int:
        of_space = models.FieldCondition(key="space", match=models.MatchValue(value=str(space)))
        counted = 0
        for each in QdrantClient.get_collections(self.client).collections:
            if not each.name.endswith("_about"):
                points, _ = QdrantClient.scroll(self.client, each.name, limit=100_000)
                assert not points or isinstance((points[0].payload or {})["space"], str)
                found, _ = QdrantClient.scroll(
                    self.client, each.name, scroll_filter=models.Filter(must=[of_space]), limit=100_000
                )
                counted += len(found)
        return counted

    def _nodes(self, space: int) -> int:
        with driver_of(self.neo4j.url) as driver, driver.session() as session:
            rows = session.run(
                "MATCH (n {space: $space}) WHERE any(l IN labels(n) WHERE l STARTS WITH $namespace"
                " AND NOT l ENDS WITH 'Space') RETURN count(n) AS n",
                space=space,
                namespace=self.namespace,
            )
            return cast("int", rows.single(strict=True)["n"])

    @property
    def namespace(self) -> str:
        return self.graph._connection.namespace

    def _keys(self, space: int) -> int:
        """Values and their times; a note that something was forgotten holds no word of it."""
        with Redis(port=self.redis.port, password=self.redis.password) as client:
            keys = [cast("bytes", key).decode() for key in client.scan_iter(count=1000)]
        return sum(f":{space}}}:" in key and not key.endswith(":forgotten") for key in keys)

    def _server(self, name: EngineName) -> ConfiguredNeo4j | RedisServer:
        return self.neo4j if name == "neo4j" else self.redis


@pytest.fixture(scope="session")
def own_neo4j(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredNeo4j]:
    """One that tests kill, and that the next test starts again."""
    need("Neo4j")
    server = ConfiguredNeo4j(tmp_path_factory.mktemp("breakable"))
    yield server
    server.kill()


@pytest.fixture
def breakable(own_neo4j: ConfiguredNeo4j, new_redis: Callable[..., RedisServer]) -> Iterator[Breakable]:
    """Three engines that run and hold nothing."""
    if own_neo4j.more:
        own_neo4j.more = ()
        own_neo4j.kill()
    own_neo4j.start()
    redis = new_redis()
    name = uuid.uuid4().hex[:12]
    options = QdrantOptions(prefix=f"t{name}", timeout=2)
    client = FaultyClient(options.timeout)
    # The address of a server, so that threads do not take turns as they do in the local mode.
    search = QdrantServer("qdrant://127.0.0.1:1", options, connect=lambda *_: client)
    quick = Neo4jOptions(namespace=f"T{name}", timeout=10, connect_timeout=1, retry_time=1)
    graph, cache = CountedGraph(own_neo4j.url, quick), CountedCache(redis.url)
    engines = Breakable(own_neo4j, redis, client, search, graph, cache)
    yield engines
    engines.heal_all()
    for server in (search, graph, cache):
        server.close()


def eventually(what: str, done: Callable[[], bool], *, within: float = LONG) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + within
    while not done():
        assert time.monotonic() < deadline, f"still not so: {what}"
        time.sleep(0.05)


def said_by(recall: Recall) -> list[str]:
    """The texts that were found."""
    return [hit.text for hit in recall.hits]


def marks(url: str, schema: str) -> list[tuple[int, UUID, str, int]]:
    """All that is left to do: space, record, work and how often it was tried."""
    with psycopg.connect(url) as connection:
        query = SQL("SELECT space, record, work, attempts FROM {}.pending ORDER BY 1, 2, 3")
        return cast(
            "list[tuple[int, UUID, str, int]]",
            connection.execute(query.format(Identifier(schema))).fetchall(),
        )


def space_of(url: str, schema: str, scope: Scope) -> int:
    """The number of a user's space."""
    with psycopg.connect(url) as connection:
        query = SQL("SELECT id FROM {}.space WHERE key = %s").format(Identifier(schema))
        row = connection.execute(query, [scope.user_id]).fetchone()
    assert row is not None
    return cast("int", row[0])


def converge(memory: MemRAG) -> None:
    """What an operator does once everything runs again; after it nothing is amiss."""
    assert memory.flush() == 0
    memory.sweep()
    health = memory.doctor(every=True)
    assert not health.problems, health.problems
    assert [(one.state, one.waiting, one.erasures) for one in health.engines] == [("ready", 0, 0)] * 3
    assert all(one.differing == 0 for one in health.engines)
    assert all(one.compared == health.users for one in health.engines if one.role != "cache")
