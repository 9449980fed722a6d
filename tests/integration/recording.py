"""A record with its readers, as tests use them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from langchain_memrag.records import Episode, Scope
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.erasing import Choice, RecordEraser
from langchain_memrag.stores.postgres.records import RecordStore

from .drafts import draft

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = Scope("ann", session_id="s1", agent_id="helper")


class Record:
    """A record with its readers, as one."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = RecordStore(database, lambda: NOW)
        self.reader = EpisodeReader(database)
        self.eraser = RecordEraser(database, lambda: NOW)

    def write(self, *contents: str, scope: Scope = ANN, **fields: object) -> list[UUID]:
        _, stored = self.store.record(scope, [draft(content, **fields) for content in contents])
        return [one.id for one in stored]

    def space(self, user: str = "ann") -> int:
        space = self.store.space_of(user)
        assert space is not None
        return space

    def read(self, ids: Sequence[UUID], *, user: str = "ann", now: datetime = NOW) -> list[Episode]:
        return self.reader.episodes([self.space(user)], ids, now)

    def history(self, *, user: str = "ann", now: datetime = NOW, **options: object) -> list[Episode]:
        found: list[Episode] = []
        cursor: str | None = None
        while True:
            defaults = {"session": None, "limit": 1000, "newest_first": False}
            page = self.reader.history(self.space(user), now, cursor=cursor, **{**defaults, **options})
            found += page.episodes
            cursor = page.cursor
            if cursor is None:
                return found

    def erase(self, choice: Choice, *, user: str = "ann") -> tuple[UUID, ...]:
        with self.eraser.erasing(self.space(user), choice) as work:
            pass
        return work.erased

    def pending(self, user: str = "ann") -> set[UUID]:
        return {one.record for one in self.store.pending(space=self.space(user), limit=100_000)}


def contents(episodes: Sequence[Episode]) -> list[str]:
    return [episode.content for episode in episodes]


def alone(ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, ...]]:
    """Records whose entries hold their own words only."""
    return {ident: (ident,) for ident in ids}
