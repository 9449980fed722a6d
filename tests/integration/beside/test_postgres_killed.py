"""Postgres itself dies under an application with all engines: it says so, and goes on afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import StoreUnavailableError
from langchain_memrag.records import Scope
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.entries import Statistics, StatisticsReader
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.integration.servers import Server, start_server, wait_until_ready

from .faulty import LONG, Breakable, converge, eventually, said_by

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


class Talk:
    """Users who say things and ask for them until the end, whatever happens to Postgres meanwhile."""

    def __init__(self, memory: MemRAG) -> None:
        self.memory = memory
        self.told: dict[UUID, tuple[Scope, str]] = {}
        self.answers = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._everybody: list[Future[int]] = []

    def begin(self, pool: ThreadPoolExecutor) -> None:
        self._everybody = [pool.submit(self._write, number) for number in range(3)]
        self._everybody.append(pool.submit(self._ask))

    def end(self) -> list[int]:
        """How many calls of each were told that Postgres is away."""
        self._ended.set()
        return [each.result(LONG) for each in self._everybody]

    def goes_on(self, written: int, answered: int) -> Callable[[], bool]:
        """Tells whether so much more was written and answered."""
        written, answered = written + len(self.told), answered + self.answers

        def so_far() -> bool:
            for each in self._everybody:
                if each.done():  # before its time: it failed
                    each.result()
            return len(self.told) >= written and self.answers >= answered

        return so_far

    def _write(self, writer: int) -> int:
        failed, number, scope = 0, 0, (ANN, BOB)[writer % 2]
        while not self._ended.is_set():
            said = [text(writer, number), text(writer, number + 1)]
            number += 2
            try:
                receipt = self.memory.remember(said, scope)
            except StoreUnavailableError:
                failed += 1
            else:
                with self._lock:
                    self.told.update(
                        {one: (scope, what) for one, what in zip(receipt.ids, said, strict=True)}
                    )
        return failed

    def _ask(self) -> int:
        failed = 0
        while not self._ended.is_set():
            with self._lock:
                known = list(self.told.values())
            if not known:
                continue
            scope, what = known[self.answers % len(known)]
            try:
                recall = self.memory.recall(f"{what} ??", scope)
            except StoreUnavailableError:
                failed += 1
            else:
                # An empty answer would say that nothing is known, which is not so.
                assert recall.hits, recall.degraded
                self.answers += 1
        return failed


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("background", [False, True], ids=["alone", "background"])
def test_killed_and_started_again(postgres: Server, breakable: Breakable, background: bool) -> None:
    url = url_of(postgres)
    with MemRAG.open(
        url,
        embeddings=WordHashEmbeddings(64),
        background=background,
        **breakable.named,  # type: ignore[arg-type]
    ) as memory:
        talk = Talk(memory)
        with ThreadPoolExecutor(4) as pool:
            talk.begin(pool)
            try:
                for _ in range(2):
                    eventually("something was written", talk.goes_on(20, 0))
                    postgres.kill()
                    told_of(lambda: memory.recall("Who said mark0001?", ANN))
                    told_of(lambda: memory.remember("Nobody hears this.", Scope("eve")))
                    told_of(lambda: memory.forget(ANN, everything=False, ids=[UUID(int=1)]))
                    told_of(memory.doctor)
                    told_of(memory.flush)
                    postgres.start()
                    wait_until_ready(url)
                eventually("it goes on", talk.goes_on(20, 3))
            finally:
                failures = talk.end()
        assert all(failures)
        converge(memory)
        found = [one.id for scope in (ANN, BOB) for one in memory.history(scope, limit=1000).episodes]
        assert set(talk.told) <= set(found)
        assert len(set(found)) == len(found)
        for scope, what in list(talk.told.values())[::7]:
            recall = memory.recall(f"{what} ??", scope, timeout=30)
            assert said_by(recall).count(what) == 1
            assert recall.degraded == ()


@pytest.mark.usefixtures("patience")
def test_gone_in_the_middle_of_a_recall(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found because nothing can be looked at; that is not the answer that nothing is known."""
    look = StatisticsReader.statistics
    with MemRAG.open(url_of(postgres), embeddings=WordHashEmbeddings(64), background=False) as memory:
        memory.remember([text(0, 1), text(1, 1)], ANN)

        def the_last_look(self: StatisticsReader, *about: Any) -> Statistics:
            found = look(self, *about)
            postgres.kill()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(StatisticsReader, "statistics", the_last_look)
            told_of(lambda: memory.recall(f"{text(1, 1)} ??", ANN))
        postgres.start()
        wait_until_ready(url_of(postgres))
        # The index may not have reached the disk; the words did.
        eventually("all is indexed", lambda: healed(memory))
        for number in range(2):
            assert said_by(memory.recall(f"{text(number, 1)} ??", ANN))[0] == text(number, 1)


def healed(memory: MemRAG) -> bool:
    try:
        return memory.flush() == 0
    except StoreUnavailableError:  # with so little patience, between two attempts to connect
        return False


def url_of(postgres: Server) -> str:
    return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{postgres.port}/postgres"


def told_of(call: Callable[[], object]) -> None:
    """The database is away, and whoever calls is told so in reasonable time."""
    started = time.monotonic()
    with pytest.raises(StoreUnavailableError) as raised:
        call()
    assert raised.value.engine == "postgres"
    assert PASSWORD not in f"{raised.value}{raised.value.__cause__}"
    assert time.monotonic() - started < LONG
