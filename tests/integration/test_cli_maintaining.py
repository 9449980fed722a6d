"""The commands of whoever runs a memory: what they print, what they do, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from typer.testing import CliRunner, Result

from langchain_memrag import MemRAG, Scope
from langchain_memrag.cli.app import app
from langchain_memrag.engine import maintenance
from langchain_memrag.engine.embedding import Embedder
from langchain_memrag.engine.upkeep import Upkeep
from langchain_memrag.errors import NotFoundError, StoreError
from langchain_memrag.testing.embeddings import WordHashEmbeddings

Run = Callable[..., Result]

PASSWORD = "Opensesame-42"


@pytest.fixture(scope="module")
def memory_schema(postgres_url: str) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


@pytest.fixture
def run(postgres_url: str, memory_schema: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs one command as a shell would, on a database of this module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMRAG_LOCATION", postgres_url)
    monkeypatch.setenv("MEMRAG_SCHEMA", memory_schema)
    monkeypatch.setenv("MEMRAG_EMBEDDINGS", "none")
    monkeypatch.setenv("COLUMNS", "80")

    def run_command(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    return run_command


@pytest.fixture
def memory(postgres_url: str, memory_schema: str, run: Run) -> Iterator[MemRAG]:
    with MemRAG.open(postgres_url, schema=memory_schema, embeddings=None, background=False) as memrag:
        yield memrag


def folder(path: Path) -> str:
    return f"qdrant://{path}"


# reindex, doctor --repair, detach: with an engine of the settings


def test_an_engine_of_the_settings_is_used_filled_looked_at_and_left(
    run: Run, memory: MemRAG, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    memory.remember(["I live in Lisbon.", "我住在里斯本。"], Scope("ann"))
    monkeypatch.setenv("MEMRAG_SEARCH", folder(tmp_path / "points"))
    filled = run("reindex", "--json")
    assert filled.exit_code == 0
    assert json.loads(filled.stdout) == {"left": 0}
    assert "All is indexed." in run("reindex", "--user", "ann", "--engine", "search", "--resume").stdout

    looked = run("doctor", "--json")
    assert looked.exit_code == 0
    (engine,) = json.loads(looked.stdout)["engines"]
    assert (engine["role"], engine["engine"], engine["state"]) == ("search", "qdrant", "ready")
    assert (engine["compared"], engine["differing"]) == (1, 0)
    assert "1 of 1 memories agree" in run("doctor").stdout

    from langchain_memrag.stores.qdrant import QdrantServer

    server = QdrantServer(folder(tmp_path / "points"))
    for name in server.collections():
        server.call("break", lambda client, name=name: client.delete_collection(name))
    server.close()
    broken = run("doctor")
    assert broken.exit_code == 1
    assert "differs from Postgres in 1 of 1 memories" in broken.stdout
    mended = run("doctor", "--repair", "--all")
    assert mended.exit_code == 0
    assert "All is well." in mended.stdout

    monkeypatch.delenv("MEMRAG_SEARCH")
    elsewhere = run("doctor")
    assert elsewhere.exit_code == 1
    assert "memrag detach search" in elsewhere.stdout
    assert run("detach", "search").exit_code == 0
    assert run("doctor").exit_code == 0
    again = run("detach", "search")
    assert again.exit_code == 2
    assert "no engine is known for search" in again.stderr


def test_what_cannot_be_filled_is_a_mistake(run: Run, memory: MemRAG):
    memory.remember("I live in Lisbon.", Scope("ann"))
    refused = run("reindex", "--engine", "graph")
    assert refused.exit_code == 2
    assert "no engine was named for graph" in refused.stderr
    assert run("reindex", "--engine", "cache").exit_code == 2
    assert run("reindex").exit_code == 0  # Postgres, where there is nothing else
    assert run("reindex", "--user", " ").exit_code == 2


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MEMRAG_SEARCH", f"mongodb://admin:{PASSWORD}@db/x"),
        ("MEMRAG_GRAPH", f"postgresql://admin:{PASSWORD}@db/x"),
        ("MEMRAG_CACHE", f"memcached://admin:{PASSWORD}@db/x"),
        ("MEMRAG_CACHE", PASSWORD),
        ("MEMRAG_GRAPH", f"neo4j://neo4j:{PASSWORD}@db:port/x"),
        ("MEMRAG_SEARCH", f"qdrant://{PASSWORD}@db:port"),
        ("MEMRAG_CACHE", f"redis://:{PASSWORD}@db:port"),
    ],
)
@pytest.mark.parametrize("command", ["doctor", "reindex", "worker"])
def test_a_url_that_will_not_do_is_not_repeated(
    command: str, variable: str, value: str, run: Run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, value)
    refused = run(command)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("memrag: ")
    assert PASSWORD not in refused.output
    assert "admin" not in refused.output


def test_a_server_that_is_down_is_named_without_its_password(
    postgres_url: str, memory_schema: str, memory: MemRAG
):
    memory.remember("I live in Lisbon.", Scope("ann"))
    environment = {
        **os.environ,
        "MEMRAG_LOCATION": postgres_url,
        "MEMRAG_SCHEMA": memory_schema,
        "MEMRAG_EMBEDDINGS": "none",
        "MEMRAG_CACHE": f"redis://:{PASSWORD}@127.0.0.1:9/0",
        "MEMRAG_SEARCH": f"qdrant://{PASSWORD}@127.0.0.1:9",
    }

    def run_apart(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "langchain_memrag.cli", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    try:
        shown = run_apart("doctor", "--json")
        assert shown.returncode == 1
        assert {one["state"] for one in json.loads(shown.stdout)["engines"]} == {"away"}
        filling = run_apart("reindex")
        assert filling.returncode == 3
        assert "qdrant" in filling.stderr
        recalled = run_apart("recall", "Where do I live? Lisbon", "--user", "ann")
        assert recalled.returncode == 0
        assert "I live in Lisbon." in recalled.stdout
        for done in (shown, filling, recalled):
            assert PASSWORD not in done.stdout + done.stderr
            assert "Traceback" not in done.stderr
    finally:
        for role in ("search", "cache"):
            memory.maintenance.detach(role)


# reembed


def test_a_memory_without_an_embedder_cannot_move(run: Run, memory: MemRAG):
    memory.remember("I live in Lisbon.", Scope("ann"))
    refused = run("reembed", "no-such-provider:model")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("memrag: ")


def test_a_memory_moves_and_its_engine_with_it(
    postgres_url: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    schema = f"t_{uuid.uuid4().hex[:12]}"
    monkeypatch.setenv("MEMRAG_SCHEMA", schema)
    try:
        with MemRAG.open(
            postgres_url, schema=schema, embeddings=WordHashEmbeddings(64), background=False
        ) as old:
            old.remember(["I live in Lisbon.", "我住在里斯本。"], Scope("ann"))
        monkeypatch.setenv("MEMRAG_SEARCH", folder(tmp_path / "points"))
        assert run("reindex").exit_code == 0
        monkeypatch.setattr(
            maintenance, "choose_embedder", lambda *_: Embedder(WordHashEmbeddings(96), name="new:model")
        )
        moved = run("reembed", "new:model")
        assert moved.exit_code == 0
        assert "--drop-old" in moved.stdout
        looked = json.loads(run("doctor", "--json").stdout)
        assert (looked["embedder"], looked["width"], looked["problems"]) == ("new:model", 96, [])
        assert looked["engines"][0]["waiting"] == 0
        again = json.loads(run("reembed", "new:model", "--drop-old", "--json").stdout)
        assert again == {"moved": True, "dropped": 1}
        assert run("doctor").exit_code == 0
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))


# jobs


@pytest.fixture
def failed_job(
    postgres_url: str, memory_schema: str, memory: MemRAG, monkeypatch: pytest.MonkeyPatch
) -> tuple[MemRAG, int]:
    """A job that failed: a sweep whose upkeep raised."""

    def broken(self: Upkeep, **_: object) -> None:
        raise StoreError("nothing works", engine="test", operation="expire")

    with monkeypatch.context() as patched:
        patched.setattr(Upkeep, "expire", broken)
        import threading

        ended = threading.Event()
        worker = threading.Thread(target=memory.maintenance.work, args=(ended,))
        worker.start()
        try:
            for _ in range(300):
                failed = [job.id for job in memory.maintenance.jobs() if job.status == "failed"]
                if failed:
                    break
                ended.wait(0.1)
        finally:
            ended.set()
            worker.join()
    return memory, failed[-1]


def test_jobs_are_listed_retried_and_dropped(run: Run, failed_job: tuple[MemRAG, int]):
    memory, ident = failed_job
    shown = run("jobs", "list")
    assert shown.exit_code == 0
    assert f"{ident:>8}  failed     memrag.sweep, tried 1 times" in shown.stdout
    listed = json.loads(run("jobs", "list", "--json").stdout)["jobs"]
    assert (ident, "memrag.sweep", "failed") in [(one["id"], one["task"], one["status"]) for one in listed]

    assert run("jobs", "retry", str(ident)).exit_code == 0
    assert {job.id: job.status for job in memory.maintenance.jobs()}[ident] == "todo"
    twice = run("jobs", "retry", str(ident))
    assert twice.exit_code == 2
    assert "memrag jobs list" in twice.stderr
    assert run("jobs", "drop", str(ident)).exit_code == 0
    assert ident not in [job.id for job in memory.maintenance.jobs()]
    for command in ("drop", "retry"):
        unknown = run("jobs", command, str(ident))
        assert unknown.exit_code == 2
        assert "memrag jobs list" in unknown.stderr
    with pytest.raises(NotFoundError, match="memrag jobs list"):
        memory.maintenance.drop_job(999_999)


def test_one_is_not_retried_beside_another_for_the_same_work(
    run: Run, failed_job: tuple[MemRAG, int], postgres_url: str, memory_schema: str
):
    memory, ident = failed_job
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("SET search_path TO {}").format(Identifier(memory_schema)))
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock, status)"
            " VALUES ('default', 'memrag.sweep', 'sweep', 'todo') ON CONFLICT DO NOTHING"
        )
    refused = run("jobs", "retry", str(ident))
    assert refused.exit_code == 2
    assert "another job" in refused.stderr
    for job in memory.maintenance.jobs():
        memory.maintenance.drop_job(job.id)
    assert "There are none." in run("jobs", "list").stdout


def test_no_embedder_is_asked_for_by_what_needs_none(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEMRAG_EMBEDDINGS", "no-such-provider:model")
    assert run("jobs", "list").exit_code == 0
