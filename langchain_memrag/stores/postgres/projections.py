"""What the engines beside Postgres do not hold yet: marks in the record, set by the write that causes them.

A mark goes in the transaction that sees the engine's answer, under the mark's own row lock. Forgetting
takes the marks of what it erases, so it waits for a copy that is on its way, and none starts after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast
from uuid import UUID

from psycopg import Connection

from langchain_memrag.errors import StoreError
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["WHOLE_SPACE", "EngineRole", "Lag", "Projected", "ProjectionStore", "RegisteredEngine"]

EngineRole = Literal["search", "graph", "cache"]
"""What an engine beside Postgres may be for."""

Projected = Literal["search", "graph"]
"""The roles whose engine holds a copy of what is in Postgres."""

WHOLE_SPACE: Final = UUID(int=0)
"""Stands for all of a space in a mark of erasure."""

# Whoever is indexing a record at this moment has not said yet what its copy should hold.
_INDEXED: Final = (
    " AND NOT EXISTS (SELECT FROM {schema}.pending i"
    " WHERE i.space = p.space AND i.record = p.record AND i.work = 'index')"
)

_LONGEST_WAIT: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RegisteredEngine:
    """An engine as the database remembers it."""

    role: EngineRole
    name: str
    place: str


@dataclass(frozen=True, slots=True)
class Lag:
    """How far an engine is behind.

    Attributes:
        copies: Records that it does not hold yet.
        erasures: Records or spaces that it may still hold.
        refused: Of both, those that it refused more than once.
    """

    copies: int = 0
    erasures: int = 0
    refused: int = 0


class ProjectionStore:
    """Marks of work for the engines beside Postgres.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def most_copies(self) -> int:
        """How many copies to one engine may be on their way at once, since each holds a connection."""
        return max(1, self._database.pool_size // 4)

    def memory(self) -> UUID:
        """Which memory this is."""
        (row,) = self._rows("read the memory's id", "SELECT id FROM {schema}.memory", {})
        return cast("UUID", row[0])

    def engines(self) -> Mapping[EngineRole, RegisteredEngine]:
        """The engines that hold a copy, by role."""
        rows = self._rows("read the engines", "SELECT role, name, place FROM {schema}.engine", {})
        found = [RegisteredEngine(*row) for row in cast("list[tuple[EngineRole, str, str]]", rows)]
        return {one.role: one for one in found}

    def register(self, engine: RegisteredEngine, now: datetime, *, fill: bool) -> None:
        """Remember an engine, so that every write marks work for it.

        Args:
            engine: What it is.
            now: When.
            fill: Whether it holds nothing: then all that is stored is marked.
        """
        with self._database.transaction("register an engine") as work:
            work.connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.engine (role, name, place, since) VALUES (%s, %s, %s, %s)"
                    " ON CONFLICT (role) DO UPDATE SET name = excluded.name, place = excluded.place"
                ),
                (engine.role, engine.name, engine.place, now),
            )
        if fill and engine.role != "cache":
            # After the commit: whoever writes from now on marks by himself, and all before him is seen here.
            self.mark(engine.role, now, space=None)

    def drop(self, role: EngineRole) -> None:
        """Forget an engine: nothing is marked for it any more."""
        with self._database.transaction("drop an engine") as work:
            work.connection.execute(
                self._database.statement("DELETE FROM {schema}.engine WHERE role = %s"), (role,)
            )
            work.connection.execute(
                self._database.statement("DELETE FROM {schema}.pending WHERE work = ANY(%s)"),
                ([role, f"erase_{role}"],),
            )

    def mark(self, role: Projected, now: datetime, *, space: int | None) -> int:
        """Mark all records of a space, or of all, to be copied again; returns how many are."""
        with self._database.transaction("mark for an engine") as work:
            return work.connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.pending (space, record, work, not_before)"
                    " SELECT space, id, %(role)s, %(now)s FROM {schema}.episode"
                    " WHERE %(space)s::bigint IS NULL OR space = %(space)s ORDER BY space, id"
                    # Not DO NOTHING: a mark that is just being taken away would be passed over.
                    " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0, error = NULL"
                ),
                {"role": role, "now": now, "space": space},
            ).rowcount

    def due(
        self, role: Projected, now: datetime, *, space: int | None, limit: int, after: tuple[int, UUID] | None
    ) -> list[tuple[int, UUID]]:
        """Records to copy, in a fixed order; what was refused waits longer each time.

        Args:
            role: Whose engine.
            now: By which waiting is judged.
            space: Of one space, or of all where it is `None`.
            limit: How many at most.
            after: Only those behind it.
        """
        start, record = after or (0, WHOLE_SPACE)
        rows = self._rows(
            "look for work",
            "SELECT space, record FROM {schema}.pending p WHERE work = %(role)s"
            " AND (space, record) > (%(start)s, %(record)s)"
            " AND (%(space)s::bigint IS NULL OR space = %(space)s)"
            " AND (attempts = 0 OR not_before <= %(now)s)"
            + _INDEXED
            + " ORDER BY space, record LIMIT %(limit)s",
            {"role": role, "start": start, "record": record, "space": space, "now": now, "limit": limit},
        )
        return [(cast("int", one), cast("UUID", ident)) for one, ident in rows]

    @contextmanager
    def copying(
        self,
        role: Projected,
        space: int,
        records: Sequence[UUID],
        embedder: int | None,
        *,
        wait: bool = False,
    ) -> Iterator[frozenset[UUID]]:
        """Take the marks of records away if the block, in which they are copied, succeeds.

        Args:
            role: Whose engine.
            space: Whose records.
            records: Which.
            embedder: By whose vectors this process copies; a memory that has moved to another one leaves
                the copying of entries to those who have it.
            wait: Wait for those who are at some of the records, instead of leaving these to them.

        Yields:
            The records to copy: those that are marked, and that nobody else is at.
        """
        with self._database.transaction("copy to an engine") as work:
            rows = work.connection.execute(
                self._database.statement(
                    "SELECT record, set_config('synchronous_commit', 'off', true) FROM {schema}.pending p"
                    " WHERE space = %(space)s AND work = %(role)s AND record = ANY(%(records)s)"
                    + _INDEXED
                    + " AND (work <> 'search' OR coalesce((SELECT id FROM {schema}.embedder"
                    "  WHERE state = 'active'), 0) = %(embedder)s)"
                    # In one order, so that two who wait do not wait for each other.
                     + (" ORDER BY record FOR UPDATE" if wait else " FOR UPDATE SKIP LOCKED")
                ),
                {"space": space, "role": role, "records": list(records), "embedder": embedder or 0},
            ).fetchall()
            claimed = frozenset(cast("UUID", row[0]) for row in rows)
            yield claimed
            self._settle(work.connection, role, space, list(claimed))

    def erasures(self, role: EngineRole, now: datetime, *, limit: int) -> Mapping[int, Sequence[UUID]]:
        """What has been forgotten, but perhaps not by an engine: records by space."""
        rows = self._rows(
            "look for erasures",
            "SELECT space, record FROM {schema}.pending WHERE work = %(work)s"
            " AND (attempts = 0 OR not_before <= %(now)s) ORDER BY space, record LIMIT %(limit)s",
            {"work": f"erase_{role}", "now": now, "limit": limit},
        )
        found: dict[int, list[UUID]] = {}
        for space, record in cast("list[tuple[int, UUID]]", rows):
            found.setdefault(space, []).append(record)
        return found

    def generation(self, space: int) -> int | None:
        """The generation of a space; `None` where it is gone."""
        rows = self._rows(
            "look for a space", "SELECT generation FROM {schema}.space WHERE id = %(space)s", {"space": space}
        )
        return cast("int", rows[0][0]) if rows else None

    def erased(self, role: EngineRole, space: int, records: Sequence[UUID]) -> None:
        """An engine has given up these records."""
        with self._database.connection("note an erasure") as connection:
            self._settle(connection, f"erase_{role}", space, records)

    def refused(
        self, work: str, space: int, records: Sequence[UUID], now: datetime, error: StoreError
    ) -> None:
        """Note that an engine refused records, so that they wait longer before they are tried again."""
        with self._database.connection("note a refusal") as connection:
            connection.execute(
                self._database.statement(
                    "UPDATE {schema}.pending SET attempts = attempts + 1, error = %(error)s, not_before ="
                    " %(now)s::timestamptz + least(%(longest)s, interval '15 s' * power(2, least(attempts, 20)))"
                    " WHERE space = %(space)s AND work = %(work)s AND record = ANY(%(records)s)"
                ),
                {
                    "work": work,
                    "space": space,
                    "records": list(records),
                    "now": now,
                    "longest": _LONGEST_WAIT,
                    "error": type(error).__name__,
                },
            )

    def lag(self, role: EngineRole, space: int | None = None) -> Lag:
        """How far an engine is behind, in one space or in all."""
        (row,) = self._rows(
            "measure the lag",
            "SELECT count(*) FILTER (WHERE work = %(role)s), count(*) FILTER (WHERE work <> %(role)s),"
            " count(*) FILTER (WHERE attempts > 1) FROM {schema}.pending"
            " WHERE work = ANY(%(works)s) AND (%(space)s::bigint IS NULL OR space = %(space)s)",
            {"role": role, "works": [role, f"erase_{role}"], "space": space},
        )
        return Lag(*cast("tuple[int, int, int]", row))

    def _settle(self, connection: Connection[Row], work: str, space: int, records: Sequence[UUID]) -> None:
        connection.execute(
            self._database.statement(
                "DELETE FROM {schema}.pending WHERE space = %s AND work = %s AND record = ANY(%s)"
            ),
            (space, work, list(records)),
        )

    def _rows(self, operation: str, template: str, values: dict[str, object]) -> list[Row]:
        with self._database.connection(operation) as connection:
            return connection.execute(self._database.statement(template), values).fetchall()
