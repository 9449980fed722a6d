"""What every conversational door does with memory around one answer, in a sync and an async half.

Before the model is called, what the user says is stored and what is known is recalled; afterwards the
answer is stored. A failure of memory costs the memory, never the answer: it is logged, and handed back for
the state to show.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AnyMessage
from pydantic import ValidationError

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, MemRAGError, ScopeError
from langchain_memrag.memory.turns import (
    asked,
    in_prompt,
    last_of,
    latest,
    mark_of,
    text_of,
    turns_of,
    unremembered,
)
from langchain_memrag.records import Intent, Recall, RecallFields, RecallFilter, RecallOptions, Scope, Turn

__all__ = ["Bookmark", "Learned", "Tending", "excused"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far a conversation is remembered, and for whom.

    Attributes:
        user: Whose run it was.
        mark: The id of the last message that is dealt with.
        seen: The id of the last message that was there; what came later is no part of what that run knew.
    """

    user: str | None = None
    mark: str | None = None
    seen: str | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """How far a conversation is remembered now.

    Attributes:
        user: Whose run it is.
        mark: The id of the last message that is dealt with.
        seen: The id of the last message that is there.
        error: What went wrong, without anybody's text; empty when nothing did.
    """

    user: str
    mark: str
    seen: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Tending:
    """How a door remembers and recalls.

    Args:
        memrag: The memory.
        k: How many hits at most.
        token_budget: How many tokens they may take in the prompt; 0 means no limit.
        where: Narrows what may be recalled.
        timeout: Seconds that each arm of a recall may take.
        tools: Whether what tools said is remembered too.
        shown: Whether the conversation is shown to a model, so that recall leaves it out.
    """

    memrag: MemRAG
    k: int = 10
    token_budget: int = 2000
    where: RecallFilter = field(default_factory=RecallFilter)
    timeout: float = 5.0
    tools: bool = False
    shown: bool = True

    def __post_init__(self) -> None:
        try:
            RecallOptions(k=self.k, token_budget=self.token_budget, timeout=self.timeout)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigurationError(f"{where}: {first['msg']}") from None

    def learn(self, messages: Sequence[AnyMessage], kept: Bookmark, scope: Scope) -> Learned:
        """Store what is new in a conversation.

        What was said in another user's run stays his, also where his memory missed it.

        Args:
            messages: The conversation.
            kept: How far it is remembered, where that is known.
            scope: Whose it is.

        Raises:
            ScopeError: The memory does not take the scope.
        """
        remaining, turns = self._new(messages, kept, scope)
        try:
            if turns:
                self.memrag.remember(turns, scope)
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            return _learned(messages, remaining, scope, excused(error, "remember"))
        return _learned(messages, (), scope)

    async def alearn(self, messages: Sequence[AnyMessage], kept: Bookmark, scope: Scope) -> Learned:
        """Async twin of `learn`."""
        remaining, turns = self._new(messages, kept, scope)
        try:
            if turns:
                await self.memrag.aremember(turns, scope)
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            return _learned(messages, remaining, scope, excused(error, "remember"))
        return _learned(messages, (), scope)

    def recall(
        self, messages: Sequence[AnyMessage], scope: Scope, intent: Intent | None = None
    ) -> tuple[Recall | None, str]:
        """What is known about what the user says just now, beyond what the model is shown anyway.

        Returns:
            The recall, `None` where nothing was asked or memory failed; and what went wrong.

        Raises:
            ScopeError: The memory does not take the scope.
        """
        question = _question(messages)
        if not question:
            return None, ""
        try:
            return self.memrag.recall(question, scope, **self._options(messages, intent)), ""
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            return None, excused(error, "recall")

    async def arecall(
        self, messages: Sequence[AnyMessage], scope: Scope, intent: Intent | None = None
    ) -> tuple[Recall | None, str]:
        """Async twin of `recall`."""
        question = _question(messages)
        if not question:
            return None, ""
        try:
            return await self.memrag.arecall(question, scope, **self._options(messages, intent)), ""
        except Exception as error:  # noqa: BLE001 - memory must not kill the agent's turn
            return None, excused(error, "recall")

    def _new(
        self, messages: Sequence[AnyMessage], kept: Bookmark, scope: Scope
    ) -> tuple[Sequence[AnyMessage], list[Turn]]:
        if kept.user and kept.user != scope.user_id:
            remaining = latest(messages, kept.seen)
        else:
            remaining = unremembered(messages, kept.mark)
        return remaining, turns_of(remaining, scope.session_id, tools=self.tools)

    def _options(self, messages: Sequence[AnyMessage], intent: Intent | None) -> RecallFields:
        return RecallFields(
            k=self.k,
            token_budget=self.token_budget,
            intent=intent,
            where=self.where,
            in_prompt=in_prompt(messages if self.shown else asked(messages)),
            timeout=self.timeout,
        )


def _learned(
    messages: Sequence[AnyMessage], remaining: Sequence[AnyMessage], scope: Scope, error: str = ""
) -> Learned:
    return Learned(scope.user_id, mark_of(messages, remaining), last_of(messages), error)


def _question(messages: Sequence[AnyMessage]) -> str:
    return "\n".join(text for message in asked(messages) if (text := text_of(message)))


def excused(error: Exception, doing: str) -> str:
    """Log a failure of memory, and say it without anybody's text.

    Raises:
        ScopeError: The failure is one: a scope that will not do is no fault of memory but a mistake.
    """
    if isinstance(error, ScopeError):
        raise error
    # Our own errors hold no text of users; what a model's client says may.
    why = f"{type(error).__name__}: {error}" if isinstance(error, MemRAGError) else type(error).__name__
    logger.warning("memory failed to %s; the agent goes on without it: %s", doing, why)
    return f"{doing}: {why}"
