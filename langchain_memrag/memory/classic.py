"""Memory for LangChain's classic chains and agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import ConfigDict, Field, SkipValidation

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, MissingDependencyError
from langchain_memrag.memory.tending import excused
from langchain_memrag.memory.turns import text_of
from langchain_memrag.records import Episode, Recall, RecallFields, Scope, Turn
from langchain_memrag.text import is_blank, language_of

try:
    from langchain_classic.base_memory import BaseMemory
except ImportError as error:
    raise MissingDependencyError("MemRAGMemory", "classic") from error

__all__ = ["MemRAGMemory"]

_WHO = {"en": {"user": "User", "assistant": "Assistant"}, "zh": {"user": "用户", "assistant": "助手"}}


class MemRAGMemory(BaseMemory):
    """A `BaseMemory` that remembers across sessions, for `AgentExecutor` and the classic chains.

    It gives the prompt what memory knows about the input, and the session's last turns. The user is fixed
    when it is made: a classic chain passes no config to its memory, so make one for each user.

    A failure of memory is logged; the chain goes on without memory.

    Args:
        memrag: The memory.
        scope: Whose memory, and the session that is going on.
        memory_key: The prompt's variable.
        input_key: The input to remember; found by itself where there is one, or one called `input`.
        output_key: The output to remember; likewise, or one called `output`.
        return_messages: Give messages, for a `MessagesPlaceholder`, instead of a string.
        k: How many remembered turns at most.
        token_budget: How many tokens they may take; 0 means no limit.
        working: How many of the session's last turns to give; without a session there are none.

    Example:
        >>> memory = MemRAGMemory(memrag=memrag, scope=Scope("ann", session_id="today"))
        >>> memory.save_context({"input": "I live in Lisbon."}, {"output": "Noted."})
        >>> "Lisbon" in memory.load_memory_variables({"input": "Where do I live?"})["history"]
        True
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memrag: Annotated[MemRAG, SkipValidation] = Field(exclude=True, repr=False)
    scope: Scope
    memory_key: str = "history"
    input_key: str | None = None
    output_key: str | None = None
    return_messages: bool = False
    k: Annotated[int, Field(ge=1, le=1000)] = 10
    token_budget: Annotated[int, Field(ge=0)] = 2000
    working: Annotated[int, Field(ge=0, le=100)] = 10

    @property
    def memory_variables(self) -> list[str]:
        """The prompt's variable."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What memory knows about the input, and the session's last turns."""
        question = self._said(inputs, self.input_key, "input")
        if not question:
            return self._variables(None)
        try:
            return self._variables(self.memrag.recall(question, self.scope, **self._options()))
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            excused(error, "recall")
            return self._variables(None)

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Async twin of `load_memory_variables`."""
        question = self._said(inputs, self.input_key, "input")
        if not question:
            return self._variables(None)
        try:
            return self._variables(await self.memrag.arecall(question, self.scope, **self._options()))
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            excused(error, "recall")
            return self._variables(None)

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Remember what was asked and answered."""
        turns = self._turns(inputs, outputs)
        try:
            if turns:
                self.memrag.remember(turns, self.scope)
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            excused(error, "remember")

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Async twin of `save_context`."""
        turns = self._turns(inputs, outputs)
        try:
            if turns:
                await self.memrag.aremember(turns, self.scope)
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            excused(error, "remember")

    def clear(self) -> None:
        """Forget the session; without one, all of the user."""
        self.memrag.forget(self.scope, everything=self.scope.session_id is None)

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await self.memrag.aforget(self.scope, everything=self.scope.session_id is None)

    def _options(self) -> RecallFields:
        return RecallFields(k=self.k, token_budget=self.token_budget, working=self.working)

    def _variables(self, recall: Recall | None) -> dict[str, Any]:
        if recall:
            # What the session's last turns show already is not shown as a memory too.
            shown = {turn.id for turn in recall.working}
            recall = recall.model_copy(
                update={"hits": tuple(hit for hit in recall.hits if hit.id not in shown)}
            )
        if self.return_messages:
            return {self.memory_key: _messages(recall) if recall else []}
        return {self.memory_key: _transcript(recall) if recall else ""}

    def _turns(self, inputs: Mapping[str, object], outputs: Mapping[str, object]) -> list[Turn]:
        asked = self._said(inputs, self.input_key, "input")
        answered = self._said(outputs, self.output_key, "output")
        turns = [Turn(content=asked, role="user")] if asked else []
        return [*turns, Turn(content=answered, role="assistant")] if answered else turns

    def _said(self, values: Mapping[str, object], key: str | None, usual: str) -> str:
        """The text that the user or the chain said, among all that a chain passes around."""
        if key is None:
            keys = [name for name in values if name not in {self.memory_key, "stop"}]
            key = usual if usual in values else keys[0] if len(keys) == 1 else None
        if key is None or key not in values:
            raise ConfigurationError(
                f"cannot tell which of {sorted(values)} is the {usual}; name it with {usual}_key"
            )
        return _text(values[key])


def _text(value: object) -> str:
    if isinstance(value, BaseMessage):
        return text_of(value)
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return _text(value[-1])
    return value if isinstance(value, str) and not is_blank(value) else ""


def _messages(recall: Recall) -> list[BaseMessage]:
    block = recall.render()
    known: list[BaseMessage] = [SystemMessage(block)] if block else []
    return known + [
        AIMessage(turn.content) if turn.role == "assistant" else HumanMessage(turn.content)
        for turn in recall.working
        if turn.role in {"user", "assistant"}
    ]


def _transcript(recall: Recall) -> str:
    who = _WHO[language_of(recall.query)]
    lines = [_line(turn, who) for turn in recall.working]
    return "\n\n".join(part for part in (recall.render(), "\n".join(lines)) if part)


def _line(turn: Episode, who: Mapping[str, str]) -> str:
    return f"{turn.speaker or who.get(turn.role, turn.role)}: {turn.content}"
