"""Killed anywhere: what was acknowledged is recalled, and nothing is half there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Episode, Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings

WRITER = Path(__file__).with_name("crash_writer.py")
SCOPE = Scope("ann", session_id="s")
SOAK = bool(os.environ.get("MEMRAG_SOAK"))


def write(location: str, schema: str, run: int, kill_after: int) -> tuple[list[UUID], bool]:
    done = subprocess.run(
        [sys.executable, str(WRITER), location, schema, str(run), str(kill_after), "2"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = done.stdout.split("\n")
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    ids = [UUID(word) for line in lines for word in line.split() if word != "done"]
    return ids, "done" in lines


def everything(memory: MemRAG) -> list[Episode]:
    found: list[Episode] = []
    cursor: str | None = None
    while True:
        page = memory.history(SCOPE, limit=1000, cursor=cursor)
        found += page.episodes
        cursor = page.cursor
        if cursor is None:
            return found


def check(memory: MemRAG, acknowledged: list[UUID]) -> None:
    assert memory.flush() == 0
    stored = everything(memory)
    assert set(acknowledged) <= {episode.id for episode in stored}
    batches: dict[str, int] = {}
    for episode in stored:
        if "batch" in episode.content:
            name = " ".join(episode.content.split()[:2])
            batches[name] = batches.get(name, 0) + 1
    assert set(batches.values()) <= {3}  # a call is stored whole or not at all
    assert len({episode.seq for episode in stored}) == len(stored)
    for episode in stored[-60:]:  # those around the last kill
        found = memory.recall(episode.content + "?", SCOPE, k=5)
        assert episode.id in {hit.id for hit in found.hits}, episode.content
    stats = memory.stats(SCOPE)
    again = memory.flush()
    assert (again, memory.stats(SCOPE)) == (0, stats)


@pytest.mark.slow
@pytest.mark.soak
def test_killed_after_each_statement(postgres_url: str, schema: str) -> None:
    acknowledged: list[UUID] = []
    run = 0
    finished = False
    step = 1 if SOAK else 3
    kill_after = 1
    while not finished:
        ids, finished = write(postgres_url, schema, run, kill_after)
        acknowledged += ids
        run += 1
        kill_after += step
        assert run < 100
    assert run > 3
    with MemRAG.open(
        postgres_url, schema=schema, embeddings=WordHashEmbeddings(32), background=False
    ) as memory:
        check(memory, acknowledged)


@pytest.mark.slow
@pytest.mark.soak
def test_the_postmaster_killed_in_the_middle(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    acknowledged: list[UUID] = []
    for run in range(8 if SOAK else 2):
        with subprocess.Popen(
            [sys.executable, str(WRITER), str(folder), "memrag", str(run), "1000000", "100000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(3 + 2 * run)]
            (pid_file,) = folder.glob("**/postmaster.pid")
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
            lines += writer.stdout.readlines()
            assert writer.wait(60) not in {0, -signal.SIGKILL}  # it ends with an error that it was told of
        acknowledged += [UUID(word) for line in lines for word in line.split() if len(word) == 36]
    assert acknowledged
    with MemRAG.open(folder, embeddings=WordHashEmbeddings(32), background=False) as memory:
        check(memory, acknowledged)
