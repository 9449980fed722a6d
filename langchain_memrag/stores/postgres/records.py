"""The system of record: spaces, episodes as they are written, and what is left to do with them.

T1 writes episodes, T2 what is found by: two short transactions, both under the lock of the space's row,
so that the writers of one user queue and those of different users do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast
from uuid import UUID

from psycopg import Connection

from langchain_memrag.records import Health, Scope
from langchain_memrag.stores.base import Clock, Draft, Stored
from langchain_memrag.stores.postgres.database import Database, PostgresTransaction
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["IndexingTransaction", "Pending", "RecordStore"]

# The protocol counts parameters in 16 bits, and a batch travels as one array a column; the size of a
# message is what bounds it.
_ROWS_AT_ONCE: Final = 1000

_BACKOFF: Final = timedelta(seconds=10)
_LONGEST_BACKOFF: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pending:
    """A record that is not wholly indexed."""

    space: int
    record: UUID


class IndexingTransaction(PostgresTransaction):
    """T2, open.

    Attributes:
        claimed: Records of the batch that are still waited for; the others were forgotten meanwhile,
            or another process was faster.
    """

    def __init__(self, database: Database, connection: Connection[Row], claimed: frozenset[UUID]) -> None:
        super().__init__(database, connection)
        self.claimed = claimed


class RecordStore:
    """Writes episodes and keeps the marks of unfinished work.

    Args:
        database: Where they are.
        clock: Says when a turn is recorded.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def space_of(self, user_id: str) -> int | None:
        """The space of a user, if he has one."""
        with self._database.connection("find the user") as connection:
            row = connection.execute(
                self._database.statement("SELECT id FROM {schema}.space WHERE kind = 'user' AND key = %s"),
                (user_id,),
            ).fetchone()
        return None if row is None else cast("int", row[0])

    def record(self, scope: Scope, drafts: Sequence[Draft]) -> tuple[int, list[Stored]]:
        """T1: store drafts, all or none; a draft whose key is known gives the stored episode.

        Returns:
            The space, and one result a draft, in order.
        """
        now = self._clock()
        session = scope.session_id or ""
        keys = sorted({draft.key for draft in drafts if draft.key is not None})
        with self._database.transaction("remember") as work:
            space, last = self._advance(work.connection, scope.user_id, len(drafts))
            known, before = self._context(work.connection, space, keys, session)
            results: list[Stored] = []
            fresh: list[tuple[Draft, int, UUID | None]] = []
            for seq, draft in enumerate(drafts, last - len(drafts) + 1):
                if draft.key is not None and draft.key in known:
                    ident, its_seq = known[draft.key]
                    results.append(Stored(ident, its_seq, new=False))
                    continue
                fresh.append((draft, seq, before))
                results.append(Stored(draft.id, seq, new=True))
                before = draft.id
                if draft.key is not None:
                    known[draft.key] = (draft.id, seq)
            for start in range(0, len(fresh), _ROWS_AT_ONCE):
                self._insert(work.connection, space, scope, fresh[start : start + _ROWS_AT_ONCE], now)
        return space, results

    def _advance(self, connection: Connection[Row], user_id: str, count: int) -> tuple[int, int]:
        row = connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.space AS s (kind, key, seq) VALUES ('user', %(key)s, %(count)s)"
                " ON CONFLICT (kind, key) DO UPDATE SET seq = s.seq + %(count)s RETURNING id, seq"
            ),
            {"key": user_id, "count": count},
        ).fetchone()
        return cast("tuple[int, int]", row)

    def _context(
        self, connection: Connection[Row], space: int, keys: Sequence[str], session: str
    ) -> tuple[dict[str, tuple[UUID, int]], UUID | None]:
        rows = connection.execute(
            self._database.statement(
                "SELECT key, id, seq FROM {schema}.episode WHERE space = %(space)s AND key = ANY(%(keys)s)"
                " UNION ALL (SELECT NULL, id, seq FROM {schema}.episode"
                " WHERE space = %(space)s AND session = %(session)s AND session <> '' ORDER BY seq DESC LIMIT 1)"
            ),
            {"space": space, "keys": list(keys), "session": session},
        ).fetchall()
        known = {cast("str", key): (cast("UUID", ident), cast("int", seq)) for key, ident, seq in rows if key}
        last = [cast("UUID", ident) for key, ident, _ in rows if key is None]
        return known, last[0] if last else None

    def _insert(
        self,
        connection: Connection[Row],
        space: int,
        scope: Scope,
        fresh: Sequence[tuple[Draft, int, UUID | None]],
        now: datetime,
    ) -> None:
        session = scope.session_id or ""
        connection.execute(
            self._database.statement(
                "WITH written AS (INSERT INTO {schema}.episode"
                " (space, session, agent, recorded_at, id, seq, role, speaker, content, occurred_at, utc_offset,"
                " source, key, expires_at, predecessor, metadata)"
                " SELECT %s, %s, %s, %s, * FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::text[],"
                " %s::text[], %s::timestamptz[], %s::int[], %s::text[], %s::text[], %s::timestamptz[],"
                " %s::uuid[], %s::json[]) RETURNING space, id)"
                " INSERT INTO {schema}.pending (space, record, work, not_before)"
                " SELECT space, id, 'index', %s FROM written"
            ),
            (
                space, session, scope.agent_id, now,
                [draft.id for draft, _, _ in fresh],
                [seq for _, seq, _ in fresh],
                [draft.role for draft, _, _ in fresh],
                [draft.speaker for draft, _, _ in fresh],
                [draft.content for draft, _, _ in fresh],
                [draft.occurred_at for draft, _, _ in fresh],
                [draft.utc_offset for draft, _, _ in fresh],
                [draft.source for draft, _, _ in fresh],
                [draft.key for draft, _, _ in fresh],
                [draft.expires_at for draft, _, _ in fresh],
                [before if session else None for _, _, before in fresh],
                [draft.metadata for draft, _, _ in fresh],
                now,
            ),
        )  # fmt: skip

    @contextmanager
    def indexing(self, space: int, ids: Sequence[UUID], *, done: bool) -> Iterator[IndexingTransaction]:
        """T2: a transaction in which index and graph are written, under the lock of the space.

        Args:
            space: Whose records they are.
            ids: The records.
            done: Whether nothing is left to do for them afterwards.
        """
        with self._database.transaction("index") as work:
            execute = work.connection.execute
            execute(
                self._database.statement(
                    "UPDATE {schema}.space SET generation = generation + 1 WHERE id = %s"
                ),
                (space,),
            )
            claim: Literal["DELETE FROM {schema}.pending", "UPDATE {schema}.pending SET attempts = attempts"]
            claim = (
                "DELETE FROM {schema}.pending" if done else "UPDATE {schema}.pending SET attempts = attempts"
            )
            rows = execute(
                self._database.statement(
                    claim + " WHERE space = %s AND work = 'index' AND record = ANY(%s) RETURNING record"
                ),
                (space, list(ids)),
            ).fetchall()
            claimed = frozenset(cast("UUID", record) for (record,) in rows)
            yield IndexingTransaction(self._database, work.connection, claimed)

    def pending(self, *, space: int | None, limit: int, after: Pending | None = None) -> list[Pending]:
        """Records that wait to be indexed, in a fixed order.

        Args:
            space: Of one space, or of all where it is `None`.
            limit: How many at most.
            after: Only those behind it.
        """
        within = " AND space = %(space)s" if space is not None else ""
        beyond = " AND (space, record) > (%(after_space)s, %(after_record)s)" if after is not None else ""
        with self._database.connection("look for work") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT space, record FROM {schema}.pending WHERE work = 'index'"
                    + within + beyond + " ORDER BY space, record LIMIT %(limit)s"
                ),
                {
                    "space": space,
                    "limit": limit,
                    "after_space": after.space if after else None,
                    "after_record": after.record if after else None,
                },
            ).fetchall()  # fmt: skip
        return [Pending(cast("int", one), cast("UUID", record)) for one, record in rows]

    def pending_count(self, space: int | None) -> int:
        """How many records wait to be indexed, in one space or in all."""
        with self._database.connection("look for work") as connection:
            row = connection.execute(
                self._database.statement(
                    "SELECT count(*) FROM {schema}.pending"
                    " WHERE work = 'index' AND (%(space)s::bigint IS NULL OR space = %(space)s)"
                ),
                {"space": space},
            ).fetchone()
        return cast("tuple[int]", row)[0]

    def health(self, location: str) -> Health:
        """Versions and counts of the whole database."""
        with self._database.connection("doctor") as connection:
            row = connection.execute(
                self._database.statement(
                    "SELECT current_setting('server_version'),"
                    " coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), ''),"
                    " (SELECT count(*) FROM {schema}.space WHERE kind = 'user'),"
                    " (SELECT count(*) FROM {schema}.episode),"
                    " (SELECT count(*) FROM {schema}.pending),"
                    " (SELECT name FROM {schema}.embedder WHERE state = 'active'),"
                    " (SELECT width FROM {schema}.embedder WHERE state = 'active')"
                )
            ).fetchone()
        postgres, pgvector, users, episodes, pending, embedder, width = cast(
            "tuple[str, str, int, int, int, str | None, int | None]", row
        )
        return Health(
            location=location,
            postgres=postgres.split(" ")[0],
            pgvector=pgvector,
            schema_version=self._database.schema_version,
            embedder=embedder,
            width=width,
            users=users,
            episodes=episodes,
            pending=pending,
        )
