"""What a graph on Neo4j promises beyond the contract of every graph; on a real server."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import get_args
from uuid import UUID, uuid4

import pytest
from langchain_core.utils.uuid import uuid7

from langchain_memrag.errors import ConfigurationError, StoreError, StoreUnavailableError
from langchain_memrag.records import RelationType
from langchain_memrag.stores.base import (
    GraphBatch,
    GraphSource,
    MentionedEntity,
    RelatedPair,
    SearchFilter,
)
from langchain_memrag.stores.neo4j import Neo4jGraph, Neo4jOptions, cypher, langchain_graph
from langchain_memrag.stores.neo4j.address import parse_address
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.graph import PostgresGraph
from langchain_memrag.testing.contracts.graph import says
from langchain_memrag.testing.contracts.search import NOW
from tests.integration.services.namespaces import driver_of, own_namespace

from .engines import add_space

SPACE = 7
HUB = 10_000


@pytest.fixture
def url(neo4j_url: str) -> Iterator[str]:
    """Of a namespace that nobody has."""
    with own_namespace(neo4j_url) as url:
        yield url


@pytest.fixture
def graph(url: str) -> Iterator[Neo4jGraph]:
    with Neo4jGraph(url) as graph:
        yield graph


def everything(space: int = SPACE) -> SearchFilter:
    return SearchFilter(spaces=(space,), now=NOW)


# Whose it is


def test_a_version_and_a_label(graph: Neo4jGraph, url: str) -> None:
    assert graph.version()[0].isdigit()
    assert graph.label == parse_address(url).label
    assert parse_address(url).password not in graph.label


def test_a_graph_belongs_to_the_memory_that_adopted_it(graph: Neo4jGraph, url: str) -> None:
    mine, other = uuid4(), uuid4()
    assert not graph.knows(mine)
    graph.adopt(mine)
    graph.adopt(mine)
    assert graph.knows(mine)
    with Neo4jGraph(url) as again:
        assert again.knows(mine)
        for refused in (again.knows, again.adopt):
            with pytest.raises(ConfigurationError, match="namespace=") as caught:
                refused(other)
            assert parse_address(url).password not in str(caught.value)
        assert again.knows(mine)


def test_data_of_nobody_is_adopted(graph: Neo4jGraph) -> None:
    graph.upsert(SPACE, says("Ann"))
    memory = uuid4()
    assert not graph.knows(memory)
    graph.adopt(memory)
    assert graph.knows(memory)
    assert graph.counts(SPACE) == (1, 0)


def test_one_of_many_at_once_adopts_it(url: str) -> None:
    memories = [uuid4() for _ in range(6)]

    def adopt(memory: UUID) -> bool:
        with Neo4jGraph(url) as graph:
            try:
                graph.adopt(memory)
            except ConfigurationError:
                return False
            return graph.knows(memory)

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(adopt, memories)) == 1


def test_namespaces_are_apart(neo4j_url: str, graph: Neo4jGraph) -> None:
    with own_namespace(neo4j_url) as elsewhere, Neo4jGraph(elsewhere) as other:
        graph.upsert(SPACE, says("Ann", "Bo"))
        other.upsert(SPACE, says("Ann", "Cy"))
        graph.adopt(uuid4())
        assert not other.knows(uuid4())
        assert [one.target for one in other.neighbours(SPACE, "ann")] == ["cy"]
        assert graph.clear(SPACE) == 3
        assert other.counts(SPACE) == (2, 1)


# The same scores as on Postgres


@dataclass(frozen=True)
class Both:
    """The same graph on both engines."""

    postgres: PostgresGraph
    neo4j: Neo4jGraph
    space: int

    def upsert(self, batch: GraphBatch) -> None:
        self.postgres.upsert(self.space, batch)
        self.neo4j.upsert(self.space, batch)

    def remove(self, records: list[UUID]) -> tuple[int, int]:
        return self.postgres.remove(self.space, records), self.neo4j.remove(self.space, records)

    def assert_same(self, seeds: list[str], **bounds: int) -> int:
        finds = self.postgres.expand(everything(self.space), seeds, **bounds)
        theirs = self.neo4j.expand(everything(self.space), seeds, **bounds)
        assert [find.record for find in theirs] == [find.record for find in finds]
        assert [find.path for find in theirs] == [find.path for find in finds]
        assert [find.score for find in theirs] == pytest.approx([find.score for find in finds], abs=1e-9)
        return len(finds)


@pytest.fixture
def both(database: Database, graph: Neo4jGraph) -> Both:
    return Both(PostgresGraph(database), graph, add_space(database))


NAMES = [
    "Ann", "Bo", "O'Brien", 'the "best"', "a`b", "x)-[:KNOWS]->(y", "{ns}", "$seeds", "back\\slash",
    "jean-luc",
    "北京大学", "清华大学", "小林", "茶🍵", "👩‍👩‍👧", "Ångström", "C++", "…", "n.key", "// DELETE",
]  # fmt: skip
PREDICATES = ["", "is the teacher of", "是…的 老师", "won't-say `x`", '"; DROP', "{id: 1}", "🍵 喝"]
TYPES: tuple[RelationType, ...] = get_args(RelationType)


def random_batch(dice: random.Random) -> GraphBatch:
    """Some records, each with some of the names, and relations among those."""
    sources, mentions, relations = [], [], []
    for _ in range(dice.randint(1, 4)):
        record = UUID(str(uuid7()))
        expires_at = dice.choice([None, None, NOW + timedelta(days=1), NOW - timedelta(days=1)])
        sources.append(GraphSource(record, expires_at))
        names = dice.sample(NAMES, dice.randint(0, 5))
        mentions += [
            MentionedEntity(record, name.casefold(), name, dice.choice(["other", "person"])) for name in names
        ]
        for _ in range(dice.randint(0, 4) if len(names) > 1 else 0):
            left, right = sorted(name.casefold() for name in dice.sample(names, 2))
            relations.append(RelatedPair(record, left, right, dice.choice(TYPES), dice.choice(PREDICATES)))
    return GraphBatch(tuple(sources), tuple(mentions), tuple(relations))


@pytest.mark.parametrize("seed", range(6))
def test_expanding_gives_the_same_on_both_engines(both: Both, seed: int) -> None:
    dice = random.Random(seed)
    batches = [random_batch(dice) for _ in range(12)]
    for batch in batches:
        both.upsert(batch)
    # What some records said is said anew, and some are taken back.
    again = batches[3]
    both.upsert(replace(again, relations=again.relations[:1], mentions=again.mentions[:3]))
    gone = [source.record for source in batches[5].sources]
    mine, theirs = both.remove(gone)
    assert mine == theirs

    keys = [name.casefold() for name in NAMES]
    assert both.neo4j.counts(both.space) == both.postgres.counts(both.space)
    assert both.neo4j.entities(both.space, keys) == both.postgres.entities(both.space, keys)
    for key in keys:
        assert both.neo4j.neighbours(both.space, key) == both.postgres.neighbours(both.space, key)
    found = 0
    for hops in (0, 1, 2):
        for _ in range(6):
            seeds = dice.sample(keys, dice.randint(1, 3))
            found += both.assert_same(
                seeds, hops=hops, limit=dice.choice([5, 50]), fanout=dice.choice([2, 16])
            )
    assert found > 50


def test_ties_are_ties_on_both_engines(both: Both) -> None:
    """A diamond: two ways of equal worth to one end, and the names of the way must agree, too."""
    for pair in (("甲", "乙"), ("甲", "丙"), ("乙", "丁"), ("丙", "丁"), ("丁", "戊")):
        both.upsert(says(*pair))
    for hops in (1, 2):
        assert both.assert_same(["甲"], hops=hops) > 3
        assert both.assert_same(["甲", "丁"], hops=hops) > 3


def test_removing_and_clearing_count_the_same(both: Both) -> None:
    dice = random.Random(99)
    for _ in range(5):
        both.upsert(random_batch(dice))
    assert both.neo4j.clear(both.space) == both.postgres.clear(both.space) > 5


# Queries


def test_relation_types_are_closed() -> None:
    assert "KNOWS" in cypher.add_relations("KNOWS")
    for wrong in ("knows", "X]->() DETACH DELETE n //", ""):
        with pytest.raises(ValueError, match="relation type"):
            cypher.add_relations(wrong)  # type: ignore[arg-type]


def test_a_relation_of_no_type_is_not_written(graph: Neo4jGraph) -> None:
    batch = says("Ann", "Bo")
    wrong = tuple(replace(one, type="KNOWS {x: 1}") for one in batch.relations)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="relation type"):
        graph.upsert(SPACE, replace(batch, relations=wrong))
    assert graph.counts(SPACE) == (0, 0)


def test_a_user_s_words_are_in_no_statement(graph: Neo4jGraph, url: str) -> None:
    """What would end a statement or begin another one comes back as it was said."""
    said = "`) DETACH DELETE n //'\"\\{}$x 删除"
    batch = says(said, "Ann")
    pair = replace(batch.relations[0], type="RELATED_TO", predicate=said)
    graph.upsert(SPACE, replace(batch, relations=(pair,)))
    (relation,) = graph.neighbours(SPACE, "ann")
    assert relation.predicate == said
    assert graph.entities(SPACE, [said.casefold()])[0].name == said
    with driver_of(url) as driver, driver.session() as session:
        labels = session.run("MATCH (n) WHERE size(labels(n)) > 1 RETURN count(n) AS n").single()
        assert labels is not None
        assert labels["n"] == 0


def test_many_writers_of_one_space(url: str) -> None:
    """Each with connections of its own, as in several processes; what collides is tried again in time."""
    graphs = [Neo4jGraph(url) for _ in range(8)]
    batches = [says("Ann", f"B{number % 4}") for number in range(80)]

    def write(number: int) -> None:
        graphs[number % 8].upsert(SPACE, batches[number])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(80)))
    (ann,) = graphs[0].entities(SPACE, ["ann"])
    assert ann.mentions == 80
    assert sorted(one.weight for one in graphs[0].neighbours(SPACE, "ann")) == [20] * 4
    for graph in graphs:
        graph.close()


# A hub


def hub_of(size: int) -> GraphBatch:
    record = UUID(str(uuid7()))
    names = [f"N{number:05}" for number in range(size)]
    return GraphBatch(
        (GraphSource(record),),
        tuple(MentionedEntity(record, name.casefold(), name, "other") for name in ["Hub", *names]),
        tuple(RelatedPair(record, "hub", name.casefold(), "MENTIONED_WITH") for name in names),
    )


def test_a_hub_neither_floods_nor_outlasts_a_walk(both: Both) -> None:
    both.upsert(hub_of(HUB))
    for number in range(0, 60, 3):
        both.upsert(says("Hub", f"N{number:05}"))
        both.upsert(says(f"N{number:05}", "茶"))
    for hops in (0, 1, 2):
        finds = both.neo4j.expand(everything(both.space), ["hub"], hops=hops, fanout=16, limit=30, timeout=5)
        assert 0 < len(finds) <= 30
        assert len({find.record for find in finds}) == len(finds)
    # From its rim, the way leads over the hub.
    assert both.neo4j.expand(everything(both.space), ["n00003"], hops=2, fanout=16, limit=30, timeout=5)
    assert len(both.neo4j.neighbours(both.space, "hub", limit=10)) == 10
    # Those with more support come first on both engines; among the rest, any may.
    both.assert_same(["hub"], hops=1, fanout=16, limit=30)


def test_the_server_ends_a_walk_that_takes_too_long(graph: Neo4jGraph, url: str) -> None:
    """Nothing of the walk is left on the server, and the next one works."""
    graph.upsert(SPACE, hub_of(3000))
    with pytest.raises(StoreUnavailableError):
        graph.expand(
            everything(), [f"n{number:05}" for number in range(3000)], hops=2, fanout=3000, timeout=0
        )
    assert graph.expand(everything(), ["hub"], hops=1, limit=5, timeout=5)


def test_every_start_of_a_walk_is_an_index(graph: Neo4jGraph, url: str) -> None:
    graph.open()
    namespace = str(parse_address(url).namespace)
    values = {
        "spaces": [SPACE], "seeds": ["ann"], "fanout": 16, "limit": 50, "now": NOW, "decay": 0.5,
    }  # fmt: skip
    with driver_of(url) as driver, driver.session() as session:
        plan = session.run("EXPLAIN " + cypher.expand(2).format(ns=namespace), values).consume().plan  # type: ignore[arg-type]
    operators: list[str] = []

    def walk(node: dict[str, object]) -> None:
        operators.append(str(node["operatorType"]))
        for child in node.get("children", []):  # type: ignore[attr-defined]
            walk(child)

    assert plan is not None
    walk(plan)
    assert any("UniqueIndexSeek" in one for one in operators)
    assert not any("LabelScan" in one or "AllNodesScan" in one for one in operators)


# Beside the memory


def test_langchain_s_graph_sees_the_same(graph: Neo4jGraph, url: str) -> None:
    graph.upsert(SPACE, says("Ann", "北京大学"))
    opened = langchain_graph(url)
    try:
        namespace = parse_address(url).namespace
        rows = opened.query(f"MATCH (n:{namespace}Entity) RETURN n.name AS name ORDER BY name")
        assert [row["name"] for row in rows] == ["Ann", "北京大学"]
    finally:
        opened.close()


def test_langchain_s_graph_that_cannot_be_opened(neo4j_url: str) -> None:
    with pytest.raises(ConfigurationError, match="user"):
        langchain_graph("bolt://127.0.0.1:1")
    with pytest.raises(StoreUnavailableError) as caught:
        langchain_graph("bolt://ann:s3cret@127.0.0.1:1", Neo4jOptions(retry_time=0))
    assert "s3cret" not in str(caught.value)
    place = parse_address(neo4j_url).label.removeprefix("bolt://")
    with pytest.raises(StoreError, match="password") as refused:
        langchain_graph(f"bolt://neo4j:s3cret@{place}")
    assert "s3cret" not in str(refused.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_makes_connections_of_its_own(graph: Neo4jGraph) -> None:
    graph.upsert(SPACE, says("Ann", "Bo"))
    child = os.fork()
    if child == 0:
        try:
            graph.upsert(SPACE, says("Ann", "Cy"))
            os._exit(0 if graph.counts(SPACE) == (3, 2) else 1)
        finally:
            os._exit(2)
    for _ in range(20):
        assert graph.entities(SPACE, ["ann"])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert graph.counts(SPACE) == (3, 2)
