"""`MemoryMiddleware` in agents made with `create_agent`: sync, async, streaming, failing, concurrent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, ScopeError, StoreUnavailableError
from langchain_memrag.memory.middleware import MemoryMiddleware
from langchain_memrag.records import Recall, RecallFilter, Receipt, Scope
from langchain_memrag.testing.chat import ScriptedChatModel

Texts = Callable[[str], list[str]]


def config(user: str = "ann", thread: str = "t1") -> Any:
    return {"configurable": {"user_id": user, "thread_id": thread}}


def said(text: str) -> Any:
    return {"messages": [("user", text)]}


def agent_of(memrag: MemRAG, model: ScriptedChatModel, tools: Any = (), **options: Any) -> Any:
    return create_agent(model, list(tools), middleware=[MemoryMiddleware(memrag)], **options)


def system_of(model: ScriptedChatModel, call: int = -1) -> str:
    first = model.calls[call].messages[0]
    return first.text if first.type == "system" else ""


def look_up(word: str) -> str:
    """Look a word up."""
    return f"the meaning of {word}"


CALL = AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": "cat"}, "id": "1"}])


@pytest.mark.parametrize(
    ("fact", "question"),
    [("My dog is called Rex.", "What is my dog called?"), ("我的狗叫豆豆。", "我的狗叫什么名字？")],
)
def test_what_was_said_in_one_thread_is_known_in_the_next(
    memrag: MemRAG, texts: Texts, fact: str, question: str
) -> None:
    model = ScriptedChatModel(script=["ok", "I know."])
    agent = agent_of(memrag, model)
    agent.invoke(said(fact), config(thread="monday"))
    out = agent.invoke(said(question), config(thread="tuesday"))
    assert fact in system_of(model)
    assert "ok" not in [message.text for message in out["messages"]]
    assert texts("ann") == [f"user: {fact}", "assistant: ok", f"user: {question}", "assistant: I know."]
    sessions = [episode.scope.session_id for episode in memrag.history(Scope("ann")).episodes]
    assert sessions == ["monday", "monday", "tuesday", "tuesday"]


async def test_the_async_half_does_the_same(memrag: MemRAG, texts: Texts) -> None:
    model = ScriptedChatModel(script=["ok", "Rex."])
    agent = agent_of(memrag, model)
    await agent.ainvoke(said("My dog is called Rex."), config(thread="1"))
    await agent.ainvoke(said("What is my dog called?"), config(thread="2"))
    assert "My dog is called Rex." in system_of(model)
    assert len(texts("ann")) == 4


def test_it_works_across_two_event_loops(memrag: MemRAG, texts: Texts) -> None:
    model = ScriptedChatModel(script=["ok", "Rex."])
    agent = agent_of(memrag, model, checkpointer=memrag.checkpointer())
    asyncio.run(agent.ainvoke(said("My dog is called Rex."), config()))
    asyncio.run(agent.ainvoke(said("What is my dog called?"), config()))
    assert len(texts("ann")) == 4


def test_the_state_stays_clean_and_the_block_is_never_stored(memrag: MemRAG, texts: Texts) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann"))
    model = ScriptedChatModel(script=["Rex."])
    out = agent_of(memrag, model, system_prompt="Be kind.").invoke(said("What is my dog called?"), config())
    assert system_of(model).startswith("Be kind.\n\n<memory>")
    assert set(out) == {"messages", "memory_error"}
    assert out["memory_error"] == ""
    assert [message.type for message in out["messages"]] == ["human", "ai"]
    assert not any("<memory>" in text for text in texts("ann"))


def test_one_recall_a_run_is_shown_at_every_model_call(
    memrag: MemRAG, monkeypatch: pytest.MonkeyPatch
) -> None:
    memrag.remember("My cat is called Mia.", Scope("ann"))
    recalls: list[str] = []
    recall = memrag.recall

    def counted(query: str, scope: Scope, **options: Any) -> Recall:
        recalls.append(query)
        return recall(query, scope, **options)

    monkeypatch.setattr(memrag, "recall", counted)
    model = ScriptedChatModel(script=[CALL, "Mia."])
    agent_of(memrag, model, [look_up]).invoke(said("What is my cat called?"), config())
    assert recalls == ["What is my cat called?"]
    assert "Mia" in system_of(model, 0)
    assert "Mia" in system_of(model, 1)


def test_tool_noise_is_stored_on_request_alone(memrag: MemRAG, texts: Texts) -> None:
    agent_of(memrag, ScriptedChatModel(script=[CALL, "Done."]), [look_up]).invoke(
        said("Look up cat"), config()
    )
    assert texts("ann") == ["user: Look up cat", "assistant: Done."]
    model = ScriptedChatModel(script=[CALL, "Done."])
    noisy = create_agent(model, [look_up], middleware=[MemoryMiddleware(memrag, tool_messages=True)])
    noisy.invoke(said("Look up cat"), config("bob"))
    assert texts("bob") == ["user: Look up cat", "tool: the meaning of cat", "assistant: Done."]


@pytest.mark.parametrize("saver", [True, False])
def test_nothing_is_stored_twice_over_several_turns(memrag: MemRAG, texts: Texts, saver: bool) -> None:
    model = ScriptedChatModel(otherwise="yes")
    agent = agent_of(memrag, model, checkpointer=InMemorySaver() if saver else None)
    history: list[Any] = []
    for _ in range(3):
        # A host without a checkpointer sends the whole conversation again.
        turn = [HumanMessage("yes")]
        out = agent.invoke({"messages": turn if saver else [*history, *turn]}, config())
        history = [type(message)(message.text) for message in out["messages"]]
    assert texts("ann") == ["user: yes", "assistant: yes"] * 3


def test_hosts_that_count_their_messages_lose_none(memrag: MemRAG, texts: Texts) -> None:
    agent = agent_of(memrag, ScriptedChatModel(otherwise="ok"))
    for thread in ("1", "2"):
        agent.invoke({"messages": [HumanMessage(f"thread {thread}", id="1")]}, config(thread=thread))
    assert [text for text in texts("ann") if text.startswith("user")] == ["user: thread 1", "user: thread 2"]


def test_what_the_prompt_shows_is_not_recalled_again(memrag: MemRAG) -> None:
    model = ScriptedChatModel(otherwise="ok")
    agent = agent_of(memrag, model, checkpointer=InMemorySaver())
    agent.invoke(said("My dog is called Rex."), config())
    agent.invoke(said("What is my dog called?"), config())
    assert "Rex" not in system_of(model)
    agent.invoke(said("What is my dog called?"), config(thread="another"))
    assert "Rex" in system_of(model)


@pytest.mark.parametrize("half", ["sync", "async"])
def test_a_failing_model_loses_nothing(memrag: MemRAG, texts: Texts, half: str) -> None:
    model = ScriptedChatModel(script=[RuntimeError("overloaded"), "Lisbon!"])
    agent = agent_of(memrag, model, checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="overloaded"):
        run(agent, said("I live in Lisbon."), half)
    assert texts("ann") == ["user: I live in Lisbon."]
    run(agent, None, half)  # resumed where it failed
    assert texts("ann") == ["user: I live in Lisbon.", "assistant: Lisbon!"]


def run(agent: Any, what: Any, half: str, where: Any = None) -> Any:
    if half == "sync":
        return agent.invoke(what, where or config())
    return asyncio.run(agent.ainvoke(what, where or config()))


class Broken:
    """A memory whose store is away."""

    def __init__(self, memrag: MemRAG, error: Exception) -> None:
        self._memrag, self._error, self.broken = memrag, error, True

    def remember(self, what: Any, scope: Scope) -> Receipt:
        if self.broken:
            raise self._error
        return self._memrag.remember(what, scope)

    async def aremember(self, what: Any, scope: Scope) -> Receipt:
        return self.remember(what, scope)

    def recall(self, query: str, scope: Scope, **options: Any) -> Recall:
        if self.broken:
            raise self._error
        return self._memrag.recall(query, scope, **options)

    async def arecall(self, query: str, scope: Scope, **options: Any) -> Recall:
        return self.recall(query, scope, **options)


@pytest.mark.parametrize("half", ["sync", "async"])
def test_a_failing_memory_does_not_kill_the_turn_and_shows(
    memrag: MemRAG, half: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = Broken(memrag, StoreUnavailableError("gone", engine="postgres", operation="remember"))
    agent = agent_of(broken, ScriptedChatModel(script=["Hello."]))
    with caplog.at_level(logging.WARNING):
        out = run(agent, said("My secret is 42."), half)
    assert out["messages"][-1].text == "Hello."
    assert "gone" in out["memory_error"]
    assert "memory failed to remember" in caplog.text
    assert "memory failed to recall" in caplog.text
    assert "secret" not in caplog.text


def test_an_error_of_a_client_is_named_without_its_words(
    memrag: MemRAG, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = Broken(memrag, RuntimeError("cannot embed 'My secret is 42.'"))
    with caplog.at_level(logging.WARNING):
        out = agent_of(broken, ScriptedChatModel(script=["Hello."])).invoke(
            said("My secret is 42."), config()
        )
    assert "RuntimeError" in out["memory_error"]
    assert "secret" not in out["memory_error"] + caplog.text


@pytest.mark.parametrize("half", ["sync", "async"])
def test_what_could_not_be_stored_is_stored_with_the_next_turn(
    memrag: MemRAG, texts: Texts, half: str
) -> None:
    broken: Any = Broken(memrag, StoreUnavailableError("gone", engine="postgres", operation="remember"))
    agent = agent_of(broken, ScriptedChatModel(script=["one", "two"]), checkpointer=InMemorySaver())
    assert run(agent, said("I live in Lisbon."), half)["memory_error"]
    broken.broken = False
    assert run(agent, said("I have a dog."), half)["memory_error"] == ""
    assert texts("ann") == [
        "user: I live in Lisbon.",
        "assistant: one",
        "user: I have a dog.",
        "assistant: two",
    ]


@pytest.mark.parametrize("half", ["sync", "async"])
def test_no_user_no_run(memrag: MemRAG, half: str) -> None:
    model = ScriptedChatModel(script=["Hello."])
    agent = agent_of(memrag, model)
    for configurable in (
        {},
        {"user_id": ""},
        {"user_id": "  "},
        {"user_id": "ann", "langgraph_user_id": "bob"},
    ):
        with pytest.raises(ScopeError):
            run(agent, said("Hi"), half, {"configurable": {"thread_id": "t1", **configurable}})
    assert model.calls == []


@dataclass
class Context:
    user_id: str


@pytest.mark.parametrize("half", ["sync", "async"])
def test_the_context_names_the_user(memrag: MemRAG, texts: Texts, half: str) -> None:
    agent = agent_of(memrag, ScriptedChatModel(otherwise="ok"), context_schema=Context)
    if half == "sync":
        agent.invoke(said("Hi there"), context=Context("ann"))
    else:
        asyncio.run(agent.ainvoke(said("Hi there"), context=Context("ann")))
    assert texts("ann") == ["user: Hi there", "assistant: ok"]
    with pytest.raises(ScopeError):
        agent.invoke(said("Hi"), config("bob"), context=Context("ann"))


def test_users_with_like_names_are_strangers(memrag: MemRAG, texts: Texts) -> None:
    model = ScriptedChatModel(otherwise="ok")
    agent = agent_of(memrag, model)
    users = ["user_1", "userX1", "foo", "foobar", "a%b", "axxb", "Ann", "ann"]
    for user in users:
        agent.invoke(said(f"The secret word of {user} is known."), config(user))
    for user in users:
        agent.invoke(said("What is the secret word?"), config(user, "later"))
        block = system_of(model)
        assert f"The secret word of {user} is" in block
        assert not any(f"The secret word of {other} is" in block for other in users if other != user)
    agent.invoke(said("What is the secret word?"), config(" ann ", "later"))
    assert "The secret word of ann is" in system_of(model)


def echo(messages: list[BaseMessage]) -> str:
    """What it was shown of memory, and asked."""
    return f"{messages[0].text if messages[0].type == 'system' else ''} / {messages[-1].text}"


def test_users_at_once_through_one_agent_never_mix(memrag: MemRAG, texts: Texts) -> None:
    users = [f"user{number}" for number in range(8)]
    for user in users:
        memrag.remember(f"The word of {user} is word{user}.", Scope(user))
    agent = agent_of(memrag, ScriptedChatModel(otherwise=echo), checkpointer=memrag.checkpointer())

    def ask(user: str) -> str:
        return str(agent.invoke(said("What is the word?"), config(user, f"of-{user}"))["messages"][-1].text)

    async def ask_all() -> list[str]:
        outs = await asyncio.gather(
            *(agent.ainvoke(said("What is the word now?"), config(user, f"of-{user}")) for user in users)
        )
        return [out["messages"][-1].text for out in outs]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, users))
    answers += asyncio.run(ask_all())
    for user, answer in zip(users * 2, answers, strict=True):
        assert f"word{user}." in answer
        assert not any(f"word{other}." in answer for other in users if other != user)
    for user in users:
        assert len(texts(user)) == 5


def test_tokens_stream(memrag: MemRAG, texts: Texts) -> None:
    agent = agent_of(memrag, ScriptedChatModel(script=["Hello dear Ann."]))
    pieces = [
        chunk.text
        for chunk, _ in agent.stream(said("Hi"), config(), stream_mode="messages")
        if isinstance(chunk, AIMessageChunk)
    ]
    assert "".join(pieces) == "Hello dear Ann."
    assert len(pieces) > 2
    assert texts("ann") == ["user: Hi", "assistant: Hello dear Ann."]


async def test_tokens_stream_async(memrag: MemRAG, texts: Texts) -> None:
    agent = agent_of(memrag, ScriptedChatModel(script=["Hello dear Ann."]))
    pieces = [chunk.text async for chunk, _ in agent.astream(said("Hi"), config(), stream_mode="messages")]
    assert "".join(pieces) == "Hello dear Ann."
    assert texts("ann") == ["user: Hi", "assistant: Hello dear Ann."]


def test_a_summary_is_not_something_the_user_said(memrag: MemRAG, texts: Texts) -> None:
    model = ScriptedChatModel(otherwise="ok")
    summariser = ScriptedChatModel(otherwise="They spoke of dogs.")
    agent = create_agent(
        model,
        middleware=[
            MemoryMiddleware(memrag),
            SummarizationMiddleware(summariser, trigger=("messages", 4), keep=("messages", 2)),
        ],
        checkpointer=InMemorySaver(),
    )
    for number in range(5):
        agent.invoke(said(f"Dog number {number}."), config())
    assert any("They spoke of dogs." in str(call.messages) for call in model.calls)
    stored = texts("ann")
    assert [text for text in stored if text.startswith("user")] == [
        f"user: Dog number {n}." for n in range(5)
    ]
    assert stored.count("assistant: ok") == 5


def test_a_recall_may_be_narrowed(memrag: MemRAG) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann", session_id="old"))
    memrag.remember("My cat is called Mia.", Scope("ann", session_id="new"))
    model = ScriptedChatModel(otherwise="ok")
    narrow = MemoryMiddleware(memrag, where=RecallFilter(session_id="old"))
    create_agent(model, middleware=[narrow]).invoke(said("What is it called?"), config())
    assert "Rex" in system_of(model)
    assert "Mia" not in system_of(model)


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1001}, {"token_budget": -1}, {"timeout": 0}])
def test_options_out_of_range_are_refused_at_once(memrag: MemRAG, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        MemoryMiddleware(memrag, **wrong)


def test_a_message_of_pictures_alone_is_answered_and_not_stored(memrag: MemRAG, texts: Texts) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    out = agent_of(memrag, ScriptedChatModel(script=["A cat."])).invoke(
        {"messages": [HumanMessage([picture])]}, config()
    )
    assert out["memory_error"] == ""
    assert texts("ann") == ["assistant: A cat."]
