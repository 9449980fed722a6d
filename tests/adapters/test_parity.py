"""Sync and async twins have the same signature, everywhere in the public doors."""

from __future__ import annotations

import inspect

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.graphs import intent
from langchain_memrag.memory.checkpointer import MemRAGSaver
from langchain_memrag.memory.classic import MemRAGMemory
from langchain_memrag.memory.middleware import MemoryMiddleware
from langchain_memrag.memory.tending import Tending


def twins(holder: object) -> list[tuple[str, object, object]]:
    found = []
    for name, twin in inspect.getmembers(holder):
        plain = getattr(holder, name[1:], None)
        if (
            name.startswith("a")
            and not name.startswith("_")
            and inspect.isfunction(plain)
            and inspect.isfunction(twin)
        ):
            found.append((name[1:], plain, twin))
    return found


OURS = [
    pytest.param(plain, twin, id=f"{holder.__name__}.{name}")
    for holder in (MemRAG, Tending, MemoryMiddleware, MemRAGMemory, MemRAGSaver, intent)
    for name, plain, twin in twins(holder)
    if getattr(twin, "__module__", "").startswith("langchain_memrag")
]


def test_there_are_twins_to_compare() -> None:
    assert len(OURS) >= 20


def test_every_operation_of_the_facade_has_a_twin() -> None:
    alone = {"open", "intent", "checkpointer"}
    public = {name for name, _ in inspect.getmembers(MemRAG, inspect.isroutine) if not name.startswith("_")}
    plain = {name for name in public if not (name.startswith("a") and name[1:] in public)}
    assert {name for name in plain if f"a{name}" not in public} == alone


@pytest.mark.parametrize(("plain", "twin"), OURS)
def test_twins_have_one_signature(plain: object, twin: object) -> None:
    left, right = inspect.signature(plain), inspect.signature(twin)  # type: ignore[arg-type]
    assert list(left.parameters.values()) == list(right.parameters.values()) or "handler" in left.parameters
    assert list(left.parameters) == list(right.parameters)
    if left.return_annotation != right.return_annotation:
        # An async iterator stands for an iterator.
        assert str(right.return_annotation).replace("Async", "") == str(left.return_annotation)


@pytest.mark.parametrize(("plain", "twin"), OURS)
def test_a_twin_is_short(plain: object, twin: object) -> None:
    lines = [line for line in inspect.getsource(twin).splitlines() if line.strip()]  # type: ignore[arg-type]
    assert len(lines) <= 25
