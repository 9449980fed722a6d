"""Every example of a docstring runs and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import langchain_memrag
from langchain_memrag import MemRAG, Scope
from langchain_memrag.testing.chat import ScriptedChatModel

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> Iterator[str]:
    for module in pkgutil.walk_packages(langchain_memrag.__path__, "langchain_memrag."):
        if not module.name.endswith("__main__"):
            yield module.name


def found() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = (test for name in modules() for test in finder.find(importlib.import_module(name), name))
    return sorted((test for test in tests if test.examples), key=lambda test: test.name)


EXAMPLES = found()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_an_example_gives_what_it_says(
    example: doctest.DocTest, opened: list[MemRAG], folder: Path, hosted_model: ScriptedChatModel
):
    source = "".join(step.source for step in example.examples)
    globs: dict[str, object] = {**example.globs, "folder": folder, "Scope": Scope}
    globs.setdefault("model", hosted_model)
    if "memrag" in source and "memrag" not in globs:
        globs["memrag"] = MemRAG.open(folder / "memory")
    example.globs = globs
    written: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=written.append)
    assert failed == 0, "".join(written)


def test_the_main_doors_have_an_example():
    shown = {example.name.rpartition(".")[2] for example in EXAMPLES}
    assert {"MemRAG", "Scope", "create_memory_graph", "MemRAGMemory", "ScriptedChatModel"} <= shown
