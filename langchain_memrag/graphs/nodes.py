"""The nodes of the cognitive graph, each made by a function, to be wired into other graphs too.

A node reads and writes the keys of `MemoryGraphState` that it names; a graph with those keys can hold it.
Every node has a sync and an async half, and finds the user of the run by itself. A run belongs to the user
who started it: `classify_intent` starts one, and the other nodes refuse to go on with somebody else's. A
graph that leaves `classify_intent` out is for threads of one user each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.graphs.extractive import Evidence, extract_answer
from langchain_memrag.graphs.intent import adecide, decide
from langchain_memrag.graphs.models import ANSWER_TEMPERATURE, FAST_TEMPERATURE, ChatModel, chat_model
from langchain_memrag.graphs.state import (
    IntentState,
    MemoryGraphState,
    RecalledTurn,
    intent_from,
    intent_state,
    recalled_turn,
)
from langchain_memrag.memory.identity import require_owner, resolve_scope, resolve_user
from langchain_memrag.memory.tending import Bookmark, Learned, Tending
from langchain_memrag.memory.turns import ANSWERED_BY, MEMORY, answered_by_memory, asked, text_of
from langchain_memrag.prompts import answer_system
from langchain_memrag.records import Recall, Scope
from langchain_memrag.text import language_of

__all__ = [
    "Node",
    "classify_intent_node",
    "learn_node",
    "needs_tools",
    "respond_node",
    "retrieve_node",
    "tool_node",
]


class Update(TypedDict, total=False):
    """What a node writes into the state."""

    messages: list[AnyMessage]
    user_id: str
    intent: IntentState | None
    memory_block: str
    recalled: list[RecalledTurn]
    answer: str
    memory_error: str
    memory_mark: str
    memory_seen: str


Node = Runnable[MemoryGraphState, Update]
"""A node of the graph."""

_Called = ToolMessage | Command[Any]
_Handler = Callable[[ToolCallRequest], _Called]
_AsyncHandler = Callable[[ToolCallRequest], Awaitable[_Called]]


def classify_intent_node(memrag: MemRAG, fast_model: ChatModel | str | None = None) -> Node:
    """Store what the user says, then decide what it asks for.

    It is stored first of all, before any model is called, so that whatever fails later loses nothing.
    Reads `messages`, `user_id`, `memory_mark` and `memory_seen`; writes the last three, `intent` and
    `memory_error`, and clears what the last run left in `memory_block`, `recalled` and `answer`.

    Args:
        memrag: The memory.
        fast_model: Decides, by structured output at temperature 0.1 with one repair; the rules do where it
            is missing or cannot say.
    """
    tending = Tending(memrag)
    model = None if fast_model is None else chat_model(fast_model, FAST_TEMPERATURE)

    def classify(state: MemoryGraphState, config: RunnableConfig) -> Update:
        scope, question = _started(state, config)
        learned = tending.learn(state["messages"], _bookmark(state), scope)
        intent = memrag.intent(question) if question else None
        if model and intent:
            intent = decide(model, question, intent, config)
        return _classified(learned, intent_state(intent) if intent else None)

    async def aclassify(state: MemoryGraphState, config: RunnableConfig) -> Update:
        scope, question = _started(state, config)
        learned = await tending.alearn(state["messages"], _bookmark(state), scope)
        intent = memrag.intent(question) if question else None
        if model and intent:
            intent = await adecide(model, question, intent, config)
        return _classified(learned, intent_state(intent) if intent else None)

    return RunnableLambda(classify, aclassify, name="classify_intent")


def retrieve_node(memrag: MemRAG, *, k: int = 10, token_budget: int = 2000, shown: bool = True) -> Node:
    """Recall what memory knows about what the user says, beyond the turns that a model is shown anyway.

    Reads `messages`, `intent` and `user_id`; writes `user_id`, `memory_block`, `recalled` and `memory_error`.

    Args:
        memrag: The memory.
        k: How many hits at most.
        token_budget: How many tokens they may take in the prompt; 0 means no limit.
        shown: Whether a model is shown the state's messages. Where none is, what was said in this very
            conversation is recalled like everything else.
    """
    tending = Tending(memrag, k=k, token_budget=token_budget, shown=shown)

    def retrieve(state: MemoryGraphState, config: RunnableConfig) -> Update:
        scope, intent = _owned_scope(state, config), intent_from(state.get("intent"))
        return _retrieved(state, scope, *tending.recall(state["messages"], scope, intent))

    async def aretrieve(state: MemoryGraphState, config: RunnableConfig) -> Update:
        scope, intent = _owned_scope(state, config), intent_from(state.get("intent"))
        return _retrieved(state, scope, *await tending.arecall(state["messages"], scope, intent))

    return RunnableLambda(retrieve, aretrieve, name="retrieve")


def respond_node(
    model: ChatModel | str | None = None,
    tools: Sequence[BaseTool | Callable[..., object]] = (),
    *,
    system_prompt: str | None = None,
) -> Node:
    """Answer, or call tools.

    Without a model the answer quotes what was recalled, with its date, or says that it does not know.
    Reads `messages`, `user_id`, `memory_block` and `recalled`; writes `messages` and `answer`.

    Args:
        model: The quality model, at temperature 0.5.
        tools: What it may call.
        system_prompt: Its instructions; ours in the question's language by default.

    Raises:
        ConfigurationError: Tools without a model.
    """
    if model is None:
        if tools:
            raise ConfigurationError("tools are called by a model; pass one, or no tools")
        return RunnableLambda(_quote, _aquote, name="respond")
    ready = chat_model(model, ANSWER_TEMPERATURE)
    speaker: Runnable[LanguageModelInput, BaseMessage] = ready.bind_tools(list(tools)) if tools else ready

    def respond(state: MemoryGraphState, config: RunnableConfig) -> Update:
        _require_owner(state, config)
        return _responded(speaker.invoke(_prompt(state, system_prompt), config))

    async def arespond(state: MemoryGraphState, config: RunnableConfig) -> Update:
        _require_owner(state, config)
        return _responded(await speaker.ainvoke(_prompt(state, system_prompt), config))

    return RunnableLambda(respond, arespond, name="respond")


def learn_node(memrag: MemRAG) -> Node:
    """Store the answer, and whatever of this run could not be stored before.

    Reads `messages`, `user_id`, `memory_mark` and `memory_seen`; writes the last three and `memory_error`.

    Args:
        memrag: The memory.
    """
    tending = Tending(memrag)

    def learn(state: MemoryGraphState, config: RunnableConfig) -> Update:
        scope = _owned_scope(state, config)
        return _learned(state, tending.learn(state["messages"], _bookmark(state), scope))

    async def alearn(state: MemoryGraphState, config: RunnableConfig) -> Update:
        scope = _owned_scope(state, config)
        return _learned(state, await tending.alearn(state["messages"], _bookmark(state), scope))

    return RunnableLambda(learn, alearn, name="learn")


def needs_tools(state: MemoryGraphState) -> Literal["tools", "learn"]:
    """Where to go after `respond`: to the tools that were called, else to `learn`."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "learn"


def tool_node(tools: Sequence[BaseTool | Callable[..., object]]) -> ToolNode:
    """Call tools, for the user of the run alone."""

    def call(request: ToolCallRequest, handler: _Handler) -> _Called:
        _require_owner(request.state, None)
        return handler(request)

    async def acall(request: ToolCallRequest, handler: _AsyncHandler) -> _Called:
        _require_owner(request.state, None)
        return await handler(request)

    return ToolNode(list(tools), wrap_tool_call=call, awrap_tool_call=acall)


def _require_owner(state: MemoryGraphState, config: RunnableConfig | None) -> None:
    """In a graph where nobody started a run, there is nobody to ask for."""
    if state.get("user_id"):
        require_owner(resolve_user(config), state.get("user_id"))


def _owned_scope(state: MemoryGraphState, config: RunnableConfig) -> Scope:
    scope = resolve_scope(config)
    require_owner(scope.user_id, state.get("user_id"))
    return scope


def _bookmark(state: MemoryGraphState) -> Bookmark:
    return Bookmark(state.get("user_id"), state.get("memory_mark"), state.get("memory_seen"))


def _started(state: MemoryGraphState, config: RunnableConfig) -> tuple[Scope, str]:
    scope = resolve_scope(config)
    messages = asked(state["messages"])
    if not messages:
        raise ConfigurationError("there is nothing to answer: the last message is not the user's")
    question = _question(state)
    if not question and all(isinstance(message.content, str) for message in messages):
        raise ConfigurationError("there is nothing to answer: the user's message is blank")
    return scope, question


def _question(state: MemoryGraphState) -> str:
    """What the user says in this run, also once tools or answers stand after it."""
    messages = state["messages"]
    while messages and not asked(messages):
        messages = messages[:-1]
    return "\n".join(text for message in asked(messages) if (text := text_of(message)))


def _classified(learned: Learned, intent: IntentState | None) -> Update:
    return Update(
        user_id=learned.user,
        intent=intent,
        memory_block="",
        recalled=[],
        answer="",
        memory_mark=learned.mark,
        memory_seen=learned.seen,
        memory_error=learned.error,
    )


def _retrieved(state: MemoryGraphState, scope: Scope, recall: Recall | None, error: str) -> Update:
    return Update(
        user_id=scope.user_id,
        memory_block=recall.render() if recall else "",
        recalled=[recalled_turn(hit) for hit in recall.hits] if recall else [],
        memory_error=_together(state.get("memory_error", ""), error),
    )


def _learned(state: MemoryGraphState, learned: Learned) -> Update:
    return Update(
        user_id=learned.user,
        memory_mark=learned.mark,
        memory_seen=learned.seen,
        memory_error=_together(state.get("memory_error", ""), learned.error),
    )


def _together(*errors: str) -> str:
    return "; ".join(dict.fromkeys(error for error in errors if error))


def _prompt(state: MemoryGraphState, system_prompt: str | None) -> list[AnyMessage]:
    system = system_prompt if system_prompt is not None else answer_system(language_of(_question(state)))
    parts = [part for part in (system, state.get("memory_block", "")) if part]
    return [*([SystemMessage("\n\n".join(parts))] if parts else []), *state["messages"]]


def _responded(message: BaseMessage) -> Update:
    if not isinstance(message, AIMessage):
        raise ConfigurationError(f"the model answered with a {type(message).__name__}, not with an AIMessage")
    return Update(messages=[message], answer="" if message.tool_calls else text_of(message))


def _quote(state: MemoryGraphState, config: RunnableConfig) -> Update:
    _require_owner(state, config)
    evidence = [
        _evidence(turn) for turn in state.get("recalled", []) if not answered_by_memory(turn["metadata"])
    ]
    reachable = not any(part.startswith("recall:") for part in state.get("memory_error", "").split("; "))
    extract = extract_answer(_question(state), evidence, reachable=reachable)
    answer = AIMessage(extract.text, response_metadata={ANSWERED_BY: MEMORY})
    return Update(messages=[answer], answer=extract.text)


async def _aquote(state: MemoryGraphState, config: RunnableConfig) -> Update:
    return _quote(state, config)


def _evidence(turn: RecalledTurn) -> Evidence:
    return Evidence(
        id=turn["id"],
        text=turn["text"],
        role=turn["role"],
        speaker=turn["speaker"],
        said_at=datetime.fromisoformat(turn["said_at"]) if turn["said_at"] else None,
        signals=turn["signals"],
    )
