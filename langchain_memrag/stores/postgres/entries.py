"""Index entries and what is counted over them, in Postgres whichever engine searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from psycopg import Connection

from langchain_memrag.stores.base import IndexEntry, View
from langchain_memrag.stores.postgres.codes import LAYERS, ROLES, VIEW_NAMES, VIEWS, short_hash
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["EntryWriter", "Statistics", "StatisticsReader"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """How common words are in some spaces.

    Attributes:
        entries: How many entries a view has.
        frequencies: For each view, how many entries hold a term; a term that none holds is missing.
    """

    entries: Mapping[View, int]
    frequencies: Mapping[View, Mapping[int, int]]


class StatisticsReader:
    """Reads what is counted over entries.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def statistics(self, spaces: Sequence[int], views: Sequence[View], terms: Collection[int]) -> Statistics:
        """Counts of some views and terms over all the spaces together, in one round trip."""
        with self._database.connection("read statistics") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT view, NULL::integer, sum(entries)::bigint FROM {schema}.view_stat"
                    " WHERE space = ANY(%(spaces)s) AND view = ANY(%(views)s) GROUP BY view"
                    " UNION ALL SELECT view, term, sum(df)::bigint FROM {schema}.term_stat"
                    " WHERE space = ANY(%(spaces)s) AND view = ANY(%(views)s) AND term = ANY(%(terms)s)"
                    " AND df > 0 GROUP BY view, term"
                ),
                {
                    "spaces": list(spaces),
                    "views": [VIEWS[view] for view in views],
                    "terms": list(terms),
                },
            ).fetchall()
        entries: dict[View, int] = {}
        frequencies: dict[View, dict[int, int]] = {view: {} for view in views}
        for code, term, count in cast("list[tuple[int, int | None, int]]", rows):
            if term is None:
                entries[VIEW_NAMES[code]] = count
            else:
                frequencies[VIEW_NAMES[code]][term] = count
        return Statistics(entries, frequencies)


class EntryWriter:
    """Writes entry rows and keeps the counts, inside a transaction that holds the lock of the space.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def lock(self, connection: Connection[Row], space: int) -> None:
        """Take the lock of a space, and say that what a recall can find in it changes."""
        connection.execute(
            self._database.statement("UPDATE {schema}.space SET generation = generation + 1 WHERE id = %s"),
            (space,),
        )

    def reserve(
        self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry]
    ) -> tuple[int | None, list[int]]:
        """Lock the space and take numbers for entries.

        Returns:
            The last of the numbers (`None` where there is no such space), and the numbers of the entries
            that are to be replaced.
        """
        with connection.pipeline():
            reserved = connection.execute(
                self._database.statement(
                    "UPDATE {schema}.space SET entry_seq = entry_seq + %s, generation = generation + 1"
                    " WHERE id = %s RETURNING entry_seq"
                ),
                (len(entries), space),
            )
            standing = connection.execute(
                self._database.statement(
                    "SELECT e.id FROM unnest(%s::uuid[], %s::smallint[], %s::integer[]) k (record, view, part)"
                    " JOIN {schema}.entry e ON e.space = %s AND e.record = k.record AND e.view = k.view"
                    " AND e.part = k.part"
                ),
                (
                    [entry.record for entry in entries],
                    [VIEWS[entry.view] for entry in entries],
                    [entry.part for entry in entries],
                    space,
                ),
            )
            row = reserved.fetchone()
            ids = [cast("int", one) for (one,) in standing.fetchall()]
        return (None if row is None else cast("int", row[0])), ids

    def of_sources(self, connection: Connection[Row], space: int, records: Sequence[UUID]) -> list[int]:
        """The numbers of entries that hold the words of these records."""
        rows = connection.execute(
            self._database.statement(
                "SELECT id FROM {schema}.entry WHERE space = %(space)s AND record = ANY(%(records)s) UNION"
                " SELECT entry FROM {schema}.entry_source WHERE space = %(space)s AND source = ANY(%(records)s)"
            ),
            {"space": space, "records": list(records)},
        ).fetchall()
        return [cast("int", row[0]) for row in rows]

    def write(
        self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry], ids: Sequence[int]
    ) -> None:
        """Insert entries that are not there yet, under the numbers reserved for them."""
        connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.entry (space, id, record, occurred_at, expires_at, session, agent, part,"
                " layer, view, role, terms, also)"
                " SELECT %s, id, record, occurred_at, coalesce(expires_at, 'infinity'), session, agent, part,"
                " layer, view, role, terms::integer[], also::uuid[] FROM unnest(%s::integer[], %s::uuid[],"
                " %s::timestamptz[], %s::timestamptz[], %s::bigint[], %s::bigint[], %s::integer[],"
                " %s::smallint[], %s::smallint[], %s::smallint[], %s::text[], %s::text[]) AS e (id, record,"
                " occurred_at, expires_at, session, agent, part, layer, view, role, terms, also)"
            ),
            (
                space, list(ids),
                [entry.record for entry in entries],
                [entry.occurred_at for entry in entries],
                [entry.expires_at for entry in entries],
                [short_hash(entry.session) for entry in entries],
                [short_hash(entry.agent) for entry in entries],
                [entry.part for entry in entries],
                [LAYERS[entry.layer] for entry in entries],
                [VIEWS[entry.view] for entry in entries],
                [ROLES[entry.role] for entry in entries],
                ["{" + ",".join(map(str, entry.terms)) + "}" for entry in entries],
                ["{" + ",".join(str(one) for one in entry.sources if one != entry.record) + "}" for entry in entries],
            ),
        )  # fmt: skip
        others = [
            (one, ident)
            for entry, ident in zip(entries, ids, strict=True)
            for one in entry.sources
            if one != entry.record
        ]
        if others:
            connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.entry_source (space, source, entry)"
                    " SELECT %s, * FROM unnest(%s::uuid[], %s::integer[])"
                ),
                (space, [one for one, _ in others], [ident for _, ident in others]),
            )
        self._count(connection, space, entries)

    def _count(self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry]) -> None:
        held: Counter[tuple[int, int]] = Counter()
        peaks: dict[tuple[int, int], float] = {}
        for entry in entries:
            view = VIEWS[entry.view]
            for term, weight in entry.terms.items():
                held[view, term] += 1
                peaks[view, term] = max(weight, peaks.get((view, term), 0.0))
        ordered = sorted(held)
        connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.term_stat AS t (space, view, term, df, peak)"
                " SELECT %s, * FROM unnest(%s::smallint[], %s::integer[], %s::integer[], %s::real[])"
                " ON CONFLICT (space, view, term) DO UPDATE"
                " SET df = t.df + excluded.df, peak = greatest(t.peak, excluded.peak)"
            ),
            (
                space,
                [view for view, _ in ordered],
                [term for _, term in ordered],
                [held[key] for key in ordered],
                [peaks[key] for key in ordered],
            ),
        )
        self._count_views(connection, space, Counter(VIEWS[entry.view] for entry in entries))

    def _count_views(self, connection: Connection[Row], space: int, change: Mapping[int, int]) -> None:
        ordered = sorted(change)
        connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.view_stat AS v (space, view, entries)"
                " SELECT %s, * FROM unnest(%s::smallint[], %s::bigint[])"
                " ON CONFLICT (space, view) DO UPDATE SET entries = v.entries + excluded.entries"
            ),
            (space, ordered, [change[view] for view in ordered]),
        )

    def remove(self, connection: Connection[Row], space: int, ids: Sequence[int]) -> None:
        """Delete entry rows and take back what was counted for them."""
        rows = connection.execute(
            self._database.statement(
                "DELETE FROM {schema}.entry WHERE space = %s AND id = ANY(%s) RETURNING view, terms"
            ),
            (space, list(ids)),
        ).fetchall()
        connection.execute(
            self._database.statement(
                "DELETE FROM {schema}.entry_source WHERE space = %s AND entry = ANY(%s)"
            ),
            (space, list(ids)),
        )
        held: Counter[tuple[int, int]] = Counter()
        views: Counter[int] = Counter()
        for view, terms in cast("list[tuple[int, list[int]]]", rows):
            views[view] -= 1
            held.update((view, term) for term in terms)
        if not rows:
            return
        ordered = sorted(held)
        connection.execute(
            self._database.statement(
                "UPDATE {schema}.term_stat t SET df = t.df - gone.df"
                " FROM unnest(%(views)s::smallint[], %(terms)s::integer[], %(counts)s::integer[])"
                " AS gone (view, term, df)"
                " WHERE t.space = %(space)s AND t.view = gone.view AND t.term = gone.term"
            ),
            {
                "space": space,
                "views": [view for view, _ in ordered],
                "terms": [term for _, term in ordered],
                "counts": [held[key] for key in ordered],
            },
        )
        connection.execute(
            self._database.statement(
                "DELETE FROM {schema}.term_stat WHERE space = %s AND df <= 0 AND view = ANY(%s) AND term = ANY(%s)"
            ),
            (space, sorted(views), [term for _, term in ordered]),
        )
        self._count_views(connection, space, views)

    def clear(self, connection: Connection[Row], space: int) -> int:
        """Delete all of a space; returns how many entries went."""
        gone = 0
        for table in ("entry_source", "term_stat", "view_stat", "entry"):
            gone = connection.execute(
                self._database.statement("DELETE FROM {schema}.{table} WHERE space = %s", table=table),
                (space,),
            ).rowcount
        return gone
