"""The contract of `GraphStore`."""

# ruff: noqa: D102 - a test's name says what it tests

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from langchain_core.utils.uuid import uuid7

from langchain_memrag.records import Relation
from langchain_memrag.stores.base import (
    GraphBatch,
    GraphSource,
    GraphStore,
    MentionedEntity,
    RelatedPair,
    SearchFilter,
)
from langchain_memrag.testing.contracts.search import NOW

__all__ = ["GraphStoreContract", "says"]


def says(*names: str, together: bool = True, record: UUID | None = None, **source: object) -> GraphBatch:
    """What one record says that mentions some names; each stands beside the next."""
    record = record or UUID(str(uuid7()))
    keys = [name.casefold() for name in names]
    return GraphBatch(
        sources=(GraphSource(record, **source),),  # type: ignore[arg-type]
        mentions=tuple(
            MentionedEntity(record, key, name, "other") for key, name in zip(keys, names, strict=True)
        ),
        relations=tuple(
            RelatedPair(record, min(left, right), max(left, right), "MENTIONED_WITH")
            for left, right in (pairwise(keys) if together else ())
        ),
    )


def _record(batch: GraphBatch) -> UUID:
    return batch.sources[0].record


def _all(*spaces: int, now: datetime = NOW) -> SearchFilter:
    return SearchFilter(spaces=spaces, now=now)


class GraphStoreContract:
    """Derive from it, and override the fixtures `graph` and `new_space`."""

    @pytest.fixture
    def graph(self) -> GraphStore:
        """A graph without entities."""
        raise NotImplementedError

    @pytest.fixture
    def new_space(self) -> Callable[[], int]:
        """Makes spaces."""
        raise NotImplementedError

    @pytest.fixture
    def space(self, new_space: Callable[[], int]) -> int:
        """A space without entities."""
        return new_space()

    # Entities

    def test_entities_in_the_order_asked(self, graph: GraphStore, space: int) -> None:
        graph.upsert(space, says("Ann", "北京大学", "清华大学", "C++"))
        graph.upsert(space, says("Ann"))
        found = graph.entities(space, ["清华大学", "ann", "nobody", "c++", "北京大学"])
        assert [(entity.key, entity.name, entity.mentions) for entity in found] == [
            ("清华大学", "清华大学", 1), ("ann", "Ann", 2), ("c++", "C++", 1), ("北京大学", "北京大学", 1),
        ]  # fmt: skip
        assert graph.entities(space, []) == []

    def test_names_are_plain_text(self, graph: GraphStore, space: int) -> None:
        names = [
            "O'Brien",
            'the "best" \\ one',
            "a%b_c",
            "{x}",
            "$(type)",
            "MATCH (n) DELETE n",
            "…",
            "🍵",
            "n, 1",
        ]
        graph.upsert(space, says(*names))
        found = graph.entities(space, [name.casefold() for name in names])
        assert [entity.name for entity in found] == names
        for name in names[:-1]:
            assert graph.neighbours(space, name.casefold())

    def test_absence_never_clears(self, graph: GraphStore, space: int) -> None:
        record = UUID(str(uuid7()))
        graph.upsert(
            space,
            GraphBatch((GraphSource(record),), (MentionedEntity(record, "ann", "Ann", "person"),)),
        )
        graph.upsert(space, says("ANN"))
        graph.upsert(space, says("Ann"))
        (ann,) = graph.entities(space, ["ann"])
        assert (ann.name, ann.type, ann.aliases, ann.mentions) == ("Ann", "person", ("ANN",), 3)

    def test_a_better_type_replaces_other(self, graph: GraphStore, space: int) -> None:
        graph.upsert(space, says("Paris"))
        record = UUID(str(uuid7()))
        graph.upsert(
            space,
            GraphBatch((GraphSource(record),), (MentionedEntity(record, "paris", "Paris", "place"),)),
        )
        assert [entity.type for entity in graph.entities(space, ["paris"])] == ["place"]

    # Relations

    def test_neighbours_best_supported_first(self, graph: GraphStore, space: int) -> None:
        first = says("Ann", "Bo")
        for batch in (first, says("Ann", "Cy"), says("Bo", "Ann"), says("Cy", "Di")):
            graph.upsert(space, batch)
        relations = graph.neighbours(space, "ann")
        assert [(one.source, one.target, one.weight) for one in relations] == [
            ("ann", "bo", 2),
            ("ann", "cy", 1),
        ]
        assert _record(first) in relations[0].records
        assert len(relations[0].records) == 2
        assert graph.neighbours(space, "ann", limit=1) == relations[:1]
        assert graph.neighbours(space, "nobody") == []

    def test_relations_differ_by_type_and_predicate(self, graph: GraphStore, space: int) -> None:
        record = UUID(str(uuid7()))
        people = says("Ann", "Bo", record=record, together=False)
        pairs = tuple(
            RelatedPair(record, "ann", "bo", kind, predicate)  # type: ignore[arg-type]
            for kind, predicate in [
                ("KNOWS", ""),
                ("LIKES", ""),
                ("RELATED_TO", "是…的 老师"),
                ("RELATED_TO", "x" * 3000),
            ]
        )
        graph.upsert(space, GraphBatch(people.sources, people.mentions, pairs))
        seen = {(one.type, one.predicate) for one in graph.neighbours(space, "bo")}
        assert seen == {(pair.type, pair.predicate) for pair in pairs}
        assert graph.counts(space) == (2, 4)

    def test_validity_is_kept(self, graph: GraphStore, space: int) -> None:
        batch = says("Ann", "Oslo", together=False)
        start = NOW - timedelta(days=400)
        pair = RelatedPair(_record(batch), "ann", "oslo", "LIVES_IN", valid_from=start)
        graph.upsert(space, GraphBatch(batch.sources, batch.mentions, (pair,)))
        again = says("Ann", "Oslo", together=False)
        ended = RelatedPair(_record(again), "ann", "oslo", "LIVES_IN", valid_to=NOW)
        graph.upsert(space, GraphBatch(again.sources, again.mentions, (ended,)))
        (relation,) = graph.neighbours(space, "ann")
        assert isinstance(relation, Relation)
        assert (relation.valid_from, relation.valid_to, relation.weight) == (start, NOW, 2)

    # Writing again

    def test_writing_again_changes_nothing(self, graph: GraphStore, space: int) -> None:
        batch = says("Ann", "Bo", "Cy")
        graph.upsert(space, batch)
        before = (
            graph.entities(space, ["ann", "bo", "cy"]),
            graph.neighbours(space, "bo"),
            graph.counts(space),
        )
        graph.upsert(space, batch)
        assert (
            graph.entities(space, ["ann", "bo", "cy"]),
            graph.neighbours(space, "bo"),
            graph.counts(space),
        ) == before

    def test_what_a_record_said_before_is_replaced(self, graph: GraphStore, space: int) -> None:
        old = says("Ann", "Bo")
        graph.upsert(space, old)
        graph.upsert(space, says("Bo", "Cy", record=_record(old)))
        assert [entity.key for entity in graph.entities(space, ["ann", "bo", "cy"])] == ["bo", "cy"]
        assert [one.target for one in graph.neighbours(space, "bo")] == ["cy"]
        graph.upsert(space, says(record=_record(old)))
        assert graph.counts(space) == (0, 0)

    def test_the_same_twice_in_one_batch(self, graph: GraphStore, space: int) -> None:
        batch = says("Ann", "Bo")
        graph.upsert(space, GraphBatch(batch.sources, batch.mentions * 2, batch.relations * 2))
        assert [entity.mentions for entity in graph.entities(space, ["ann", "bo"])] == [1, 1]
        assert [one.weight for one in graph.neighbours(space, "ann")] == [1]

    def test_an_empty_batch(self, graph: GraphStore, space: int) -> None:
        graph.upsert(space, GraphBatch(()))
        assert graph.counts(space) == (0, 0)

    def test_writers_do_not_lose_each_other(self, graph: GraphStore, space: int) -> None:
        batches = [says("Ann", f"P{number % 3}", f"Q{number}") for number in range(40)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda batch: graph.upsert(space, batch), batches))
        (ann,) = graph.entities(space, ["ann"])
        assert ann.mentions == 40
        assert sum(one.weight for one in graph.neighbours(space, "ann")) == 40

    # Expanding

    def test_expanding_by_hops(self, graph: GraphStore, space: int) -> None:
        direct, one, two, three = says("Ann", "Bo"), says("Bo", "Cy"), says("Cy", "Di"), says("Di", "Ed")
        for batch in (direct, one, two, three):
            graph.upsert(space, batch)
        for hops, expected in ((0, [direct]), (1, [direct, one]), (2, [direct, one, two])):
            finds = graph.expand(_all(space), ["ann"], hops=hops)
            assert [find.record for find in finds] == [_record(batch) for batch in expected]
            assert all(0 < find.score <= 1 for find in finds)
            assert [find.score for find in finds] == sorted((find.score for find in finds), reverse=True)
        assert finds[0].path == ("Ann",)
        assert finds[2].path == ("Ann", "Bo", "Cy")

    def test_more_seeds_are_better(self, graph: GraphStore, space: int) -> None:
        one, both = says("Ann", "Bo"), says("Ann", "Cy")
        other = says("Ann")
        for batch in (both, one, other):
            graph.upsert(space, batch)
        finds = graph.expand(_all(space), ["ann", "cy"], hops=0)
        assert [find.record for find in finds] == [_record(both), _record(other), _record(one)]

    def test_ties_by_newest_record_and_a_limit(self, graph: GraphStore, space: int) -> None:
        batches = [says("Ann") for _ in range(5)]
        for batch in batches:
            graph.upsert(space, batch)
        finds = graph.expand(_all(space), ["ann"], limit=3)
        assert [find.record for find in finds] == [_record(batch) for batch in reversed(batches)][:3]

    def test_unknown_seeds_and_none(self, graph: GraphStore, space: int) -> None:
        graph.upsert(space, says("Ann"))
        assert graph.expand(_all(space), ["nobody"]) == []
        assert graph.expand(_all(space), []) == []

    def test_the_expired_are_passed_over(self, graph: GraphStore, space: int) -> None:
        gone = [says("Ann", expires_at=NOW) for _ in range(3)]
        living = says("Ann", expires_at=NOW + timedelta(seconds=1))
        for batch in (living, *gone):
            graph.upsert(space, batch)
        assert [find.record for find in graph.expand(_all(space), ["ann"], limit=1)] == [_record(living)]
        assert graph.expand(_all(space, now=NOW + timedelta(seconds=1)), ["ann"]) == []

    def test_a_hub_is_bounded(self, graph: GraphStore, space: int) -> None:
        record = UUID(str(uuid7()))
        names = [f"N{number:04}" for number in range(1500)]
        graph.upsert(
            space,
            GraphBatch(
                (GraphSource(record),),
                tuple(MentionedEntity(record, name.casefold(), name, "other") for name in ["Hub", *names]),
                tuple(RelatedPair(record, "hub", name.casefold(), "MENTIONED_WITH") for name in names),
            ),
        )
        for name in names[:40]:
            graph.upsert(space, says("Hub", name))
        finds = graph.expand(_all(space), ["hub"], hops=2, fanout=8, limit=20)
        assert len(finds) == 20
        assert len({find.record for find in finds}) == 20
        assert len(graph.neighbours(space, "hub", limit=10)) == 10

    def test_spaces_are_apart(self, graph: GraphStore, new_space: Callable[[], int]) -> None:
        mine, theirs = new_space(), new_space()
        own, foreign = says("Ann", "Bo"), says("Ann", "Cy")
        graph.upsert(mine, own)
        graph.upsert(theirs, foreign)
        assert [find.record for find in graph.expand(_all(mine), ["ann"], hops=2)] == [_record(own)]
        assert [one.target for one in graph.neighbours(mine, "ann")] == ["bo"]
        assert graph.entities(mine, ["cy"]) == []
        both = graph.expand(_all(mine, theirs), ["ann"], hops=1)
        assert {find.record for find in both} == {_record(own), _record(foreign)}
        assert graph.clear(mine) == 3
        assert (graph.counts(mine), graph.counts(theirs)) == ((0, 0), (2, 1))
        assert graph.expand(_all(mine), ["ann"]) == []

    # Removing

    def test_nothing_outlives_its_last_source(self, graph: GraphStore, space: int) -> None:
        gone, kept = says("Ann", "Bo"), says("Ann", "Cy")
        graph.upsert(space, gone)
        graph.upsert(space, kept)
        assert graph.count_of(space, [_record(gone)]) == 3
        # Two mentions, one entity, one relation.
        assert graph.remove(space, [_record(gone)]) == 4
        assert graph.count_of(space, [_record(gone)]) == 0
        assert [(entity.key, entity.mentions) for entity in graph.entities(space, ["ann", "bo", "cy"])] == [
            ("ann", 1), ("cy", 1),
        ]  # fmt: skip
        assert graph.neighbours(space, "bo") == []
        assert graph.counts(space) == (2, 1)
        assert [find.record for find in graph.expand(_all(space), ["ann"], hops=2)] == [_record(kept)]
        assert graph.remove(space, [_record(gone)]) == 0
        assert graph.remove(space, []) == 0

    def test_a_relation_with_another_source_stays(self, graph: GraphStore, space: int) -> None:
        first, second = says("Ann", "Bo"), says("Ann", "Bo")
        graph.upsert(space, first)
        graph.upsert(space, second)
        graph.remove(space, [_record(first)])
        (relation,) = graph.neighbours(space, "ann")
        assert (relation.weight, relation.records) == (1, (_record(second),))
