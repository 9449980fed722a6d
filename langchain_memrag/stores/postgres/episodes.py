"""Reading episodes: by id, in order of time, and beside each other."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, cast
from uuid import UUID

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Episode, EpisodePage, Role, Scope, Source, SpaceStats
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["EpisodeReader", "Glimpse"]

_COLUMNS: Final = (
    "e.id, e.seq, s.key, e.session, e.agent, e.role, e.speaker, e.content, e.occurred_at, e.utc_offset,"
    " e.recorded_at, e.source, e.key, e.expires_at, e.metadata::text"
)
_GLIMPSE: Final = (
    "e.id, e.session, e.agent, e.role, coalesce(e.speaker, e.role), left(e.content, %(clip)s), e.occurred_at,"
    " e.utc_offset, e.seq"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_FROM: Final = " FROM {schema}.episode e JOIN {schema}.space s ON s.id = e.space "
_ALIVE: Final = " (e.expires_at IS NULL OR e.expires_at > %(now)s) "


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What ranking needs of an episode, and the exchange that it is part of.

    Neighbours are given as the integers of their ids: ranking compares ids thousands of times.

    Attributes:
        id: The episode's id.
        session: Its session, if any.
        agent: Its agent, if any.
        role: Whose message it was.
        text: The start of what was said.
        occurred_at: When, in UTC.
        utc_offset: Seconds east of UTC of the speaker's clock.
        seq: Its place in the space's sequence.
        before: The turns before it in its session, nearest first, as long as speakers alternate.
        after: The turns after it, likewise.
    """

    id: UUID
    session: str | None
    agent: str | None
    role: Role
    text: str
    occurred_at: datetime
    utc_offset: int
    seq: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class EpisodeReader:
    """Reads episodes; every query is bound to spaces, and to what has not expired.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def episodes(self, spaces: Sequence[int], ids: Sequence[UUID], now: datetime) -> list[Episode]:
        """Episodes by id, in the order asked; what is missing or has expired is left out."""
        if not ids:
            return []
        rows = self._rows(
            "read episodes",
            f"SELECT {_COLUMNS}{_FROM}WHERE e.space = ANY(%(spaces)s) AND e.id = ANY(%(ids)s) AND{_ALIVE}",
            {"spaces": list(spaces), "ids": list(ids), "now": now},
        )
        found = {episode.id: episode for episode in map(_episode, rows)}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def to_index(
        self, space: int, ids: Sequence[UUID], now: datetime
    ) -> list[tuple[Episode, Episode | None]]:
        """Episodes with the session's turn before each, where that is still remembered."""
        rows = self._rows(
            "read episodes",
            f"SELECT e.predecessor, {_COLUMNS}{_FROM}"
            f"WHERE e.space = %(space)s AND e.id = ANY(%(ids)s) AND{_ALIVE}ORDER BY e.seq",
            {"space": space, "ids": list(ids), "now": now},
        )
        found = [(cast("UUID | None", row[0]), _episode(row[1:])) for row in rows]
        known = {episode.id: episode for _, episode in found}
        elsewhere = [one for one, _ in found if one is not None and one not in known]
        known.update((episode.id, episode) for episode in self.episodes((space,), elsewhere, now))
        return [(episode, known.get(before) if before else None) for before, episode in found]

    def last(self, space: int, session: str, count: int, now: datetime) -> tuple[Episode, ...]:
        """A session's last turns, oldest first."""
        rows = self._rows(
            "read a session",
            f"SELECT {_COLUMNS}{_FROM}WHERE e.space = %(space)s AND e.session = %(session)s AND{_ALIVE}"
            "ORDER BY e.seq DESC LIMIT %(count)s",
            {"space": space, "session": session, "count": count, "now": now},
        )
        return tuple(reversed([_episode(row) for row in rows]))

    def glimpses(
        self, spaces: Sequence[int], ids: Sequence[UUID], now: datetime, *, span: int, clip: int
    ) -> list[Glimpse]:
        """What ranking needs of episodes: little, however long they are.

        Args:
            spaces: Spaces that may be read.
            ids: Which; what is missing or has expired is left out.
            now: By which expiry is judged.
            span: How many turns around each.
            clip: Characters of each text.
        """
        if not ids:
            return []
        rows = self._rows(
            "read episodes",
            f"SELECT {_GLIMPSE}, b.ids, b.who, a.ids, a.who FROM {{schema}}.episode e "
            + _side("b", "<", "DESC")
            + _side("a", ">", "ASC")
            + f"WHERE e.space = ANY(%(spaces)s) AND e.id = ANY(%(ids)s) AND{_ALIVE}",
            {"spaces": list(spaces), "ids": list(ids), "now": now, "span": span, "clip": clip},
        )
        return [_glimpse(row) for row in rows]

    def bounds(self, spaces: Sequence[int]) -> tuple[datetime, datetime] | None:
        """When the first and the last turn of some spaces were said, the expired included."""
        (row,) = self._rows(
            "read the bounds",
            "SELECT min(first), max(last) FROM unnest(%(spaces)s::bigint[]) s (id) CROSS JOIN LATERAL"
            " (SELECT min(occurred_at) AS first, max(occurred_at) AS last FROM {schema}.episode"
            "  WHERE space = s.id) e",
            {"spaces": list(spaces)},
        )
        first, last = cast("tuple[datetime | None, datetime | None]", row)
        return None if first is None or last is None else (first, last)

    def history(
        self,
        space: int,
        now: datetime,
        *,
        session: str | None,
        limit: int,
        cursor: str | None,
        newest_first: bool,
    ) -> EpisodePage:
        """A page in order of `(occurred_at, seq)`.

        Raises:
            ConfigurationError: A cursor that no page gave.
        """
        order, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        start = None if cursor is None else _read_cursor(cursor)
        after = f" AND (e.occurred_at, e.seq) {beyond} (%(at)s, %(seq)s)" if start else ""
        within = " AND e.session = %(session)s" if session is not None else ""
        rows = self._rows(
            "read the history",
            f"SELECT {_COLUMNS}{_FROM}WHERE e.space = %(space)s AND{_ALIVE}{within}{after}"
            f" ORDER BY e.occurred_at {order}, e.seq {order} LIMIT %(limit)s",
            {
                "space": space,
                "now": now,
                "session": session,
                "limit": limit + 1,
                "at": start[0] if start else None,
                "seq": start[1] if start else None,
            },
        )
        found = tuple(_episode(row) for row in rows[:limit])
        return EpisodePage(episodes=found, cursor=_write_cursor(found[-1]) if len(rows) > limit else None)

    def stats(self, space: int, now: datetime) -> SpaceStats:
        """Counts of episodes, sessions and pending work, and the generation."""
        (row,) = self._rows(
            "count",
            "SELECT (SELECT count(*) FROM {schema}.episode e WHERE e.space = %(space)s AND" + _ALIVE + "),"
            " (SELECT count(DISTINCT session) FROM {schema}.episode e"
            "   WHERE e.space = %(space)s AND e.session <> '' AND" + _ALIVE + "),"
            " (SELECT count(*) FROM {schema}.pending p WHERE p.space = %(space)s AND work = 'index'),"
            " coalesce((SELECT generation FROM {schema}.space s WHERE s.id = %(space)s), 0)",
            {"space": space, "now": now},
        )
        episodes, sessions, pending, generation = cast("tuple[int, int, int, int]", row)
        return SpaceStats(episodes=episodes, sessions=sessions, pending=pending, generation=generation)

    def _rows(self, operation: str, template: str, values: dict[str, object]) -> list[Row]:
        with self._database.connection(operation) as connection:
            # The template is made of this module's constants; what users say is in the values.
            # Binary, because a time as text follows the zone and the date style of the session.
            return connection.execute(self._database.statement(template), values, binary=True).fetchall()


def _side(name: str, beyond: str, order: str) -> str:
    """SQL for the turns on one side of an episode: ids, and who spoke."""
    return (
        f"CROSS JOIN LATERAL (SELECT array_agg(n.id ORDER BY n.seq {order}) AS ids,"
        f" array_agg(n.who ORDER BY n.seq {order}) AS who FROM"
        "  (SELECT id, seq, coalesce(speaker, role) AS who FROM {schema}.episode n"
        f"   WHERE n.space = e.space AND n.session = e.session AND e.session <> '' AND n.seq {beyond} e.seq"
        f"   ORDER BY n.seq {order} LIMIT %(span)s) n) {name} "
    )


def _glimpse(row: Row) -> Glimpse:
    (ident, session, agent, role, who, text, occurred_at, offset, seq, before, earlier, after, later) = row
    speaker = cast("str", who)
    return Glimpse(
        cast("UUID", ident),
        cast("str", session) or None,
        cast("str | None", agent),
        cast("Role", role),
        cast("str", text),
        cast("datetime", occurred_at),
        cast("int", offset),
        cast("int", seq),
        _exchange(speaker, before, earlier),
        _exchange(speaker, after, later),
    )


def _exchange(who: str, ids: object, speakers: object) -> tuple[int, ...]:
    chain: list[int] = []
    turns = zip(cast("Sequence[UUID]", ids or ()), cast("Sequence[str]", speakers or ()), strict=True)
    for ident, speaker in turns:
        if speaker == who:
            break  # two turns of one speaker in a row: the exchange ends here
        chain.append(ident.int)
        who = speaker
    return tuple(chain)


def _episode(row: Row) -> Episode:
    (ident, seq, user, session, agent, role, speaker, content, occurred_at, offset, recorded_at, source, key,
     expires_at, metadata) = row  # fmt: skip
    # Validated when it was written; reading a hundred hits must not validate a thousand fields again.
    return Episode.model_construct(
        id=cast("UUID", ident),
        scope=Scope.model_construct(
            user_id=cast("str", user),
            session_id=cast("str", session) or None,
            agent_id=cast("str | None", agent),
        ),
        seq=cast("int", seq),
        role=cast("Role", role),
        speaker=cast("str | None", speaker),
        content=cast("str", content),
        occurred_at=cast("datetime", occurred_at),
        utc_offset=cast("int", offset),
        recorded_at=cast("datetime", recorded_at),
        source=cast("Source", source),
        key=cast("str | None", key),
        expires_at=cast("datetime | None", expires_at),
        metadata=json.loads(cast("str", metadata)),
    )


def _write_cursor(episode: Episode) -> str:
    text = f"{(episode.occurred_at - _EPOCH) // _TICK} {episode.seq}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        ticks, seq = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode().split(" ")
        return _EPOCH + int(ticks) * _TICK, int(seq)
    except (ValueError, OverflowError, binascii.Error):
        raise ConfigurationError("the cursor is not one that a page of this history gave") from None
