"""What was said: on its way into memory, as it is kept, and what became of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Annotated, NotRequired, TypedDict
from uuid import UUID

from pydantic import AwareDatetime, Field

from langchain_memrag.records.basics import LONGEST_IDENTIFIER, Metadata, Record, Role, Source, Text, UtcTime
from langchain_memrag.records.scope import Scope

__all__ = [
    "Episode",
    "EpisodePage",
    "Receipt",
    "Turn",
    "TurnFields",
    "local_time",
]


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
