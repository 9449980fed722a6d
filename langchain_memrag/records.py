"""What memory is made of: frozen values, with no database and no I/O.

Every record forbids unknown fields and cannot be changed after it is made. Times are aware
and in UTC; ids are UUIDv7, but order is always `(occurred_at, seq)`, never the id.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Final, Literal, NotRequired, TypedDict
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from langchain_memrag.errors import ScopeError
from langchain_memrag.prompts import Line, render_explanation, render_memory
from langchain_memrag.text import is_blank, language_of, normalise

__all__ = [
    "Arm",
    "Category",
    "Degradation",
    "Entity",
    "Episode",
    "EpisodePage",
    "ErasureReport",
    "Health",
    "Hit",
    "Intent",
    "Layer",
    "Metadata",
    "Recall",
    "RecallFields",
    "RecallFilter",
    "RecallOptions",
    "Receipt",
    "Relation",
    "RelationType",
    "Role",
    "Scope",
    "SignalScore",
    "Source",
    "SpaceStats",
    "StoreCount",
    "Turn",
    "TurnFields",
]

Role = Literal["user", "assistant", "tool", "system"]
"""Whose message it was."""

Source = Literal["user", "assistant", "tool", "document"]
"""Where a text comes from; only `user` and `assistant` text may ever become a fact about the user."""

Layer = Literal["episode", "fact", "procedure", "chunk"]
"""The layer of memory that a record belongs to."""

Category = Literal["factual", "semantic", "relational"]
"""What a question asks for, which decides how the arms are weighted."""

Arm = Literal["dense", "lexical", "graph", "time"]
"""A way by which recall finds records."""

RelationType = Literal[
    "RELATED_TO",
    "MENTIONED_WITH",
    "PART_OF",
    "CAUSES",
    "USES",
    "KNOWS",
    "WORKS_FOR",
    "MEMBER_OF",
    "LIVES_IN",
    "LOCATED_IN",
    "OWNS",
    "CREATED",
    "LIKES",
    "DISLIKES",
    "HAS_PROPERTY",
    "HAPPENED_ON",
]
"""The closed vocabulary of relations; whatever else a text says is `RELATED_TO` plus its free predicate."""

Metadata = Mapping[str, JsonValue]
"""What a caller wants kept beside a turn. Identity keys inside it are data and never decide whose it is."""


LONGEST_IDENTIFIER: Final = 512
"""Characters of a user, session, agent or key; an index holds every one of them whole."""


def _to_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


UtcTime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
"""An aware time, kept in UTC. A naive time is refused."""

Text = Annotated[str, AfterValidator(normalise)]


class Record(BaseModel):
    """Base of all records: frozen, and closed to fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _clean_identifier(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ScopeError(f"{name} must be a string, not {type(value).__name__}")
    trimmed = value.strip()
    if is_blank(trimmed):
        raise ScopeError(f"{name} is blank; memory is never read or written without one")
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in trimmed):
        raise ScopeError(f"{name} holds a control character or a lone surrogate")
    if len(trimmed) > LONGEST_IDENTIFIER:
        raise ScopeError(f"{name} is longer than {LONGEST_IDENTIFIER} characters")
    return trimmed


class Scope(Record):
    """Whose memory it is, and where in it a turn belongs.

    The user decides the space: the unit of isolation. Session and agent are filters inside it.
    All are trimmed, compared exactly, and never defaulted.

    Args:
        user_id: The user; required.
        session_id: The conversation, where there is one.
        agent_id: The agent that took part, where several serve one user.

    Raises:
        ScopeError: The user is missing, blank or not a string, or a session or agent that is
            given is blank.

    Example:
        >>> Scope("  ann ").user_id
        'ann'
    """

    user_id: str
    session_id: str | None = None
    agent_id: str | None = None

    def __init__(self, user_id: str, session_id: str | None = None, agent_id: str | None = None) -> None:
        BaseModel.__init__(
            self,
            user_id=_clean_identifier("user_id", user_id),
            session_id=None if session_id is None else _clean_identifier("session_id", session_id),
            agent_id=None if agent_id is None else _clean_identifier("agent_id", agent_id),
        )


class TurnFields(TypedDict):
    """What `remember` may be told about the turns of one call; a `Turn` of its own overrides it."""

    role: NotRequired[Role]
    speaker: NotRequired[str | None]
    occurred_at: NotRequired[datetime | None]
    source: NotRequired[Source | None]
    ttl: NotRequired[timedelta | None]
    key: NotRequired[str | None]
    metadata: NotRequired[Metadata]


class Turn(Record):
    """One message on its way into memory.

    Args:
        content: What was said. Normalised (NFC, no NUL, no lone surrogates); blank is refused.
        role: Whose message it was.
        speaker: A name, where there is one.
        occurred_at: When it was said; aware. `None` means when it is recorded.
        source: Where the text comes from; by default it follows the role.
        ttl: How long it may be recalled, counted from recording; positive.
        key: Idempotency key: a second turn with the same key in the same space is a no-op.
        metadata: Anything JSON.
    """

    content: Text
    role: Role = "user"
    speaker: Text | None = None
    occurred_at: AwareDatetime | None = None
    source: Source | None = None
    ttl: Annotated[timedelta, Field(gt=timedelta(0))] | None = None
    key: Annotated[str, Field(min_length=1, max_length=LONGEST_IDENTIFIER)] | None = None
    metadata: Metadata = Field(default_factory=dict)


class Episode(Record):
    """Episodic memory: one message as it was said.

    Attributes:
        id: UUIDv7.
        scope: Whose it is and where it was said.
        seq: Its place in the space's sequence; grows with every write.
        occurred_at: When it was said, in UTC.
        utc_offset: Seconds east of UTC of the speaker's clock, so that the local day is known.
        recorded_at: When it was stored, in UTC.
        expires_at: From when on it is never returned; `None` means never.
    """

    id: UUID
    scope: Scope
    seq: int
    role: Role
    content: str
    speaker: str | None = None
    occurred_at: UtcTime
    utc_offset: int = 0
    recorded_at: UtcTime
    source: Source
    key: str | None = None
    expires_at: UtcTime | None = None
    metadata: Metadata = Field(default_factory=dict)

    @property
    def said_at(self) -> datetime:
        """When it was said, by the speaker's own clock."""
        return local_time(self.occurred_at, self.utc_offset)

    @property
    def speaker_or_role(self) -> str:
        """The name to show for who said it."""
        return self.speaker or self.role


def local_time(moment: datetime, utc_offset: int) -> datetime:
    """A UTC time on a clock `utc_offset` seconds east of UTC, clamped to what a date can hold."""
    try:
        return moment.astimezone(timezone(timedelta(seconds=utc_offset)))
    except (OverflowError, ValueError):
        return moment


class EpisodePage(Record):
    """Some episodes in order, and where the next page starts.

    Attributes:
        episodes: In the order asked for.
        cursor: Hand it to `history` for the next page; `None` on the last.
    """

    episodes: tuple[Episode, ...]
    cursor: str | None = None


class Receipt(Record):
    """What `remember` did. Everything it names is on disk.

    Attributes:
        ids: One per turn given, in order; a repeated key gives the id that is stored.
        stored: Turns that are new.
        duplicates: Turns whose key was known.
        indexed: New turns that every arm can find already.
        pending: New turns that are safe but not yet indexed; healed in the background.
    """

    ids: tuple[UUID, ...]
    stored: int
    duplicates: int
    indexed: int
    pending: int


class Entity(Record):
    """Something with a name, as one user's memory knows it.

    Attributes:
        key: NFKC, case-folded, script kept: what equality is decided by.
        name: As it was first written.
        type: What kind of thing it is, such as `person` or `place`.
        aliases: Other spellings that were seen.
        mentions: How many records mention it.
    """

    key: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    mentions: int = 0


class Relation(Record):
    """A directed edge between two entities of one space.

    Attributes:
        source: Key of the entity it starts from.
        target: Key of the entity it points to.
        type: From the closed vocabulary.
        predicate: The words of the text, where there are any.
        weight: How many records support it.
        records: The ids of records that support it.
        valid_from: From when on it holds in the world; `None` means unknown.
        valid_to: Until when it held; `None` means it still does.
    """

    source: str
    target: str
    type: RelationType
    predicate: str = ""
    weight: int = 1
    records: tuple[UUID, ...] = ()
    valid_from: UtcTime | None = None
    valid_to: UtcTime | None = None


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
        degraded: Arms that are down, late or not set up.
        timings: Milliseconds by step.
        tokens: Estimated tokens of the hits.
    """

    query: str
    scope: Scope
    intent: Intent
    hits: tuple[Hit, ...] = ()
    working: tuple[Episode, ...] = ()
    degraded: tuple[Degradation, ...] = ()
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


class StoreCount(Record):
    """How many things of one kind a store holds or gave up."""

    store: str
    kind: str
    count: int


class ErasureReport(Record):
    """What `forget` found, erased, and saw when it looked again.

    Attributes:
        dry_run: Whether anything was erased at all.
        erased: By store and kind; in a dry run, what would be.
        residue: What was still there afterwards; empty when all is gone.
    """

    dry_run: bool
    erased: tuple[StoreCount, ...]
    residue: tuple[StoreCount, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing that should be gone was seen again."""
        return not self.residue


class SpaceStats(Record):
    """The size of one user's memory.

    Attributes:
        episodes: Turns stored.
        pending: Turns not yet indexed.
        entries: Index entries; a turn has one per view and part.
        entities: Entities known.
        relations: Relations known.
        sessions: Conversations.
        generation: Grows with all that changes what a recall can find.
    """

    episodes: int = 0
    pending: int = 0
    entries: int = 0
    entities: int = 0
    relations: int = 0
    sessions: int = 0
    generation: int = 0


class Health(Record):
    """What `doctor` sees. Holds no credentials and no user's text.

    Attributes:
        location: Data folder, or host, port and database.
        postgres: Version of the server.
        pgvector: Version of the extension.
        schema_version: Number of the newest migration that was applied.
        embedder: Name of the embedder that the index was made with.
        width: Dimensions of its vectors.
        users: Users with a memory.
        episodes: Turns stored, of all users.
        pending: Turns not yet indexed, of all users.
        problems: What is wrong and what to do; empty when all is well.
    """

    location: str
    postgres: str
    pgvector: str
    schema_version: int
    embedder: str | None = None
    width: int | None = None
    users: int = 0
    episodes: int = 0
    pending: int = 0
    problems: tuple[str, ...] = ()
