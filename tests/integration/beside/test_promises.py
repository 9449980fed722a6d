"""With every role on its own engine, memory keeps what it promises on Postgres alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from langchain_memrag.engine.copies import Copyable, GraphCopies
from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Recall, RecallFilter, Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.conftest import HandClock

from .conftest import Engines

ANN, BOB = Scope("ann", session_id="s1"), Scope("bob", session_id="s1")

SAID = [
    "I met Zaphod Beeblebrox at CERN in Geneva.",
    "我昨天在北京大学见了王芳。",
    "The bread in Zurich is good 🍞.",
    "Geneva and CERN are near the lake.",
    "王芳喜欢在北京喝茶。",
]

QUESTIONS = ["Who was at CERN in Geneva?", "王芳在哪里喝茶？", "bread", "How is Geneva related to CERN?"]


def same(left: Recall, right: Recall) -> bool:
    return [(hit.text, pytest.approx(hit.score, abs=0.01)) for hit in left.hits] == [
        (hit.text, hit.score) for hit in right.hits
    ]


def test_the_same_is_remembered_as_on_postgres_alone(
    full: MemRAG, open_memory: Callable[..., MemRAG]
) -> None:
    full.remember(SAID, ANN)
    alone = open_memory(cache="none")
    for question in QUESTIONS:
        found, expected = full.recall(question, ANN), alone.recall(question, ANN)
        assert found.hits
        assert not found.degraded
        assert same(found, expected), question
        assert {s.name for h in found.hits for s in h.signals} == {
            s.name for h in expected.hits for s in h.signals
        }


def test_a_cached_recall_is_the_same_and_says_so(full: MemRAG) -> None:
    full.remember(SAID, ANN)
    first, second = (full.recall(QUESTIONS[0], ANN) for _ in range(2))
    assert (first.cached, second.cached) == (False, True)
    assert second.hits == first.hits
    assert second.render() == first.render()
    assert second.explain() == first.explain()
    assert not full.recall(QUESTIONS[0], BOB).hits
    # Another option, session or question is another recall.
    assert not full.recall(QUESTIONS[0], ANN, k=3).cached
    assert not full.recall(QUESTIONS[0], ANN, where=RecallFilter(session_id="s1")).cached
    assert not full.recall(QUESTIONS[0] + "!", ANN).cached


def test_a_write_makes_what_was_kept_unreachable_in_every_process(
    full: MemRAG, open_memory: Callable[..., MemRAG], engines: Engines
) -> None:
    other = open_memory(search=engines.search, graph=engines.graph, cache=engines.cache)
    full.remember(SAID, ANN)
    assert not full.recall("bread", ANN).cached
    assert other.recall("bread", ANN).cached
    other.remember("Rye bread is better.", ANN)
    found = full.recall("bread", ANN)
    assert not found.cached
    assert "Rye bread is better." in [hit.text for hit in found.hits]
    full.forget(ANN, ids=[hit.id for hit in found.hits if "Rye" in hit.text])
    again = other.recall("bread", ANN)
    assert not again.cached
    assert "Rye bread is better." not in [hit.text for hit in again.hits]


def test_one_users_answer_is_never_anothers(full: MemRAG) -> None:
    full.remember("My pin is hidden under the red stone.", ANN)
    full.remember("My pin is hidden in the oven.", BOB)
    for _ in range(2):
        assert [hit.text for hit in full.recall("Where is my pin hidden?", ANN).hits] == [
            "My pin is hidden under the red stone."
        ]
        assert [hit.text for hit in full.recall("Where is my pin hidden?", BOB).hits] == [
            "My pin is hidden in the oven."
        ]


def test_users_with_similar_names_never_meet(full: MemRAG) -> None:
    users = [
        "user_1",
        "userX1",
        "a%b",
        "axxb",
        "ann",
        "ANN",
        "foo*",
        "foobar",
        "foo.bar",
        "安娜",
        "安",
        "安娜2",
    ]
    for number, user in enumerate(users):
        full.remember(f"The secret word is xyzzy{number}.", Scope(user))
    for number, user in enumerate(users):
        for _ in range(2):
            found = full.recall("What is the secret word?", Scope(user))
            assert [hit.text for hit in found.hits] == [f"The secret word is xyzzy{number}."], user
    for gone, user in enumerate(users[:-1]):
        assert full.forget(Scope(user), everything=True).clean
        assert not full.recall("What is the secret word?", Scope(user)).hits
        assert full.recall("What is the secret word?", Scope(users[gone + 1])).hits


def test_what_expires_is_gone_from_the_cache_too(full: MemRAG, clock: HandClock) -> None:
    full.remember("The code of today is plugh.", ANN, ttl=timedelta(hours=1))
    full.remember("Codes are dull.", ANN)
    assert len(full.recall("code", ANN).hits) == 2
    assert full.recall("code", ANN).cached
    clock.forward(timedelta(hours=2))
    found = full.recall("code", ANN)
    assert [hit.text for hit in found.hits] == ["Codes are dull."]
    full.sweep()
    assert full.stats(ANN).episodes == 1


def test_flush_waits_for_whoever_is_copying(full: MemRAG, monkeypatch: pytest.MonkeyPatch) -> None:
    copying, go_on = threading.Event(), threading.Event()
    write = GraphCopies.write

    def slowly(self: GraphCopies, what: Copyable, claimed: Collection[UUID]) -> None:
        copying.set()
        assert go_on.wait(30)
        write(self, what, claimed)

    monkeypatch.setattr(GraphCopies, "write", slowly)
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(full.remember, SAID, ANN)
        assert copying.wait(30)
        flushing = pool.submit(full.flush)
        assert wait([flushing], timeout=0.5).not_done
        go_on.set()
        assert flushing.result() == 0
        assert writing.result().pending == 0


def test_forget_everything_empties_all_four_and_touches_nobody_else(full: MemRAG, engines: Engines) -> None:
    full.remember(SAID, ANN)
    full.remember(SAID, BOB)
    full.recall("bread", ANN)
    full.recall("bread", BOB)
    before = full.doctor()
    report = full.forget(Scope("ann"), everything=True)
    assert report.clean
    assert {(one.store, one.kind): one.count for one in report.erased}.items() >= {
        ("postgres", "episodes"): 5,
        ("postgres", "entries"): 5,
        ("qdrant", "entries"): 5,
        ("redis", "values"): 2,
    }.items()
    assert next(one.count for one in report.erased if one.store == "neo4j") > 0
    assert not full.recall("bread", ANN).hits
    assert full.recall("bread", BOB).cached
    assert full.recall("Who was at CERN in Geneva?", BOB).hits
    assert full.forget(Scope("ann"), everything=True).clean
    after = full.doctor()
    assert (before.users, after.users) == (2, 1)


def test_some_episodes_go_from_everywhere(full: MemRAG) -> None:
    receipt = full.remember(SAID, ANN)
    full.recall("CERN", ANN)
    report = full.forget(ANN, ids=list(receipt.ids[:1]))
    assert report.clean
    assert {one.store for one in report.erased if one.count} == {"postgres", "qdrant", "neo4j", "redis"}
    for question in QUESTIONS:
        assert SAID[0] not in [hit.text for hit in full.recall(question, ANN).hits]


def test_an_engine_of_another_memory_is_refused(full: MemRAG, postgres_url: str, engines: Engines) -> None:
    full.remember(SAID, ANN)
    stranger_schema = "stranger_" + full.doctor().location.encode().hex()[:8]
    try:
        for engine in ({"search": engines.search}, {"graph": engines.graph}):
            with pytest.raises(ConfigurationError, match="another memory"):
                MemRAG.open(
                    postgres_url,
                    schema=stranger_schema,
                    embeddings=WordHashEmbeddings(64),
                    background=False,
                    **engine,
                )
        # What was refused is not known afterwards.
        with MemRAG.open(
            postgres_url, schema=stranger_schema, embeddings=WordHashEmbeddings(64), background=False
        ) as stranger:
            assert stranger.doctor().engines == ()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{stranger_schema}" CASCADE')
    assert full.recall("Who was at CERN in Geneva?", ANN).hits


def test_an_engine_that_comes_later_is_filled_without_embedding(
    open_memory: Callable[..., MemRAG], engines: Engines
) -> None:
    alone = open_memory(cache="none")
    alone.remember(SAID, ANN)
    later = open_memory(search=engines.search, graph=engines.graph, cache=engines.cache)
    expected = alone.recall(QUESTIONS[0], ANN)
    # Before it is filled, Postgres answers.
    assert same(later.recall(QUESTIONS[0], ANN), expected)
    assert later.flush() == 0
    found = later.recall(QUESTIONS[0], ANN)
    assert same(found, expected)
    assert not found.degraded
    # A process that names no engine marks work for them all the same.
    alone.remember("Zurich has a zoo.", ANN)
    assert [hit.text for hit in later.recall("zoo", ANN, k=1).hits] == ["Zurich has a zoo."]
    assert later.flush() == 0
    assert [hit.text for hit in later.recall("zoo?", ANN, k=1).hits] == ["Zurich has a zoo."]
