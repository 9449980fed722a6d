"""What a recall is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

from pydantic import Field

from langchain_memrag.prompts import Line, render_explanation, render_memory
from langchain_memrag.records.basics import Arm, Category, Layer, Record, Role, UtcTime
from langchain_memrag.records.episodes import Episode
from langchain_memrag.records.scope import Scope
from langchain_memrag.text import language_of

__all__ = [
    "Degradation",
    "Hit",
    "Intent",
    "Recall",
    "RecallFields",
    "RecallFilter",
    "RecallOptions",
    "SignalScore",
]


class Intent(Record):
    """What a question asks for.

    Attributes:
        category: Factual, semantic or relational.
        entities: Names that the question mentions.
        needs_tools: Whether it seems to ask for an action or for live data.
        confidence: 0 to 1.
        origin: Who decided: the rules, a model, or the caller.
    """

    category: Category
    entities: tuple[str, ...] = ()
    needs_tools: bool = False
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    origin: Literal["rules", "model", "given"] = "given"


class RecallFilter(Record):
    """Narrows a recall inside the user's space. All that is given must hold.

    Args:
        session_id: Only this conversation.
        agent_id: Only turns with this agent.
        roles: Only these roles; `None` means all.
        since: Said at or after this time; aware.
        until: Said before this time; aware.
    """

    session_id: str | None = None
    agent_id: str | None = None
    roles: tuple[Role, ...] | None = None
    since: UtcTime | None = None
    until: UtcTime | None = None


class RecallOptions(Record):
    """How a recall is made; every field may be given to `recall` as a keyword.

    Args:
        k: How many hits at most; 1 to 1,000.
        token_budget: How many tokens the hits may take in a prompt, estimated; 0 means no limit.
        intent: Decided by the caller; by the rules where it is `None`.
        where: Narrows what may be found.
        in_prompt: Turns that the prompt holds already, by id or by text; left out of the hits.
        working: How many of the session's last turns to return as working memory.
        timeout: Seconds that each arm may take, counted from when it has a connection.
    """

    k: Annotated[int, Field(ge=1, le=1000)] = 10
    token_budget: Annotated[int, Field(ge=0)] = 0
    intent: Intent | None = None
    where: RecallFilter = RecallFilter()
    in_prompt: tuple[UUID | str, ...] = ()
    working: Annotated[int, Field(ge=0, le=100)] = 0
    timeout: Annotated[float, Field(gt=0, le=600)] = 5.0


class RecallFields(TypedDict):
    """The keywords of `recall`: those of `RecallOptions`."""

    k: NotRequired[int]
    token_budget: NotRequired[int]
    intent: NotRequired[Intent | None]
    where: NotRequired[RecallFilter]
    in_prompt: NotRequired[tuple[UUID | str, ...]]
    working: NotRequired[int]
    timeout: NotRequired[float]


class SignalScore(Record):
    """How one signal saw a hit.

    Attributes:
        name: Such as `dense`, `lexical`, `graph`.
        score: The raw score of the engine.
        rank: 1 is the best of that signal.
        share: What it added to the fused score.
        detail: What it matched by, such as the entity of a graph hit.
    """

    name: str
    score: float
    rank: int
    share: float
    detail: str = ""


class Hit(Record):
    """One remembered thing that answers a question, and why it was found.

    Attributes:
        id: The record's id.
        layer: The layer that it belongs to.
        text: As it was said.
        score: Fused score; comparable inside one recall only.
        signals: Every signal that found it, best share first.
        sources: Ids of the turns it comes from.
        episode: The turn itself, for a hit of the episodic layer.
    """

    id: UUID
    layer: Layer
    text: str
    score: float
    signals: tuple[SignalScore, ...]
    sources: tuple[UUID, ...]
    episode: Episode | None = None


class Degradation(Record):
    """An arm that could not help with a recall, and why."""

    arm: Arm
    reason: str


class Recall(Record):
    """What memory knows about a question.

    Attributes:
        query: The question, normalised.
        scope: Whose memory was read.
        intent: What the question was taken to ask.
        hits: Best first.
        working: The session's last turns, oldest first, where they were asked for.
        degraded: Arms that are down, late or not set up, or that Postgres had to stand in for.
        cached: Whether it is what was found before, and nothing has changed since.
        timings: Milliseconds by step.
        tokens: Estimated tokens of the hits.
    """

    query: str
    scope: Scope
    intent: Intent
    hits: tuple[Hit, ...] = ()
    working: tuple[Episode, ...] = ()
    degraded: tuple[Degradation, ...] = ()
    cached: bool = False
    timings: Mapping[str, float] = Field(default_factory=dict)
    tokens: int = 0

    def render(self) -> str:
        """The block for a prompt, in the question's language: untrusted reference, never instructions.

        Returns:
            A delimited text with ids, dates and sources; empty where nothing was found.
        """
        return render_memory([_line(hit) for hit in self.hits], language_of(self.query))

    def explain(self) -> str:
        """For each hit every signal's score and rank, and the turns it comes from."""
        return render_explanation(
            [_line(hit) for hit in self.hits],
            [f"{gone.arm}: {gone.reason}" for gone in self.degraded],
            language_of(self.query),
        )


def _line(hit: Hit) -> Line:
    episode = hit.episode
    return Line(
        id=str(hit.id),
        text=hit.text,
        who=episode.speaker_or_role if episode else hit.layer,
        when=episode.said_at if episode else None,
        source=episode.source if episode else hit.layer,
        score=hit.score,
        signals=tuple((s.name, s.score, s.rank, s.share, s.detail) for s in hit.signals),
        sources=tuple(str(source) for source in hit.sources),
    )
