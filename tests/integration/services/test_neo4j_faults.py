"""The graph over a Neo4j that is killed, stands still or refuses; the graph alone, without the record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from langchain_core.utils.uuid import uuid7

from langchain_memrag.errors import StoreError, StoreUnavailableError
from langchain_memrag.stores.base import GraphBatch, SearchFilter
from langchain_memrag.stores.neo4j import Neo4jGraph, Neo4jOptions
from langchain_memrag.testing.contracts.graph import says

from .fixtures import need
from .neo4j import Neo4jServer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WHERE = SearchFilter(spaces=(1,), now=NOW)

LONG = 60.0
"""Far more than anything here is bounded by, and far less than the driver would wait by itself."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """One that the tests of this file kill and start again."""
    need("Neo4j")
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j-faults"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def running(server: Neo4jServer) -> Neo4jServer:
    """The same, running whatever the test before left behind."""
    server.start()
    return server


def batches(count: int) -> list[GraphBatch]:
    """Records about few names, so that each write touches what others wrote."""
    names = ["Ann", "小林", "北京大学", "Bo", "C++", "茶"]
    return [
        says(names[number % 6], names[(number * 5 + 1) % 6], f"N{number % 50}", record=UUID(str(uuid7())))
        for number in range(count)
    ]


def all_of(graph: Neo4jGraph, space: int) -> tuple[object, ...]:
    """What a space holds, as far as anyone can see."""
    keys = ["ann", "小林", "北京大学", "bo", "c++", "茶", *(f"n{number}" for number in range(50))]
    return (
        graph.counts(space),
        graph.entities(space, keys),
        [graph.neighbours(space, key) for key in keys[:6]],
    )


def test_killed_in_the_middle_and_done_again(running: Neo4jServer) -> None:
    """What was acknowledged is there; doing all of it again gives what an undisturbed run gives."""
    work = batches(240)
    with Neo4jGraph(running.url + "?namespace=Killed", Neo4jOptions(retry_time=0)) as graph:
        done: list[int] = []
        lock = threading.Lock()

        def write(first: int) -> None:
            for number in range(first, len(work), 3):
                try:
                    graph.upsert(1, work[number])
                except StoreUnavailableError:
                    return
                with lock:
                    done.append(number)

        writers = [threading.Thread(target=write, args=(first,)) for first in range(3)]
        for writer in writers:
            writer.start()
        deadline = time.monotonic() + LONG
        while len(done) < 60:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        running.kill()
        for writer in writers:
            writer.join(LONG)
            assert not writer.is_alive()
        assert 60 <= len(done) < len(work), "it was to be killed in the middle"

        with pytest.raises(StoreUnavailableError):
            graph.counts(1)
        running.start()
        for number in done:
            record = work[number].sources[0].record
            assert graph.count_of(1, [record]) == len(work[number].mentions) + len(work[number].relations)
        for batch in work:
            graph.upsert(1, batch)
        for batch in work:
            graph.upsert(2, batch)
        assert all_of(graph, 1) == all_of(graph, 2)


def within(seconds: float, work: Callable[[], object]) -> BaseException:
    """What is raised by work that has to end; a hang is a failure, not a wait."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except StoreError as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "still waiting"
    assert raised, "it answered"
    return raised[0]


def test_a_server_that_stands_still_is_not_waited_for(running: Neo4jServer) -> None:
    """On connections that are there already, and without any."""
    url = running.url + "?namespace=Paused"
    options = Neo4jOptions(timeout=2, connect_timeout=1, retry_time=0)
    with Neo4jGraph(url, options) as graph, Neo4jGraph(url, options) as cold:
        graph.upsert(1, says("Ann", "小林"))
        running.pause()
        try:
            for work in (
                lambda: graph.expand(WHERE, ["ann"], timeout=1),
                lambda: cold.expand(WHERE, ["ann"], timeout=1),
                lambda: graph.counts(1),
                lambda: graph.upsert(1, says("Bo")),
                lambda: cold.upsert(1, says("Bo")),
                graph.version,
            ):
                error = within(LONG, work)
                assert isinstance(error, StoreUnavailableError), error
        finally:
            running.resume()
        assert len(graph.expand(WHERE, ["ann"], timeout=5)) == 1
        graph.upsert(1, says("Ann", "Cy"))
        assert graph.counts(1)[0] in {3, 4}  # whether Bo came through, nobody was told


def test_one_established_connection_is_bounded_by_the_budget(running: Neo4jServer) -> None:
    """The other timeouts are far away, so nothing but the walk's own budget can have ended it."""
    options = Neo4jOptions(timeout=600, connect_timeout=600, retry_time=600)
    with Neo4jGraph(running.url + "?namespace=Bounded", options) as graph:
        graph.upsert(1, says("Ann"))
        running.pause()
        try:
            error = within(LONG, lambda: graph.expand(WHERE, ["ann"], timeout=1))
        finally:
            running.resume()
        assert isinstance(error, StoreUnavailableError)


def test_a_server_that_is_gone(running: Neo4jServer) -> None:
    url = running.url + "?namespace=Gone"
    running.kill()
    with Neo4jGraph(url) as graph:
        for work in (
            lambda: graph.upsert(1, says("Ann")),
            lambda: graph.expand(WHERE, ["ann"], timeout=1),
            lambda: graph.knows(UUID(int=1)),
            graph.version,
        ):
            error = within(LONG, work)
            assert isinstance(error, StoreUnavailableError)
            assert running.password not in f"{error}{error.__cause__}"
        running.start()
        graph.upsert(1, says("Ann"))
        assert graph.counts(1) == (1, 0)


def test_a_wrong_password_is_named_and_not_shown(running: Neo4jServer) -> None:
    for login in ("neo4j:s3cret-pass", "nobody:s3cret-pass"):
        with Neo4jGraph(f"bolt://{login}@{running.place}") as graph:
            error = within(LONG, lambda graph=graph: graph.upsert(1, says("Ann")))  # type: ignore[misc]
            assert type(error) is StoreError
            assert "check user and password" in str(error)
            assert "s3cret" not in f"{error}{error!r}{error.__cause__!r}{error.__context__!r}{graph!r}"


def test_a_database_that_is_not_there(running: Neo4jServer) -> None:
    with Neo4jGraph(f"{running.url}/elsewhere") as graph:
        error = within(LONG, graph.version)
        assert type(error) is StoreError
        assert "no such database" in str(error)
