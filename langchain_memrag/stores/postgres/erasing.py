"""Erasing episodes from the record, in one transaction with whatever lives in the same database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast
from uuid import UUID

from psycopg import Connection

from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.database import Database, PostgresTransaction
from langchain_memrag.stores.postgres.pools import Row
from langchain_memrag.stores.postgres.projections import WHOLE_SPACE, EngineRole

__all__ = ["Choice", "ErasingTransaction", "RecordEraser"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which episodes of a space are meant. All that is given must hold; nothing given means all.

    Attributes:
        ids: Only these.
        session: Only of this session.
        since: Only said at or after it.
        until: Only said before it.
        expired_at: Only those that have expired by then.
    """

    ids: tuple[UUID, ...] | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    expired_at: datetime | None = None


# One statement for every choice: a condition that is not given is true of every row.
_CHOSEN: Final = (
    " e.space = %(space)s"
    " AND (%(ids)s::uuid[] IS NULL OR e.id = ANY(%(ids)s))"
    " AND (%(session)s::text IS NULL OR e.session = %(session)s)"
    " AND (%(since)s::timestamptz IS NULL OR e.occurred_at >= %(since)s)"
    " AND (%(until)s::timestamptz IS NULL OR e.occurred_at < %(until)s)"
    " AND (%(expired_at)s::timestamptz IS NULL OR e.expires_at <= %(expired_at)s)"
)


# What engines beside Postgres may still hold, until they have been seen to have given it up.
_ERASURES: Final = (
    "INSERT INTO {schema}.pending (space, record, work, not_before)"
    " SELECT %(space)s, r.id, 'erase_' || e.role, %(now)s FROM unnest(%(ids)s::uuid[]) r(id)"
    " CROSS JOIN {schema}.engine e WHERE e.role <> 'cache'"
    " UNION ALL SELECT %(space)s, %(whole)s, 'erase_' || e.role, %(now)s FROM {schema}.engine e"
    "  WHERE e.role = ANY(%(wholly)s)"
    " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0, error = NULL"
)


# Who had one of the erased as predecessor is the next of its session now; the index finds him at once.
_BEREAVE: Final = (
    "UPDATE {schema}.episode e SET predecessor = NULL"
    " FROM unnest(%(ids)s::uuid[], %(sessions)s::text[], %(seqs)s::bigint[]) g(id, session, seq)"
    " CROSS JOIN LATERAL (SELECT n.id FROM {schema}.episode n"
    "   WHERE n.space = %(space)s AND n.session = g.session AND n.seq > g.seq ORDER BY n.seq LIMIT 1) next"
    " WHERE e.space = %(space)s AND e.id = next.id AND e.predecessor = g.id AND g.session <> ''"
)


class ErasingTransaction(PostgresTransaction):
    """An erasure, open: the episodes are gone from the record, and the lock of their space is held.

    Attributes:
        erased: The ids of the episodes that go.
        orphans: Turns whose pair held words of them, marked to be indexed again.
        generation: That of the space from now on.
    """

    def __init__(
        self,
        database: Database,
        connection: Connection[Row],
        erased: tuple[UUID, ...],
        orphans: int,
        generation: int,
    ) -> None:
        super().__init__(database, connection)
        self.erased = erased
        self.orphans = orphans
        self.generation = generation


class RecordEraser:
    """Erases episodes.

    Args:
        database: Where they are.
        clock: Says when they were erased.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def count(self, space: int, choice: Choice) -> int:
        """How many episodes are meant."""
        with self._database.connection("forget") as connection:
            row = connection.execute(
                self._database.statement("SELECT count(*) FROM {schema}.episode e WHERE" + _CHOSEN),
                _values(space, choice),
            ).fetchone()
        return cast("tuple[int]", row)[0]

    def sessions(self, space: int, choice: Choice) -> list[str]:
        """The sessions that the meant episodes belong to."""
        with self._database.connection("forget") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT DISTINCT session FROM {schema}.episode e WHERE session <> '' AND" + _CHOSEN
                ),
                _values(space, choice),
            ).fetchall()
        return sorted(cast("str", row[0]) for row in rows)

    @contextmanager
    def erasing(self, space: int, choice: Choice) -> Iterator[ErasingTransaction]:
        """Erase episodes and their marks; commit at the end of the block, where the other stores have erased."""
        with self._database.transaction("forget") as work:
            connection = work.connection
            held = connection.execute(
                self._database.statement(
                    "UPDATE {schema}.space SET generation = generation + 1 WHERE id = %s RETURNING generation"
                ),
                (space,),
            ).fetchone()
            rows = connection.execute(
                self._database.statement(
                    "DELETE FROM {schema}.episode e WHERE" + _CHOSEN + " RETURNING e.id, e.session, e.seq"
                ),
                _values(space, choice),
            ).fetchall()
            erased = tuple(cast("UUID", row[0]) for row in rows)
            connection.execute(
                self._database.statement(
                    "DELETE FROM {schema}.pending WHERE space = %s AND record = ANY(%s)"
                ),
                (space, list(erased)),
            )
            connection.execute(
                self._database.statement(_BEREAVE),
                {
                    "space": space,
                    "ids": list(erased),
                    "sessions": [row[1] for row in rows],
                    "seqs": [row[2] for row in rows],
                },
            )
            if erased:
                self._mark(connection, space, erased, ["cache"])
            orphans = connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.pending (space, record, work, not_before)"
                    " SELECT DISTINCT e.space, e.record, 'index', now() FROM {schema}.entry_source s"
                    " JOIN {schema}.entry e ON e.space = s.space AND e.id = s.entry"
                    " WHERE s.space = %(space)s AND s.source = ANY(%(erased)s)"
                    " AND e.record <> ALL(%(erased)s) ON CONFLICT DO NOTHING"
                ),
                {"space": space, "erased": list(erased)},
            ).rowcount
            generation = cast("int", held[0]) if held else 0
            yield ErasingTransaction(self._database, connection, erased, orphans, generation)

    def drop_space(self, within: ErasingTransaction, space: int) -> None:
        """Remove the space itself; a user who comes back gets another one."""
        within.connection.execute(
            self._database.statement("DELETE FROM {schema}.space WHERE id = %s"), (space,)
        )
        within.connection.execute(
            self._database.statement("DELETE FROM {schema}.pending WHERE space = %s"), (space,)
        )
        self._mark(within.connection, space, (), ["search", "graph", "cache"])

    def _mark(
        self, connection: Connection[Row], space: int, records: Sequence[UUID], wholly: Sequence[EngineRole]
    ) -> None:
        connection.execute(
            self._database.statement(_ERASURES),
            {
                "space": space,
                "ids": list(records),
                "now": self._clock(),
                "whole": WHOLE_SPACE,
                "wholly": list(wholly),
            },
        )

    def left(self, space: int, ids: Sequence[UUID]) -> int:
        """How many of these episodes, or marks of them, are still there."""
        with self._database.connection("look after forgetting") as connection:
            row = connection.execute(
                self._database.statement(
                    "SELECT (SELECT count(*) FROM {schema}.episode WHERE space = %(space)s AND id = ANY(%(ids)s))"
                    " + (SELECT count(*) FROM {schema}.pending WHERE space = %(space)s AND record = ANY(%(ids)s)"
                    "  AND work NOT LIKE 'erase%%')"
                ),
                {"space": space, "ids": list(ids)},
            ).fetchone()
        return cast("tuple[int]", row)[0]

    def expired(self, now: datetime, limit: int) -> list[int]:
        """Spaces that hold episodes that have expired."""
        with self._database.connection("look for what has expired") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT DISTINCT space FROM {schema}.episode WHERE expires_at <= %s ORDER BY space LIMIT %s"
                ),
                (now, limit),
            ).fetchall()
        return [cast("int", row[0]) for row in rows]


def _values(space: int, choice: Choice) -> dict[str, object]:
    return {
        "space": space,
        "ids": None if choice.ids is None else list(choice.ids),
        "session": choice.session,
        "since": choice.since,
        "until": choice.until,
        "expired_at": choice.expired_at,
    }
