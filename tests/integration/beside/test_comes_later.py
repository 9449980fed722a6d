"""Engines that are away when a memory is opened, and those that come back while nobody looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langchain_memrag.engine import jobs
from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope

from .faulty import Breakable, EngineName, converge, eventually, in_full, marks, said_by, space_of

ANN, BOB = Scope("ann", session_id="s"), Scope("安娜", session_id="s")
SAID = [
    "Zaphod Beeblebrox eats bread in Geneva.",
    "王芳在北京大学喝茶。",
    "Arthur Dent met 李明 in Lisbon.",
]
NAMES: tuple[EngineName, ...] = ("redis", "neo4j", "qdrant")


def knows(memory: MemRAG, scope: Scope, number: int) -> set[str]:
    """The engines that a recall missed."""
    found = memory.recall(f"Where does Zaphod Beeblebrox eat bread? {number}", scope, timeout=30)
    assert SAID[0] in said_by(found)
    assert SAID[1] in said_by(memory.recall(f"王芳在哪里喝茶？{number}", scope, timeout=30))
    return {one.reason.split(":")[0] for one in found.degraded}


@pytest.mark.slow
@pytest.mark.soak
def test_away_when_it_is_opened(
    open_memory: Callable[..., MemRAG], breakable: Breakable, postgres_url: str, schema: str
) -> None:
    earlier = open_memory(cache="none")
    earlier.remember(SAID, ANN)
    for name in NAMES:
        breakable.kill(name)
    memory = open_memory(**breakable.named)
    assert memory.remember(SAID, BOB).indexed == 3
    for number in range(2):
        assert knows(memory, ANN, number) >= {"neo4j", "qdrant"}
        assert knows(memory, BOB, number) >= {"neo4j", "qdrant"}
    health = memory.doctor()
    assert {one.state for one in health.engines} == {"away"}
    assert len(health.problems) == 3
    # Another process that names none of them writes for them all the same.
    earlier.remember("李明 likes the tea of Lisbon.", ANN)
    for name in NAMES:
        breakable.revive(name)
    converge(memory)
    assert marks(postgres_url, schema) == []
    assert knows(memory, ANN, 2) == knows(memory, BOB, 2) == set()
    for scope in (ANN, BOB):
        space, stats = space_of(postgres_url, schema, scope), memory.stats(scope)
        assert breakable.records_in("qdrant", space) == stats.entries
        assert breakable.graph.counts(space) == (stats.entities, stats.relations)
    again = [memory.recall("李明 and the tea of Lisbon", ANN, timeout=30) for _ in range(2)]
    assert "李明 likes the tea of Lisbon." in said_by(again[0])
    assert again[1].cached


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", [pytest.param("neo4j", marks=in_full), "qdrant"])
def test_emptied_while_nobody_looked(
    open_memory: Callable[..., MemRAG], breakable: Breakable, name: EngineName
) -> None:
    """It answers as ever, and the client connects again without a word: it only holds nothing."""
    memory = open_memory(**breakable.named)
    memory.remember(SAID, ANN)
    memory.remember(SAID, BOB)
    assert knows(memory, ANN, 0) == set()
    breakable.kill(name)
    breakable.revive(name, empty=True)
    # Whether a read or a write comes first: nothing is missed, and nothing is taken for complete.
    knows(memory, ANN, 1)
    assert memory.remember("李明 likes the tea of Lisbon.", BOB).indexed == 1
    knows(memory, BOB, 1)
    converge(memory)
    assert knows(memory, ANN, 2) == knows(memory, BOB, 2) == set()


@pytest.mark.slow
@pytest.mark.soak
def test_the_background_catches_up(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    postgres_url: str,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody writes or asks any more when they come back."""
    monkeypatch.setattr(jobs, "SWEEP_EVERY", "* * * * * */2")  # the sixth field is seconds
    memory = open_memory(**breakable.named, background=True)
    receipt = memory.remember(SAID, ANN)
    memory.remember(SAID, BOB)
    knows(memory, ANN, 0)
    for name in NAMES:
        breakable.pause(name)
    memory.recall("Where is Zaphod Beeblebrox?", ANN, timeout=0.5)
    memory.forget(ANN, ids=receipt.ids[2:])
    memory.remember("李明 likes the tea of Lisbon.", BOB)
    left = {work for _, _, work, _ in marks(postgres_url, schema)}
    assert left == {"search", "graph", "erase_search", "erase_graph", "erase_cache"}
    for name in NAMES:
        breakable.resume(name)
    eventually("nothing is left to do", lambda: marks(postgres_url, schema) == [])
    space = space_of(postgres_url, schema, ANN)
    assert breakable.records_in("qdrant", space) == 2
    assert breakable.graph.count_of(space, receipt.ids[2:]) == 0
    assert not memory.doctor(every=True).problems
    assert knows(memory, ANN, 1) == knows(memory, BOB, 1) == set()
