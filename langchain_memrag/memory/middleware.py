"""Long-term memory for an agent made with `create_agent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NotRequired

from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command
from langgraph.typing import ContextT

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import MissingDependencyError
from langchain_memrag.memory.identity import require_owner, resolve_scope, resolve_user
from langchain_memrag.memory.tending import Bookmark, Learned, Tending
from langchain_memrag.records import Recall, RecallFilter

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import (
        ModelCallResult,
        OmitFromInput,
        PrivateStateAttr,
        ToolCallRequest,
    )
except ImportError as error:
    raise MissingDependencyError("MemoryMiddleware", "langchain") from error

__all__ = ["MemoryMiddleware", "MemoryState"]


class MemoryState(AgentState[Any]):
    """What the middleware adds to the agent's state.

    Attributes:
        memory_error: What went wrong with memory in this run; empty when nothing did.
        memory_block: What was recalled for this run. Never part of `messages`.
        memory_user: Whose run it is; nobody else may go on with it.
        memory_mark: How far the conversation is remembered.
        memory_seen: How far the conversation had come then.
    """

    memory_error: NotRequired[Annotated[str, OmitFromInput]]
    memory_block: NotRequired[Annotated[str, PrivateStateAttr]]
    memory_user: NotRequired[Annotated[str, PrivateStateAttr]]
    memory_mark: NotRequired[Annotated[str, PrivateStateAttr]]
    memory_seen: NotRequired[Annotated[str, PrivateStateAttr]]


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives an agent a long-term memory of each user.

    Before the agent starts, what the user says is stored, so that a failing model loses nothing, and what
    memory knows about it is recalled, once a run. It is shown to the model in the system message; the
    state's messages stay as they are. After the agent is done, its answer is stored.

    The user is the one of the run: the server's authenticated identity, `user_id` of the runtime context,
    or `user_id` in the config's `configurable`; a run without a user is refused. A run that was interrupted
    is gone on with by the user who started it alone, whoever approves it. Any other failure of memory is
    logged and shown as `memory_error` in the state, and the agent answers without memory.

    Args:
        memrag: The memory.
        k: How many remembered turns at most.
        token_budget: How many tokens they may take in the prompt; 0 means no limit.
        where: Narrows what may be recalled, to one agent or to one role, say.
        timeout: Seconds that each arm of a recall may take.
        agent_id: The agent's own name, where several serve one user.
        tool_messages: Whether to remember what tools said, too.

    Raises:
        ConfigurationError: An option is out of range.
        MissingDependencyError: On import, without the `langchain` extra.

    Example:
        >>> from langchain.agents import create_agent
        >>> agent = create_agent(model, middleware=[MemoryMiddleware(memrag)])
        >>> said = {"messages": [("user", "Where do I live?")]}
        >>> answer = agent.invoke(said, {"configurable": {"user_id": "ann"}})
    """

    state_schema = MemoryState

    def __init__(
        self,
        memrag: MemRAG,
        *,
        k: int = 10,
        token_budget: int = 2000,
        where: RecallFilter | None = None,
        timeout: float = 5.0,
        agent_id: str | None = None,
        tool_messages: bool = False,
    ) -> None:
        super().__init__()
        self._agent_id = agent_id
        self._tending = Tending(
            memrag,
            k=k,
            token_budget=token_budget,
            where=where or RecallFilter(),
            timeout=timeout,
            tools=tool_messages,
        )

    def before_agent(self, state: MemoryState, runtime: Runtime[ContextT]) -> dict[str, Any]:
        """Store what the user says, and recall what is known about it."""
        scope = resolve_scope(None, runtime, agent_id=self._agent_id)
        learned = self._tending.learn(state["messages"], _bookmark(state), scope)
        recall, error = self._tending.recall(state["messages"], scope)
        return _prepared(learned, recall, error)

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[ContextT]) -> dict[str, Any]:
        """Async twin of `before_agent`."""
        scope = resolve_scope(None, runtime, agent_id=self._agent_id)
        learned = await self._tending.alearn(state["messages"], _bookmark(state), scope)
        recall, error = await self._tending.arecall(state["messages"], scope)
        return _prepared(learned, recall, error)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Show the model what was recalled."""
        return handler(_informed(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        """Async twin of `wrap_model_call`."""
        return await handler(_informed(request))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Let no tool act for one user in another's run."""
        _require_owner(request.state, None)
        return handler(request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Async twin of `wrap_tool_call`."""
        _require_owner(request.state, None)
        return await handler(request)

    def after_agent(self, state: MemoryState, runtime: Runtime[ContextT]) -> dict[str, Any]:
        """Store the answer, and whatever of this run could not be stored before."""
        scope = resolve_scope(None, runtime, agent_id=self._agent_id)
        require_owner(scope.user_id, state.get("memory_user"))
        learned = self._tending.learn(state["messages"], _bookmark(state), scope)
        return _learned(state, learned)

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[ContextT]) -> dict[str, Any]:
        """Async twin of `after_agent`."""
        scope = resolve_scope(None, runtime, agent_id=self._agent_id)
        require_owner(scope.user_id, state.get("memory_user"))
        learned = await self._tending.alearn(state["messages"], _bookmark(state), scope)
        return _learned(state, learned)


def _bookmark(state: MemoryState) -> Bookmark:
    return Bookmark(state.get("memory_user"), state.get("memory_mark"), state.get("memory_seen"))


def _require_owner(state: Mapping[str, Any], runtime: Runtime[Any] | None) -> None:
    require_owner(resolve_user(None, runtime), state.get("memory_user"))


def _prepared(learned: Learned, recall: Recall | None, error: str) -> dict[str, Any]:
    return {
        "memory_block": recall.render() if recall else "",
        "memory_user": learned.user,
        "memory_mark": learned.mark,
        "memory_seen": learned.seen,
        "memory_error": "; ".join(part for part in (learned.error, error) if part),
    }


def _learned(state: MemoryState, learned: Learned) -> dict[str, Any]:
    earlier = state.get("memory_error", "")
    parts = dict.fromkeys(part for part in (earlier, learned.error) if part)
    return {
        "memory_user": learned.user,
        "memory_mark": learned.mark,
        "memory_seen": learned.seen,
        "memory_error": "; ".join(parts),
    }


def _informed(request: ModelRequest[Any]) -> ModelRequest[Any]:
    state: Mapping[str, Any] = request.state
    _require_owner(state, request.runtime)
    block = state.get("memory_block", "")
    if not block:
        return request
    return request.override(system_message=_with_block(request.system_message, block))


def _with_block(message: SystemMessage | None, block: str) -> SystemMessage:
    """The system message with the block after it, so that what a provider caches stays the prefix."""
    if message is None:
        return SystemMessage(block)
    if isinstance(message.content, str):
        content: str | list[str | dict[str, Any]] = f"{message.content}\n\n{block}"
    else:
        content = [*message.content, {"type": "text", "text": block}]
    return message.model_copy(update={"content": content})
