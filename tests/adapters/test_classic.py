"""`MemRAGMemory` in classic chains and in an `AgentExecutor`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import tool

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.memory.classic import MemRAGMemory
from langchain_memrag.records import Scope
from langchain_memrag.testing.chat import ScriptedChatModel

Texts = Callable[[str], list[str]]
ANN = Scope("ann", session_id="today")


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"the meaning of {word}"


CALL = AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": "cat"}, "id": "1"}])


def executor(memrag: MemRAG, model: ScriptedChatModel, scope: Scope = ANN, **options: Any) -> AgentExecutor:
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Be kind."),
            MessagesPlaceholder("history"),
            ("user", "{input}"),
            MessagesPlaceholder("agent_scratchpad"),
        ]
    )
    memory = MemRAGMemory(memrag=memrag, scope=scope, return_messages=True, **options)
    return AgentExecutor(
        agent=create_tool_calling_agent(model, [look_up], prompt), tools=[look_up], memory=memory
    )


def test_an_agent_remembers_the_last_session(memrag: MemRAG, texts: Texts) -> None:
    memrag.remember("My cat is called Mia.", Scope("ann", session_id="yesterday"))
    model = ScriptedChatModel(script=[CALL, "Mia."])
    assert executor(memrag, model).invoke({"input": "What is my cat called?"})["output"] == "Mia."
    assert "My cat is called Mia." in model.calls[0].messages[1].text
    assert texts("ann")[1:] == ["user: What is my cat called?", "assistant: Mia."]


async def test_the_async_half_does_the_same(memrag: MemRAG, texts: Texts) -> None:
    memrag.remember("我的猫叫咪咪。", Scope("ann", session_id="yesterday"))
    model = ScriptedChatModel(script=[CALL, "咪咪。"])
    out = await executor(memrag, model).ainvoke({"input": "我的猫叫什么？"})
    assert out["output"] == "咪咪。"
    assert "我的猫叫咪咪。" in model.calls[0].messages[1].text
    assert texts("ann")[1:] == ["user: 我的猫叫什么？", "assistant: 咪咪。"]


def test_streaming_passes_messages_too_and_stores_the_answer_once(memrag: MemRAG, texts: Texts) -> None:
    list(executor(memrag, ScriptedChatModel(script=[CALL, "Done."])).stream({"input": "Look up cat"}))
    assert texts("ann") == ["user: Look up cat", "assistant: Done."]


async def test_async_streaming_inside_a_running_loop(memrag: MemRAG, texts: Texts) -> None:
    agent = executor(memrag, ScriptedChatModel(script=[CALL, "Done."]))
    assert [chunk async for chunk in agent.astream({"input": "Look up cat"})]
    assert texts("ann") == ["user: Look up cat", "assistant: Done."]


def test_the_session_goes_on(memrag: MemRAG) -> None:
    model = ScriptedChatModel(script=["Hello Ann.", "You said hi."])
    agent = executor(memrag, model)
    agent.invoke({"input": "Hi, I am Ann."})
    agent.invoke({"input": "What did I say?"})
    shown = model.calls[1].messages
    assert [message.text for message in shown if not isinstance(message, SystemMessage)] == [
        "Hi, I am Ann.",
        "Hello Ann.",
        "What did I say?",
    ]
    # What the transcript shows is not shown as a memory too.
    assert not any("Ann" in message.text for message in shown if isinstance(message, SystemMessage))


def test_strings_for_prompts_that_want_strings(memrag: MemRAG) -> None:
    memrag.remember("我的猫叫咪咪。", Scope("ann", session_id="yesterday"))
    memory = MemRAGMemory(memrag=memrag, scope=ANN, memory_key="chat")
    memory.save_context({"input": "你好"}, {"output": "你好！"})
    assert memory.memory_variables == ["chat"]
    shown = memory.load_memory_variables({"input": "我的猫叫什么？"})["chat"]
    assert "我的猫叫咪咪。" in shown
    assert shown.endswith("用户: 你好\n助手: 你好！")
    english = memory.load_memory_variables({"input": "What?"})["chat"]
    assert english.endswith("User: 你好\nAssistant: 你好！")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"question": "Hi"}, {"text": "Hello"}),
        ({"input": "Hi", "style": "short"}, {"output": "Hello", "intermediate_steps": []}),
        ({"question": "Hi", "history": "old", "stop": ["x"]}, {"answer": "Hello"}),
        ({"input": [HumanMessage("Hi")]}, {"output": AIMessage("Hello"), "messages": []}),
    ],
)
def test_what_was_said_is_found_among_what_a_chain_passes(
    memrag: MemRAG, texts: Texts, inputs: Any, outputs: Any
) -> None:
    MemRAGMemory(memrag=memrag, scope=ANN).save_context(inputs, outputs)
    assert texts("ann") == ["user: Hi", "assistant: Hello"]


def test_keys_that_cannot_be_told_apart_are_asked_for(memrag: MemRAG, texts: Texts) -> None:
    memory = MemRAGMemory(memrag=memrag, scope=ANN)
    with pytest.raises(ConfigurationError, match="input_key"):
        memory.save_context({"a": "Hi", "b": "Ho"}, {"output": "Hello"})
    named = MemRAGMemory(memrag=memrag, scope=ANN, input_key="b", output_key="d")
    named.save_context({"a": "Hi", "b": "Ho"}, {"c": "x", "d": "Hello"})
    assert texts("ann") == ["user: Ho", "assistant: Hello"]


async def test_clearing_forgets_the_session_alone(memrag: MemRAG, texts: Texts) -> None:
    memrag.remember("My cat is called Mia.", Scope("ann", session_id="yesterday"))
    memrag.remember("I am Bob.", Scope("bob", session_id="today"))
    memory = MemRAGMemory(memrag=memrag, scope=ANN)
    memory.save_context({"input": "Hi"}, {"output": "Hello"})
    memory.clear()
    assert texts("ann") == ["user: My cat is called Mia."]
    await MemRAGMemory(memrag=memrag, scope=Scope("ann")).aclear()
    assert texts("ann") == []
    assert texts("bob") == ["user: I am Bob."]


def test_a_failing_memory_does_not_kill_the_chain(
    memrag: MemRAG, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("gone", engine="postgres", operation="recall")

    monkeypatch.setattr(memrag, "recall", away)
    monkeypatch.setattr(memrag, "remember", away)
    with caplog.at_level(logging.WARNING):
        out = executor(memrag, ScriptedChatModel(script=["Hello."])).invoke({"input": "My secret is 42."})
    assert out["output"] == "Hello."
    assert "memory failed to recall" in caplog.text
    assert "memory failed to remember" in caplog.text
    assert "secret" not in caplog.text


def test_two_users_have_two_memories(memrag: MemRAG) -> None:
    MemRAGMemory(memrag=memrag, scope=ANN).save_context({"input": "My cat is Mia."}, {"output": "ok"})
    bob = MemRAGMemory(memrag=memrag, scope=Scope("bob", session_id="today"))
    assert bob.load_memory_variables({"input": "What is my cat called?"}) == {"history": ""}
