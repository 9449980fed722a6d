"""Any OpenAI-compatible server works, through the real client, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_openai import ChatOpenAI

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.graphs.cognitive import create_memory_graph
from langchain_memrag.memory.middleware import MemoryMiddleware
from langchain_memrag.records import Scope
from tests.adapters.openai_server import CutOff, Fault, OpenAIServer, ToolCall

ANN = {"configurable": {"user_id": "ann", "thread_id": "t1"}}
INTENT = {"category": "relational", "entities": ["小雨"], "needs_tools": False, "confidence": 0.8}


def chat(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="some-model", base_url=server.base_url, api_key="test-key", **{"max_retries": 0, **options}
    )


def said(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: 21 degrees"


def test_answer_and_intent_go_out_at_their_temperatures(
    memrag: MemRAG, texts: Callable[[str], list[str]]
) -> None:
    memrag.remember("我女儿叫小雨。", Scope("ann", session_id="before"))
    with OpenAIServer([INTENT, "小雨是你的女儿。"]) as server:
        model = chat(server)
        graph = create_memory_graph(memrag, model=model, fast_model=model)
        out = graph.invoke(said("小雨是谁？"), ANN)
    intent, answer = server.requests
    assert (intent["temperature"], answer["temperature"]) == (0.1, 0.5)
    assert intent["response_format"]["type"] == "json_schema"
    assert "我女儿叫小雨。" in answer["messages"][0]["content"]
    assert out["intent"] == {**INTENT, "origin": "model"}
    assert out["answer"] == "小雨是你的女儿。"
    assert texts("ann") == ["user: 我女儿叫小雨。", "user: 小雨是谁？", "assistant: 小雨是你的女儿。"]
    assert server.keys == ["Bearer test-key"] * 2


def test_nothing_is_escaped_on_the_wire(memrag: MemRAG) -> None:
    memrag.remember("J'adore le café ☕ 和小雨", Scope("ann"))
    with OpenAIServer(["ok"]) as server:
        create_memory_graph(memrag, model=chat(server)).invoke(said("café 小雨?"), ANN)
    assert "J'adore le café ☕ 和小雨" in server.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize("reply", ["It is relational, I think.", '{"category": "rel'])
def test_an_unusable_intent_is_repaired_once_then_the_rules_decide(memrag: MemRAG, reply: str) -> None:
    with OpenAIServer([reply, reply, "An answer."]) as server:
        model = chat(server)
        out = create_memory_graph(memrag, model=model, fast_model=model).invoke(said("Who is Emma?"), ANN)
    assert len(server.requests) == 3
    assert out["intent"]["origin"] == "rules"
    assert out["answer"] == "An answer."


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_in_trouble_costs_the_intent_alone(memrag: MemRAG, status: int) -> None:
    with OpenAIServer([Fault(status), "An answer."]) as server:
        model = chat(server)
        out = create_memory_graph(memrag, model=model, fast_model=model).invoke(said("Who is Emma?"), ANN)
    assert (out["intent"]["origin"], out["answer"]) == ("rules", "An answer.")


def test_tokens_stream_and_the_intent_does_not(memrag: MemRAG) -> None:
    with OpenAIServer([INTENT, "Emma is your daughter."]) as server:
        model = chat(server)
        graph = create_memory_graph(memrag, model=model, fast_model=model)
        pieces = [
            chunk.text
            for chunk, _ in graph.stream(said("Who is Emma?"), ANN, stream_mode="messages")
            if isinstance(chunk, AIMessageChunk)
        ]
    assert "".join(pieces) == "Emma is your daughter."
    assert len(pieces) > 3
    assert server.requests[1]["stream"] is True


async def test_tokens_stream_in_async_hosts(memrag: MemRAG) -> None:
    with OpenAIServer(["Emma is your daughter."]) as server:
        graph = create_memory_graph(memrag, model=chat(server))
        pieces = [
            chunk.text async for chunk, _ in graph.astream(said("Who is Emma?"), ANN, stream_mode="messages")
        ]
    assert "".join(pieces) == "Emma is your daughter."


@pytest.mark.parametrize("streaming", [False, True])
def test_tools_are_called_and_their_noise_is_not_remembered(
    memrag: MemRAG, texts: Callable[[str], list[str]], streaming: bool
) -> None:
    with OpenAIServer([ToolCall("weather", {"city": "杭州"}), "It is 21 degrees in 杭州."]) as server:
        graph = create_memory_graph(memrag, model=chat(server, streaming=streaming), tools=[weather])
        out = graph.invoke(said("How is the weather in 杭州?"), ANN)
    assert [message.text for message in out["messages"] if isinstance(message, ToolMessage)] == [
        "杭州: 21 degrees"
    ]
    assert server.requests[0]["tools"][0]["function"]["name"] == "weather"
    assert server.requests[1]["messages"][-1]["role"] == "tool"
    assert texts("ann") == ["user: How is the weather in 杭州?", "assistant: It is 21 degrees in 杭州."]


@pytest.mark.parametrize("fault", [Fault(429), Fault(500), Fault(401, "bad key")])
def test_an_error_of_the_answering_model_is_raised_and_the_turn_is_kept(
    memrag: MemRAG, texts: Callable[[str], list[str]], fault: Fault
) -> None:
    with OpenAIServer([fault]) as server, pytest.raises(openai.APIStatusError):
        create_memory_graph(memrag, model=chat(server)).invoke(said("I live in Lisbon."), ANN)
    assert texts("ann") == ["user: I live in Lisbon."]


def test_a_retry_by_the_client_stores_nothing_twice(
    memrag: MemRAG, texts: Callable[[str], list[str]]
) -> None:
    with OpenAIServer([Fault(500), "Noted."]) as server:
        create_memory_graph(memrag, model=chat(server, max_retries=1)).invoke(said("I live in Lisbon."), ANN)
    assert texts("ann") == ["user: I live in Lisbon.", "assistant: Noted."]


def test_a_stream_that_breaks_keeps_the_turn_and_stores_no_half_answer(
    memrag: MemRAG, texts: Callable[[str], list[str]]
) -> None:
    with OpenAIServer([CutOff("Lisbon is a beautiful city.", after=9)]) as server:
        graph = create_memory_graph(memrag, model=chat(server, streaming=True))
        with pytest.raises((openai.APIError, httpx.HTTPError)):
            list(graph.stream(said("I live in Lisbon."), ANN, stream_mode="messages"))
    assert texts("ann") == ["user: I live in Lisbon."]


def test_the_middleware_over_the_wire(memrag: MemRAG, texts: Callable[[str], list[str]]) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann"))
    with OpenAIServer([ToolCall("weather", {"city": "Oslo"}), "Rex."]) as server:
        agent = create_agent(
            chat(server), [weather], middleware=[MemoryMiddleware(memrag)], system_prompt="Be kind."
        )
        out = asyncio.run(agent.ainvoke(said("What is my dog called?"), ANN))
    for request in server.requests:
        system = request["messages"][0]
        assert system["role"] == "system"
        assert system["content"].startswith("Be kind.")
        assert "My dog is called Rex." in system["content"]
    assert out["messages"][-1].text == "Rex."
    assert texts("ann")[1:] == ["user: What is my dog called?", "assistant: Rex."]
