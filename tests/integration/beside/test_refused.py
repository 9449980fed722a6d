"""An engine that answers and takes no writes: a full disk, no memory left, read-only, or it just refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from redis import Redis

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from tests.conftest import HandClock

from .faulty import Breakable, ConfiguredNeo4j, Trouble, converge, eventually, in_full, marks, said_by

ANN = Scope("ann", session_id="s")
SAID = ["Zaphod Beeblebrox eats bread in Geneva.", "王芳在北京大学喝茶。"]
MORE = ["李明 met Arthur Dent in Lisbon.", "The bread of Lisbon is better, said 王芳."]


def still_right(memory: MemRAG) -> None:
    assert SAID[0] in said_by(memory.recall("Where does Zaphod Beeblebrox eat bread?", ANN, timeout=30))
    assert MORE[0] in said_by(memory.recall("Who met Arthur Dent in Lisbon?", ANN, timeout=30))
    assert MORE[1] in said_by(memory.recall("王芳 said what of the bread of Lisbon?", ANN, timeout=30))


def tries(url: str, schema: str, work: str) -> set[int]:
    """How often marks of a kind were tried."""
    return {attempts for _, _, kind, attempts in marks(url, schema) if kind == work}


def refused_and_waiting_longer(memory: MemRAG, clock: HandClock, url: str, schema: str, work: str) -> None:
    """Marks of what was refused once already are tried again after 15 s, 30 s and so on, and not before."""
    engine = {"search": "qdrant", "graph": "neo4j"}[work]
    assert tries(url, schema, work) == {1}
    assert memory.flush() == len(MORE)
    assert tries(url, schema, work) == {1}
    for attempt, seconds in ((2, 15), (3, 30), (4, 60)):
        clock.forward(timedelta(seconds=seconds - 1))
        memory.flush()
        assert tries(url, schema, work) == {attempt - 1}
        clock.forward(timedelta(seconds=2))
        memory.flush()
        assert tries(url, schema, work) == {attempt}
    health = memory.doctor(every=True)
    assert any(engine in problem and "refused" in problem for problem in health.problems)
    assert next(one.refused for one in health.engines if one.role == work) == len(MORE)


@pytest.mark.slow
@pytest.mark.soak
def test_qdrant_refuses(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    clock: HandClock,
    postgres_url: str,
    schema: str,
) -> None:
    memory = open_memory(**breakable.named)
    memory.remember(SAID, ANN)
    breakable.client.trouble = "refuses"
    assert memory.remember(MORE, ANN).indexed == 2
    still_right(memory)
    refused_and_waiting_longer(memory, clock, postgres_url, schema, "search")
    still_right(memory)
    breakable.client.trouble = ""
    clock.forward(timedelta(hours=2))
    converge(memory)
    still_right(memory)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("trouble", ["refuses", pytest.param("full", marks=in_full)])
def test_qdrant_does_not_erase(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    clock: HandClock,
    postgres_url: str,
    schema: str,
    trouble: Trouble,
) -> None:
    memory = open_memory(**breakable.named)
    receipt = memory.remember(SAID + MORE, ANN)
    breakable.client.trouble = trouble
    report = memory.forget(ANN, ids=receipt.ids[:2])
    assert "qdrant" in {one.store for one in report.residue}
    assert SAID[0] not in said_by(memory.recall("Where does Zaphod Beeblebrox eat bread?", ANN))
    assert [work for _, _, work, _ in marks(postgres_url, schema)] == ["erase_search"] * 2
    breakable.client.trouble = ""
    clock.forward(timedelta(hours=2))
    converge(memory)
    assert marks(postgres_url, schema) == []
    assert memory.recall("Who met Arthur Dent in Lisbon?", ANN).degraded == ()


@pytest.mark.slow
@pytest.mark.soak
def test_the_disk_of_qdrant_is_full(open_memory: Callable[..., MemRAG], breakable: Breakable) -> None:
    memory = open_memory(**breakable.named)
    memory.remember(SAID, ANN)
    breakable.client.trouble = "full"
    assert memory.remember(MORE, ANN).indexed == 2
    still_right(memory)
    assert memory.flush() == 2
    breakable.client.trouble = ""
    converge(memory)
    still_right(memory)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("setting", "bad", "good"),
    [
        pytest.param("maxmemory", "1mb", "0", id="memory"),
        pytest.param("min-replicas-to-write", "1", "0", id="replicas", marks=in_full),
    ],
)
def test_redis_takes_no_writes(
    open_memory: Callable[..., MemRAG], breakable: Breakable, setting: str, bad: str, good: str
) -> None:
    memory = open_memory(**breakable.named)
    memory.remember(SAID, ANN)
    memory.recall("bread", ANN)
    assert memory.recall("bread", ANN).cached
    with Redis(port=breakable.redis.port, password=breakable.redis.password) as client:
        client.config_set(setting, bad)
        receipt = memory.remember(MORE, ANN)
        assert receipt.indexed == 2
        for _ in range(3):
            still_right(memory)
        report = memory.forget(ANN, ids=receipt.ids[1:])
        assert {one.store for one in report.residue} <= {"redis"}
        assert MORE[1] not in said_by(memory.recall("王芳 said what of the bread of Lisbon?", ANN))
        client.config_set(setting, good)
    converge(memory)

    def kept() -> bool:
        asked = "Who met Arthur Dent in Lisbon?"
        memory.recall(asked, ANN)
        return memory.recall(asked, ANN).cached

    eventually("recalls are kept again", kept)
    assert breakable.asked("redis") > 0


@pytest.mark.slow
@pytest.mark.soak
def test_neo4j_is_read_only(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    own_neo4j: ConfiguredNeo4j,
    clock: HandClock,
    postgres_url: str,
    schema: str,
) -> None:
    memory = open_memory(**breakable.named)
    memory.remember(SAID, ANN)
    # In order: one that was killed has to mend its files first, which it must not while it takes no writes.
    own_neo4j.stop()
    own_neo4j.more = ("server.databases.default_to_read_only=true",)
    own_neo4j.start()
    eventually("it is seen again", lambda: memory.doctor().problems == ())
    assert memory.remember(MORE, ANN).indexed == 2
    still_right(memory)
    refused_and_waiting_longer(memory, clock, postgres_url, schema, "graph")
    own_neo4j.kill()
    own_neo4j.more = ()
    own_neo4j.start()
    clock.forward(timedelta(hours=2))
    converge(memory)
    still_right(memory)
    assert memory.recall("Who met Arthur Dent in Lisbon, I ask?", ANN, timeout=30).degraded == ()
