"""The system of record: spaces, episodes as they are written, and what is left to do with them.

T1 writes episodes, T2 what is found by: two short transactions, both under the lock of the space's row,
so that the writers of one user queue and those of different users do not meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, LiteralString, cast
from uuid import UUID

from psycopg import Connection, Cursor

from langchain_memrag.records import Health, Scope
from langchain_memrag.stores.base import Clock, Draft, Stored
from langchain_memrag.stores.postgres.database import Database, PostgresTransaction
from langchain_memrag.stores.postgres.pools import Row
from langchain_memrag.stores.postgres.projections import Projected

__all__ = ["IndexingTransaction", "Pending", "RecordStore", "SpaceState"]

# A batch travels as one array a column. A message of the protocol ends at 1 GB, so long texts go in
# several; characters are counted, of which none takes more than four bytes.
_ROWS_AT_ONCE: Final = 1000
_CHARACTERS_AT_ONCE: Final = 16_000_000

_CLAIMED: Final = (
    " p.space = %(space)s AND p.work = 'index' AND p.record = ANY(%(ids)s) AND p.record NOT IN"
    " (SELECT r.record FROM unnest(%(readers)s::uuid[], %(sources)s::uuid[]) r(record, source) WHERE NOT EXISTS"
    "   (SELECT FROM {schema}.episode e WHERE e.space = %(space)s AND e.id = r.source))"
    # Vectors of an embedder that the memory has moved away from are of no use to it.
    " AND (%(embedder)s::integer IS NULL"
    "  OR %(embedder)s = (SELECT id FROM {schema}.embedder WHERE state = 'active'))"
)
# Engines beside Postgres are told of what changes for them in the transaction that changes it.
_MARKED: Final = (
    "INSERT INTO {schema}.pending (space, record, work, not_before)"
    " SELECT %(space)s, c.record, e.role, %(now)s FROM claimed c"
    # In one order everywhere, so that two who mark the same records do not wait for each other.
    " CROSS JOIN {schema}.engine e WHERE e.role <> 'cache' ORDER BY c.record"
    " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0, error = NULL"
)
_CLAIM_DONE: Final = (
    "WITH claimed AS (DELETE FROM {schema}.pending p WHERE" + _CLAIMED + " RETURNING p.record, p.fresh),"
    " marked AS (" + _MARKED + ") SELECT record, fresh FROM claimed"
)
_MARK: Final = "WITH claimed AS (SELECT p.record FROM {schema}.pending p WHERE" + _CLAIMED + ") " + _MARKED
# What is not done yet is locked only, so that it cannot be forgotten while it is indexed.
_CLAIM: Final = "SELECT p.record, p.fresh FROM {schema}.pending p WHERE" + _CLAIMED + " FOR UPDATE"
_BEGUN: Final = "UPDATE {schema}.pending p SET fresh = false WHERE" + _CLAIMED
# A process that knows of no embedder must not call done what another one, which has one, will embed.
_NO_EMBEDDER: Final = (
    "DELETE FROM {schema}.pending p WHERE"
    + _CLAIMED
    + " AND NOT EXISTS (SELECT FROM {schema}.embedder WHERE state = 'active')"
)


_FEW: Final = 8
"""Entries that are written without waiting for an answer in between."""


_STALE: Final = timedelta(minutes=10)
"""How long a turn may wait to be indexed before that is a problem."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A record that is not wholly indexed."""

    space: int
    record: UUID


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A draft that is new, with its place in the space."""

    draft: Draft
    seq: int
    predecessor: UUID | None


class IndexingTransaction(PostgresTransaction):
    """T2, open.

    Attributes:
        claimed: Records of the batch that are still waited for; the others were forgotten meanwhile, or
            another process was faster, or what was read for them holds words that were forgotten.
        fresh: Whether nothing was ever indexed of any of them, so that there is nothing to replace.
    """

    def __init__(
        self,
        database: Database,
        connection: Connection[Row],
        claimed: frozenset[UUID],
        numbers: range,
        *,
        fresh: bool,
    ) -> None:
        super().__init__(database, connection)
        self.claimed = claimed
        self.fresh = fresh
        self._numbers = numbers

    def take(self, count: int) -> range:
        """Numbers for entries, of those that were reserved."""
        taken, self._numbers = self._numbers[:count], self._numbers[count:]
        return taken


@dataclass(frozen=True, slots=True)
class SpaceState:
    """How a user's memory stands at one moment.

    Attributes:
        id: The space.
        generation: Grows with all that changes what a recall can find.
        seq: The last number that was given to an episode.
        settled: Whether nothing is left to do for it, so that a recall of now holds until the next write.
        behind: The roles whose engine does not hold all of it, or still holds what was forgotten.
        embedder: The embedder that the memory is at.
    """

    id: int
    generation: int
    seq: int
    settled: bool
    behind: frozenset[Projected]
    embedder: int | None


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

    def state_of(self, user_id: str) -> SpaceState | None:
        """The space of a user, if he has one, and what is left to do for it."""
        with self._database.connection("find the user") as connection:
            row = connection.execute(
                self._database.statement(
                    "SELECT s.id, s.generation, s.seq, u.unsettled IS NULL,"
                    " u.unsettled AND (" + _marked("search") + " OR " + _marked("erase_search") + "),"
                    " u.unsettled AND (" + _marked("graph") + " OR " + _marked("erase_graph") + "),"
                    " (SELECT e.id FROM {schema}.embedder e WHERE e.state = 'active')"
                    " FROM {schema}.space s LEFT JOIN LATERAL (SELECT true AS unsettled FROM {schema}.pending p"
                    "  WHERE p.space = s.id ORDER BY p.record LIMIT 1) u ON true WHERE s.kind = 'user' AND s.key = %s"
                ),
                (user_id,),
            ).fetchone()
        if row is None:
            return None
        ident, generation, seq, settled, search, graph, embedder = cast(
            "tuple[int, int, int, bool, bool | None, bool | None, int | None]", row
        )
        lags: tuple[tuple[Projected, bool | None], ...] = (("search", search), ("graph", graph))
        behind = frozenset(role for role, late in lags if late)
        return SpaceState(ident, generation, seq, settled, behind, embedder)

    def record(self, scope: Scope, drafts: Sequence[Draft]) -> tuple[int, list[Stored]]:
        """T1: store drafts, all or none; a draft whose key is known gives the stored episode.

        Returns:
            The space, and one result a draft, in order.
        """
        now = self._clock()
        keys = sorted({draft.key for draft in drafts if draft.key is not None})
        with self._database.transaction("remember", pipeline=True) as work:
            # The second statement takes its snapshot after the first has the lock, so it sees what the
            # writer before this one wrote; both go out together.
            advanced = self._advance(work.connection, scope.user_id, len(drafts))
            context = self._context(work.connection, scope, keys)
            space, last = cast("tuple[int, int]", advanced.fetchone())
            known, before = _known(context.fetchall())
            results: list[Stored] = []
            fresh: list[_Fresh] = []
            for seq, draft in enumerate(drafts, last - len(drafts) + 1):
                if draft.key is not None and draft.key in known:
                    ident, its_seq = known[draft.key]
                    results.append(Stored(ident, its_seq, new=False))
                    continue
                fresh.append(_Fresh(draft, seq, before if scope.session_id else None))
                results.append(Stored(draft.id, seq, new=True))
                before = draft.id
                if draft.key is not None:
                    known[draft.key] = (draft.id, seq)
            for some in _portions(fresh):
                self._insert(work.connection, space, scope, some, now)
        return space, results

    def _advance(self, connection: Connection[Row], user_id: str, count: int) -> Cursor[Row]:
        return connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.space AS s (kind, key, seq) VALUES ('user', %(key)s, %(count)s)"
                " ON CONFLICT (kind, key) DO UPDATE SET seq = s.seq + %(count)s RETURNING id, seq"
            ),
            {"key": user_id, "count": count},
        )

    def _context(self, connection: Connection[Row], scope: Scope, keys: Sequence[str]) -> Cursor[Row]:
        return connection.execute(
            self._database.statement(
                "WITH mine AS MATERIALIZED"
                "  (SELECT id AS space FROM {schema}.space WHERE kind = 'user' AND key = %(user)s)"
                # One look into the index a key: a join would rather read all keys of a big space.
                " SELECT f.key, f.id, f.seq FROM mine CROSS JOIN unnest(%(keys)s::text[]) k CROSS JOIN LATERAL"
                "  (SELECT key, id, seq FROM {schema}.episode e"
                "   WHERE e.space = mine.space AND e.key = k LIMIT 1) f"
                " UNION ALL SELECT NULL, l.id, l.seq FROM mine CROSS JOIN LATERAL"
                "  (SELECT id, seq FROM {schema}.episode e WHERE e.space = mine.space AND e.session = %(session)s"
                "   AND e.session <> '' ORDER BY e.seq DESC LIMIT 1) l"
            ),
            {"user": scope.user_id, "keys": list(keys), "session": scope.session_id or ""},
        )

    def _insert(
        self,
        connection: Connection[Row],
        space: int,
        scope: Scope,
        fresh: Sequence[_Fresh],
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
                " INSERT INTO {schema}.pending (space, record, work, fresh, not_before)"
                " SELECT space, id, 'index', true, %s FROM written"
            ),
            (
                space, session, scope.agent_id, now,
                [one.draft.id for one in fresh],
                [one.seq for one in fresh],
                [one.draft.role for one in fresh],
                [one.draft.speaker for one in fresh],
                [one.draft.content for one in fresh],
                [one.draft.occurred_at for one in fresh],
                [one.draft.utc_offset for one in fresh],
                [one.draft.source for one in fresh],
                [one.draft.key for one in fresh],
                [one.draft.expires_at for one in fresh],
                [one.predecessor for one in fresh],
                [one.draft.metadata for one in fresh],
                now,
            ),
        )  # fmt: skip

    @contextmanager
    def indexing(
        self,
        space: int,
        sources: Mapping[UUID, Collection[UUID]],
        *,
        done: bool,
        vectors: bool = True,
        embedder: int | None = None,
        entries: int = 0,
    ) -> Iterator[IndexingTransaction]:
        """T2: a transaction in which index and graph are written, under the lock of the space.

        Args:
            space: Whose records they are.
            sources: The records, each with those whose words its entries hold.
            done: Whether nothing is left to do for them afterwards.
            vectors: Whether the entries have vectors; without, they are done only where nobody embeds.
            embedder: Which embedder the vectors are of; nothing is claimed where it is not the active one.
            entries: How many entries will be written; numbers are reserved for them. Few go out in one go
                with the commit.
        """
        few = entries <= _FEW
        with self._database.transaction("index", pipeline=few) as work:
            with nullcontext() if few else work.connection.pipeline():
                # Its commit need not reach the disk by itself: marks and index are lost together, and what is
                # marked is indexed again. What was said is on disk since T1.
                reserved = work.connection.execute(
                    self._database.statement(
                        "UPDATE {schema}.space SET generation = generation + 1, entry_seq = entry_seq + %s"
                        " WHERE id = %s RETURNING entry_seq, set_config('synchronous_commit', 'off', true)"
                    ),
                    (entries, space),
                )
                pairs = [(record, source) for record, read in sources.items() for source in read]
                values = {
                    "space": space,
                    "ids": list(sources),
                    "readers": [record for record, _ in pairs],
                    "sources": [source for _, source in pairs],
                    "now": self._clock(),
                    "embedder": embedder,
                }
                claim = self._database.statement(_CLAIM_DONE if done and vectors else _CLAIM)
                claimed = work.connection.execute(claim, values)
                if not (done and vectors):
                    work.connection.execute(self._database.statement(_MARK), values)
                    work.connection.execute(self._database.statement(_BEGUN), values)
                if done and not vectors:
                    work.connection.execute(self._database.statement(_NO_EMBEDDER), values)
                row = reserved.fetchone()
                rows = claimed.fetchall()
            last = cast("int", row[0]) if row else 0
            yield IndexingTransaction(
                self._database,
                work.connection,
                frozenset(cast("UUID", record) for record, _ in rows),
                range(last - entries + 1, last + 1),
                fresh=all(fresh for _, fresh in rows),
            )

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

    def unfinished(self) -> bool:
        """Whether anything is left to do, for whichever store."""
        with self._database.connection("look for work") as connection:
            row = connection.execute(
                self._database.statement("SELECT EXISTS (SELECT FROM {schema}.pending)")
            ).fetchone()
        return bool(row and row[0])

    def pending_count(self, space: int | None, roles: Sequence[Projected] = ()) -> int:
        """How many records wait to be indexed, or to be copied for some roles, in one space or in all."""
        with self._database.connection("look for work") as connection:
            row = connection.execute(
                self._database.statement(
                    "SELECT count(DISTINCT (space, record)) FROM {schema}.pending"
                    " WHERE work = ANY(%(works)s) AND (%(space)s::bigint IS NULL OR space = %(space)s)"
                ),
                {"space": space, "works": ["index", *roles]},
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
                    " (SELECT count(*) FROM {schema}.pending WHERE work = 'index'),"
                    " (SELECT name FROM {schema}.embedder WHERE state = 'active'),"
                    " (SELECT width FROM {schema}.embedder WHERE state = 'active'),"
                    " (SELECT count(*) FROM {schema}.pending WHERE work = 'index' AND not_before < %s)"
                ),
                (self._clock() - _STALE,),
            ).fetchone()
        postgres, pgvector, users, episodes, pending, embedder, width, stale = cast(
            "tuple[str, str, int, int, int, str | None, int | None, int]", row
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
            problems=(
                (f"{stale} turns wait to be indexed for long: is the embedder away? `flush()` tries again",)
                if stale
                else ()
            ),
        )


def _marked(work: LiteralString) -> LiteralString:
    """SQL: whether a space has such a mark, by one look into an index.

    An EXISTS may be planned as a hash of all marks of all users; without an order, as a scan that is expected
    to meet one soon.
    """
    return (
        "(SELECT true FROM {schema}.pending p WHERE p.space = s.id AND p.work = '" + work + "'"
        " ORDER BY p.record LIMIT 1)"
        " IS NOT NULL"
    )


def _known(rows: Sequence[Row]) -> tuple[dict[str, tuple[UUID, int]], UUID | None]:
    """Stored keys with their episodes, and the session's last turn."""
    known = {
        cast("str", key): (cast("UUID", ident), cast("int", seq))
        for key, ident, seq in rows
        if key is not None
    }
    last = [cast("UUID", ident) for key, ident, _ in rows if key is None]
    return known, last[0] if last else None


def _portions(fresh: Sequence[_Fresh]) -> Iterator[list[_Fresh]]:
    some: list[_Fresh] = []
    characters = 0
    for one in fresh:
        size = len(one.draft.content) + len(one.draft.metadata)
        if some and (len(some) == _ROWS_AT_ONCE or characters + size > _CHARACTERS_AT_ONCE):
            yield some
            some, characters = [], 0
        some.append(one)
        characters += size
    if some:
        yield some
