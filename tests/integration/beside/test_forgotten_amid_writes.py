"""Forgetting what others are just copying to engines: none of it is anywhere afterwards."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.ranking import RECIPE
from langchain_memrag.records import Scope

from .faulty import SOAK, Breakable, converge, marks, said_by, space_of

CALLS = 150 if SOAK else 25

ANN, BOB = Scope("ann", session_id="s"), Scope("安娜", session_id="s")

# Pairs hold the words of the turn before, too.
PAIRS = replace(RECIPE, weights={**RECIPE.weights, "dense:pair": 1.0, "lexical:pair": 1.0})


def text(writer: int, number: int) -> str:
    if number % 2:
        return f"王芳在北京大学说了暗号 mark{writer}{number:03d}。"
    return f"Zaphod Beeblebrox said mark{writer}{number:03d} in Geneva."


@dataclass
class Tumult:
    """What some say while others have it forgotten."""

    memory: MemRAG
    known: dict[UUID, str] = field(default_factory=dict)
    forgotten: dict[UUID, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)

    def write(self, writer: int, *, defer: bool) -> None:
        """What is deferred is indexed and copied by whoever heals."""
        for number in range(CALLS):
            said, role = text(writer, number), "assistant" if number % 2 else "user"
            receipt = self.memory.remember((role, said), ANN, defer=defer)
            with self.lock:
                self.known[receipt.ids[0]] = said

    def forget(self) -> None:
        chance = random.Random(3)
        while not self.done.is_set():
            with self.lock:
                chosen = chance.sample(sorted(self.known), k=min(2, len(self.known)))
                self.forgotten.update({one: self.known.pop(one) for one in chosen})
            report = self.memory.forget(ANN, ids=chosen)
            assert not {one.store for one in report.residue} & {"postgres", "qdrant", "neo4j"}

    def heal(self, other: MemRAG) -> None:
        while not self.done.is_set():
            other.flush()
            other.sweep()

    def run(self, other: MemRAG) -> None:
        with ThreadPoolExecutor(5) as pool:
            writing = [pool.submit(self.write, writer, defer=writer == 3) for writer in (1, 2, 3)]
            beside = [pool.submit(self.forget), pool.submit(self.heal, other)]
            for task in writing:
                task.exception(240)
            self.done.set()
            for each in [*writing, *beside]:
                each.result(60)


@pytest.mark.slow
@pytest.mark.soak
def test_a_record_that_is_forgotten_while_it_is_copied(
    open_memory: Callable[..., MemRAG], breakable: Breakable, postgres_url: str, schema: str
) -> None:
    memory, other = (open_memory(**breakable.named, recipe=PAIRS) for _ in range(2))
    memory.remember(["Arthur Dent likes tea.", "李明喜欢上海的茶。"], BOB)
    untouched = memory.stats(BOB)
    tumult = Tumult(memory)
    tumult.run(other)
    assert tumult.forgotten
    assert memory.forget(ANN, ids=sorted(tumult.forgotten)).clean
    converge(memory)
    assert marks(postgres_url, schema) == []
    space, gone = space_of(postgres_url, schema, ANN), sorted(tumult.forgotten)
    stats = memory.stats(ANN)
    assert stats.episodes == len(tumult.known)
    assert breakable.search.index(1, 64).count_of(space, gone) == 0
    assert breakable.graph.count_of(space, gone) == 0
    assert breakable.records_in("qdrant", space) == stats.entries
    assert breakable.graph.counts(space) == (stats.entities, stats.relations)
    assert memory.stats(BOB) == untouched
    for said in list(tumult.forgotten.values())[:10]:
        found = memory.recall(f"{said}?", ANN, timeout=30)
        assert said not in said_by(found)
    for said in list(tumult.known.values())[:10]:
        found = memory.recall(f"{said}?", ANN, timeout=30)
        assert said_by(found).count(said) == 1
        assert found.degraded == ()
