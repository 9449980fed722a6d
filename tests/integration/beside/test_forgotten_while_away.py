"""What is forgotten while an engine is away: not recalled, named in the report, erased when it is back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope

from .faulty import ROLES, Breakable, EngineName, converge, in_full, marks, said_by, space_of

ANN, BOB, EVE = Scope("ann", session_id="s"), Scope("安娜", session_id="s"), Scope("eve", session_id="s")
SECRET, SECRET_ZH = "Zaphod Beeblebrox hid the gold in Geneva.", "王芳把金子藏在北京大学。"
KEPT = ["Arthur Dent likes the tea of Lisbon.", "李明喜欢上海的茶。"]
QUESTIONS = ("Who hid gold in Geneva?", "Zaphod Beeblebrox", "王芳把金子藏在哪里？", "金子")


def everyone_asks(memory: MemRAG, scope: Scope) -> set[str]:
    return {text for question in QUESTIONS for text in said_by(memory.recall(question, scope, timeout=30))}


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", ["redis", "neo4j", "qdrant"])
def test_forgotten_while_an_engine_stands_still(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    postgres_url: str,
    schema: str,
    name: EngineName,
) -> None:
    """It comes back with all that it held."""
    memory = open_memory(**breakable.named)
    receipts = {scope: memory.remember([SECRET, SECRET_ZH, *KEPT], scope) for scope in (ANN, BOB, EVE)}
    for scope in (ANN, BOB, EVE):
        assert everyone_asks(memory, scope) >= {SECRET, SECRET_ZH}
    spaces = {scope: space_of(postgres_url, schema, scope) for scope in receipts}
    held = {scope: breakable.records_in(name, space) for scope, space in spaces.items()}
    assert all(held.values())
    if name == "qdrant":
        breakable.kill(name)
    else:
        breakable.pause(name)
        # A recall finds out sooner than an erasure, which may take its time.
        memory.recall("Who is Zaphod Beeblebrox?", EVE, timeout=0.5)

    some = memory.forget(ANN, ids=receipts[ANN].ids[:2])
    all_of_it = memory.forget(Scope(BOB.user_id), everything=True)
    for report in (some, all_of_it):
        assert not report.clean
        assert {(one.store, one.kind) for one in report.residue} == {(name, "erasures to come")}
    for _ in range(2):
        assert not everyone_asks(memory, ANN) & {SECRET, SECRET_ZH}
        assert everyone_asks(memory, BOB) == set()
        assert everyone_asks(memory, EVE) >= {SECRET, SECRET_ZH}
    back = memory.remember(KEPT, BOB)
    assert back.indexed == 2
    assert everyone_asks(memory, BOB) <= set(KEPT)
    assert f"erase_{ROLES[name]}" in {work for _, _, work, _ in marks(postgres_url, schema)}

    if name == "qdrant":
        breakable.revive(name)
    else:
        breakable.resume(name)
    assert {scope: breakable.records_in(name, space) for scope, space in spaces.items()} == held
    converge(memory)
    assert marks(postgres_url, schema) == []
    assert breakable.records_in(name, spaces[BOB]) == 0
    assert breakable.records_in(name, spaces[EVE]) == held[EVE]
    assert breakable.records_in(name, spaces[ANN]) == (0 if name == "redis" else held[ANN] - gone(name))
    if name == "neo4j":
        assert breakable.graph.count_of(spaces[ANN], receipts[ANN].ids[:2]) == 0
    for _ in range(2):
        assert not everyone_asks(memory, ANN) & {SECRET, SECRET_ZH}
        assert everyone_asks(memory, BOB) <= set(KEPT)
        assert everyone_asks(memory, EVE) >= {SECRET, SECRET_ZH}
    assert memory.recall(QUESTIONS[0], EVE, timeout=30).degraded == ()
    assert memory.forget(Scope(EVE.user_id), everything=True).clean


def gone(name: EngineName) -> int:
    """Of what a user's engine held: two entries; or two records, their four names and two relations."""
    return 2 if name == "qdrant" else 8


@in_full
@pytest.mark.slow
@pytest.mark.soak
def test_forgotten_while_all_are_away(
    open_memory: Callable[..., MemRAG], breakable: Breakable, postgres_url: str, schema: str
) -> None:
    memory = open_memory(**breakable.named)
    memory.remember([SECRET, SECRET_ZH, *KEPT], ANN)
    memory.remember([SECRET, SECRET_ZH, *KEPT], EVE)
    everyone_asks(memory, ANN)
    space, other = space_of(postgres_url, schema, ANN), space_of(postgres_url, schema, EVE)
    names: tuple[EngineName, ...] = ("redis", "neo4j", "qdrant")
    for name in names:
        breakable.pause(name)
    report = memory.forget(Scope("ann"), everything=True)
    assert {one.store for one in report.residue} == set(names)
    assert everyone_asks(memory, ANN) == set()
    assert everyone_asks(memory, EVE) >= {SECRET, SECRET_ZH}
    for name in names:
        breakable.resume(name)
    converge(memory)
    assert marks(postgres_url, schema) == []
    assert [breakable.records_in(name, space) for name in names] == [0, 0, 0]
    assert all(breakable.records_in(name, other) for name in ("neo4j", "qdrant"))
    assert memory.forget(Scope("ann"), everything=True).clean
