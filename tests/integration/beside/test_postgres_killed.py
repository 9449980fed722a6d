"""Postgres itself dies under an application with all engines: it says so, and goes on afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import StoreUnavailableError
from langchain_memrag.records import Scope
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.integration.servers import Server, start_server, wait_until_ready

from .faulty import LONG, Breakable, converge, eventually, in_full, said_by

ANN, BOB = Scope("ann", session_id="s"), Scope("安娜", session_id="s")
PASSWORD = "to-be-killed"


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Server]:
    with start_server(tmp_path, password=PASSWORD) as server:
        yield server


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers wait less for a connection than they do elsewhere."""
    monkeypatch.setitem(Database.__init__.__kwdefaults__ or {}, "patience", 1.0)


def text(writer: int, number: int) -> str:
    if writer % 2:
        return f"王芳在北京大学说了暗号 mark{writer}{number:03d}。"
    return f"Zaphod Beeblebrox said mark{writer}{number:03d} in Geneva."


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    "background",
    # In one of several runs nothing was written for a minute after the second start, and it is not known why.
    # Until it is, both belong to the soak.
    [pytest.param(False, id="alone", marks=in_full), pytest.param(True, id="background", marks=in_full)],
)
def test_killed_and_started_again(postgres: Server, breakable: Breakable, background: bool) -> None:
    url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{postgres.port}/postgres"
    told: dict[UUID, tuple[Scope, str]] = {}
    asked: list[int] = []
    lock, ended = threading.Lock(), threading.Event()
    with MemRAG.open(
        url,
        embeddings=WordHashEmbeddings(64),
        background=background,
        **breakable.named,  # type: ignore[arg-type]
    ) as memory:

        def write(writer: int) -> int:
            """Write until the end; gives how many calls were told that Postgres is away."""
            failed, number, scope = 0, 0, (ANN, BOB)[writer % 2]
            while not ended.is_set():
                said = [text(writer, number), text(writer, number + 1)]
                number += 2
                try:
                    receipt = memory.remember(said, scope)
                except StoreUnavailableError:
                    failed += 1
                else:
                    with lock:
                        told.update({one: (scope, what) for one, what in zip(receipt.ids, said, strict=True)})
            return failed

        def ask() -> int:
            failed = 0
            while not ended.is_set():
                with lock:
                    known = list(told.values())
                if not known:
                    continue
                scope, what = known[len(asked) % len(known)]
                try:
                    assert memory.recall(f"{what} ??", scope).hits
                    asked.append(1)
                except StoreUnavailableError:
                    failed += 1
            return failed

        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write, number) for number in range(3)]
            reader = pool.submit(ask)
            try:
                for _ in range(2):
                    first = len(told)
                    eventually("something was written", lambda first=first: len(told) >= first + 20)  # type: ignore[misc]
                    postgres.kill()
                    told_of(lambda: memory.recall("Who said mark0001?", ANN))
                    told_of(lambda: memory.remember("Nobody hears this.", Scope("eve")))
                    told_of(lambda: memory.forget(ANN, everything=False, ids=[UUID(int=1)]))
                    told_of(memory.doctor)
                    told_of(memory.flush)
                    postgres.start()
                    wait_until_ready(url)
                first, before = len(told), len(asked)
                eventually("it goes on", lambda: len(told) >= first + 20 and len(asked) >= before + 3)
            finally:
                ended.set()
            failures = [writer.result(LONG) for writer in [*writers, reader]]
        assert all(failures)
        converge(memory)
        found = [one.id for one in memory.history(ANN, limit=1000).episodes]
        found += [one.id for one in memory.history(BOB, limit=1000).episodes]
        assert set(told) <= set(found)
        assert len(set(found)) == len(found)
        for scope, what in list(told.values())[::7]:
            recall = memory.recall(f"{what} ??", scope, timeout=30)
            assert said_by(recall).count(what) == 1
            assert recall.degraded == ()


def told_of(call: Callable[[], object]) -> None:
    """The database is away, and whoever calls is told so in reasonable time."""
    started = time.monotonic()
    with pytest.raises(StoreUnavailableError) as raised:
        call()
    assert raised.value.engine == "postgres"
    assert PASSWORD not in f"{raised.value}{raised.value.__cause__}"
    assert time.monotonic() - started < LONG
