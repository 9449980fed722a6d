"""Two users on one thread, one agent, one run: what is one's is never shown to, or stored as, another's."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ScopeError, StoreUnavailableError
from langchain_memrag.graphs import (
    MemoryContext,
    MemoryGraphState,
    classify_intent_node,
    create_memory_graph,
    learn_node,
    respond_node,
    retrieve_node,
)
from langchain_memrag.memory.middleware import MemoryMiddleware
from langchain_memrag.records import Receipt, Scope
from langchain_memrag.retrievers.memory import MemoryRetriever
from langchain_memrag.testing.chat import ScriptedChatModel

Texts = Callable[[str], list[str]]
FACTS = [("My dog is called Rex.", "What is my dog called?"), ("我的狗叫豆豆。", "我的狗叫什么名字？")]
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
half = pytest.mark.parametrize("half", ["sync", "async"])


def config(user: str = "ann", thread: str = "t1") -> Any:
    return {"configurable": {"user_id": user, "thread_id": thread}}


def said(text: str) -> Any:
    return {"messages": [("user", text)]}


def run(agent: Any, what: Any, half: str, where: Any) -> Any:
    return agent.invoke(what, where) if half == "sync" else asyncio.run(agent.ainvoke(what, where))


def shown(model: ScriptedChatModel) -> str:
    return "\n".join(str(message.content) for call in model.calls for message in call.messages)


@pytest.fixture(params=["memory", "memrag"])
def saver(request: pytest.FixtureRequest, memrag: MemRAG) -> Any:
    return InMemorySaver() if request.param == "memory" else memrag.checkpointer()


class Looked:
    """A tool, and what it was asked."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def tool(self) -> Any:
        @tool
        def look_up(word: str) -> str:
            """Look a word up."""
            self.words.append(word)
            return f"the meaning of {word}"

        return look_up


CALL = AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": "cat"}, "id": "1"}])


@half
@pytest.mark.parametrize(("fact", "question"), FACTS)
def test_an_agents_run_is_resumed_by_its_own_user_alone(
    memrag: MemRAG, texts: Texts, saver: Any, half: str, fact: str, question: str
) -> None:
    memrag.remember(fact, Scope("ann"))
    model, looked = ScriptedChatModel(script=[CALL, "Found."]), Looked()
    approval: Any = HumanInTheLoopMiddleware({"look_up": True})
    agent: Any = create_agent(
        model, [looked.tool()], middleware=[MemoryMiddleware(memrag), approval], checkpointer=saver
    )
    assert "__interrupt__" in run(agent, said(question), half, config())
    before = len(model.calls)
    with pytest.raises(ScopeError, match="another user") as caught:
        run(agent, APPROVE, half, config("bob"))
    assert fact not in str(caught.value)
    assert "ann" not in str(caught.value)
    assert (len(model.calls), looked.words, texts("bob")) == (before, [], [])
    out = run(agent, None, half, config())  # his own user may still go on
    assert out["messages"][-1].text == "Found."
    assert fact in model.calls[-1].messages[0].text
    assert texts("ann") == [f"user: {fact}", f"user: {question}", "assistant: Found."]
    assert texts("bob") == []


@half
@pytest.mark.parametrize("at", ["model", "MemoryMiddleware.after_agent"])
def test_an_agent_stopped_anywhere_is_not_gone_on_with_by_another(
    memrag: MemRAG, texts: Texts, half: str, at: str
) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann"))
    model = ScriptedChatModel(otherwise="Rex.")
    agent: Any = create_agent(
        model, middleware=[MemoryMiddleware(memrag)], checkpointer=InMemorySaver(), interrupt_before=[at]
    )
    run(agent, said("What is my dog called?"), half, config())
    calls = len(model.calls)
    with pytest.raises(ScopeError, match="another user"):
        run(agent, None, half, config("bob"))
    assert len(model.calls) == calls
    assert texts("bob") == []


@half
@pytest.mark.parametrize("at", ["retrieve", "respond", "tools", "learn"])
@pytest.mark.parametrize(("fact", "question"), FACTS)
def test_a_graphs_run_is_resumed_by_its_own_user_alone(
    memrag: MemRAG, texts: Texts, half: str, at: str, fact: str, question: str
) -> None:
    memrag.remember(fact, Scope("ann"))
    memrag.remember("Bob's own secret.", Scope("bob"))
    model, looked = ScriptedChatModel(script=[CALL, "Found."]), Looked()
    graph = create_memory_graph(memrag, model, tools=[looked.tool()], checkpointer=InMemorySaver())
    graph.interrupt_before_nodes = [at]
    run(graph, said(question), half, config())
    before, words = len(model.calls), list(looked.words)
    with pytest.raises(ScopeError, match="another user") as caught:
        run(graph, None, half, config("bob"))
    assert fact not in str(caught.value)
    assert (len(model.calls), looked.words) == (before, words)
    assert texts("bob") == ["user: Bob's own secret."]
    for _ in range(5):
        out = run(graph, None, half, config())
    assert out["answer"] == "Found."
    assert texts("ann") == [f"user: {fact}", f"user: {question}", "assistant: Found."]


@half
def test_a_graph_without_a_model_quotes_nobody_elses_memory(memrag: MemRAG, texts: Texts, half: str) -> None:
    memrag.remember("I live in Lisbon.", Scope("ann"))
    graph = create_memory_graph(memrag, checkpointer=InMemorySaver())
    graph.interrupt_before_nodes = ["respond"]
    run(graph, said("Where do I live?"), half, config())
    with pytest.raises(ScopeError, match="another user"):
        run(graph, None, half, config("bob"))
    assert texts("bob") == []


@half
def test_a_new_run_shows_nothing_that_was_recalled_for_the_last(memrag: MemRAG, half: str) -> None:
    """In a graph that recalls only sometimes."""
    memrag.remember("My dog is called Rex.", Scope("ann"))
    model = ScriptedChatModel(otherwise="ok")
    host = StateGraph(MemoryGraphState)
    host.add_node("hear", classify_intent_node(memrag))
    host.add_node("look", retrieve_node(memrag))
    host.add_node("say", respond_node(model))
    host.add_edge(START, "hear")
    host.add_conditional_edges(
        "hear", lambda state: "look" if "?" in state["messages"][-1].text else "say", ["look", "say"]
    )
    host.add_edge("look", "say")
    graph = host.compile(checkpointer=InMemorySaver())
    run(graph, said("What is my dog called?"), half, config())
    assert "Rex" in shown(model)
    for user in ("bob", "ann"):
        run(graph, said("Hello"), half, config(user))
        assert "Rex" not in "".join(str(message.content) for message in model.calls[-1].messages)


@half
def test_nodes_without_the_first_serve_one_user_a_thread(memrag: MemRAG, texts: Texts, half: str) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann"))
    host = StateGraph(MemoryGraphState)
    model = ScriptedChatModel(otherwise="ok")
    host.add_node("look", retrieve_node(memrag))
    host.add_node("say", respond_node(model))
    host.add_node("keep", learn_node(memrag))
    for left, right in pairwise([START, "look", "say", "keep", END]):
        host.add_edge(left, right)
    graph = host.compile(checkpointer=InMemorySaver(), interrupt_before=["say"])
    run(graph, said("What is my dog called?"), half, config())
    for what in (None, said("Hi")):
        with pytest.raises(ScopeError, match="another user"):
            run(graph, what, half, config("bob"))
    assert model.calls == []
    assert texts("bob") == []


class Away:
    """A memory that fails for one user."""

    def __init__(self, memrag: MemRAG, user: str) -> None:
        self._memrag, self._user = memrag, user

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memrag, name)

    def remember(self, what: Any, scope: Scope) -> Receipt:
        if scope.user_id == self._user:
            raise StoreUnavailableError("gone", engine="postgres", operation="remember")
        return self._memrag.remember(what, scope)

    async def aremember(self, what: Any, scope: Scope) -> Receipt:
        return self.remember(what, scope)


def door(kind: str, memrag: Any, model: ScriptedChatModel, saver: Any) -> Any:
    if kind == "graph":
        return create_memory_graph(memrag, model, checkpointer=saver)
    return create_agent(model, middleware=[MemoryMiddleware(memrag)], checkpointer=saver)


doors = pytest.mark.parametrize("kind", ["graph", "middleware"])


@half
@doors
def test_what_one_users_memory_missed_is_not_stored_as_the_nexts(
    memrag: MemRAG, texts: Texts, half: str, kind: str
) -> None:
    broken = Away(memrag, "ann")
    agent = door(kind, broken, ScriptedChatModel(script=["one", "two", "three"]), InMemorySaver())
    assert run(agent, said("I, Ann, am ill."), half, config())["memory_error"]
    run(agent, said("I am Bob."), half, config("bob"))
    assert texts("bob") == ["user: I am Bob.", "assistant: two"]
    broken._user = "nobody"
    run(agent, said("我是安。"), half, config())
    assert texts("ann") == ["user: 我是安。", "assistant: three"]
    assert texts("bob") == ["user: I am Bob.", "assistant: two"]


@half
@doors
@pytest.mark.parametrize("away", ["ann", "nobody"])
def test_what_one_user_said_without_an_answer_is_not_stored_as_the_nexts(
    memrag: MemRAG, texts: Texts, half: str, kind: str, away: str
) -> None:
    model = ScriptedChatModel(script=[RuntimeError("overloaded"), "Hello Bob."])
    agent = door(kind, Away(memrag, away), model, InMemorySaver())
    with pytest.raises(RuntimeError, match="overloaded"):
        run(agent, said("我病了。"), half, config())
    run(agent, said("I am Bob."), half, config("bob"))
    assert texts("bob") == ["user: I am Bob.", "assistant: Hello Bob."]


@half
@doors
def test_what_failed_for_the_second_user_is_made_up_for_as_his(
    memrag: MemRAG, texts: Texts, half: str, kind: str
) -> None:
    broken = Away(memrag, "bob")
    agent = door(kind, broken, ScriptedChatModel(otherwise="ok"), InMemorySaver())
    run(agent, said("I am Ann."), half, config())
    run(agent, said("I am Bob."), half, config("bob"))
    broken._user = "nobody"
    run(agent, said("I like tea."), half, config("bob"))
    assert texts("bob") == ["user: I am Bob.", "assistant: ok", "user: I like tea.", "assistant: ok"]
    assert texts("ann") == ["user: I am Ann.", "assistant: ok"]


@half
@doors
def test_a_stopped_run_is_left_behind_by_another_users_new_one(
    memrag: MemRAG, texts: Texts, half: str, kind: str
) -> None:
    agent = door(kind, memrag, ScriptedChatModel(otherwise="ok"), InMemorySaver())
    stop = "respond" if kind == "graph" else "model"
    agent.interrupt_before_nodes = [stop]
    run(agent, said("I am Ann."), half, config())
    agent.interrupt_before_nodes = []
    run(agent, said("I am Bob."), half, config("bob"))
    assert texts("ann") == ["user: I am Ann."]
    assert texts("bob") == ["user: I am Bob.", "assistant: ok"]


@half
@doors
def test_going_back_in_time_stores_no_turn_twice(memrag: MemRAG, texts: Texts, half: str, kind: str) -> None:
    answers = iter(range(100))
    model = ScriptedChatModel(otherwise=lambda messages: f"answer {next(answers)}")
    agent = door(kind, memrag, model, InMemorySaver())
    # With their ids, as hosts send them: going back to before a message without one is saying it again.
    for text in ("我住在杭州。", "And I have a dog."):
        run(agent, {"messages": [HumanMessage(text, id=str(uuid.uuid4()))]}, half, config())
    for state in list(agent.get_state_history(config())):
        where = {"configurable": {**config()["configurable"], **state.config["configurable"]}}
        if state.next:
            run(agent, None, half, where)
    stored = texts("ann")
    assert len(stored) == len(set(stored))
    assert [text for text in stored if text.startswith("user")] == [
        "user: 我住在杭州。",
        "user: And I have a dog.",
    ]
    assert texts("bob") == []


@half
@doors
def test_going_back_in_time_as_another_is_refused(memrag: MemRAG, texts: Texts, half: str, kind: str) -> None:
    agent = door(kind, memrag, ScriptedChatModel(otherwise="ok"), InMemorySaver())
    run(agent, said("我住在杭州。"), half, config())
    begun = [
        state
        for state in agent.get_state_history(config())
        if state.next
        and state.next[0] in {"retrieve", "respond", "learn", "model", "MemoryMiddleware.after_agent"}
    ]
    assert len(begun) >= 2
    for state in begun:
        where = {"configurable": {**state.config["configurable"], "user_id": "bob"}}
        with pytest.raises(ScopeError, match="another user"):
            run(agent, None, half, where)
    assert texts("bob") == []


@doors
def test_streams_drawn_by_turns_never_mix(memrag: MemRAG, texts: Texts, kind: str) -> None:
    def echo(messages: list[BaseMessage]) -> str:
        return " / ".join(message.text for message in messages)

    users = ["ann", "Ann", "an\u006e\u0303", "an\u00f1", "аnn", "ａｎｎ", "安", "\u200bann"]
    words = {user: f"word{n}." for n, user in enumerate(users)}
    for user in users:
        memrag.remember(f"The word is {words[user]}", Scope(user))
    agent = door(kind, memrag, ScriptedChatModel(otherwise=echo), memrag.checkpointer())
    streams = {
        user: agent.stream(said("What is the word?"), config(user, f"t-{n}"), stream_mode="values")
        for n, user in enumerate(users)
    }
    last: dict[str, Any] = {}
    while streams:
        for user, stream in list(streams.items()):
            try:
                last[user] = next(stream)
            except StopIteration:
                del streams[user]
    batch = agent.batch(
        [said("What is the word now?")] * len(users), [config(user, "x" + user) for user in users]
    )
    for n, user in enumerate(users):
        for out in (last[user], batch[n]):
            answer = out["messages"][-1].text
            assert words[user] in answer
            assert not any(words[other] in answer for other in users if other != user)
        assert len(texts(user)) == 5


def test_a_tool_cannot_search_somebody_elses_memory_by_naming_him(memrag: MemRAG) -> None:
    memrag.remember("Bob's secret is 42.", Scope("bob"))
    retriever = MemoryRetriever(memrag=memrag)

    @tool
    def search(user: str) -> str:
        """Search memory."""
        found = retriever.invoke("secret?", {"configurable": {"user_id": user}})
        return " ".join(document.page_content for document in found)

    call = AIMessage("", tool_calls=[{"name": "search", "args": {"user": "bob"}, "id": "1"}])
    agent: Any = create_agent(
        ScriptedChatModel(script=[call, "Done."]), [search], middleware=[MemoryMiddleware(memrag)]
    )
    with pytest.raises(ScopeError, match="is not the user of"):
        agent.invoke({"messages": [HumanMessage("Tell me of Bob.")]}, config())


def test_a_step_bound_to_one_user_reads_that_of_the_run(memrag: MemRAG) -> None:
    for user in ("ann", "bob"):
        memrag.remember(f"The secret of {user}.", Scope(user))
    chain = RunnableLambda(str) | MemoryRetriever(memrag=memrag).with_config(configurable={"user_id": "bob"})
    for user in ("ann", "bob"):
        found = chain.invoke("secret?", config(user))
        assert [document.page_content for document in found] == [f"The secret of {user}."]


@half
@pytest.mark.parametrize("kind", ["graph", "middleware"])
def test_tools_are_called_for_the_user_of_the_context(memrag: MemRAG, half: str, kind: str) -> None:
    memrag.remember("The secret of Ann.", Scope("ann"))
    retriever = MemoryRetriever(memrag=memrag)

    @tool
    def search(word: str) -> str:
        """Search memory."""
        return "".join(document.page_content for document in retriever.invoke(word))

    call = AIMessage("", tool_calls=[{"name": "search", "args": {"word": "secret"}, "id": "1"}])
    model = ScriptedChatModel(script=[call, "Done."])
    agent: Any
    if kind == "graph":
        agent = create_memory_graph(memrag, model, tools=[search])
    else:
        agent = create_agent(
            model, [search], middleware=[MemoryMiddleware(memrag)], context_schema=MemoryContext
        )
    ann = MemoryContext(user_id="ann")
    if half == "sync":
        out = agent.invoke(said("Search."), context=ann)
    else:
        out = asyncio.run(agent.ainvoke(said("Search."), context=ann))
    assert "The secret of Ann." in out["messages"][-2].text


def test_a_retriever_made_for_a_scope_keeps_to_it(memrag: MemRAG) -> None:
    """Such as a handbook that all may read: its maker named it, no caller can name another."""
    memrag.remember("The door code is 7.", Scope("handbook"))
    memrag.remember("Ann's door is green.", Scope("ann"))
    retriever = MemoryRetriever(memrag=memrag, scope=Scope("handbook"))
    for options in ({}, {"scope": Scope("ann")}):
        found = retriever.invoke("door?", config(), **options)
        assert [document.page_content for document in found] == ["The door code is 7."]
