"""Forgetting, expiring and remembering at the same time, and in a memory that has grown big."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from tests.conftest import HandClock

ANN = Scope("ann", session_id="s")


def leftovers(url: str, schema: str) -> dict[str, int]:
    """Rows that belong to no episode that is there."""
    with psycopg.connect(url) as connection:
        tables = {
            "entry": "record", "mention": "record", "relation_source": "record", "pending": "record",
        }  # fmt: skip
        found = {
            name: connection.execute(
                f'SELECT count(*) FROM "{schema}"."{name}" t WHERE NOT EXISTS'
                f' (SELECT FROM "{schema}".episode e WHERE e.space = t.space AND e.id = t.{column})'
            ).fetchone()[0]
            for name, column in tables.items()
        }
        for name in ("posting", "vector_1"):
            found[name] = connection.execute(
                f'SELECT count(*) FROM "{schema}"."{name}" t WHERE NOT EXISTS'
                f' (SELECT FROM "{schema}".entry e WHERE e.space = t.space AND e.id = t.entry)'
            ).fetchone()[0]
        found["term_stat"] = connection.execute(
            f'SELECT count(*) FROM "{schema}".term_stat t WHERE df <>'
            f' (SELECT count(*) FROM "{schema}".posting p WHERE p.space = t.space AND p.view = t.view'
            "  AND p.term = t.term)"
        ).fetchone()[0]
        found["entity"] = connection.execute(
            f'SELECT count(*) FROM "{schema}".entity t WHERE mentions <>'
            f' (SELECT count(*) FROM "{schema}".mention m WHERE m.space = t.space AND m.key = t.key)'
        ).fetchone()[0]
    return {name: count for name, count in found.items() if count}


def test_forgetting_while_others_remember(memory: MemRAG, postgres_url: str, schema: str) -> None:
    stop = threading.Event()
    acknowledged: list[set] = [set(), set(), set()]

    def write(number: int) -> None:
        while not stop.is_set():
            said = [f"Writer {number} met Zaphod in Geneva, turn {i}." for i in range(4)]
            receipt = memory.remember(said, Scope("ann", session_id=f"s{number}"))
            acknowledged[number].update(receipt.ids)

    def forget() -> set:
        gone = set()
        for _ in range(40):
            page = memory.history(Scope("ann"), limit=7, newest_first=True)
            ids = [episode.id for episode in page.episodes]
            if ids:
                assert memory.forget(Scope("ann"), ids=ids).clean
                gone.update(ids)
        return gone

    with ThreadPoolExecutor(5) as threads:
        writers = [threads.submit(write, number) for number in range(3)]
        forgetters = [threads.submit(forget) for _ in range(2)]
        gone = set().union(*(one.result() for one in forgetters))
        stop.set()
        for writer in writers:
            writer.result()
    assert memory.flush() == 0
    left = {episode.id for episode in memory.history(Scope("ann"), limit=1000).episodes}
    assert len(gone) > 20
    assert not left & gone
    assert left == set().union(*acknowledged) - gone
    assert leftovers(postgres_url, schema) == {}
    found = {hit.id for hit in memory.recall("Who met Zaphod in Geneva?", Scope("ann"), k=1000).hits}
    assert not found & gone


def test_forgetting_everything_while_others_remember(memory: MemRAG, postgres_url: str, schema: str) -> None:
    def write(number: int) -> None:
        for turn in range(30):
            memory.remember(f"Writer {number} met Zaphod in Geneva, turn {turn}.", ANN)

    with ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, number) for number in range(3)]
        while not all(one.done() for one in writers):
            memory.forget(Scope("ann"), everything=True)
        for writer in writers:
            writer.result()
    memory.forget(Scope("ann"), everything=True)
    assert memory.flush() == 0
    assert leftovers(postgres_url, schema) == {}
    assert memory.stats(ANN).episodes == 0


@pytest.mark.slow
def test_a_big_memory_forgets_and_expires_and_goes_on(
    open_memory: Callable[..., MemRAG], clock: HandClock, postgres_url: str, schema: str
) -> None:
    memory = open_memory()
    said = [f"Line {i} about topic{i % 700} and place{i % 13}." for i in range(9_000)]
    receipt = memory.remember(said[:8_500], ANN)
    memory.remember(said[8_500:], ANN, ttl=timedelta(hours=1))
    memory.sweep()
    with psycopg.connect(postgres_url) as connection:
        (copies,) = connection.execute(f'SELECT count(*) FROM "{schema}".ann').fetchone()
    assert copies == 1, "the memory is not big enough to have a copy"

    late = memory.remember(["The heron nests by topic7."], ANN)
    assert memory.recall("heron nests", ANN).hits[0].id == late.ids[0]
    gone = [receipt.ids[7], receipt.ids[707], late.ids[0]]
    assert memory.forget(ANN, ids=gone).clean
    clock.forward(timedelta(hours=2))
    for question in ("heron nests by topic7", "Line 7 about topic7", said[8_600]):
        found = memory.recall(question, ANN, k=50)
        assert not {hit.id for hit in found.hits} & set(gone)
        assert not [hit.text for hit in found.hits if hit.text in said[8_500:]]
        assert len(found.hits) > 5
    memory.sweep()
    assert memory.stats(ANN).episodes == 8_500 - 2
    assert leftovers(postgres_url, schema) == {}
    again = memory.remember(["The heron came back."], ANN)
    assert memory.recall("heron", ANN).hits[0].id == again.ids[0]
    assert memory.forget(Scope("ann"), everything=True).clean
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = %s AND relkind = 'r' AND relname LIKE 'vector%%space%%'",
            (schema,),
        ).fetchall()
    assert tables == []
