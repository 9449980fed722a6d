"""What memory says of itself: sizes, health, and what was erased."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from langchain_memrag.records.basics import Record

__all__ = [
    "EngineHealth",
    "ErasureReport",
    "Health",
    "Job",
    "SpaceStats",
    "StoreCount",
]


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


class Job(Record):
    """A piece of background work. It is only a nudge: what is left to do stands in the record.

    Attributes:
        id: Its number.
        task: What it does.
        status: `todo`, `doing`, `failed`, `cancelled` or `aborted`.
        attempts: How often it was tried.
        space: Whose memory it is for, if for one.
        scheduled_at: Not before.
    """

    id: int
    task: str
    status: str
    attempts: int
    space: int | None = None
    scheduled_at: datetime | None = None


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


class EngineHealth(Record):
    """How an engine beside Postgres does.

    Attributes:
        role: What it is for: `search`, `graph` or `cache`.
        engine: Its name.
        place: Where it is, without credentials.
        state: `ready`; `away` where it does not answer; `elsewhere` where this process was not told of it.
        version: Of the server; empty where it does not answer.
        waiting: Records to copy to it.
        erasures: Records or spaces to erase from it.
        refused: Of both, those that it refused more than once.
        compared: Memories whose counts were compared with those in Postgres.
        differing: Of these, those that differ.
    """

    role: str
    engine: str
    place: str
    state: Literal["ready", "away", "elsewhere"]
    version: str = ""
    waiting: int = 0
    erasures: int = 0
    refused: int = 0
    compared: int = 0
    differing: int = 0


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
        engines: Those beside Postgres.
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
    engines: tuple[EngineHealth, ...] = ()
    problems: tuple[str, ...] = ()
