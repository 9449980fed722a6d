"""Forgetting what others are just copying to engines: none of it is anywhere afterwards."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.ranking import RECIPE
from langchain_memrag.records import Scope

from .faulty import Breakable, converge, marks, said_by, space_of

SOAK = bool(os.environ.get("MEMRAG_SOAK"))
CALLS = 150 if SOAK else 25

ANN, BOB = Scope("ann", session_id="s"), Scope("安娜", session_id="s")


def text(writer: int, number: int) -> str:
    if number % 2:
        return f"王芳在北京大学说了暗号 mark{writer}{number:03d}。"
    return f"Zaphod Beeblebrox said mark{writer}{number:03d} in Geneva."


@pytest.mark.slow
@pytest.mark.soak
def test_a_record_that_is_forgotten_while_it_is_copied(
    open_memory: Callable[..., MemRAG], breakable: Breakable, postgres_url: str, schema: str
) -> None:
    # Pairs hold the words of the turn before, too.
    weights = {**RECIPE.weights, "dense:pair": 1.0, "lexical:pair": 1.0}
    recipe = replace(RECIPE, weights=weights)
    memory = open_memory(**breakable.named, recipe=recipe)
    other = open_memory(**breakable.named, recipe=recipe)
    memory.remember(["Arthur Dent likes tea.", "李明喜欢上海的茶。"], BOB)
    untouched = memory.stats(BOB)
    known: dict[UUID, str] = {}
    forgotten: dict[UUID, str] = {}
    lock, done = threading.Lock(), threading.Event()

    def write(writer: int) -> None:
        for number in range(CALLS):
            said = text(writer, number)
            role = "assistant" if number % 2 else "user"
            receipt = memory.remember([said], ANN, role=role)
            with lock:
                known[receipt.ids[0]] = said

    def write_slowly(writer: int) -> None:
        """What is deferred is indexed and copied by whoever heals."""
        for number in range(CALLS):
            said = text(writer, number)
            receipt = memory.remember([said], ANN, defer=True)
            with lock:
                known[receipt.ids[0]] = said

    def forget() -> None:
        chance = random.Random(3)  # noqa: S311 - chooses what is forgotten
        while not done.is_set():
            with lock:
                chosen = chance.sample(sorted(known), k=min(2, len(known)))
                forgotten.update({one: known.pop(one) for one in chosen})
            report = memory.forget(ANN, ids=chosen)
            assert not {one.store for one in report.residue} & {"postgres", "qdrant", "neo4j"}

    def heal() -> None:
        while not done.is_set():
            other.flush()
            other.sweep()

    with ThreadPoolExecutor(5) as pool:
        writing = [pool.submit(write, 1), pool.submit(write, 2), pool.submit(write_slowly, 3)]
        beside = [pool.submit(forget), pool.submit(heal)]
        for task in writing:
            task.exception(240)
        done.set()
        for task in [*writing, *beside]:
            task.result(60)
    assert forgotten
    assert memory.forget(ANN, ids=sorted(forgotten)).clean
    converge(memory)
    assert marks(postgres_url, schema) == []
    space, gone = space_of(postgres_url, schema, ANN), sorted(forgotten)
    stats = memory.stats(ANN)
    assert stats.episodes == len(known)
    assert breakable.search.index(1, 64).count_of(space, gone) == 0
    assert breakable.graph.count_of(space, gone) == 0
    assert breakable.records_in("qdrant", space) == stats.entries
    assert breakable.graph.counts(space) == (stats.entities, stats.relations)
    assert memory.stats(BOB) == untouched
    for said in list(forgotten.values())[:10]:
        found = memory.recall(f"{said}?", ANN, timeout=30)
        assert said not in said_by(found)
    for said in list(known.values())[:10]:
        found = memory.recall(f"{said}?", ANN, timeout=30)
        assert said_by(found).count(said) == 1
        assert found.degraded == ()
