"""Moving to another embedder: recall answers throughout, and a move that is cut off harms nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, StoreError
from langchain_memrag.records import Recall, Scope
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.search import PostgresSearch
from langchain_memrag.stores.qdrant import QdrantServer
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.conftest import HandClock

from .conftest import Engines
from .contents import in_postgres, in_qdrant, space_of, sql

ANN, BOB = Scope("ann", session_id="s1"), Scope("小林", session_id="s1")
MOVER = Path(__file__).with_name("mover.py")

SAID = [
    "I met Zaphod Beeblebrox at CERN in Geneva.",
    "我昨天在北京大学见了王芳。",
    "The bread in Zurich is good 🍞.",
    "王芳喜欢在北京喝茶。",
]
QUESTION = "Who was at CERN in Geneva?"


class Model(Embeddings):
    """Words hashed to a width, turned round by a seed; counts, and can be told to fail."""

    def __init__(self, width: int = 96, *, model: str = "new", seed: int = 0, fails_after: int = -1) -> None:
        self.model = model
        self.embedded: list[str] = []
        self.during: Callable[[], object] = lambda: None
        self._words = WordHashEmbeddings(width)
        self._turn = np.random.default_rng(seed).permutation(width)
        self._left = fails_after

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if "The quick brown fox" not in texts[0]:
            self.during()
            if self._left == 0:
                raise TimeoutError("words of a user: Zaphod")
            self._left -= 1
            self.embedded += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = self._words.embed_query(text)
        return [vector[place] for place in self._turn]


class Spoilt(Model):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows = super().embed_documents(texts)
        if any("bread" in text for text in texts):
            rows[0][0] = float("nan")
        return rows


@pytest.fixture
def memory(open_memory: Callable[..., MemRAG]) -> MemRAG:
    """Two users' memories, at the old embedder."""
    memory = open_memory(cache="none")
    memory.remember(SAID, ANN)
    memory.remember(SAID, BOB)
    return memory


def arms(found: Recall) -> set[str]:
    return {signal.name.split(":")[0] for hit in found.hits for signal in hit.signals}


def embedders(url: str, schema: str) -> dict[str, int]:
    rows = sql(url, schema, "SELECT state, count(*) FROM embedder GROUP BY state")
    return dict(rows)


@pytest.mark.parametrize("target", [Model(), Model(64), Model(64, seed=1), WordHashEmbeddings(96)], ids=str)
def test_afterwards_all_is_found_by_the_new_one(
    target: Embeddings, memory: MemRAG, open_memory: Callable[..., MemRAG], postgres_url: str, schema: str
) -> None:
    steps: list[tuple[int, int]] = []
    assert memory.maintenance.reembed(target, progress=lambda *one: steps.append(one))
    assert (steps[0], steps[-1]) == ((0, 8), (8, 8))
    new = open_memory(embeddings=target, cache="none")
    found = new.recall(QUESTION, ANN)
    assert found.hits[0].text == SAID[0]
    assert arms(found) >= {"dense", "lexical", "graph"}
    assert not found.degraded
    assert new.doctor().problems == ()
    assert embedders(postgres_url, schema) == {"active": 1, "retired": 1}
    # The old one is refused, with the remedy.
    with pytest.raises(ConfigurationError, match="memrag reembed"):
        open_memory(cache="none").remember("Never stored.", ANN)
    assert new.maintenance.drop_retired() == 1
    assert embedders(postgres_url, schema) == {"active": 1}
    assert new.recall(QUESTION + "!", BOB).hits == new.recall(QUESTION + "!", BOB).hits != ()
    assert new.maintenance.drop_retired() == 0


def test_recall_answers_all_the_time(memory: MemRAG, open_memory: Callable[..., MemRAG]) -> None:
    memory.remember([f"Line {number} about Geneva." for number in range(400)], ANN)
    expected = [hit.text for hit in memory.recall(QUESTION, ANN).hits]
    ended = threading.Event()
    answers: list[Recall] = []
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            while not ended.is_set():
                answers.append(memory.recall(QUESTION, ANN))
        except BaseException as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        target = Model()
        assert memory.maintenance.reembed(target)
    finally:
        ended.set()
        asking.join()
    assert failures == []
    assert len(answers) > 2
    for found in [*answers, memory.recall(QUESTION, ANN)]:
        assert [hit.text for hit in found.hits] == expected
    assert len(target.embedded) == len(set(target.embedded)) + len(SAID) == 408


def test_one_that_fails_leaves_the_old_one_whole_and_goes_on(
    memory: MemRAG, postgres_url: str, schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = in_postgres(postgres_url, schema, "ann")["vector_1"]
    failing = Model(fails_after=1)
    with pytest.raises(StoreError, match=r"failed \(TimeoutError\); run it again") as caught:
        memory.maintenance.reembed(failing)
    assert "Zaphod" not in str(caught.value) + caplog.text
    assert len(failing.embedded) == len(SAID)
    assert embedders(postgres_url, schema) == {"active": 1, "building": 1}
    assert in_postgres(postgres_url, schema, "ann")["vector_1"] == before
    assert memory.recall(QUESTION, ANN).hits[0].text == SAID[0]
    assert memory.doctor().problems == ()
    again, steps = Model(), []
    assert memory.maintenance.reembed(again, progress=lambda *one: steps.append(one))
    assert len(again.embedded) == len(SAID)  # those of the other user
    assert steps == [(0, 4), (4, 4), (4, 4)]


def test_one_that_is_stopped_goes_on(memory: MemRAG, postgres_url: str, schema: str) -> None:
    first, second = Model(), Model()
    assert not memory.maintenance.reembed(first, stop=lambda: True)
    assert first.embedded == []
    assert embedders(postgres_url, schema) == {"active": 1, "building": 1}
    assert memory.maintenance.reembed(second)
    assert len(second.embedded) == 8


def test_vectors_that_are_none_are_refused(memory: MemRAG, postgres_url: str, schema: str) -> None:
    before = in_postgres(postgres_url, schema, "ann")["vector_1"]
    with pytest.raises(ConfigurationError, match="not finite"):
        memory.maintenance.reembed(Spoilt())
    assert in_postgres(postgres_url, schema, "ann")["vector_1"] == before
    assert memory.recall(QUESTION, ANN).hits[0].text == SAID[0]


def test_one_that_is_too_wide_is_refused(memory: MemRAG, postgres_url: str, schema: str) -> None:
    with pytest.raises(ConfigurationError, match="16,000"):
        memory.maintenance.reembed(Model(16_001))
    assert embedders(postgres_url, schema) == {"active": 1}
    assert memory.recall(QUESTION, ANN).hits[0].text == SAID[0]


def test_the_same_one_is_no_work(memory: MemRAG, postgres_url: str, schema: str) -> None:
    assert memory.maintenance.reembed(WordHashEmbeddings(64))
    assert embedders(postgres_url, schema) == {"active": 1}
    target = Model()
    assert memory.maintenance.reembed(target)
    assert memory.maintenance.reembed(target)
    assert len(target.embedded) == 8
    assert embedders(postgres_url, schema) == {"active": 1, "retired": 1}


def test_a_memory_without_an_embedder_is_told_what_to_do(open_memory: Callable[..., MemRAG]) -> None:
    memory = open_memory(embeddings=None)
    memory.remember(SAID, ANN)
    with pytest.raises(ConfigurationError, match="open it with one"):
        memory.maintenance.reembed(Model())


def test_an_empty_memory_moves(open_memory: Callable[..., MemRAG]) -> None:
    memory = open_memory()
    memory.remember("Gone at once.", ANN)
    memory.forget(Scope("ann"), everything=True)
    target = Model()
    assert memory.maintenance.reembed(target)
    assert target.embedded == []
    new = open_memory(embeddings=target)
    new.remember(SAID, ANN)
    assert "dense" in arms(new.recall(QUESTION, ANN))


def test_a_third_one_drops_what_was_begun(memory: MemRAG, postgres_url: str, schema: str) -> None:
    assert not memory.maintenance.reembed(Model(), stop=lambda: True)
    assert memory.maintenance.reembed(Model(32, model="third"))
    assert embedders(postgres_url, schema) == {"active": 1, "retired": 1}
    tables = sql(
        postgres_url,
        schema,
        "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
        " AND relname LIKE 'vector%%' ORDER BY relname",
        schema,
    )
    assert tables == [("vector_1",), ("vector_3",)]


def test_long_texts_and_what_has_expired_move_too(
    memory: MemRAG, open_memory: Callable[..., MemRAG], clock: HandClock, postgres_url: str, schema: str
) -> None:
    long = "Geneva and CERN are near the lake, and Zaphod likes them. 他们常常去湖边。" * 120
    memory.remember(long, ANN)
    memory.remember("The code of today is plugh.", ANN, ttl=timedelta(hours=1))
    clock.forward(timedelta(hours=2))
    target = Model()
    assert memory.maintenance.reembed(target)
    held = in_postgres(postgres_url, schema, "ann")
    keys = [row[:3] for row in held["entries"]]
    assert len(keys) > len(SAID) + 4
    assert [row[:3] for row in held["vector_2"]] == keys
    new = open_memory(embeddings=target)
    new.sweep()
    after = in_postgres(postgres_url, schema, "ann")
    assert len(after["vector_2"]) == len(after["vector_1"]) == len(keys) - 1
    assert not new.recall("What is the code of today? plugh", ANN, k=1).hits[0].text.startswith("The code")


def test_what_is_written_meanwhile_is_not_lost(
    memory: MemRAG, open_memory: Callable[..., MemRAG], postgres_url: str, schema: str
) -> None:
    target = Model()
    said = iter(range(1000))
    target.during = lambda: memory.remember([f"Meanwhile {next(said)} in Geneva.", "同时在北京。"], BOB)
    assert memory.maintenance.reembed(target)
    target.during = lambda: None
    number = next(said)
    held = in_postgres(postgres_url, schema, "小林")
    # The last of them came after the change, and wait for who has the new one.
    assert len(held["vector_2"]) == len(held["entries"]) == len(held["episodes"]) - 2
    # After the change the old process's writes are acknowledged, and left to those who have the new one.
    receipt = memory.remember(["Later, in Bern.", "后来在伯尔尼。"], BOB)
    assert (receipt.stored, receipt.indexed, receipt.pending) == (2, 0, 2)
    assert memory.flush() >= 2
    assert memory.recall(QUESTION, BOB).hits
    assert any("moved" in one.reason for one in memory.recall(QUESTION, BOB).degraded)
    new = open_memory(embeddings=target)
    assert new.flush() == 0
    assert new.recall("Later in Bern", BOB).hits[0].text == "Later, in Bern."
    held = in_postgres(postgres_url, schema, "小林")
    assert len(held["vector_2"]) == len(held["entries"]) == len(SAID) + 2 * number + 2
    assert held["pending"] == []
    assert new.doctor(every=True).problems == ()


def test_what_is_forgotten_meanwhile_does_not_come_back(
    memory: MemRAG, open_memory: Callable[..., MemRAG], postgres_url: str, schema: str
) -> None:
    receipt = memory.remember("The secret is xyzzy.", ANN)

    def forget() -> None:
        # It was read already, and is being embedded.
        memory.forget(ANN, ids=receipt.ids)
        memory.forget(Scope("小林"), everything=True)

    target = Model()
    target.during = forget
    assert memory.maintenance.reembed(target)
    assert "The secret is xyzzy." in " ".join(target.embedded)
    assert sql(postgres_url, schema, "SELECT count(*) FROM vector_2") == [(len(SAID),)]
    new = open_memory(embeddings=target)
    assert all("xyzzy" not in hit.text for hit in new.recall("secret xyzzy", ANN).hits)
    assert not new.recall(QUESTION, BOB).hits


def test_two_that_move_at_once_do_no_harm(
    memory: MemRAG, open_memory: Callable[..., MemRAG], postgres_url: str, schema: str
) -> None:
    memory.remember([f"Line {number} about Geneva." for number in range(300)], ANN)
    movers = [open_memory(embeddings=None, cache="none") for _ in range(3)]
    results: list[object] = []

    def move(mover: MemRAG) -> None:
        try:
            results.append(mover.maintenance.reembed(Model()))
        except StoreError as error:
            results.append(error)

    threads = [threading.Thread(target=move, args=(mover,)) for mover in movers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 3
    assert embedders(postgres_url, schema) == {"active": 1, "retired": 1}
    held = in_postgres(postgres_url, schema, "ann")
    assert [row[:3] for row in held["vector_2"]] == [row[:3] for row in held["entries"]]


def test_of_two_with_different_aims_one_wins(
    memory: MemRAG, open_memory: Callable[..., MemRAG], postgres_url: str, schema: str
) -> None:
    other = open_memory(embeddings=None, cache="none")
    slow, fast = Model(), Model(32, model="other")
    moved: list[bool] = []

    def overtake() -> None:
        if not moved:
            moved.append(other.maintenance.reembed(fast))

    slow.during = overtake
    with pytest.raises(StoreError):
        memory.maintenance.reembed(slow)
    assert moved == [True]
    assert embedders(postgres_url, schema) == {"active": 1, "retired": 1}
    new = open_memory(embeddings=fast)
    assert "dense" in arms(new.recall(QUESTION, ANN))
    assert new.doctor(every=True).problems == ()


@pytest.fixture
def killed(postgres_url: str, schema: str) -> Callable[[int], list[str]]:
    """Moves in a process of its own that is killed after some statements; gives what it embedded."""

    def run(statements: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, str(MOVER), postgres_url, schema, str(statements)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.stdout.splitlines()

    return run


@pytest.mark.slow
@pytest.mark.parametrize("statements", [5, 9, 13, 18])
def test_one_that_is_killed_leaves_the_old_one_whole_and_goes_on(
    statements: int,
    killed: Callable[[int], list[str]],
    memory: MemRAG,
    open_memory: Callable[..., MemRAG],
    postgres_url: str,
    schema: str,
) -> None:
    from .mover import Aim

    before = in_postgres(postgres_url, schema, "ann")
    embedded = killed(statements)
    assert embedded[-1:] != ["moved"]
    states = embedders(postgres_url, schema)
    assert states in ({"active": 1}, {"active": 1, "building": 1})
    held = in_postgres(postgres_url, schema, "ann")
    assert {key: held[key] for key in before} == before
    found = memory.recall(QUESTION, ANN)
    assert found.hits[0].text == SAID[0]
    assert not found.degraded
    there = 0
    if "building" in states:
        ((there,),) = sql(postgres_url, schema, "SELECT count(*) FROM vector_2")
    target = Aim()
    assert memory.maintenance.reembed(target)
    assert len(target.embedded) == 8 - there
    new = open_memory(embeddings=target)
    assert arms(new.recall(QUESTION, ANN)) >= {"dense"}
    assert new.doctor(every=True).problems == ()


@pytest.fixture
def big(postgres_url: str, schema: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a space a copy with a neighbour graph, however small it is."""
    databases: list[Database] = []

    def prepare(embedder: int, width: int) -> None:
        database = Database(postgres_url, schema=schema)
        databases.append(database)
        database.open()
        search = PostgresSearch(database, embedder, width, big=1)
        for space in search.unprepared():
            search.prepare(space)

    yield prepare
    for database in databases:
        database.close()


def test_big_memories_move(
    memory: MemRAG,
    open_memory: Callable[..., MemRAG],
    big: Callable[[int, int], None],
    postgres_url: str,
    schema: str,
) -> None:
    big(1, 64)
    space = space_of(postgres_url, schema, "ann")
    copies = "SELECT embedder FROM ann WHERE space = %s ORDER BY embedder"
    assert sql(postgres_url, schema, copies, space) == [(1,)]
    assert "dense" in arms(memory.recall(QUESTION, ANN))
    target = Model()
    assert memory.maintenance.reembed(target)
    new = open_memory(embeddings=target)
    assert new.recall(QUESTION, ANN).hits[0].text == SAID[0]
    big(2, 96)
    assert sql(postgres_url, schema, copies, space) == [(1,), (2,)]
    assert new.recall(QUESTION + "?", ANN).hits[0].text == SAID[0]
    assert new.maintenance.drop_retired() == 1
    assert sql(postgres_url, schema, copies, space) == [(2,)]
    copy = f"{schema}.vector_1_space_{space}"
    assert sql(postgres_url, schema, "SELECT to_regclass(%s)", copy) == [(None,)]
    assert new.forget(Scope("ann"), everything=True).clean
    assert new.recall(QUESTION, BOB).hits


def test_an_engine_beside_postgres_moves_too(
    open_memory: Callable[..., MemRAG], engines: Engines, postgres_url: str, schema: str
) -> None:
    assert isinstance(engines.search, QdrantServer)
    prefix = engines.search.options.prefix
    old = open_memory(search=engines.search, graph=engines.graph, cache=engines.cache)
    old.remember(SAID, ANN)
    old.remember(SAID, BOB)
    filled = in_qdrant(engines.search, postgres_url, schema, "ann")
    target = Model()
    assert old.maintenance.reembed(target)
    # Who knows the old one alone takes no marks away: what he copies is not what will be asked for.
    assert old.flush() > 0
    old.sweep()
    assert old.recall(QUESTION, ANN).hits
    new = open_memory(search=engines.search, graph=engines.graph, cache=engines.cache, embeddings=target)
    found = new.recall(QUESTION, ANN)
    assert "dense" in arms(found)
    assert not found.degraded
    assert new.flush() == 0
    both = in_qdrant(engines.search, postgres_url, schema, "ann")
    assert both == {f"{prefix}_1": filled[f"{prefix}_1"], f"{prefix}_2": filled[f"{prefix}_1"]}
    assert new.doctor(every=True).problems == ()
    # Forgotten is what the retired one holds, too.
    receipt = new.remember("A slip of the tongue.", ANN)
    assert new.forget(ANN, ids=receipt.ids).clean
    with pytest.raises(ConfigurationError, match="search="):
        open_memory(embeddings=target).maintenance.drop_retired()
    assert new.maintenance.drop_retired() == 1
    assert engines.search.collections() == [f"{prefix}_2"]
    assert not new.recall(QUESTION + "?", ANN).degraded
    assert new.doctor(every=True).problems == ()
    assert len(target.embedded) == 2 * len(SAID) + 1
