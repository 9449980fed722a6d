"""Putting right what only damage can make wrong: rows that belong to nothing, and counts that are off.

Every write keeps all of it right by itself. What is deleted behind its back, or lost with a disk, is not
seen by any write again.
"""

from __future__ import annotations

from typing import Final, cast

from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.dense import vector_tables
from langchain_memrag.stores.postgres.neighbours import copies_of

__all__ = ["mend", "miscounted"]

_MISCOUNTED: Final = (
    "SELECT DISTINCT space FROM"
    " (SELECT space, view, count(*) AS there FROM {schema}.entry GROUP BY space, view) e"
    " FULL JOIN {schema}.view_stat v USING (space, view)"
    " WHERE coalesce(e.there, 0) <> coalesce(v.entries, 0) ORDER BY space"
)

_OF_NO_ENTRY: Final = (
    "DELETE FROM {schema}.posting p WHERE p.space = %(space)s"
    " AND NOT EXISTS (SELECT FROM {schema}.entry e WHERE e.space = p.space AND e.id = p.entry)",
    "DELETE FROM {schema}.entry_source s WHERE s.space = %(space)s"
    " AND NOT EXISTS (SELECT FROM {schema}.entry e WHERE e.space = s.space AND e.id = s.entry)",
)

_COUNTS: Final = (
    "DELETE FROM {schema}.term_stat WHERE space = %(space)s",
    "INSERT INTO {schema}.term_stat (space, view, term, df, peak)"
    " SELECT space, view, term, count(*), max(weight) FROM {schema}.posting WHERE space = %(space)s"
    " GROUP BY space, view, term",
    "DELETE FROM {schema}.view_stat WHERE space = %(space)s",
    "INSERT INTO {schema}.view_stat (space, view, entries)"
    " SELECT space, view, count(*) FROM {schema}.entry WHERE space = %(space)s GROUP BY space, view",
    "DELETE FROM {schema}.relation_source s WHERE s.space = %(space)s"
    " AND NOT EXISTS (SELECT FROM {schema}.relation r WHERE r.id = s.relation)",
    "UPDATE {schema}.entity e SET mentions = n.count FROM"
    " (SELECT k.key, count(m.key) FROM {schema}.entity k"
    "   LEFT JOIN {schema}.mention m ON m.space = k.space AND m.key = k.key"
    "  WHERE k.space = %(space)s GROUP BY k.key) n"
    " WHERE e.space = %(space)s AND e.key = n.key AND e.mentions <> n.count",
    "DELETE FROM {schema}.entity WHERE space = %(space)s AND mentions <= 0",
    "UPDATE {schema}.relation r SET weight = n.count FROM"
    " (SELECT k.id, count(s.record) FROM {schema}.relation k"
    "   LEFT JOIN {schema}.relation_source s ON s.relation = k.id WHERE k.space = %(space)s GROUP BY k.id) n"
    " WHERE r.id = n.id AND r.weight <> n.count",
    "DELETE FROM {schema}.relation WHERE space = %(space)s AND weight <= 0",
)


def miscounted(database: Database) -> list[int]:
    """Spaces that hold other entries than were counted when they were written."""
    with database.connection("look for what is not counted") as connection:
        rows = connection.execute(database.statement(_MISCOUNTED)).fetchall()
    return [cast("int", row[0]) for row in rows]


def mend(database: Database, space: int) -> None:
    """Remove what belongs to nothing in a space, and count anew what is there."""
    values = {"space": space}
    with database.transaction("mend an index") as work:
        connection = work.connection
        connection.execute(
            database.statement("UPDATE {schema}.space SET generation = generation + 1 WHERE id = %(space)s"),
            values,
        )
        for statement in _OF_NO_ENTRY:
            connection.execute(database.statement(statement), values)
        for table in vector_tables(database, connection):
            connection.execute(
                database.statement(
                    "DELETE FROM {schema}.{table} v WHERE v.space = %(space)s"
                    " AND NOT EXISTS (SELECT FROM {schema}.entry e WHERE e.space = v.space AND e.id = v.entry)",
                    table=table,
                ),
                values,
            )
        for copy in copies_of(database, connection, space):
            connection.execute(
                database.statement(
                    "DELETE FROM {schema}.{copy} c WHERE NOT EXISTS (SELECT FROM {schema}.entry e"
                    " WHERE e.space = %(space)s AND e.id = c.entry)",
                    copy=copy,
                ),
                values,
            )
        for statement in _COUNTS:
            connection.execute(database.statement(statement), values)
