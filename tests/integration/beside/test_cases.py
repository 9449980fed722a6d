"""Faults that people met in memory systems, tried with every role on its own engine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, ScopeError
from langchain_memrag.records import RecallFilter, Scope

from .conftest import Engines

ANN, BOB = Scope("ann", session_id="s1"), Scope("bob", session_id="s1")


def texts(memory: MemRAG, question: str, scope: Scope, **options: object) -> list[str]:
    found = memory.recall(question, scope, **options)  # type: ignore[arg-type]
    assert not found.degraded
    return [hit.text for hit in found.hits]


def test_identity_in_metadata_never_counts(full: MemRAG) -> None:
    claims = {"user_id": "bob", "space": 2, "tenant": "bob", "memory": "bob"}
    full.remember("The vault opens with 7-3-9.", ANN, metadata=claims)
    full.remember("Bread is good.", BOB)
    assert texts(full, "Which code opens the vault?", BOB) == ["Bread is good."]
    assert texts(full, "Which code opens the vault?", ANN) == ["The vault opens with 7-3-9."]


def test_a_user_is_trimmed_and_a_blank_one_reaches_no_store(full: MemRAG) -> None:
    for user in ("", "  ", "\t\n", "\u3000"):
        with pytest.raises(ScopeError):
            full.recall("bread", Scope(user))
    full.remember("Bread is good.", Scope(" ann "))
    assert texts(full, "bread", ANN) == ["Bread is good."]


def test_the_same_words_and_the_same_key_of_two_users_are_two_records(full: MemRAG) -> None:
    mine = full.remember("Bread is good in Zurich.", ANN, key="m1")
    theirs = full.remember("Bread is good in Zurich.", BOB, key="m1")
    assert (mine.stored, theirs.stored) == (1, 1)
    assert mine.ids != theirs.ids
    assert full.remember("Bread is good in Zurich.", ANN, key="m1").duplicates == 1
    full.forget(Scope("ann"), everything=True)
    assert texts(full, "bread in Zurich", BOB) == ["Bread is good in Zurich."]
    assert full.stats(BOB).entities > 0


def test_twenty_writers_at_once(full: MemRAG) -> None:
    def write(number: int) -> int:
        scope = Scope(f"user-{number % 3}", session_id=f"s{number}")
        said = [f"Writer {number} said word{number}x{i} in Geneva 日内瓦." for i in range(5)]
        return full.remember(said, scope).stored

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(write, range(20))) == 100
    assert full.flush() == 0
    assert full.doctor(every=True).problems == ()
    for number in range(20):
        word = f"word{number}x3"
        assert word in texts(full, word, Scope(f"user-{number % 3}"), k=1)[0]


ODD_TEXTS = [
    "'; DROP TABLE episode; --",
    '{"$ne": 1}',
    "`}) DETACH DELETE n //",
    'MATCH (n) RETURN n; Ann\'s "boss" KNOWS-[:X]->Bo',
    "+foo -bar (baz) AND NOT qux~2 field:*",
    "* | @user:{ann} => [KNN 5 @v $b]",
    "a\u0000b",
    "%_%\\",
    "🍞🧈" * 30,
    "{{user}} {0} %s $space ${x}",
]


def test_text_is_data(full: MemRAG) -> None:
    full.remember("Bread in Geneva.", BOB)
    for number, text in enumerate(ODD_TEXTS):
        scope = Scope(f"user-{number}")
        full.remember([f"Zaphod said {text} in Geneva.", "Nothing else."], scope)
        assert "Zaphod" in texts(full, f"Who said {text} in Geneva?", scope, k=1)[0]
        full.recall(text + "?", scope)
        session = text.replace("\u0000", "")
        assert not full.recall("Zaphod", scope, where=RecallFilter(session_id=session)).hits
    assert texts(full, "Geneva", BOB) == ["Bread in Geneva."]
    assert full.doctor(every=True).problems == ()


def test_filters_are_validated() -> None:
    for wrong in ({"session_id": {"$ne": 1}}, {"roles": "user; DROP"}, {"since": "yesterday"}):
        with pytest.raises((ValueError, ConfigurationError)):
            RecallFilter(**wrong)  # type: ignore[arg-type]


def test_ranges_of_time_are_moments_not_strings(full: MemRAG) -> None:
    new_york = timezone(timedelta(hours=-5))
    moments = [
        datetime(2025, 7, 25, 2, tzinfo=UTC),
        datetime(2025, 7, 24, 22, 30, tzinfo=new_york),  # 03:30 UTC on the next day
        datetime(999, 12, 31, tzinfo=UTC),
        datetime(2025, 10, 5, tzinfo=UTC),
    ]
    for number, moment in enumerate(moments):
        full.remember(f"Bread number {number}.", ANN, occurred_at=moment)

    def within(since: datetime | None, until: datetime | None) -> set[str]:
        return set(texts(full, "bread", ANN, where=RecallFilter(since=since, until=until)))

    assert within(datetime(2025, 7, 25, tzinfo=UTC), datetime(2025, 7, 26, tzinfo=UTC)) == {
        "Bread number 0.", "Bread number 1.",
    }  # fmt: skip
    assert within(datetime(2025, 7, 25, 2, tzinfo=UTC), datetime(2025, 7, 25, 3, 30, tzinfo=UTC)) == {
        "Bread number 0."
    }
    assert within(None, datetime(1000, 1, 1, tzinfo=UTC)) == {"Bread number 2."}
    assert within(datetime(2025, 9, 1, tzinfo=UTC), None) == {"Bread number 3."}


def test_relations_of_one_target_are_all_there(full: MemRAG, open_memory: Callable[..., MemRAG]) -> None:
    said = ["Ann Miller met Bo Chen.", "Ann Miller met Cy Young.", "Bo Chen met Cy Young.", "王芳见了李明。"]
    full.remember(said, ANN)
    store = full._engine.beside.graph
    assert store is not None
    alone = open_memory(cache="none")
    space = full._engine._records.space_of("ann")
    assert space is not None
    for key in ("ann miller", "bo chen", "cy young", "王芳", "李明"):
        mine = store.use("look", lambda graph, key=key: graph.neighbours(space, key))
        assert mine == alone._engine.read._graph.neighbours(space, key)
    assert len(store.use("look", lambda graph: graph.neighbours(space, "cy young"))) == 2


def test_nothing_is_shared_between_processes_but_the_stores(
    full: MemRAG, open_memory: Callable[..., MemRAG], engines: Engines
) -> None:
    other = open_memory(search=engines.search, graph=engines.graph, cache=engines.cache)
    full.remember("Bread is good in Zurich.", ANN)
    assert texts(other, "Zurich bread", ANN) == ["Bread is good in Zurich."]
    other.forget(ANN, ids=[hit.id for hit in other.recall("Zurich bread", ANN).hits])
    assert texts(full, "Zurich bread", ANN) == []
