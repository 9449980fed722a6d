"""What `doctor` asks of the record: which memories to look at, and whether their parts agree."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.mending import mend, miscounted
from langchain_memrag.stores.postgres.pools import Row
from langchain_memrag.stores.postgres.projections import Projected

__all__ = ["Inspection", "Unindexed"]


@dataclass(frozen=True, slots=True)
class Unindexed:
    """Turns that no search can find, though nothing is marked to be done for them.

    Attributes:
        entries: Those without an index entry.
        vectors: Those without a vector, where there is an embedder.
    """

    entries: int
    vectors: int


class Inspection:
    """Looks at the record.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def settled(self, role: Projected, *, limit: int | None) -> list[int]:
        """Spaces of which an engine should hold all: the newest half of the limit, and any others.

        Args:
            role: Whose engine.
            limit: How many at most; all where it is `None`.
        """
        rows = self._rows(
            "look for memories",
            "WITH fit AS MATERIALIZED (SELECT s.id FROM {schema}.space s WHERE NOT EXISTS (SELECT FROM"
            "  {schema}.pending p WHERE p.space = s.id AND (p.work = ANY(%(works)s))))"
            " SELECT id FROM ((SELECT id FROM fit ORDER BY id DESC LIMIT %(half)s)"
            "  UNION (SELECT id FROM fit ORDER BY random() LIMIT %(limit)s)) picked ORDER BY id LIMIT %(limit)s",
            {
                "works": ["index", role, f"erase_{role}"],
                "limit": limit,
                "half": None if limit is None else limit // 2,
            },
        )
        return [cast("int", row[0]) for row in rows]

    def sample(self, space: int, count: int, now: datetime) -> list[UUID]:
        """Some records of a space, by chance."""
        rows = self._rows(
            "take a sample",
            "SELECT id FROM {schema}.episode WHERE space = %(space)s"
            " AND (expires_at IS NULL OR expires_at > %(now)s) ORDER BY random() LIMIT %(count)s",
            {"space": space, "count": count, "now": now},
        )
        return [cast("UUID", row[0]) for row in rows]

    def unindexed(self, vectors: str | None) -> Unindexed:
        """Turns that were lost between the record and the index.

        Args:
            vectors: The table of the active embedder, if there is one.
        """
        entries = self._rows("look for what is not indexed", "SELECT count(*) " + _LOST_ENTRIES, {})
        lost = 0
        if vectors is not None:
            with self._database.connection("look for what is not indexed") as connection:
                row = connection.execute(
                    self._database.statement("SELECT count(*) " + _LOST_VECTORS, vectors=vectors)
                ).fetchone()
            lost = cast("tuple[int]", row)[0]
        return Unindexed(cast("int", entries[0][0]), lost)

    def mark_unindexed(self, vectors: str | None, now: datetime) -> int:
        """Mark what was lost to be indexed; returns how many turns are."""
        mark = "INSERT INTO {schema}.pending (space, record, work, not_before) SELECT e.space, e.id, 'index', %(now)s "
        again = " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0"
        with self._database.transaction("mark what is not indexed") as work:
            marked = work.connection.execute(
                self._database.statement(mark + _LOST_ENTRIES + again), {"now": now}
            ).rowcount
            if vectors is not None:
                marked += work.connection.execute(
                    self._database.statement(mark + _LOST_VECTORS + again, vectors=vectors), {"now": now}
                ).rowcount
        return marked

    def has_retired(self) -> bool:
        """Whether vectors are kept of an embedder that the memory has moved away from."""
        rows = self._rows(
            "read the embedders", "SELECT EXISTS (SELECT FROM {schema}.embedder WHERE state = 'retired')", {}
        )
        return bool(rows[0][0])

    def miscounted(self) -> list[int]:
        """Spaces that lost entries behind the back of those that count them."""
        return miscounted(self._database)

    def mend(self, space: int) -> None:
        """Remove what belongs to no entry of a space any more, and count anew what is there."""
        mend(self._database, space)

    def spaces(self) -> list[int]:
        """All spaces, the oldest first."""
        rows = self._rows("look for memories", "SELECT id FROM {schema}.space ORDER BY id", {})
        return [cast("int", row[0]) for row in rows]

    def mark_all(self, space: int | None, now: datetime) -> int:
        """Mark all turns of a space, or of all, to be indexed again; returns how many are."""
        with self._database.transaction("mark to index") as work:
            return work.connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.pending (space, record, work, not_before)"
                    " SELECT space, id, 'index', %(now)s FROM {schema}.episode"
                    " WHERE %(space)s::bigint IS NULL OR space = %(space)s ORDER BY space, id"
                    " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0"
                ),
                {"space": space, "now": now},
            ).rowcount

    def _rows(self, operation: str, template: str, values: dict[str, object]) -> list[Row]:
        with self._database.connection(operation) as connection:
            return connection.execute(self._database.statement(template), values).fetchall()


_LOST_ENTRIES = (
    "FROM {schema}.episode e"
    " WHERE NOT EXISTS (SELECT FROM {schema}.entry i WHERE i.space = e.space AND i.record = e.id)"
    " AND NOT EXISTS (SELECT FROM {schema}.pending p"
    "  WHERE p.space = e.space AND p.record = e.id AND p.work = 'index')"
)
_LOST_VECTORS = (
    "FROM {schema}.episode e WHERE EXISTS (SELECT FROM {schema}.entry i WHERE i.space = e.space"
    "  AND i.record = e.id AND NOT EXISTS (SELECT FROM {schema}.{vectors} v"
    "   WHERE v.space = i.space AND v.view = i.view AND v.entry = i.id))"
    " AND NOT EXISTS (SELECT FROM {schema}.pending p"
    "  WHERE p.space = e.space AND p.record = e.id AND p.work = 'index')"
)
