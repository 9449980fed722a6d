"""An engine that stands still: connections stay open, and nothing comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from langchain_memrag.stores.postgres.database import Database

from .faulty import Breakable, EngineName, converge, eventually, in_full, said_by

ANN, BOB = Scope("ann", session_id="s"), Scope("bob", session_id="s")
BREAD, TEA = "Zaphod Beeblebrox eats bread in Geneva.", "王芳在北京大学喝茶。"

BUDGET = 1.0
GENEROUS = 3.0
"""Seconds beyond it: it is to be seen that nobody waits for long, not for how long."""


def knows(memory: MemRAG, number: int) -> list[str]:
    """The engines that a recall of what is known missed; each has a question of its own."""
    found = memory.recall(f"Where does Zaphod Beeblebrox eat bread in Geneva? {number}", ANN, timeout=BUDGET)
    assert BREAD in said_by(found)
    return [one.reason.split(":")[0] for one in found.degraded]


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", ["redis", "neo4j", "qdrant"])
def test_one_recall_pays_and_the_next_do_not(
    open_memory: Callable[..., MemRAG], breakable: Breakable, name: EngineName
) -> None:
    memory = open_memory(**breakable.named)
    memory.remember([BREAD, TEA], ANN)
    eventually("all engines are warm", lambda: knows(memory, 0) == [])
    breakable.pause(name)
    started = time.monotonic()
    missed = knows(memory, 1)
    assert time.monotonic() - started < BUDGET + GENEROUS
    assert set(missed) == {name}
    asked = breakable.asked(name)
    for number in range(2, 12):
        assert set(knows(memory, number)) == {name}
    assert breakable.asked(name) == asked
    receipt = memory.remember("王芳 met Zaphod Beeblebrox in Lisbon.", ANN)
    assert receipt.indexed == 1
    assert breakable.asked(name) == asked
    breakable.resume(name)
    # Nobody but those who recall asks whether it is back.
    eventually("it is used again", lambda: knows(memory, 12) == [])
    converge(memory)
    assert knows(memory, 13) == []
    assert breakable.asked(name) > asked


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", [pytest.param("neo4j", marks=in_full), "qdrant"])
def test_writers_that_wait_leave_connections_to_those_who_read(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    monkeypatch: pytest.MonkeyPatch,
    name: EngineName,
) -> None:
    """As many writers as there are connections, all with a copy on its way to an engine that stands still."""
    monkeypatch.setitem(Database.__init__.__kwdefaults__ or {}, "patience", 2.0)
    memory = open_memory(**breakable.named, pool_size=4)
    memory.remember([BREAD, TEA], ANN)
    eventually("all engines are warm", lambda: knows(memory, 0) == [])
    breakable.client.patience = 8.0
    breakable.pause(name)
    begun = threading.Barrier(9)

    def write(number: int) -> int:
        begun.wait(30)
        return memory.remember(f"李明 met Arthur Dent {number} times in Lisbon.", BOB).indexed

    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, number) for number in range(8)]
        begun.wait(30)
        deadline = time.monotonic() + 4
        number = 1
        while time.monotonic() < deadline:
            knows(memory, number)
            number += 1
        breakable.resume(name)
        assert [writer.result(60) for writer in writers] == [1] * 8
    eventually("it is used again", lambda: memory.flush() == 0)
    converge(memory)
