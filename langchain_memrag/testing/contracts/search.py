"""The contract of `SearchIndex`."""

# ruff: noqa: D102 - a test's name says what it tests

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar
from uuid import UUID

import numpy as np
import pytest
from langchain_core.utils.uuid import uuid7

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.base import (
    DenseSignal,
    IndexEntry,
    LexicalSignal,
    RawHit,
    SearchFilter,
    SearchIndex,
    Signal,
    Vector,
)

__all__ = ["NOW", "SearchIndexContract", "make_entry", "unit"]

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

TEA, CHA, COFFEE = 11, -22, 2**31 - 1
"""Term hashes: signed, with 32 bits."""


def unit(*components: float, width: int = 8) -> Vector:
    """A unit vector that starts with these components."""
    vector = np.zeros(width, np.float32)
    vector[: len(components)] = components
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def make_entry(space: int, **fields: object) -> IndexEntry:
    """An entry of a new record, with fields that do not matter filled in."""
    record = UUID(str(fields.pop("record", None) or uuid7()))
    plain = IndexEntry(
        space=space,
        record=record,
        layer="episode",
        view="turn",
        part=0,
        sources=(record,),
        session=None,
        agent=None,
        role="user",
        occurred_at=NOW,
        expires_at=None,
        vector=None,
        terms={},
    )
    return replace(plain, **fields)  # type: ignore[arg-type]


def _everything(space: int, *more: int, now: datetime = NOW) -> SearchFilter:
    return SearchFilter(spaces=(space, *more), now=now)


def _dense(vector: Vector, *, views: Sequence[str] = ("turn",), depth: int = 10) -> Signal:
    return DenseSignal("dense", tuple(views), depth, vector)  # type: ignore[arg-type]


def _lexical(terms: dict[int, float], *, views: Sequence[str] = ("turn",), depth: int = 10) -> Signal:
    return LexicalSignal("lexical", tuple(views), depth, terms)  # type: ignore[arg-type]


def _records(hits: Sequence[RawHit]) -> list[UUID]:
    return [hit.record for hit in hits]


class SearchIndexContract:
    """Derive from it, and override the fixtures `index` and `new_space`."""

    width: ClassVar[int] = 8

    @pytest.fixture
    def index(self) -> SearchIndex:
        """An empty index for vectors of `width` dimensions."""
        raise NotImplementedError

    @pytest.fixture
    def new_space(self) -> Callable[[], int]:
        """Makes spaces."""
        raise NotImplementedError

    @pytest.fixture
    def space(self, new_space: Callable[[], int]) -> int:
        """A space without entries."""
        return new_space()

    # Finding

    def test_nearest_first_with_the_cosine(self, index: SearchIndex, space: int) -> None:
        near, middle, far = (make_entry(space, vector=unit(1, x)) for x in (0.1, 1.0, 5.0))
        index.upsert([far, near, middle])
        (hits,) = index.search([_dense(unit(1))], _everything(space))
        assert _records(hits) == [near.record, middle.record, far.record]
        assert [hit.score for hit in hits] == pytest.approx(
            [float(entry.vector @ unit(1)) for entry in (near, middle, far) if entry.vector is not None],
            abs=2e-3,
        )
        assert [(hit.space, hit.view, hit.part) for hit in hits] == [(space, "turn", 0)] * 3

    def test_words_score_weight_times_impact(self, index: SearchIndex, space: int) -> None:
        both = make_entry(space, terms={TEA: 1.5, CHA: 0.5})
        one = make_entry(space, terms={TEA: 0.5, COFFEE: 2.0})
        other = make_entry(space, terms={COFFEE: 1.0})
        index.upsert([other, one, both])
        (hits,) = index.search([_lexical({TEA: 2.0, CHA: 4.0})], _everything(space))
        assert _records(hits) == [both.record, one.record]
        assert [hit.score for hit in hits] == pytest.approx([5.0, 1.0], rel=1e-4)

    def test_signals_are_answered_in_the_order_asked(self, index: SearchIndex, space: int) -> None:
        seen = make_entry(space, vector=unit(1))
        said = make_entry(space, terms={TEA: 1.0})
        index.upsert([seen, said])
        signals = [_lexical({TEA: 1.0}), _dense(unit(1)), _lexical({COFFEE: 1.0})]
        words, vectors, nothing = index.search(signals, _everything(space))
        assert (_records(words), _records(vectors), nothing) == ([said.record], [seen.record], [])

    def test_nothing_asked_and_nothing_there(self, index: SearchIndex, space: int) -> None:
        assert index.search([], _everything(space)) == []
        asked = [_dense(unit(1)), _lexical({TEA: 1.0}), _lexical({})]
        assert index.search(asked, _everything(space)) == [[], [], []]

    def test_at_most_depth(self, index: SearchIndex, space: int) -> None:
        index.upsert([make_entry(space, vector=unit(1, i / 10), terms={TEA: 1.0 + i}) for i in range(9)])
        dense, lexical = index.search(
            [_dense(unit(1), depth=4), _lexical({TEA: 1.0}, depth=2)], _everything(space)
        )
        assert len(dense) == 4
        assert [hit.score for hit in lexical] == pytest.approx([9.0, 8.0])

    def test_ties_by_newest_record(self, index: SearchIndex, space: int) -> None:
        twins = [make_entry(space, vector=unit(1), terms={TEA: 1.0}) for _ in range(5)]
        index.upsert(twins)
        newest = [entry.record for entry in reversed(twins)][:3]
        for hits in index.search(
            [_dense(unit(1), depth=3), _lexical({TEA: 1.0}, depth=3)], _everything(space)
        ):
            assert _records(hits) == newest

    def test_views_and_parts(self, index: SearchIndex, space: int) -> None:
        turn = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        pair = replace(turn, view="pair", vector=unit(1, 1), terms={TEA: 3.0})
        second = replace(turn, part=1, vector=unit(1, 5), terms={TEA: 0.5})
        index.upsert([turn, pair, second])
        for signal in (_dense(unit(1), views=["pair"]), _lexical({TEA: 1.0}, views=["pair"])):
            (hits,) = index.search([signal], _everything(space))
            assert [(hit.view, hit.part) for hit in hits] == [("pair", 0)]
        both = [_dense(unit(1), views=["turn", "pair"]), _lexical({TEA: 1.0}, views=["turn", "pair"])]
        dense, lexical = index.search(both, _everything(space))
        assert [(hit.view, hit.part) for hit in dense] == [("turn", 0), ("pair", 0), ("turn", 1)]
        assert [(hit.view, hit.part) for hit in lexical] == [("pair", 0), ("turn", 0), ("turn", 1)]

    def test_vectors_without_words_and_words_without_vectors(self, index: SearchIndex, space: int) -> None:
        seen, said = make_entry(space, vector=unit(1)), make_entry(space, terms={TEA: 1.0})
        index.upsert([seen, said])
        dense, lexical = index.search([_dense(unit(1)), _lexical({TEA: 1.0})], _everything(space))
        assert (_records(dense), _records(lexical)) == ([seen.record], [said.record])
        assert index.count(space) == 2

    def test_the_same_as_by_brute_force(self, index: SearchIndex, space: int) -> None:
        entries = _many(space, 4000)
        index.upsert(entries[:3990])
        for entry in entries[3990:]:
            index.upsert([entry])
        assert index.count(space) == 4000
        random = np.random.default_rng(2)
        questions = [
            (
                unit(*random.standard_normal(8)),
                # A common word, a middling one, a rare one: engines may be tempted to skip the common one.
                {1: 0.4, int(random.integers(5, 40)): 2.0, int(random.integers(100, 400)): 5.0},
            )
            for _ in range(5)
        ]
        questions += [(unit(1), words) for words in ({1: 0.4, 2: 0.5}, {1: 1.0}, {1: 9.0, 300: 0.1})]
        for narrowed in _NARROWINGS:
            where = SearchFilter(spaces=(space,), now=NOW, **narrowed)  # type: ignore[arg-type]
            allowed = [entry for entry in entries if _allowed(entry, where)]
            assert len(allowed) > 20
            for vector, words in questions:
                dense, lexical = index.search([_dense(vector, depth=20), _lexical(words, depth=20)], where)
                assert [hit.score for hit in dense] == pytest.approx(
                    _best_cosines(allowed, vector, 20), abs=2e-3
                )
                assert [hit.score for hit in lexical] == pytest.approx(
                    _best_sums(allowed, words, 20), rel=1e-4
                )

    # Filtering

    def test_spaces_are_apart(self, index: SearchIndex, new_space: Callable[[], int]) -> None:
        mine, theirs, empty = new_space(), new_space(), new_space()
        own = make_entry(mine, vector=unit(1), terms={TEA: 1.0})
        foreign = make_entry(theirs, vector=unit(1), terms={TEA: 9.0})
        # The same record number in another space is another record.
        index.upsert([own, foreign, replace(own, space=theirs, terms={TEA: 2.0})])
        signals = [_dense(unit(1)), _lexical({TEA: 1.0})]
        for hits in index.search(signals, _everything(mine)):
            assert [(hit.space, hit.record) for hit in hits] == [(mine, own.record)]
        for hits in index.search(signals, _everything(mine, theirs)):
            assert {(hit.space, hit.record) for hit in hits} == {
                (mine, own.record), (theirs, own.record), (theirs, foreign.record),
            }  # fmt: skip
        assert index.search(signals, _everything(empty)) == [[], []]

    def test_what_expired_never_takes_a_place(self, index: SearchIndex, space: int) -> None:
        gone = [
            make_entry(space, vector=unit(1), terms={TEA: 9.0}, expires_at=NOW - timedelta(seconds=i))
            for i in range(5)
        ]
        living = make_entry(
            space, vector=unit(1, 1), terms={TEA: 1.0}, expires_at=NOW + timedelta(microseconds=1)
        )
        lasting = make_entry(space, vector=unit(1, 2), terms={TEA: 0.5})
        index.upsert([*gone, living, lasting])
        signals = [_dense(unit(1), depth=2), _lexical({TEA: 1.0}, depth=2)]
        for hits in index.search(signals, _everything(space)):
            assert _records(hits) == [living.record, lasting.record]
        for hits in index.search(signals, _everything(space, now=NOW + timedelta(days=1))):
            assert _records(hits) == [lasting.record]
        assert index.count(space) == 7

    @pytest.mark.parametrize(
        ("wanted", "narrowed"),
        [
            ("ann", {"session": "s_1"}),
            ("会话", {"session": "会话 '%_\"\\"}),
            ("agent", {"agent": "helper"}),
            ("assistant", {"roles": ("assistant", "tool")}),
            ("old", {"until": NOW - timedelta(days=1)}),
            ("new", {"since": NOW + timedelta(hours=1)}),
            (
                "agent",
                {"agent": "helper", "roles": ("user",), "since": NOW, "until": NOW + timedelta(seconds=1)},
            ),
            (None, {"session": "sX1"}),
            (None, {"session": "helper"}),
            (None, {"roles": ()}),
            (None, {"session": "s_1", "agent": "helper"}),
        ],
    )
    def test_filters_are_exact_and_all_must_hold(
        self, index: SearchIndex, space: int, wanted: str | None, narrowed: dict[str, object]
    ) -> None:
        same = {"vector": unit(1), "terms": {TEA: 1.0}}
        entries = {
            "ann": make_entry(space, session="s_1", **same),
            "会话": make_entry(space, session="会话 '%_\"\\", **same),
            "agent": make_entry(space, agent="helper", **same),
            "assistant": make_entry(space, role="assistant", **same),
            "old": make_entry(space, occurred_at=NOW - timedelta(days=1, microseconds=1), **same),
            "new": make_entry(space, occurred_at=NOW + timedelta(hours=1), **same),
        }
        index.upsert([make_entry(space, session="s_11", **same), *entries.values()])
        where = SearchFilter(spaces=(space,), now=NOW, **narrowed)  # type: ignore[arg-type]
        for hits in index.search([_dense(unit(1)), _lexical({TEA: 1.0})], where):
            assert _records(hits) == ([entries[wanted].record] if wanted else [])

    # Writing

    def test_writing_again_changes_nothing(self, index: SearchIndex, space: int) -> None:
        entries = [make_entry(space, vector=unit(1, i), terms={TEA: 1.0 + i}) for i in range(3)]
        signals = [_dense(unit(1)), _lexical({TEA: 1.0})]
        index.upsert(entries)
        before = index.search(signals, _everything(space))
        index.upsert(entries)
        index.upsert([entries[1], entries[1]])
        assert index.search(signals, _everything(space)) == before
        assert index.count(space) == 3

    def test_an_entry_is_replaced_whole(self, index: SearchIndex, space: int) -> None:
        old = make_entry(space, vector=unit(1), terms={TEA: 1.0, CHA: 1.0}, session="old")
        index.upsert([old, replace(old, view="pair")])
        index.upsert([replace(old, vector=unit(0, 1), terms={COFFEE: 1.0}, session="new")])
        dense, tea, coffee = index.search(
            [_dense(unit(1)), _lexical({TEA: 1.0, CHA: 1.0}), _lexical({COFFEE: 1.0})], _everything(space)
        )
        assert [hit.score for hit in dense] == pytest.approx([0.0], abs=1e-3)
        assert tea == []
        assert _records(coffee) == [old.record]
        where = SearchFilter(spaces=(space,), now=NOW, session="old")
        assert index.search([_dense(unit(1)), _lexical({COFFEE: 1.0})], where) == [[], []]
        assert index.count(space) == 2

    def test_an_empty_batch(self, index: SearchIndex, space: int) -> None:
        index.upsert([])
        assert index.count(space) == 0

    def test_a_vector_of_another_width_is_refused(self, index: SearchIndex, space: int) -> None:
        fits = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        with pytest.raises(ConfigurationError, match=r"12.* 8"):
            index.upsert([fits, make_entry(space, vector=unit(1, width=12))])
        assert index.count(space) == 0
        with pytest.raises(ConfigurationError, match=r"12.* 8"):
            index.search([_dense(unit(1, width=12))], _everything(space))

    def test_a_vector_that_is_no_number_is_refused(self, index: SearchIndex, space: int) -> None:
        with pytest.raises(ConfigurationError, match="finite"):
            index.upsert([make_entry(space, vector=np.full(8, np.nan, np.float32))])
        assert index.count(space) == 0

    def test_writers_do_not_lose_each_other(self, index: SearchIndex, new_space: Callable[[], int]) -> None:
        spaces = [new_space(), new_space()]

        def write(writer: int) -> list[UUID]:
            space = spaces[writer % 2]
            batches = [
                [make_entry(space, vector=unit(1), terms={TEA: 1.0, writer: 1.0})] * 1 for _ in range(5)
            ]
            for batch in batches:
                index.upsert(batch)
            return [batch[0].record for batch in batches]

        with ThreadPoolExecutor(8) as threads:
            written = list(threads.map(write, range(8)))
        for parity, space in enumerate(spaces):
            expected = {record for records in written[parity::2] for record in records}
            for hits in index.search(
                [_dense(unit(1), depth=99), _lexical({TEA: 1.0}, depth=99)], _everything(space)
            ):
                assert set(_records(hits)) == expected
            assert index.count(space) == 20

    # Removing

    def test_removing_by_source(self, index: SearchIndex, new_space: Callable[[], int]) -> None:
        space, other = new_space(), new_space()
        first = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        second = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        # The pair of the second turn holds the words of the first.
        pair = replace(second, view="pair", sources=(second.record, first.record))
        part = replace(first, part=1)
        elsewhere = replace(first, space=other)
        index.upsert([first, second, pair, part, elsewhere])
        assert index.count_of(space, [first.record]) == 3
        assert index.remove(space, [first.record]) == 3
        assert index.count_of(space, [first.record]) == 0
        views = ["turn", "pair"]
        signals = [_dense(unit(1), views=views), _lexical({TEA: 1.0}, views=views)]
        for hits in index.search(signals, _everything(space)):
            assert [(hit.record, hit.view) for hit in hits] == [(second.record, "turn")]
        assert (index.count(space), index.count(other)) == (1, 1)
        assert index.remove(space, [first.record]) == 0
        assert index.remove(space, []) == 0

    def test_what_was_removed_can_come_back(self, index: SearchIndex, space: int) -> None:
        entry = make_entry(space, vector=unit(1), terms={TEA: 1.0})
        for _ in range(2):
            index.upsert([entry])
            for hits in index.search([_dense(unit(1)), _lexical({TEA: 1.0})], _everything(space)):
                assert _records(hits) == [entry.record]
            assert index.remove(space, [entry.record]) == 1
            assert index.search([_dense(unit(1)), _lexical({TEA: 1.0})], _everything(space)) == [[], []]

    def test_removing_many(self, index: SearchIndex, space: int) -> None:
        entries = _many(space, 1000)
        index.upsert(entries)
        assert index.remove(space, [entry.record for entry in entries[::2]]) == 500
        where = _everything(space)
        (hits,) = index.search([_lexical({1: 1.0}, depth=1000)], where)
        left = [entry for entry in entries[1::2] if _allowed(entry, where)]
        assert set(_records(hits)) == {entry.record for entry in left if 1 in entry.terms}

    def test_clearing_one_space(self, index: SearchIndex, new_space: Callable[[], int]) -> None:
        mine, theirs = new_space(), new_space()
        signals = [_dense(unit(1)), _lexical({TEA: 1.0})]
        for space in (mine, theirs):
            index.upsert([make_entry(space, vector=unit(1), terms={TEA: 1.0}) for _ in range(3)])
        assert index.clear(mine) == 3
        assert index.search(signals, _everything(mine)) == [[], []]
        assert [len(hits) for hits in index.search(signals, _everything(theirs))] == [3, 3]
        assert (index.count(mine), index.count(theirs)) == (0, 3)
        assert index.clear(mine) == 0

    def test_big_spaces_are_prepared_without_a_trace(self, index: SearchIndex, space: int) -> None:
        assert index.unprepared() == []
        index.upsert([make_entry(space, vector=unit(1))])
        index.prepare(space)
        (hits,) = index.search([_dense(unit(1))], _everything(space))
        assert len(hits) == 1


def _many(space: int, count: int) -> list[IndexEntry]:
    """Entries with random vectors, and words as common as in real text."""
    random = np.random.default_rng(1)
    entries = []
    for number in range(count):
        words = random.zipf(1.3, size=12)
        impacts = random.uniform(0.5, 2.0, size=12)
        terms = {
            int(word): float(impact) for word, impact in zip(words, impacts, strict=True) if word < 2**31
        }
        entries.append(
            make_entry(
                space,
                vector=unit(*random.standard_normal(8)),
                terms=terms,
                session=f"s{number // 40}",
                role="user" if number % 2 else "assistant",
                occurred_at=NOW - timedelta(minutes=number),
                expires_at=NOW + timedelta(days=number % 7 - 1) if number % 3 == 0 else None,
            )
        )
    return entries


_NARROWINGS: Sequence[Mapping[str, object]] = (
    {},
    {"session": "s7"},
    {"roles": ("user",)},
    {"since": NOW - timedelta(minutes=3000), "roles": ("assistant",)},
)


def _allowed(entry: IndexEntry, where: SearchFilter) -> bool:
    return (
        (entry.expires_at is None or entry.expires_at > where.now)
        and (where.session is None or entry.session == where.session)
        and (where.roles is None or entry.role in where.roles)
        and (where.since is None or entry.occurred_at >= where.since)
    )


def _best_cosines(entries: Sequence[IndexEntry], vector: Vector, depth: int) -> list[float]:
    matrix = np.stack([entry.vector for entry in entries if entry.vector is not None])
    return sorted((matrix @ vector).tolist(), reverse=True)[:depth]


def _best_sums(entries: Sequence[IndexEntry], terms: dict[int, float], depth: int) -> list[float]:
    sums = [sum(weight * entry.terms.get(term, 0.0) for term, weight in terms.items()) for entry in entries]
    return sorted((score for score in sums if score > 0), reverse=True)[:depth]
