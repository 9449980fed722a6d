"""The circuit breaker."""

from __future__ import annotations

import threading

import pytest

from langchain_memrag.engine.breaker import Breaker
from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import StoreUnavailableError


class Engine:
    """Answers or not, and counts who asks."""

    def __init__(self) -> None:
        self.up = False
        self.asked = 0
        self.seen = threading.Event()

    def version(self) -> str:
        self.asked += 1
        self.seen.set()
        if not self.up:
            raise StoreUnavailableError("away", engine="qdrant", operation="probe")
        return "1"


class Hand:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def threads():
    threads = Threads("test", 2)
    yield threads
    threads.close()


@pytest.fixture
def breaker(engine: Engine, hand: Hand, threads: Threads) -> Breaker:
    return Breaker("qdrant", engine.version, threads, hand)


def refused(breaker: Breaker) -> bool:
    try:
        breaker.check("search")
    except StoreUnavailableError as error:
        return error.engine == "qdrant"
    return False


def settled(threads: Threads) -> None:
    """Wait for the probes that are under way."""
    threads.submit(lambda: None).result()
    threads.submit(lambda: None).result()


def test_closed_it_lets_everybody_through(breaker: Breaker, engine: Engine) -> None:
    assert not refused(breaker)
    assert engine.asked == 0


def test_open_it_refuses_at_once_and_asks_nobody_too_soon(breaker: Breaker, engine: Engine) -> None:
    breaker.failed()
    assert all(refused(breaker) for _ in range(100))
    assert engine.asked == 0


def test_after_a_rest_one_probe_is_sent_and_nobody_waits_for_it(
    breaker: Breaker, engine: Engine, hand: Hand, threads: Threads
) -> None:
    breaker.failed()
    hand.now = 1
    assert all(refused(breaker) for _ in range(10))
    settled(threads)
    assert engine.asked == 1
    engine.up = True
    hand.now = 3
    assert refused(breaker)  # who finds out goes without
    settled(threads)
    assert not refused(breaker)


def test_an_engine_that_only_answers_probes_is_asked_ever_more_rarely(
    breaker: Breaker, engine: Engine, hand: Hand, threads: Threads
) -> None:
    engine.up = True
    for _ in range(12):
        breaker.failed()
        hand.now += 10
        refused(breaker)
        settled(threads)
    assert engine.asked < 12
    breaker.probe()
    breaker.worked()
    breaker.failed()
    hand.now += 1
    before = engine.asked
    refused(breaker)
    settled(threads)
    assert engine.asked == before + 1


def test_a_sweep_asks_and_waits(breaker: Breaker, engine: Engine) -> None:
    assert breaker.probe()
    assert engine.asked == 0
    breaker.failed()
    assert not breaker.probe()
    engine.up = True
    assert breaker.probe()
    assert not refused(breaker)


def test_a_memory_that_is_being_closed_sends_no_probe(
    breaker: Breaker, hand: Hand, threads: Threads, engine: Engine
) -> None:
    breaker.failed()
    hand.now = 1
    threads.close()
    assert refused(breaker)
    assert refused(breaker)
    assert engine.asked == 0
