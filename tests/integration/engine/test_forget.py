"""Forgetting reaches every table, looks, and touches nobody else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Scope

ANN, BOB = Scope("ann", session_id="s1"), Scope("bob", session_id="s1")


def everywhere(url: str, schema: str, needle: str) -> list[str]:
    """Tables in which a text still stands."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = %s AND table_type = 'BASE TABLE'",
            (schema,),
        ).fetchall()
        return [
            name
            for (name,) in tables
            if connection.execute(
                f'SELECT count(*) FROM "{schema}"."{name}" t WHERE t::text ILIKE %s', (f"%{needle}%",)
            ).fetchone()[0]
        ]


def test_one_episode_goes_from_every_table(memory: MemRAG, postgres_url: str, schema: str) -> None:
    receipt = memory.remember(["I met Zaphod at CERN.", "Bread is good."], ANN)
    memory.remember("I met Zaphod too, at CERN.", BOB)
    assert everywhere(postgres_url, schema, "zaphod")
    dry = memory.forget(ANN, ids=[receipt.ids[0]], dry_run=True)
    assert dry.dry_run
    assert memory.stats(ANN).episodes == 2
    report = memory.forget(ANN, ids=[receipt.ids[0]])
    assert report.clean
    assert {count.kind: count.count for count in report.erased}["episodes"] == 1
    assert [hit.text for hit in memory.recall("Zaphod CERN bread", ANN).hits] == ["Bread is good."]
    assert [hit.text for hit in memory.recall("Zaphod", BOB).hits] == ["I met Zaphod too, at CERN."]
    memory.forget(Scope("bob"), everything=True)
    assert everywhere(postgres_url, schema, "zaphod") == []


def test_a_pair_that_held_the_words_is_built_anew(memory: MemRAG) -> None:
    first = memory.remember(("user", "The treasure is under the zebra statue."), ANN)
    memory.remember(("assistant", "Understood, noted."), ANN)
    assert len(memory.recall("zebra statue treasure", ANN).hits) == 2
    memory.forget(ANN, ids=list(first.ids))
    found = memory.recall("zebra statue treasure", ANN)
    assert all(signal.name != "dense:pair" for hit in found.hits for signal in hit.signals)
    assert memory.flush(ANN) == 0
    assert [hit.text for hit in memory.recall("noted", ANN).hits] == ["Understood, noted."]


def test_a_session_and_a_range_of_time(memory: MemRAG) -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    for i in range(4):
        memory.remember(f"day {i}", Scope("ann", session_id=f"s{i % 2}"), occurred_at=day + timedelta(days=i))
    memory.forget(Scope("ann"), since=day + timedelta(days=3))
    memory.forget(Scope("ann", session_id="s0"))
    assert [episode.content for episode in memory.history(Scope("ann")).episodes] == ["day 1"]


def test_everything_of_one_user_and_nothing_of_another(memory: MemRAG) -> None:
    memory.remember(["Alpha in Paris", "Beta in Rome"], ANN)
    memory.remember(["Alpha in Paris", "Beta in Rome"], BOB)
    before = memory.stats(BOB)
    report = memory.forget(Scope("ann"), everything=True)
    assert report.clean
    assert memory.stats(Scope("ann")).episodes == 0
    assert memory.recall("Alpha", ANN).hits == ()
    assert memory.stats(BOB) == before
    memory.remember("Back again", ANN)
    assert [hit.text for hit in memory.recall("Alpha back again", ANN).hits] == ["Back again"]


def test_what_was_pending_stays_forgotten(memory: MemRAG) -> None:
    receipt = memory.remember("never to be seen", ANN, defer=True)
    memory.forget(ANN, ids=list(receipt.ids))
    assert memory.flush() == 0
    assert memory.recall("never seen", ANN).hits == ()


@pytest.mark.parametrize(
    "what",
    [
        {},
        {"everything": True, "since": datetime(2026, 1, 1, tzinfo=UTC)},
        {"everything": True, "ids": []},
        {"since": datetime(2026, 1, 1)},
    ],
)
def test_an_unclear_wish_is_refused(memory: MemRAG, what) -> None:
    memory.remember("stay", Scope("ann"))
    with pytest.raises(ConfigurationError):
        memory.forget(Scope("ann"), **what)
    with pytest.raises(ConfigurationError):
        memory.forget(ANN, everything=True)
    assert memory.stats(ANN).episodes == 1


def test_forgetting_what_is_not_there_counts_nothing(memory: MemRAG) -> None:
    assert memory.forget(Scope("nobody"), everything=True).clean
    assert sum(count.count for count in memory.forget(Scope("nobody"), everything=True).erased) == 0
