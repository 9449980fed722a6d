"""Indexes are filled anew from the record, what differs is seen and mended, and no password is shown."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.records import Health, Scope
from langchain_memrag.stores.neo4j import Neo4jGraph, Neo4jOptions
from langchain_memrag.stores.qdrant import QdrantOptions, QdrantServer
from langchain_memrag.stores.redis import RedisCache
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.conftest import HandClock
from tests.integration.services.namespaces import own_namespace

from .conftest import Engines
from .contents import cypher, in_neo4j, in_postgres, in_qdrant, space_of, sql

ANN, BOB = Scope("ann", session_id="s1"), Scope("小林", session_id="s1")

SAID = [
    ("user", "I met Zaphod Beeblebrox at CERN in Geneva."),
    ("assistant", "What did you talk about with Zaphod Beeblebrox?"),
    ("user", "我昨天在北京大学见了王芳。"),
    ("assistant", "王芳还好吗？"),
    ("user", "Geneva and CERN are near the lake."),
    ("user", "王芳喜欢在北京喝茶。"),
]
MOVER = Path(__file__).with_name("mover.py")
QUESTION = "Who was at CERN in Geneva?"


class Counting(WordHashEmbeddings):
    """Counts what it embeds, but for the texts by which it is recognised and questions."""

    def __init__(self, width: int = 64) -> None:
        super().__init__(width)
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += [
            text for text in texts if not text.startswith(("The quick", "她昨天", "Meeting with"))
        ]
        return [WordHashEmbeddings.embed_query(self, text) for text in texts]


Stores = Callable[[str], dict[str, object]]


@pytest.fixture(scope="module")
def namespace(neo4j_url: str) -> Iterator[str]:
    """Constraints take longer to make than all of a test, so its tests share them."""
    with own_namespace(neo4j_url) as url:
        yield url


@pytest.fixture
def graph_url(namespace: str) -> Iterator[str]:
    yield namespace
    cypher(namespace, "MATCH (n) WHERE any(l IN labels(n) WHERE l STARTS WITH 'NS') DETACH DELETE n")


@pytest.fixture
def embeddings() -> Counting:
    return Counting()


@pytest.fixture
def counted(open_memory: Callable[..., MemRAG], engines: Engines, embeddings: Counting) -> MemRAG:
    """A memory with two users, everything on its own engine, and an embedder that counts."""
    memory = open_memory(
        search=engines.search, graph=engines.graph, cache=engines.cache, embeddings=embeddings
    )
    memory.remember(SAID, ANN)
    memory.remember(SAID, BOB)
    embeddings.embedded.clear()
    return memory


@pytest.fixture
def stores(postgres_url: str, schema: str, engines: Engines, graph_url: str) -> Stores:
    """All that the stores hold of a user."""

    def of(user: str) -> dict[str, object]:
        assert isinstance(engines.search, QdrantServer)
        return {
            "postgres": in_postgres(postgres_url, schema, user),
            "neo4j": in_neo4j(graph_url, postgres_url, schema, user),
            "qdrant": in_qdrant(engines.search, postgres_url, schema, user),
        }

    return of


def empty_engines(engines: Engines, graph_url: str) -> None:
    assert isinstance(engines.search, QdrantServer)
    for name in engines.search.collections():
        engines.search.call("break", lambda client, name=name: client.delete_collection(name))
    cypher(graph_url, "MATCH (n) WHERE n:NSRecord OR n:NSEntity OR n:NSStatement DETACH DELETE n")


class Steps:
    """Keeps what a bar was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))

    def check(self, total: int) -> None:
        done = [one for one, _ in self.seen]
        assert {one for _, one in self.seen} == {total}
        assert done == sorted(done)
        assert (done[0], done[-1]) == (0, total)


# Filling indexes anew


def test_emptied_engines_are_filled_without_embedding(
    counted: MemRAG, engines: Engines, graph_url: str, embeddings: Counting, stores: Stores
) -> None:
    before = {one.user_id: stores(one.user_id) for one in (ANN, BOB)}
    assert before["ann"] == before["小林"]  # the same history gives the same contents
    empty_engines(engines, graph_url)
    steps = Steps()
    assert counted.maintenance.reindex(progress=steps) == 0
    steps.check(2 * 2 * len(SAID))
    assert {one.user_id: stores(one.user_id) for one in (ANN, BOB)} == before
    assert embeddings.embedded == []
    found = counted.recall(QUESTION, ANN)
    assert found.hits
    assert not found.degraded


def test_one_user_alone_is_filled(
    counted: MemRAG, engines: Engines, graph_url: str, embeddings: Counting, stores: Stores
) -> None:
    before = stores("ann")
    empty_engines(engines, graph_url)
    steps = Steps()
    assert counted.maintenance.reindex(BOB, progress=steps) == 0
    steps.check(2 * len(SAID))
    assert stores("小林") == before
    assert stores("ann")["neo4j"] == {key: [] for key in before["neo4j"]}  # type: ignore[attr-defined]
    # Nobody of that name has anything to be filled.
    assert counted.maintenance.reindex(Scope("nobody")) == 0
    assert counted.maintenance.reindex(ANN, ["graph"]) == 0
    assert stores("ann")["neo4j"] == before["neo4j"]
    assert stores("ann")["qdrant"] != before["qdrant"]
    assert counted.maintenance.reindex(ANN, ["search"]) == 0
    assert stores("ann") == before
    assert embeddings.embedded == []


def test_who_stops_in_the_middle_goes_on(
    open_memory: Callable[..., MemRAG], engines: Engines, embeddings: Counting, stores: Stores
) -> None:
    alone = open_memory(embeddings=embeddings)
    for user in range(12):
        alone.remember([f"I am number {user}, from Geneva.", "我住在北京。"] * 15, Scope(f"user {user}"))
    embeddings.embedded.clear()
    memory = open_memory(search=engines.search, graph=engines.graph, embeddings=embeddings)
    steps = Steps()
    left = memory.maintenance.reindex(progress=steps, stop=lambda: len(steps.seen) > 1)
    assert 0 < left < 2 * 360
    assert steps.seen == [(0, 720), (256, 720)]
    # What is not there yet is asked of Postgres.
    assert memory.recall("Who is number 11, from Geneva?", Scope("user 11")).hits
    again = Steps()
    assert memory.maintenance.reindex(resume=True, progress=again) == 0
    again.check(left)
    assert memory.doctor(every=True).problems == ()
    assert embeddings.embedded == []
    assert stores("user 11")["neo4j"]


@pytest.mark.slow
@pytest.mark.parametrize("statements", [4, 9, 12])
def test_who_is_killed_in_the_middle_is_followed_by_one_who_goes_on(
    statements: int,
    counted: MemRAG,
    graph_url: str,
    postgres_url: str,
    schema: str,
    stores: Stores,
    engines: Engines,
    embeddings: Counting,
) -> None:
    before = stores("ann")
    empty_engines(engines, graph_url)
    done = subprocess.run(
        [sys.executable, str(MOVER), postgres_url, schema, str(statements), graph_url],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert stores("ann") != before
    assert counted.maintenance.reindex(roles=["search"]) == 0
    assert counted.maintenance.reindex(resume=True) == 0
    assert stores("ann") == stores("小林") == before
    assert embeddings.embedded == []


def test_recall_answers_while_an_index_is_filled(counted: MemRAG, engines: Engines, graph_url: str) -> None:
    expected = [hit.text for hit in counted.recall(QUESTION, ANN).hits]
    answers: list[list[str]] = []

    def ask(done: int, total: int) -> None:
        answers.append([hit.text for hit in counted.recall(f"{QUESTION}{' ' * len(answers)}", ANN).hits])

    empty_engines(engines, graph_url)
    assert counted.maintenance.reindex(progress=ask) == 0
    assert len(answers) > 2
    assert set(map(tuple, answers)) == {tuple(expected)}


@pytest.mark.parametrize("roles", [["search"], ["graph"], ["postgres", "graph"]])
def test_an_engine_that_was_not_named_cannot_be_filled(
    open_memory: Callable[..., MemRAG], roles: Sequence[str]
) -> None:
    with pytest.raises(ConfigurationError, match="no engine was named"):
        open_memory().maintenance.reindex(roles=roles)  # type: ignore[arg-type]


def test_a_role_that_there_is_not_is_refused(full: MemRAG) -> None:
    with pytest.raises(ConfigurationError, match="'cache' is none of postgres, search, graph"):
        full.maintenance.reindex(roles=["cache"])  # type: ignore[list-item]


@pytest.mark.parametrize("broken", ["posting", "entry", "mention", "relation", "everything"])
def test_postgres_is_filled_anew(
    broken: str, counted: MemRAG, postgres_url: str, schema: str, stores: Stores, embeddings: Counting
) -> None:
    before = stores("小林")
    space = space_of(postgres_url, schema, "ann")
    expected = [hit.text for hit in counted.recall(QUESTION, ANN).hits]
    tables = {
        "posting": ["posting"],
        "entry": ["entry"],
        "mention": ["mention", "relation_source"],
        "relation": ["relation", "relation_source", "entity"],
        "everything": ["posting", "entry", "entry_source", "term_stat", "view_stat", "vector_1"],
    }[broken]
    for table in tables:
        sql(postgres_url, schema, f"DELETE FROM {table} WHERE space = %s", space)
    steps = Steps()
    assert counted.maintenance.reindex(ANN, ["postgres"], progress=steps) == 0
    steps.check(len(SAID))
    assert stores("ann") == before
    assert stores("小林") == before
    # What was lost with its entries is embedded once more, and nothing else.
    assert bool(embeddings.embedded) == (broken in {"entry", "everything"})
    assert [hit.text for hit in counted.recall(QUESTION, ANN).hits] == expected
    assert counted.doctor(every=True).problems == ()


# Looking, and mending


def engine(health: Health, role: str) -> tuple[str, int, int]:
    (found,) = [one for one in health.engines if one.role == role]
    return found.state, found.compared, found.differing


def test_a_healthy_memory_is_shown_to_be(counted: MemRAG, graph_url: str) -> None:
    health = counted.doctor()
    assert health.problems == ()
    assert {one.role: one.engine for one in health.engines} == {
        "search": "qdrant",
        "graph": "neo4j",
        "cache": "redis",
    }
    assert all(one.version for one in health.engines)
    assert (health.postgres, health.pgvector) > ("1", "0")
    assert [engine(health, role) for role in ("search", "graph")] == [("ready", 2, 0)] * 2
    assert graph_url.split("@")[1].split("?", maxsplit=1)[0].split("/", maxsplit=1)[0] in "".join(
        one.place for one in health.engines
    )
    assert (health.users, health.episodes, health.pending) == (2, 12, 0)


def test_how_far_an_engine_is_behind_is_shown(
    counted: MemRAG, open_memory: Callable[..., MemRAG], engines: Engines
) -> None:
    alone = open_memory(embeddings=Counting(), cache="none")
    receipt = alone.remember(["One more for Geneva.", "还有一个。"], ANN)
    alone.forget(ANN, ids=receipt.ids[:1])
    lag = {one.role: (one.waiting, one.erasures, one.refused) for one in alone.doctor().engines}
    assert lag == {"search": (1, 1, 0), "graph": (1, 1, 0), "cache": (0, 1, 0)}
    assert {one.state for one in alone.doctor().engines} == {"elsewhere"}
    assert len([one for one in alone.doctor().problems if "memrag detach" in one]) == 3
    # A difference whose cause is known is none.
    health = counted.doctor(every=True)
    assert health.problems == ()
    assert engine(health, "graph") == ("ready", 1, 0)
    counted.sweep()
    assert [(one.waiting, one.erasures) for one in counted.doctor().engines] == [(0, 0)] * 3
    assert counted.doctor(every=True).problems == ()


def test_what_an_engine_refused_is_shown_and_tried_again(
    counted: MemRAG, postgres_url: str, schema: str, open_memory: Callable[..., MemRAG]
) -> None:
    open_memory(embeddings=Counting()).remember("Geneva again.", ANN)
    sql(
        postgres_url,
        schema,
        "UPDATE pending SET attempts = 3, error = 'StoreError',"
        " not_before = '2026-01-01' WHERE work = 'graph'",
    )
    health = counted.doctor()
    assert [one.refused for one in health.engines if one.role == "graph"] == [1]
    assert any("has refused 1 record" in problem for problem in health.problems)
    assert counted.maintenance.repair().problems == ()


BREAKS = {
    "a point is gone": "search",
    "a point too many": "search",
    "an entity is gone": "graph",
    "a relation is gone": "graph",
    "a statement is gone": "graph",
    "a mention is gone": "graph",
    "an entity too many": "graph",
    "a relation too many": "graph",
}


@pytest.mark.parametrize("broken", list(BREAKS))
def test_what_differs_is_seen_and_mended(
    broken: str,
    counted: MemRAG,
    engines: Engines,
    graph_url: str,
    postgres_url: str,
    schema: str,
    stores: Stores,
    embeddings: Counting,
) -> None:
    before = stores("小林")
    space = space_of(postgres_url, schema, "ann")
    _break(broken, space, engines, graph_url)
    assert stores("ann") != before
    assert stores("小林") == before
    role = BREAKS[broken]
    for health in (counted.doctor(), counted.doctor(every=True)):
        assert engine(health, role) == ("ready", 2, 1)
        (problem,) = health.problems
        assert "differs from Postgres in 1 of 2 memories" in problem
        assert "memrag doctor --repair" in problem
    mended = counted.maintenance.repair()
    assert mended.problems == ()
    assert engine(mended, role) == ("ready", 2, 0)
    assert stores("ann") == before
    assert stores("小林") == before
    assert embeddings.embedded == []
    assert counted.doctor(every=True) == mended


def _break(how: str, space: int, engines: Engines, graph_url: str) -> None:
    from qdrant_client import models

    assert isinstance(engines.search, QdrantServer)
    (collection,) = engines.search.collections()
    where = models.Filter(
        must=[models.FieldCondition(key="space", match=models.MatchValue(value=str(space)))]
    )
    points, _ = engines.search.call(
        "look", lambda client: client.scroll(collection, where, with_vectors=True)
    )
    edge = "MATCH (:NSEntity {space: $space})-[e]->(:NSEntity) WITH e LIMIT 1"
    statements = {
        "an entity is gone": "MATCH (e:NSEntity {space: $space}) WITH e LIMIT 1 DETACH DELETE e",
        "a relation is gone": f"{edge} DELETE e",
        "a statement is gone": "MATCH (s:NSStatement {space: $space}) WITH s LIMIT 1 DETACH DELETE s",
        "a mention is gone": "MATCH (:NSRecord {space: $space})-[m:MENTIONS]->() WITH m LIMIT 1 DELETE m",
        "an entity too many": "CREATE (:NSEntity {space: $space, key: 'x', name: 'X', type: 'other',"
        " mentions: 1, aliases: []})",
        "a relation too many": "MATCH (e:NSEntity {space: $space}) WITH e LIMIT 1"
        " CREATE (e)-[:KNOWS {id: 'x', weight: 1, predicate: ''}]->(e)",
    }
    if how in statements:
        cypher(graph_url, statements[how], space=space)
    elif how == "a point is gone":
        engines.search.call("break", lambda client: client.delete(collection, [points[0].id], wait=True))
    else:
        extra = models.PointStruct(
            id=str(uuid.uuid4()),
            vector=points[0].vector,
            payload={**(points[0].payload or {}), "record": str(uuid.uuid4())},
        )
        engines.search.call("break", lambda client: client.upsert(collection, [extra], wait=True))


@pytest.mark.parametrize("lost", ["entry", "vector", "entry of a part"])
def test_what_postgres_lost_is_seen_and_mended(
    lost: str, counted: MemRAG, postgres_url: str, schema: str, stores: Stores, embeddings: Counting
) -> None:
    for scope in (ANN, BOB):
        counted.remember("A long story of Geneva. 很长的故事。" * 100, scope)
    embeddings.embedded.clear()
    before = stores("小林")
    space = space_of(postgres_url, schema, "ann")
    statement = {
        "entry": "DELETE FROM entry WHERE space = %s AND record = (SELECT record FROM entry WHERE space = %s"
        " ORDER BY record LIMIT 1)",
        "entry of a part": "DELETE FROM entry WHERE space = %s AND id = (SELECT max(id) FROM entry"
        " WHERE space = %s AND part = 1)",
        "vector": "DELETE FROM vector_1 WHERE space = %s"
        " AND entry = (SELECT min(entry) FROM vector_1 WHERE space = %s)",
    }[lost]
    sql(postgres_url, schema, statement, space, space)
    assert stores("ann") != before
    problems = " ".join(counted.doctor().problems)
    assert "memrag doctor --repair" in problems
    assert counted.maintenance.repair().problems == ()
    assert stores("ann") == before
    assert stores("小林") == before
    assert len(embeddings.embedded) == 1  # what was lost, and no more
    assert counted.recall(QUESTION, ANN).hits


def test_an_engine_that_is_away_is_named(
    open_memory: Callable[..., MemRAG], unused_tcp_url: Callable[[str], str]
) -> None:
    with Neo4jGraph(unused_tcp_url("bolt://neo4j:hush-hush@{}"), Neo4jOptions(retry_time=0)) as away:
        _look_at_what_is_away(open_memory(graph=away, cache="none"))


def _look_at_what_is_away(memory: MemRAG) -> None:
    memory.remember(SAID, ANN)
    health = memory.doctor()
    assert engine(health, "graph") == ("away", 0, 0)
    assert [one.waiting for one in health.engines] == [len(SAID)]
    assert any("neo4j" in problem for problem in health.problems)
    assert "hush" not in repr(health) + health.model_dump_json()
    assert memory.maintenance.repair().problems  # nothing can be done now
    with pytest.raises(StoreUnavailableError):
        memory.maintenance.reindex()
    assert memory.recall(QUESTION, ANN).hits


@pytest.fixture
def unused_tcp_url(unused_tcp_port: int) -> Callable[[str], str]:
    return lambda template: template.format(f"127.0.0.1:{unused_tcp_port}")


def test_no_password_is_ever_shown(
    open_memory: Callable[..., MemRAG],
    postgres_url: str,
    unused_tcp_url: Callable[[str], str],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither of servers that are away, nor of those that are there; whatever is asked, and at any level."""
    caplog.set_level(logging.DEBUG)
    word = "Opensesame-42"
    search = QdrantServer(unused_tcp_url(f"qdrant://{word}@{{}}"), QdrantOptions(timeout=1))
    graph = Neo4jGraph(unused_tcp_url(f"bolt://neo4j:{word}@{{}}"), Neo4jOptions(retry_time=0))
    cache = RedisCache(unused_tcp_url(f"redis://:{word}@{{}}/0"))
    memory = open_memory(search=search, graph=graph, cache=cache)
    memory.remember(SAID, ANN)
    found = memory.recall(QUESTION, ANN)
    assert found.hits
    health = memory.doctor()
    assert len(health.problems) == 3
    shown = [repr(memory), repr(search), repr(graph), repr(cache), repr(health), health.model_dump_json()]
    shown += [repr(found), found.explain(), str(memory.forget(Scope("ann"), everything=True))]
    for role in ("search", "graph"):
        with pytest.raises(StoreUnavailableError) as caught:
            memory.maintenance.reindex(roles=[role])  # type: ignore[list-item]
        shown += [str(caught.value), repr(caught.value)]
    memory.sweep()
    memory.close()
    for one in (search, graph, cache):
        one.close()
    shown += [
        record.getMessage() + str(record.exc_info or "") + str(record.args) for record in caplog.records
    ]
    output = capsys.readouterr()
    shown += [output.out, output.err]
    assert not [text for text in shown if word in text]


# Doing without an engine


def test_after_a_detachment_nothing_is_marked(
    counted: MemRAG,
    open_memory: Callable[..., MemRAG],
    engines: Engines,
    stores: Stores,
    postgres_url: str,
    schema: str,
    clock: HandClock,
) -> None:
    counted.maintenance.detach("graph")
    counted.maintenance.detach("search")
    alone = open_memory(embeddings=Counting(), cache="none")
    receipt = alone.remember(["Rome is far from Geneva.", "Milan is nearer to Geneva."], ANN)
    alone.forget(ANN, ids=receipt.ids[:1])
    alone.remember("Gone soon, at CERN.", ANN, ttl=timedelta(hours=1))
    clock.forward(timedelta(hours=2))
    alone.sweep()
    assert sql(postgres_url, schema, "SELECT work FROM pending WHERE work <> 'erase_cache'") == []
    assert [one.role for one in alone.doctor().engines] == ["cache"]
    for role in ("search", "graph"):
        with pytest.raises(ConfigurationError, match="no engine is known"):
            alone.maintenance.detach(role)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="none of search, graph, cache"):
        alone.maintenance.detach("postgres")  # type: ignore[arg-type]
    # Named again, they are filled again, and give up what was forgotten meanwhile.
    again = open_memory(
        search=engines.search, graph=engines.graph, cache=engines.cache, embeddings=Counting()
    )
    assert again.recall("Milan", ANN).hits
    assert again.flush() == 0
    again.sweep()
    assert again.maintenance.repair(every=True).problems == ()
    held = stores("ann")
    assert len(held["neo4j"]["records"]) == len(SAID) + 1  # type: ignore[index]
    assert not [one for one in str(held).split() if "Rome" in one]
