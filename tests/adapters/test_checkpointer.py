"""One saver for sync and async hosts: LangGraph's own conformance suite, loops, threads, a pool of one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.engine.threads import Threads
from langchain_memrag.memory.checkpointer import MemRAGSaver
from langchain_memrag.stores.postgres.database import Database


@pytest.fixture
def database(postgres_url: str, schema: str, memrag: MemRAG) -> Iterator[Database]:
    opened = Database(postgres_url, schema=schema)
    yield opened
    opened.close()


@pytest.fixture
def saver(database: Database) -> Iterator[MemRAGSaver]:
    threads = Threads("test", 4)
    yield MemRAGSaver(database, threads)
    threads.close()


class State(TypedDict):
    seen: Annotated[list[str], lambda left, right: left + right]


def counting(saver: BaseCheckpointSaver[str]) -> CompiledStateGraph[State, None, State, State]:
    graph = StateGraph(State)
    graph.add_node("step", lambda state: {"seen": [f"step {len(state['seen'])}"]})
    graph.add_edge(START, "step")
    graph.add_edge("step", END)
    return graph.compile(checkpointer=saver)


def thread(name: str) -> dict[str, dict[str, str]]:
    return {"configurable": {"thread_id": name}}


async def test_it_passes_the_conformance_suite(saver: MemRAGSaver) -> None:
    @checkpointer_test(name="MemRAGSaver")
    async def ours() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        yield saver

    report = await validate(ours)
    assert report.passed_all_base(), report.to_dict()
    for name, result in report.results.items():
        assert result.passed is not False, (name, result.failures)
    assert report.results["prune"].passed


def test_one_saver_serves_sync_and_async_hosts(saver: MemRAGSaver) -> None:
    graph = counting(saver)
    graph.invoke({"seen": ["sync"]}, thread("1"))
    asyncio.run(graph.ainvoke({"seen": ["async"]}, thread("1")))
    asyncio.run(graph.ainvoke({"seen": ["another loop"]}, thread("1")))
    state = graph.get_state(thread("1")).values["seen"]
    assert state == ["sync", "step 1", "async", "step 3", "another loop", "step 5"]


async def test_the_sync_half_works_inside_a_running_loop(saver: MemRAGSaver) -> None:
    graph = counting(saver)
    graph.invoke({"seen": ["a"]}, thread("1"))
    assert (await graph.aget_state(thread("1"))).values == {"seen": ["a", "step 1"]}
    history = [one.values async for one in graph.aget_state_history(thread("1"))]
    assert history[:2] == [{"seen": ["a", "step 1"]}, {"seen": ["a"]}]


async def test_the_loop_is_never_blocked(saver: MemRAGSaver) -> None:
    """Every statement runs in another thread than the loop's."""
    loop_thread = threading.get_ident()
    used: set[int] = set()
    session = saver._database.session

    def watched(operation: str) -> object:
        used.add(threading.get_ident())
        return session(operation)

    saver._database.session = watched  # type: ignore[method-assign, assignment]
    await counting(saver).ainvoke({"seen": ["a"]}, thread("1"))
    assert used
    assert loop_thread not in used


def test_many_threads_at_once_lose_and_mix_nothing(saver: MemRAGSaver) -> None:
    graph = counting(saver)

    def talk(number: int) -> list[str]:
        for turn in range(3):
            graph.invoke({"seen": [f"{number}.{turn}"]}, thread(str(number)))
        return list(graph.get_state(thread(str(number))).values["seen"])

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(talk, range(12)))
    for number, seen in enumerate(results):
        assert [text for text in seen if not text.startswith("step")] == [
            f"{number}.{turn}" for turn in range(3)
        ]


async def test_many_tasks_at_once(saver: MemRAGSaver) -> None:
    graph = counting(saver)
    await asyncio.gather(*(graph.ainvoke({"seen": [str(n)]}, thread(str(n))) for n in range(20)))
    for number in range(20):
        state = await graph.aget_state(thread(str(number)))
        assert state.values["seen"] == [str(number), "step 1"]


def test_a_pool_of_one_does_not_deadlock(postgres_url: str, schema: str, memrag: MemRAG) -> None:
    database = Database(postgres_url, schema=schema, session_pool_size=1)
    threads = Threads("one", 1)
    saver = MemRAGSaver(database, threads)
    graph = counting(saver)
    graph.invoke({"seen": ["a"]}, thread("1"))
    for one in saver.list(thread("1")):  # asking while listing
        assert saver.get_tuple(one.config) is not None

    async def crowd() -> None:
        await asyncio.gather(*(graph.ainvoke({"seen": ["a"]}, thread(str(n))) for n in range(8)))

    asyncio.run(asyncio.wait_for(crowd(), 60))
    threads.close()
    database.close()


async def test_interrupts_resume_where_they_stopped(saver: MemRAGSaver) -> None:
    graph = StateGraph(State)
    graph.add_node("ask", lambda state: {"seen": [interrupt("who?")]})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    compiled = graph.compile(checkpointer=saver)
    paused = await compiled.ainvoke({"seen": ["问"]}, thread("1"))
    assert paused["__interrupt__"][0].value == "who?"
    resumed = compiled.invoke(Command(resume="小雨"), thread("1"))
    assert resumed["seen"] == ["问", "小雨"]


def test_setup_may_be_called_as_with_any_saver(saver: MemRAGSaver) -> None:
    saver.setup()
    saver.setup()
    assert saver.get_tuple(thread("none")) is None  # type: ignore[arg-type]


def test_the_copy_with_an_allowlist_works_too(saver: MemRAGSaver) -> None:
    counting(saver.with_allowlist([])).invoke({"seen": ["a"]}, thread("1"))
    assert saver.get_tuple(thread("1")) is not None  # type: ignore[arg-type]
