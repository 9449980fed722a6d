"""The cognitive graph: with and without models, tools, streaming, failures, and node by node."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, ScopeError, StoreUnavailableError
from langchain_memrag.graphs import (
    MemoryGraphState,
    classify_intent_node,
    create_memory_graph,
    learn_node,
    respond_node,
    retrieve_node,
)
from langchain_memrag.records import Scope
from langchain_memrag.testing.chat import ScriptedChatModel

Texts = Callable[[str], list[str]]
INTENT = {"category": "relational", "entities": ["Emma"], "needs_tools": False, "confidence": 0.8}
CALL = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "1"}])


def config(user: str = "ann", thread: str = "t1") -> Any:
    return {"configurable": {"user_id": user, "thread_id": thread}}


def said(text: str) -> Any:
    return {"messages": [("user", text)]}


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: 21 degrees"


def run(graph: Any, what: Any, half: str, where: Any = None) -> Any:
    if half == "sync":
        return graph.invoke(what, where or config())
    return asyncio.run(graph.ainvoke(what, where or config()))


def test_its_shape(memrag: MemRAG) -> None:
    drawn = create_memory_graph(memrag, ScriptedChatModel(), tools=[weather]).get_graph()
    assert set(drawn.nodes) == {
        "__start__",
        "classify_intent",
        "retrieve",
        "respond",
        "tools",
        "learn",
        "__end__",
    }
    edges = {(edge.source, edge.target) for edge in drawn.edges}
    assert edges == {
        ("__start__", "classify_intent"),
        ("classify_intent", "retrieve"),
        ("retrieve", "respond"),
        ("respond", "tools"),
        ("tools", "respond"),
        ("respond", "learn"),
        ("learn", "__end__"),
    }


@pytest.mark.parametrize("half", ["sync", "async"])
@pytest.mark.parametrize(
    ("fact", "question", "answer", "unknown", "ignorance"),
    [
        (
            "I live in Lisbon.",
            "Where do I live?",
            "On 3 May 2026 you said: “I live in Lisbon.”",
            "What is my passport number?",
            "I don't know; I remember nothing about that.",
        ),
        (
            "我住在杭州。",
            "我住在哪里？",
            "2026年5月3日，你说：“我住在杭州。”",
            "我的护照号码是多少？",
            "我不知道，记忆里没有相关的内容。",
        ),
    ],
)
def test_without_a_model_the_whole_loop_runs_offline(
    memrag: MemRAG,
    texts: Texts,
    half: str,
    fact: str,
    question: str,
    answer: str,
    unknown: str,
    ignorance: str,
) -> None:
    memrag.remember(fact, Scope("ann", session_id="before"), occurred_at=datetime(2026, 5, 3, tzinfo=UTC))
    graph = create_memory_graph(memrag)
    found = run(graph, said(question), half)
    assert found["answer"] == found["messages"][-1].text == answer
    assert found["recalled"][0]["text"] == fact
    assert found["intent"]["origin"] == "rules"
    assert found["user_id"] == "ann"
    assert run(graph, said(unknown), half, config(thread="t2"))["answer"] == ignorance
    assert texts("ann") == [
        f"user: {fact}",
        f"user: {question}",
        f"assistant: {answer}",
        f"user: {unknown}",
        f"assistant: {ignorance}",
    ]


def test_an_answer_that_quotes_memory_is_no_evidence_later(memrag: MemRAG) -> None:
    graph = create_memory_graph(memrag)
    graph.invoke(said("My dog is called Rex."), config(thread="1"))
    for thread in ("2", "3", "4"):
        out = graph.invoke(said("What is my dog called?"), config(thread=thread))
        assert out["answer"].count("“") == 1
        assert "Rex" in out["answer"]


def test_the_state_is_json_apart_from_the_messages(memrag: MemRAG) -> None:
    memrag.remember("我住在杭州。", Scope("ann"), speaker="小雨", metadata={"mood": "好"})
    out = create_memory_graph(memrag).invoke(said("谁住在杭州？"), config())
    out.pop("messages")
    assert json.loads(json.dumps(out)) == out
    assert set(out) == {
        "user_id",
        "intent",
        "memory_block",
        "recalled",
        "answer",
        "memory_error",
        "memory_mark",
        "memory_seen",
    }
    assert out["recalled"][0]["speaker"] == "小雨"
    assert out["recalled"][0]["signals"]


@pytest.mark.parametrize("half", ["sync", "async"])
def test_with_models(memrag: MemRAG, texts: Texts, half: str) -> None:
    memrag.remember("Emma is my daughter.", Scope("ann"))
    fast, quality = ScriptedChatModel(script=[INTENT]), ScriptedChatModel(script=["Your daughter."])
    graph = create_memory_graph(memrag, quality, fast)
    out = run(graph, said("Who is Emma?"), half)
    assert out["answer"] == "Your daughter."
    assert out["intent"] == {**INTENT, "origin": "model"}
    assert (fast.calls[0].temperature, quality.calls[0].temperature) == (0.1, 0.5)
    system = quality.calls[0].messages[0].text
    assert system.startswith("You are a helpful assistant")
    assert "<memory>" in system
    assert "Emma is my daughter." in system
    assert texts("ann")[1:] == ["user: Who is Emma?", "assistant: Your daughter."]


def test_the_system_prompt_is_in_the_language_of_the_question_or_as_given(memrag: MemRAG) -> None:
    model = ScriptedChatModel(otherwise="好")
    create_memory_graph(memrag, model).invoke(said("你好"), config())
    assert "长期记忆" in model.calls[-1].messages[0].text
    create_memory_graph(memrag, model, system_prompt="Be a pirate.").invoke(said("你好"), config())
    assert model.calls[-1].messages[0].text.startswith("Be a pirate.")
    create_memory_graph(memrag, model, system_prompt="").invoke(said("zebra"), config("nobody"))
    assert model.calls[-1].messages[0].type == "human"


@pytest.mark.parametrize("half", ["sync", "async"])
def test_tools_are_called_until_the_model_answers(memrag: MemRAG, texts: Texts, half: str) -> None:
    model = ScriptedChatModel(script=[CALL, CALL, "It is 21 degrees."])
    graph = create_memory_graph(memrag, model, tools=[weather])
    out = run(graph, said("How is the weather in Oslo?"), half)
    assert [message.text for message in out["messages"] if isinstance(message, ToolMessage)] == [
        "Oslo: 21 degrees"
    ] * 2
    assert out["answer"] == "It is 21 degrees."
    assert model.calls[0].tools == ("weather",)
    assert model.calls[2].temperature == 0.5
    assert texts("ann") == ["user: How is the weather in Oslo?", "assistant: It is 21 degrees."]


def test_tools_without_a_model_are_refused(memrag: MemRAG) -> None:
    with pytest.raises(ConfigurationError, match="called by a model"):
        create_memory_graph(memrag, tools=[weather])


def test_tokens_stream_and_the_intent_does_not(memrag: MemRAG) -> None:
    graph = create_memory_graph(
        memrag, ScriptedChatModel(script=["Your daughter Emma."]), ScriptedChatModel(script=[INTENT])
    )
    pieces = [
        (chunk.text, metadata["langgraph_node"])
        for chunk, metadata in graph.stream(said("Who is Emma?"), config(), stream_mode="messages")
        if isinstance(chunk, AIMessageChunk)
    ]
    assert "".join(text for text, _ in pieces) == "Your daughter Emma."
    assert {node for _, node in pieces} == {"respond"}
    assert len(pieces) > 2


async def test_tokens_stream_async(memrag: MemRAG) -> None:
    graph = create_memory_graph(memrag, ScriptedChatModel(script=["你的女儿小雨。"]))
    pieces = [chunk.text async for chunk, _ in graph.astream(said("谁？"), config(), stream_mode="messages")]
    assert "".join(pieces) == "你的女儿小雨。"
    assert len(pieces) > 5


def test_an_extractive_answer_comes_in_the_stream_too(memrag: MemRAG) -> None:
    stream = create_memory_graph(memrag).stream(said("Where do I live?"), config(), stream_mode="messages")
    assert [message.text for message, _ in stream] == ["I don't know; I remember nothing about that."]


@pytest.mark.parametrize("half", ["sync", "async"])
def test_the_turn_is_stored_before_any_model_is_called(memrag: MemRAG, texts: Texts, half: str) -> None:
    def look(messages: Any) -> Any:
        seen.append(texts("ann"))
        return "ok" if len(seen) > 1 else INTENT

    seen: list[list[str]] = []
    model = ScriptedChatModel(otherwise=look)
    run(create_memory_graph(memrag, model, model), said("I live in Lisbon."), half)
    assert seen == [["user: I live in Lisbon."]] * 2


@pytest.mark.parametrize("half", ["sync", "async"])
def test_a_failing_model_loses_nothing_and_the_run_resumes(memrag: MemRAG, texts: Texts, half: str) -> None:
    model = ScriptedChatModel(script=[RuntimeError("overloaded"), "Noted!"])
    graph = create_memory_graph(memrag, model, checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="overloaded"):
        run(graph, said("I live in Lisbon."), half)
    assert texts("ann") == ["user: I live in Lisbon."]
    run(graph, None, half)
    assert texts("ann") == ["user: I live in Lisbon.", "assistant: Noted!"]


def test_a_failing_fast_model_costs_the_intent_alone(memrag: MemRAG) -> None:
    graph = create_memory_graph(
        memrag, ScriptedChatModel(script=["ok"]), ScriptedChatModel(script=[ConnectionError()])
    )
    out = graph.invoke(said("Who is Emma?"), config())
    assert (out["answer"], out["intent"]["origin"]) == ("ok", "rules")


@pytest.mark.parametrize("half", ["sync", "async"])
def test_a_failing_memory_does_not_kill_the_turn(
    memrag: MemRAG, half: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("gone", engine="postgres", operation="recall")

    async def aaway(*_: object, **__: object) -> None:
        away()

    for name in ("remember", "recall"):
        monkeypatch.setattr(memrag, name, away)
        monkeypatch.setattr(memrag, f"a{name}", aaway)
    with caplog.at_level(logging.WARNING):
        out = run(create_memory_graph(memrag, ScriptedChatModel(script=["Hello."])), said("Secret?"), half)
        extractive = run(create_memory_graph(memrag), said("Secret?"), half)
    assert out["answer"] == "Hello."
    assert "gone" in out["memory_error"]
    assert extractive["answer"] == "I cannot reach my memory just now."
    assert "Secret" not in caplog.text


def test_a_conversation_goes_on_over_a_checkpointer_and_nothing_is_stored_twice(
    memrag: MemRAG, texts: Texts
) -> None:
    model = ScriptedChatModel(otherwise="ok")
    graph = create_memory_graph(memrag, model, checkpointer=memrag.checkpointer())
    for _ in range(2):
        graph.invoke(said("My dog is called Rex."), config())
        asyncio.run(graph.ainvoke(said("What is my dog called?"), config()))
    assert len(texts("ann")) == 8
    # Its own thread is in the prompt already; another thread's prompt gets it from memory.
    assert "<memory>" not in model.calls[-1].messages[0].text
    out = graph.invoke(said("What is my dog called?"), config(thread="t2"))
    assert "Rex" in out["memory_block"]


def test_a_conversation_held_today_is_recalled_by_another_object(
    memrag: MemRAG, postgres_url: str, schema: str
) -> None:
    from langchain_memrag.testing.embeddings import WordHashEmbeddings

    create_memory_graph(memrag).invoke(said("I live in Lisbon."), config())
    with MemRAG.open(postgres_url, schema=schema, embeddings=WordHashEmbeddings(), background=False) as other:
        out = create_memory_graph(other).invoke(said("Where do I live?"), config(thread="tomorrow"))
    assert "I live in Lisbon." in out["answer"]


@pytest.mark.parametrize("half", ["sync", "async"])
def test_no_user_no_run(memrag: MemRAG, half: str) -> None:
    model = ScriptedChatModel(otherwise="x")
    graph = create_memory_graph(memrag, model, model)
    for configurable in ({}, {"user_id": " "}, {"user_id": "ann", "langgraph_user_id": "bob"}):
        with pytest.raises(ScopeError):
            run(graph, said("Hi"), half, {"configurable": {"thread_id": "t1", **configurable}})
    assert model.calls == []


def test_the_context_names_the_user(memrag: MemRAG, texts: Texts) -> None:
    graph = create_memory_graph(memrag)
    graph.invoke(said("I live in Lisbon."), context={"user_id": "ann"})
    assert texts("ann")[0] == "user: I live in Lisbon."
    with pytest.raises(ScopeError):
        graph.invoke(said("Hi"), config("bob"), context={"user_id": "ann"})


@pytest.mark.parametrize("messages", [[], [("user", "")], [("user", "  \u200b ")], [("ai", "Hello")]])
def test_nothing_to_answer_is_an_error_and_calls_no_model(memrag: MemRAG, messages: Any) -> None:
    model = ScriptedChatModel(otherwise="x")
    with pytest.raises(ConfigurationError, match="nothing to answer"):
        create_memory_graph(memrag, model, model).invoke({"messages": messages}, config())
    assert model.calls == []


def test_a_picture_alone_is_answered(memrag: MemRAG, texts: Texts) -> None:
    picture = HumanMessage([{"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}])
    out = create_memory_graph(memrag, ScriptedChatModel(script=["A cat."])).invoke(
        {"messages": [picture]}, config()
    )
    assert out["answer"] == "A cat."
    assert out["intent"] is None
    assert texts("ann") == ["assistant: A cat."]


def test_a_model_by_name_that_is_not_known_is_an_error(memrag: MemRAG) -> None:
    with pytest.raises(ConfigurationError, match="provider:model"):
        create_memory_graph(memrag, "nobody:nothing")


class HostState(MemoryGraphState):
    """Another graph's state."""

    shouted: str


@pytest.mark.parametrize("half", ["sync", "async"])
def test_nodes_work_in_another_graph(memrag: MemRAG, texts: Texts, half: str) -> None:
    memrag.remember("I live in Lisbon.", Scope("ann"))
    host = StateGraph(HostState)
    host.add_node("hear", classify_intent_node(memrag))
    host.add_node("look", retrieve_node(memrag, k=3))
    host.add_node("say", respond_node())
    host.add_node("shout", lambda state: {"shouted": state["answer"].upper()})
    host.add_node("keep", learn_node(memrag))
    for left, right in pairwise([START, "hear", "look", "say", "shout", "keep", END]):
        host.add_edge(left, right)
    out = run(host.compile(), said("Where do I live?"), half)
    assert "I LIVE IN LISBON." in out["shouted"]
    assert len(texts("ann")) == 3


def test_the_graph_is_a_node_of_another(memrag: MemRAG, texts: Texts) -> None:
    outer = StateGraph(MessagesState)
    outer.add_node("memory", create_memory_graph(memrag))
    outer.add_edge(START, "memory")
    outer.add_edge("memory", END)
    outer.compile(checkpointer=InMemorySaver()).invoke(said("I live in Lisbon."), config())
    assert texts("ann") == ["user: I live in Lisbon.", "assistant: Noted."]


@pytest.mark.parametrize("half", ["sync", "async"])
@pytest.mark.parametrize(
    ("told", "question", "expected"),
    [("I live in Lisbon.", "Where do I live?", "Lisbon"), ("我住在杭州。", "我住在哪里？", "杭州")],
)
def test_without_a_model_it_answers_from_this_very_conversation(
    memrag: MemRAG, half: str, told: str, question: str, expected: str
) -> None:
    graph = create_memory_graph(memrag, checkpointer=InMemorySaver())
    run(graph, said(told), half)
    state = run(graph, said(question), half)
    assert expected in state["answer"]
    assert question not in [turn["text"] for turn in state["recalled"]]
