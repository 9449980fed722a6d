"""Nothing blocks the event loop: what `langgraph dev` would raise `BlockingError` for raises here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from blockbuster import BlockingError, blockbuster_ctx
from langchain.agents import create_agent

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.graphs import create_memory_graph
from langchain_memrag.memory import MemoryMiddleware, MemRAGMemory
from langchain_memrag.records import Scope
from langchain_memrag.retrievers import MemoryRetriever
from langchain_memrag.stores.postgres.pools import LazyPool
from langchain_memrag.testing.chat import ScriptedChatModel

ANN: Any = {"configurable": {"user_id": "ann", "thread_id": "t1"}}


@pytest.fixture
def guard(memrag: MemRAG, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuses Python's blocking calls on the loop, and connections, whose waiting in C nobody else sees."""
    memrag.remember("My dog is called Rex.", Scope("ann"))
    borrow = LazyPool.connection

    @contextmanager
    def watched(pool: LazyPool) -> Iterator[Any]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with borrow(pool) as connection:
                yield connection
        else:
            raise BlockingError("a connection was taken on the event loop")

    monkeypatch.setattr(LazyPool, "connection", watched)
    with blockbuster_ctx():
        yield
    monkeypatch.undo()


def said(text: str) -> Any:
    return {"messages": [("user", text)]}


async def test_the_guard_guards(memrag: MemRAG, guard: None) -> None:
    with pytest.raises(BlockingError):
        memrag.history(Scope("ann"))
    with pytest.raises(BlockingError):
        time.sleep(0.001)  # noqa: ASYNC251


async def test_the_graph(memrag: MemRAG, guard: None) -> None:
    model = ScriptedChatModel(otherwise="Rex.")
    for graph in (
        create_memory_graph(memrag, checkpointer=memrag.checkpointer()),
        create_memory_graph(memrag, model, model, checkpointer=memrag.checkpointer()),
    ):
        out = await graph.ainvoke(said("What is my dog called?"), ANN)
        assert "Rex" in out["answer"]
        assert out["memory_error"] == ""
        assert [chunk async for chunk in graph.astream(said("And my cat?"), ANN, stream_mode="messages")]
        assert (await graph.aget_state(ANN)).values["memory_error"] == ""


async def test_the_middleware(memrag: MemRAG, guard: None) -> None:
    agent = create_agent(
        ScriptedChatModel(otherwise="Rex."),
        middleware=[MemoryMiddleware(memrag)],
        checkpointer=memrag.checkpointer(),
    )
    out = await agent.ainvoke(said("What is my dog called?"), ANN)
    assert out["memory_error"] == ""


async def test_the_retriever_and_the_classic_memory(memrag: MemRAG, guard: None) -> None:
    documents = await MemoryRetriever(memrag=memrag).ainvoke("What is my dog called?", ANN)
    assert [document.page_content for document in documents] == ["My dog is called Rex."]
    memory = MemRAGMemory(memrag=memrag, scope=Scope("ann", session_id="t1"))
    await memory.asave_context({"input": "Hi"}, {"output": "Hello"})
    assert "Rex" in (await memory.aload_memory_variables({"input": "What is my dog called?"}))["history"]


async def test_the_facade(memrag: MemRAG, guard: None) -> None:
    scope = Scope("ann", session_id="t1")
    receipt = await memrag.aremember(["I live in Lisbon.", "我住在杭州。"], scope)
    assert (await memrag.arecall("Where do I live?", scope)).hits
    assert len(await memrag.aget(receipt.ids, scope)) == 2
    assert len((await memrag.ahistory(scope)).episodes) == 2
    assert (await memrag.astats(scope)).episodes == 3
    assert await memrag.aflush(scope) == 0
    assert (await memrag.adoctor()).problems == ()
    assert (await memrag.aforget(scope)).clean
