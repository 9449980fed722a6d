"""Many writers and readers at once, in threads and processes: nothing is lost, nothing is mixed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings

THREADS, NOTES = 20, 6


def work(memory: MemRAG, who: str, tag: str) -> list[str]:
    """Write some notes for one user and read them back; returns what somebody else had said."""
    scope = Scope(who, session_id=tag)
    strange = []
    for i in range(NOTES):
        memory.remember([("user", f"{who} note {tag} {i}"), ("assistant", f"noted {who} {tag} {i}")], scope)
        found = memory.recall(f"note {tag} {i}", scope)
        strange += [hit.text for hit in found.hits if who not in hit.text.split()]
    return strange


def test_twenty_threads_for_the_same_and_for_different_users(memory: MemRAG) -> None:
    users = [f"user_{n % 5}" for n in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        strange = list(threads.map(lambda n: work(memory, users[n], f"t{n}"), range(THREADS)))
    assert strange == [[] for _ in range(THREADS)]
    for user in sorted(set(users)):
        stats = memory.stats(Scope(user))
        assert (stats.episodes, stats.pending) == (THREADS // 5 * NOTES * 2, 0)
        stored = memory.history(Scope(user), limit=1000).episodes
        assert {episode.seq for episode in stored} == set(range(1, len(stored) + 1))
        assert all(user in episode.content for episode in stored)


WRITER = """
import sys
import threading
from tests.integration.engine.test_together import work
from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.testing.embeddings import WordHashEmbeddings
url, schema, name = sys.argv[1:]
with MemRAG.open(url, schema=schema, embeddings=WordHashEmbeddings(64), background=True) as memory:
    for user in ("shared", name):
        assert work(memory, user, name) == []
"""


@pytest.mark.slow
def test_two_processes_for_the_same_and_for_different_users(
    postgres_url: str, schema: str, open_memory: Callable[..., MemRAG]
) -> None:
    root = Path(__file__).parents[3]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, postgres_url, schema, name], cwd=root)
        for name in ("left", "right")
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    memory = open_memory()
    counts = {user: memory.stats(Scope(user)).episodes for user in ("shared", "left", "right")}
    assert counts == {"shared": NOTES * 4, "left": NOTES * 2, "right": NOTES * 2}
    assert memory.flush() == 0


def test_the_same_key_from_many_threads_is_one_episode(memory: MemRAG) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        receipts = list(threads.map(lambda _: memory.remember("once", Scope("ann"), key="k"), range(THREADS)))
    assert len({receipt.ids for receipt in receipts}) == 1
    assert sum(receipt.stored for receipt in receipts) == 1


def test_the_background_heals_what_was_deferred_and_stops(open_memory: Callable[..., MemRAG]) -> None:
    others = set(threading.enumerate())  # of memories that other tests share
    memory = open_memory(background=True)
    scope = Scope("ann")
    memory.remember([f"deferred {i}" for i in range(5)], scope, defer=True)
    deadline = time.monotonic() + 30
    while memory.stats(scope).pending and time.monotonic() < deadline:
        time.sleep(0.05)
    assert memory.stats(scope).pending == 0
    assert len(memory.recall("deferred", scope).hits) == 5
    memory.close()
    left = set(threading.enumerate()) - others
    assert not [thread for thread in left if thread.name.startswith("memrag")]


def test_a_failing_embedder_loses_nothing_and_is_healed(open_memory: Callable[..., MemRAG]) -> None:
    class Moody(WordHashEmbeddings):
        down = False

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.down:
                raise ConnectionError("down")
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            if self.down:
                raise ConnectionError("down")
            return super().embed_query(text)

    model = Moody(64)
    memory = open_memory(embeddings=model)
    memory.remember("warm up", Scope("ann"))
    model.down = True
    receipt = memory.remember("The kiln is in the barn.", Scope("ann"))
    assert (receipt.stored, receipt.indexed, receipt.pending) == (1, 0, 1)
    found = memory.recall("Where is the kiln?", Scope("ann"))
    assert found.hits[0].text == "The kiln is in the barn."  # by its words
    assert [gone.arm for gone in found.degraded] == ["dense"]
    assert memory.flush() == 1
    model.down = False
    assert memory.flush() == 0
    found = memory.recall("Where is the kiln?", Scope("ann"))
    assert not found.degraded
    assert "dense:turn" in {signal.name for signal in found.hits[0].signals}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_handle_survives_a_fork(memory: MemRAG) -> None:
    memory.remember("before the fork", Scope("ann"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            memory.remember("from the child", Scope("ann"))
            code = 0 if len(memory.recall("fork child", Scope("ann")).hits) == 2 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    memory.remember("after the fork", Scope("ann"))
    assert memory.stats(Scope("ann")).episodes == 3
