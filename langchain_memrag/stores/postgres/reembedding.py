"""Moving to another embedder: a second table of vectors, filled beside the one that is searched.

The one that is searched stays whole until the other one lacks nothing; then one transaction changes which
is which. What is written meanwhile is found to be missing in the new table, and added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast
from uuid import UUID

import numpy as np
from psycopg import Connection

from langchain_memrag.errors import StoreError
from langchain_memrag.stores.base import IndexEntry, View
from langchain_memrag.stores.postgres.codes import VIEW_NAMES
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.dense import VectorTable, check_width, create_vector_table
from langchain_memrag.stores.postgres.embedders import RegisteredEmbedder, probes_of
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["PORTION", "Reembedding"]

PORTION: Final = 128
"""Records that are looked for at once."""


class Reembedding:
    """The second table of vectors.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, name: str, width: int, probes: Sequence[Sequence[float]]) -> RegisteredEmbedder:
        """Make the table of a new embedder, or go on with the one that was begun.

        One that was begun for another embedder is dropped.

        Raises:
            ConfigurationError: No table can hold vectors of this width.
        """
        check_width(width)
        with self._database.transaction("begin to re-embed") as work:
            connection = work.connection
            self._lock(connection)
            rows = connection.execute(
                self._database.statement(
                    "SELECT id, name, width, probes, state FROM {schema}.embedder"
                    " WHERE state IN ('active', 'building') ORDER BY state"
                )
            ).fetchall()
            found: RegisteredEmbedder | None = None
            for ident, its_name, its_width, packed, state in cast(
                "list[tuple[int, str, int, bytes, str]]", rows
            ):
                begun = RegisteredEmbedder(ident, its_name, its_width, probes_of(packed, its_width))
                # Another process may have come to the end of the same move in between.
                if found is None and _alike(begun, name, width, probes):
                    found = begun
                elif state == "building":
                    self._drop(connection, begun.id)
            return found or self._create(connection, name, width, probes)

    def _lock(self, connection: Connection[Row]) -> None:
        """Let one process at a time change which embedders there are; everybody may read."""
        connection.execute(
            self._database.statement("LOCK TABLE {schema}.embedder IN SHARE ROW EXCLUSIVE MODE")
        )

    def _create(
        self, connection: Connection[Row], name: str, width: int, probes: Sequence[Sequence[float]]
    ) -> RegisteredEmbedder:
        packed = np.asarray(probes, dtype="<f4").tobytes()
        row = connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.embedder (name, width, probes, state) VALUES (%s, %s, %s, 'building')"
                " RETURNING id"
            ),
            (name, width, packed),
        ).fetchone()
        ident = cast("tuple[int]", row)[0]
        create_vector_table(self._database, connection, ident, width)
        return RegisteredEmbedder(ident, name, width, probes_of(packed, width))

    def missing(self, embedder: RegisteredEmbedder, after: tuple[int, UUID] | None) -> list[tuple[int, UUID]]:
        """Records with an entry that has no vector of this embedder, in a fixed order, some at a time."""
        start, record = after or (0, UUID(int=0))
        with self._database.connection("look for what to embed") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT DISTINCT i.space, i.record FROM {schema}.entry i WHERE NOT EXISTS ("
                    " SELECT FROM {schema}.{table} v WHERE v.space = i.space AND v.view = i.view AND v.entry = i.id)"
                    " AND (i.space, i.record) > (%s, %s) ORDER BY i.space, i.record LIMIT %s",
                    table=f"vector_{embedder.id}",
                ),
                (start, record, PORTION),
            ).fetchall()
        return [(cast("int", space), cast("UUID", ident)) for space, ident in rows]

    def count_missing(self, embedder: RegisteredEmbedder) -> int:
        """How many entries have no vector of this embedder."""
        with self._database.connection("look for what to embed") as connection:
            return self._count_missing(connection, embedder)

    def _count_missing(self, connection: Connection[Row], embedder: RegisteredEmbedder) -> int:
        row = connection.execute(
            self._database.statement(
                "SELECT count(*) FROM {schema}.entry i WHERE NOT EXISTS (SELECT FROM {schema}.{table} v"
                " WHERE v.space = i.space AND v.view = i.view AND v.entry = i.id)",
                table=f"vector_{embedder.id}",
            )
        ).fetchone()
        return cast("tuple[int]", row)[0]

    def write(
        self,
        embedder: RegisteredEmbedder,
        space: int,
        records: Sequence[UUID],
        entries: Mapping[tuple[UUID, View, int], IndexEntry],
    ) -> tuple[int, frozenset[UUID]]:
        """Add vectors for entries that stand in the index and have none of this embedder yet.

        Args:
            embedder: Whose vectors they are.
            space: Whose records they are.
            records: Which; all of their entries are to be among those given.
            entries: With their vectors, by record, view and part.

        Returns:
            How many vectors were added, and the records with an entry that is not among those given.
        """
        table = VectorTable(self._database, embedder.id, embedder.width)
        for entry in entries.values():
            if entry.vector is not None:
                table.check(entry.vector)
        with self._database.transaction("re-embed") as work:
            # Whoever forgets takes this lock too: no vector is added for an entry that goes.
            work.connection.execute(
                self._database.statement("SELECT FROM {schema}.space WHERE id = %s FOR UPDATE"), (space,)
            )
            rows = work.connection.execute(
                self._database.statement(
                    "SELECT i.id, i.record, i.view, i.part FROM {schema}.entry i WHERE i.space = %s"
                    " AND i.record = ANY(%s) AND NOT EXISTS (SELECT FROM {schema}.{table} v"
                    "  WHERE v.space = i.space AND v.view = i.view AND v.entry = i.id)",
                    table=table.name,
                ),
                (space, list(records)),
            ).fetchall()
            lacking = {
                ident: (record, VIEW_NAMES[view], part)
                for ident, record, view, part in cast("list[tuple[int, UUID, int, int]]", rows)
            }
            wanted = {ident: entries[key] for ident, key in lacking.items() if key in entries}
            if wanted:
                table.write(work.connection, space, list(wanted.values()), list(wanted))
        return len(wanted), frozenset(key[0] for key in lacking.values() if key not in entries)

    def finish(self, embedder: RegisteredEmbedder, *, spare: int) -> bool:
        """Search by the new embedder from now on; false where it still lacks too much.

        Args:
            embedder: The new one.
            spare: How many entries it may lack. Their turns are marked to be indexed: until then words find
                them. Else those who write without a pause would put it off for ever.

        Raises:
            StoreError: Another process began to move to yet another embedder.
        """
        with self._database.transaction("finish re-embedding") as work:
            connection = work.connection
            self._lock(connection)
            row = connection.execute(
                self._database.statement("SELECT state FROM {schema}.embedder WHERE id = %s"), (embedder.id,)
            ).fetchone()
            if row is None or row[0] == "retired":
                raise StoreError(
                    "another process moved to another embedder meanwhile",
                    engine="postgres",
                    operation="reembed",
                )
            if row[0] == "active":
                return True
            # Nobody writes while it is looked whether all is there. A writer that waits here finds, once it
            # goes on, that its embedder is not the active one any more, and leaves its turns pending.
            connection.execute(self._database.statement("LOCK TABLE {schema}.space IN EXCLUSIVE MODE"))
            left = self._count_missing(connection, embedder)
            if left > spare:
                return False
            if left:
                self._mark_missing(connection, embedder)
            connection.execute(
                self._database.statement(
                    "UPDATE {schema}.embedder SET state = 'retired' WHERE state = 'active'"
                )
            )
            connection.execute(
                self._database.statement("UPDATE {schema}.embedder SET state = 'active' WHERE id = %s"),
                (embedder.id,),
            )
            connection.execute(
                self._database.statement("UPDATE {schema}.space SET generation = generation + 1")
            )
            # An engine keeps the vectors of each embedder apart, so it begins anew.
            connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.pending (space, record, work, not_before)"
                    " SELECT e.space, e.id, 'search', now() FROM {schema}.episode e"
                    " WHERE EXISTS (SELECT FROM {schema}.engine WHERE role = 'search')"
                    " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0, error = NULL"
                )
            )
        return True

    def _mark_missing(self, connection: Connection[Row], embedder: RegisteredEmbedder) -> None:
        connection.execute(
            self._database.statement(
                "INSERT INTO {schema}.pending (space, record, work, not_before)"
                " SELECT DISTINCT i.space, i.record, 'index', now() FROM {schema}.entry i"
                " WHERE NOT EXISTS (SELECT FROM {schema}.{table} v"
                "  WHERE v.space = i.space AND v.view = i.view AND v.entry = i.id)"
                " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0",
                table=f"vector_{embedder.id}",
            )
        )

    def retired(self) -> list[int]:
        """Embedders that are not searched by any more."""
        with self._database.connection("read the embedders") as connection:
            rows = connection.execute(
                self._database.statement(
                    "SELECT id FROM {schema}.embedder WHERE state = 'retired' ORDER BY id"
                )
            ).fetchall()
        return [cast("int", row[0]) for row in rows]

    def drop(self, embedder: int) -> None:
        """Drop the vectors of a retired embedder."""
        with self._database.transaction("drop an embedder") as work:
            self._lock(work.connection)
            self._drop(work.connection, embedder)

    def _drop(self, connection: Connection[Row], embedder: int) -> None:
        # Who removes entries reads which tables there are under the lock of a space: none goes before his eyes.
        connection.execute(self._database.statement("LOCK TABLE {schema}.space IN EXCLUSIVE MODE"))
        copies = connection.execute(
            self._database.statement("DELETE FROM {schema}.ann WHERE embedder = %s RETURNING space"),
            (embedder,),
        ).fetchall()
        for (space,) in copies:
            connection.execute(
                self._database.statement(
                    "DROP TABLE IF EXISTS {schema}.{table}", table=f"vector_{embedder}_space_{space}"
                )
            )
        connection.execute(
            self._database.statement("DROP TABLE IF EXISTS {schema}.{table}", table=f"vector_{embedder}")
        )
        connection.execute(
            self._database.statement("DELETE FROM {schema}.embedder WHERE id = %s"), (embedder,)
        )


def _alike(begun: RegisteredEmbedder, name: str, width: int, probes: Sequence[Sequence[float]]) -> bool:
    if begun.name != name or begun.width != width:
        return False
    cosines = np.einsum("ij,ij->i", np.asarray(begun.probes), np.asarray(probes))
    return bool((cosines >= _SAME).all())


_SAME = 0.999
