"""Copies of the vectors of big spaces, with a nearest-neighbour graph (HNSW).

Up to some tens of thousands of entries an exact scan is the fastest and misses nothing. Beyond, the
graph is; but it takes inserts twenty times slower. So a big space is copied in the background, entry by
entry up to a watermark, and a search adds an exact scan of what lies beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString, cast

from psycopg import Connection

from langchain_memrag.stores.postgres.codes import VIEWS
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.dense import WIDEST_COVERED, WIDEST_GRAPH, VectorTable
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["NeighbourCopies", "copies_of", "drop_copies"]

BIG: Final = 8_000
"""Entries of one view from which a graph is faster than an exact scan of 384 dimensions."""

BEHIND: Final = 3_000
"""Entries beyond the watermark from which the copy is taken further."""

CHUNK: Final = 1_000
"""Entries copied at once into a graph that is in use."""

_ALL_VIEWS = list(VIEWS.values())
_MEGABYTE: Final = 2**20


class NeighbourCopies:
    """The copies of one embedder's vectors.

    Args:
        database: Where they are.
        vectors: What is copied.
        big: Entries of one view from which a space gets a copy; by default it depends on the width.
        behind: Entries beyond the watermark from which the copy is taken further.
    """

    def __init__(
        self, database: Database, vectors: VectorTable, *, big: int | None = None, behind: int = BEHIND
    ) -> None:
        self._database = database
        self._vectors = vectors
        # Signs are compared instead of embeddings above the covered widths: that is fast for longer.
        by_width = BIG * 384 // max(vectors.width, 384) if vectors.width <= WIDEST_COVERED else BIG
        self._big = by_width if big is None else big
        self._behind = behind

    def watermarks_query(self, spaces: Sequence[int]) -> tuple[bytes, Mapping[str, object]]:
        """The statement that reads which spaces have a copy, and up to which entry."""
        return self._database.statement(
            "SELECT space, watermark FROM {schema}.ann WHERE space = ANY(%(spaces)s) AND embedder = %(embedder)s"
        ), {"spaces": list(spaces), "embedder": self._vectors.embedder}

    def wanting(self) -> list[int]:
        """Spaces that have grown so big that a copy, or more of it, makes their searches faster."""
        if self._vectors.width > WIDEST_GRAPH:
            return []
        with self._database.connection("look for big spaces") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT s.id FROM {schema}.space s JOIN {schema}.view_stat v ON v.space = s.id"
                    " LEFT JOIN {schema}.ann a ON a.space = s.id AND a.embedder = %(embedder)s"
                    " WHERE v.entries >= %(big)s"
                    " AND (a.watermark IS NULL OR s.entry_seq - a.watermark >= %(behind)s)"
                    " GROUP BY s.id ORDER BY s.id"
                ),
                {"embedder": self._vectors.embedder, "big": self._big, "behind": self._behind},
            ).fetchall()
        return [cast("int", row[0]) for row in rows]

    def advance(self, space: int) -> None:
        """Make the copy of a space, or take it further; nothing where another process is at it."""
        while self._advance_once(space):
            pass

    def _advance_once(self, space: int) -> bool:
        """One transaction of work; tells whether there is more."""
        with self._database.transaction("index big spaces") as work:
            connection = work.connection
            if not _alone(self._database, connection, f"{self._vectors.name}_space_{space}"):
                return False
            row = connection.execute(
                self._database.statement(
                    "SELECT s.entry_seq, a.watermark FROM {schema}.space s"
                    " LEFT JOIN {schema}.ann a ON a.space = s.id AND a.embedder = %s WHERE s.id = %s"
                ),
                (self._vectors.embedder, space),
            ).fetchone()
            if row is None:
                return False
            newest, watermark = cast("tuple[int, int | None]", row)
            if watermark is None:
                self._create(connection, space, newest)
                self._settle(connection, space, 0, newest)
                return False
            upto = min(newest, watermark + CHUNK)
            self._fill(connection, space, watermark, upto)
            self._settle(connection, space, watermark, upto)
            return upto < newest

    def _create(self, connection: Connection[Row], space: int, newest: int) -> None:
        width = str(self._vectors.width)
        self._run(connection, space, "DROP TABLE IF EXISTS {schema}.{copy}")
        self._run(
            connection,
            space,
            "CREATE TABLE {schema}.{copy} (occurred_at timestamptz NOT NULL, expires_at timestamptz NOT NULL,"
            " session bigint NOT NULL, agent bigint NOT NULL, entry integer PRIMARY KEY,"
            " view smallint NOT NULL, role smallint NOT NULL, embedding halfvec("
            + width
            + ") STORAGE PLAIN NOT NULL)",
        )
        self._fill(connection, space, 0, newest)
        needed = newest * (2 * self._vectors.width + 400) // _MEGABYTE + 1
        connection.execute(
            "SELECT set_config('maintenance_work_mem', %s, true)", (f"{min(max(needed, 64), 1024)}MB",)
        )
        for code in _ALL_VIEWS:
            view = str(code)
            self._run(
                connection,
                space,
                "CREATE INDEX ON {schema}.{copy} USING hnsw (embedding halfvec_ip_ops)"
                " WITH (m = 16, ef_construction = 64) WHERE view = " + view,
            )
        self._run(connection, space, "ANALYZE {schema}.{copy}")

    def _fill(self, connection: Connection[Row], space: int, after: int, upto: int) -> None:
        self._run(
            connection,
            space,
            "INSERT INTO {schema}.{copy}"
            " SELECT occurred_at, expires_at, session, agent, entry, view, role, embedding FROM {schema}.{table} WHERE space = %(space)s"
            " AND view = ANY(%(views)s) AND entry > %(after)s AND entry <= %(upto)s",
            {"space": space, "views": _ALL_VIEWS, "after": after, "upto": upto},
        )

    def _settle(self, connection: Connection[Row], space: int, after: int, upto: int) -> None:
        """Advance the watermark, under the lock that removals take too.

        What they took away while the copy was made must not stay in it.
        """
        held = self._run(
            connection,
            space,
            "SELECT id FROM {schema}.space WHERE id = %(space)s FOR UPDATE",
            {"space": space},
        )
        values = {"space": space, "embedder": self._vectors.embedder, "after": after, "upto": upto}
        known = self._run(
            connection,
            space,
            "SELECT watermark FROM {schema}.ann WHERE space = %(space)s AND embedder = %(embedder)s",
            values,
        )
        if not held or (after and not known):
            # Cleared meanwhile, by one who could not wait for us.
            self._run(connection, space, "DROP TABLE {schema}.{copy}")
            return
        self._run(
            connection,
            space,
            "DELETE FROM {schema}.{copy} c WHERE c.entry > %(after)s AND c.entry <= %(upto)s"
            " AND NOT EXISTS (SELECT FROM {schema}.{table} v WHERE v.space = %(space)s"
            "  AND v.view = c.view AND v.entry = c.entry)",
            values,
        )
        self._run(
            connection,
            space,
            "INSERT INTO {schema}.ann (space, embedder, watermark) VALUES (%(space)s, %(embedder)s, %(upto)s)"
            " ON CONFLICT (space, embedder) DO UPDATE SET watermark = excluded.watermark",
            values,
        )

    def _run(
        self,
        connection: Connection[Row],
        space: int,
        template: LiteralString,
        values: Mapping[str, object] | None = None,
    ) -> list[Row]:
        names = {"table": self._vectors.name, "copy": f"{self._vectors.name}_space_{int(space)}"}
        cursor = connection.execute(self._database.statement(template, **names), values)
        return cursor.fetchall() if cursor.description else []


def copies_of(database: Database, connection: Connection[Row], space: int) -> list[str]:
    """The copies that a space has, of whichever embedder."""
    rows = connection.execute(
        database.statement("SELECT embedder FROM {schema}.ann WHERE space = %s ORDER BY embedder"), (space,)
    ).fetchall()
    return [f"vector_{embedder}_space_{space}" for (embedder,) in rows]


def drop_copies(database: Database, connection: Connection[Row], space: int) -> None:
    """Drop the copies of a space, inside a transaction that holds the lock of the space.

    A copy that is being taken further is emptied instead: whoever is at it waits for the lock of the
    space, so nobody may wait for him. He drops it when he finds that it is not registered any more.
    """
    for copy in copies_of(database, connection, space):
        template: LiteralString = (
            "DROP TABLE IF EXISTS {schema}.{copy}"
            if _alone(database, connection, copy)
            else "DELETE FROM {schema}.{copy}"
        )
        connection.execute(database.statement(template, copy=copy))
    connection.execute(database.statement("DELETE FROM {schema}.ann WHERE space = %s"), (space,))


def _alone(database: Database, connection: Connection[Row], copy: str) -> bool:
    """Whether nobody else is at a copy, and will not be until the transaction ends."""
    row = connection.execute(
        "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", (f"{database.schema}.{copy}",)
    ).fetchone()
    return row is not None and bool(row[0])
