"""Workers: what they heal, how they end, and that one that is killed anywhere leaves no trace of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from langchain_memrag.engine.memrag import MemRAG, utc_now
from langchain_memrag.records import Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.integration.services.namespaces import own_namespace

from .contents import cypher, in_neo4j, in_postgres, sql

DOOMED = Path(__file__).with_name("doomed_worker.py")
SOAK = bool(os.environ.get("MEMRAG_SOAK"))
STEP = 1 if SOAK else 7

SAID = [
    ("user", "I met Zaphod Beeblebrox at CERN in Geneva."),
    ("assistant", "Who is Zaphod Beeblebrox?"),
    ("user", "我昨天在北京大学见了王芳。"),
    ("user", "Geneva and CERN are near the lake. " * 60),
]


@pytest.fixture(scope="module")
def namespace(neo4j_url: str) -> Iterator[str]:
    """Constraints take longer to make than all of a test, so its tests share them."""
    with own_namespace(neo4j_url) as url:
        yield url


@pytest.fixture
def graph_url(namespace: str) -> Iterator[str]:
    yield namespace
    cypher(namespace, "MATCH (n) WHERE any(l IN labels(n) WHERE l STARTS WITH 'NS') DETACH DELETE n")


@pytest.fixture
def memory(open_memory: Callable[..., MemRAG], graph_url: str, redis_url: str) -> MemRAG:
    return open_memory(graph=graph_url, cache=redis_url, clock=utc_now, embeddings=WordHashEmbeddings(32))


@pytest.fixture
def alone(open_memory: Callable[..., MemRAG], memory: MemRAG) -> MemRAG:
    """The same memory in a process that was told of no engine: what it leaves is a worker's to do."""
    return open_memory(cache="none", clock=utc_now, embeddings=WordHashEmbeddings(32))


def leave_work(memory: MemRAG, alone: MemRAG, user: str) -> None:
    """To index, to copy, to erase, and to expire."""
    scope = Scope(user, session_id="s1")
    kept = memory.remember(["It was in Bern, with Trillian.", "Bern and Zürich are in Switzerland."], scope)
    memory.recall("Bern", scope)
    memory.remember("The code of Bern is plugh.", scope, ttl=timedelta(milliseconds=1))
    alone.forget(scope, ids=kept.ids[:1])
    memory.remember(SAID, scope, defer=True)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_one_that_is_killed_after_any_call_leaves_what_an_undisturbed_one_leaves(
    memory: MemRAG, alone: MemRAG, graph_url: str, redis_url: str, postgres_url: str, schema: str
) -> None:
    def stores(user: str) -> dict[str, object]:
        return {
            "postgres": in_postgres(postgres_url, schema, user),
            "neo4j": in_neo4j(graph_url, postgres_url, schema, user),
        }

    leave_work(memory, alone, "undisturbed")
    with subprocess.Popen(
        [sys.executable, str(DOOMED), postgres_url, schema, graph_url, redis_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as doomed:
        assert doomed.stdin is not None
        assert doomed.stdout is not None

        def run(calls: int) -> str:
            doomed.stdin.write(f"{calls}\n")  # type: ignore[union-attr]
            doomed.stdin.flush()  # type: ignore[union-attr]
            return doomed.stdout.readline().strip()  # type: ignore[union-attr]

        assert run(1_000_000) == "ended"
        expected = stores("undisturbed")
        assert expected["postgres"]["pending"] == []  # type: ignore[index]
        assert len(expected["postgres"]["episodes"]) == 1 + len(SAID)  # type: ignore[index]
        calls, ended = 1, "killed"
        while ended == "killed":
            user = f"killed after {calls}"
            leave_work(memory, alone, user)
            ended = run(calls)
            memory.sweep()
            assert stores(user) == expected, user
            calls += STEP
        doomed.stdin.close()
    assert ended == "ended"
    assert calls > 40
    assert stores("undisturbed") == expected
    assert memory.doctor(every=True).problems == ()
    assert memory.flush() == 0


@contextmanager
def workers(count: int, environment: dict[str, str]) -> Iterator[list[subprocess.Popen[str]]]:
    """`memrag worker`, once each is at work."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "langchain_memrag.cli", "worker"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for one in running:
            assert one.stderr is not None
            assert "Working" in one.stderr.readline()
        yield running
    finally:
        for one in running:
            if one.poll() is None:
                one.kill()
            one.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_many_beside_each_other_do_all_of_it_once_and_end_when_they_are_told(
    ending: signal.Signals,
    open_memory: Callable[..., MemRAG],
    graph_url: str,
    redis_url: str,
    postgres_url: str,
    schema: str,
) -> None:
    memory = open_memory(graph=graph_url, cache=redis_url, embeddings=None, clock=utc_now)
    alone = open_memory(cache="none", embeddings=None, clock=utc_now)
    leave_work(memory, alone, "undisturbed")
    memory.sweep()
    users = [f"user {number}" for number in range(6)]
    for user in users:
        leave_work(memory, alone, user)
    environment = {
        "MEMRAG_LOCATION": postgres_url,
        "MEMRAG_SCHEMA": schema,
        "MEMRAG_GRAPH": graph_url,
        "MEMRAG_CACHE": redis_url,
        "MEMRAG_EMBEDDINGS": "none",
    }
    with workers(3, environment) as running:
        deadline = time.monotonic() + 60
        while sql(postgres_url, schema, "SELECT count(*) FROM pending") != [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for one in running:
            one.send_signal(ending)
        for one in running:
            assert one.wait(40) == 0
    expected = in_postgres(postgres_url, schema, "undisturbed")
    assert expected["pending"] == []
    for user in users:
        assert in_postgres(postgres_url, schema, user) == expected
        assert in_neo4j(graph_url, postgres_url, schema, user) == in_neo4j(
            graph_url, postgres_url, schema, "undisturbed"
        )
    assert memory.doctor(every=True).problems == ()
    assert [job for job in memory.maintenance.jobs() if job.status == "failed"] == []
