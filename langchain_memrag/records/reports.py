"""What memory says of itself: sizes, health, and what was erased."""

from __future__ import annotations

from langchain_memrag.records.basics import Record

__all__ = [
    "ErasureReport",
    "Health",
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
