"""What flows through the cognitive graph: messages, and otherwise plain JSON."""

from __future__ import annotations

from typing import Annotated, NotRequired, Required

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import JsonValue
from typing_extensions import TypedDict

from langchain_memrag.records import Category, Hit, Intent

__all__ = [
    "IntentState",
    "MemoryContext",
    "MemoryGraphInput",
    "MemoryGraphState",
    "RecalledTurn",
    "intent_from",
    "intent_state",
    "recalled_turn",
]


class MemoryContext(TypedDict, total=False):
    """What a run may be given as LangGraph's `context`.

    Attributes:
        user_id: Whose memory; may be given in the config's `configurable` instead.
    """

    user_id: str


class IntentState(TypedDict):
    """What the question asks for; see `Intent`."""

    category: Category
    entities: list[str]
    needs_tools: bool
    confidence: float
    origin: str


class RecalledTurn(TypedDict):
    """One hit of the recall.

    Attributes:
        id: The record's id.
        text: As it was said.
        score: Comparable inside one recall only.
        signals: Raw score by signal: why it was found.
        said_at: When, ISO 8601, by the speaker's clock; `None` for what nobody said.
        role: Whose message it was, or the layer of memory.
        speaker: A name, where there is one.
        metadata: What was kept beside it.
    """

    id: str
    text: str
    score: float
    signals: dict[str, float]
    said_at: str | None
    role: str
    speaker: str | None
    metadata: dict[str, JsonValue]


class MemoryGraphInput(TypedDict):
    """What a run starts from: what the user says."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]


class MemoryGraphState(MemoryGraphInput):
    """The state of the cognitive graph.

    Attributes:
        user_id: Whose memory this run reads and writes; nobody else may go on with it.
        intent: What the question asks for.
        memory_block: What was recalled, as the model is shown it.
        recalled: The hits behind it, best first.
        answer: The answer's text.
        memory_error: What went wrong with memory in this run; empty when nothing did.
        memory_mark: How far the conversation is remembered.
        memory_seen: How far the conversation had come then.
    """

    user_id: NotRequired[str]
    intent: NotRequired[IntentState | None]
    memory_block: NotRequired[str]
    recalled: NotRequired[list[RecalledTurn]]
    answer: NotRequired[str]
    memory_error: NotRequired[str]
    memory_mark: NotRequired[str]
    memory_seen: NotRequired[str]


def intent_state(intent: Intent) -> IntentState:
    """An intent as JSON."""
    return IntentState(
        category=intent.category,
        entities=list(intent.entities),
        needs_tools=intent.needs_tools,
        confidence=intent.confidence,
        origin=intent.origin,
    )


def intent_from(state: IntentState | None) -> Intent | None:
    """The intent in a state."""
    return None if state is None else Intent.model_validate(state)


def recalled_turn(hit: Hit) -> RecalledTurn:
    """A hit as JSON."""
    episode = hit.episode
    return RecalledTurn(
        id=str(hit.id),
        text=hit.text,
        score=hit.score,
        signals={signal.name: signal.score for signal in hit.signals},
        said_at=episode.said_at.isoformat() if episode else None,
        role=episode.role if episode else hit.layer,
        speaker=episode.speaker if episode else None,
        metadata=dict(episode.metadata) if episode else {},
    )
