"""Vectors in Postgres: one narrow table per embedder, scanned through an index that covers the query.

Turns of many users arrive interleaved; the covering index keeps each space's vectors together, so an
exact search reads only what it ranks. Where an embedding does not fit an index tuple, its signs do
(one bit a dimension): they pick the candidates, and the embeddings of those decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString, cast
from uuid import UUID

import numpy as np
from psycopg import Connection

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.base import DenseSignal, IndexEntry, SearchFilter, Vector, View
from langchain_memrag.stores.postgres.codes import ROLES, VIEW_NAMES, VIEWS, microseconds, short_hash
from langchain_memrag.stores.postgres.columns import ColumnWriter, halfvec, halfvecs
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.narrowing import UNEXPIRED, Permitted, conditions, parameters
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["VectorTable", "check_width", "create_vector_table", "vector_tables"]

WIDEST: Final = 16_000
WIDEST_COVERED: Final = 1_280
"""An index tuple holds 2.7 kB."""
WIDEST_INLINE: Final = 3_700
"""A row holds 8 kB; what is wider is kept out of line."""
WIDEST_GRAPH: Final = 4_000
"""Where pgvector's HNSW on half-precision vectors ends."""

CANDIDATES: Final = 1_000
"""How many embeddings are compared exactly after their signs were."""


def create_vector_table(database: Database, connection: Connection[Row], embedder: int, width: int) -> None:
    """Make the table of an embedder's vectors, with its index.

    Raises:
        ConfigurationError: No column can hold vectors of this width.
    """
    check_width(width)
    table = f"vector_{embedder}"
    dimensions = str(int(width))
    covered = width <= WIDEST_COVERED
    signs: LiteralString = (
        ""
        if covered
        else ", signs bit(" + dimensions + ") NOT NULL GENERATED ALWAYS AS"
        " (binary_quantize(embedding)::bit(" + dimensions + ")) STORED"
    )
    storage: LiteralString = "PLAIN" if width <= WIDEST_INLINE else "EXTERNAL"
    included: LiteralString = "embedding" if covered else "signs"
    for template in (
        "CREATE TABLE {schema}.{table} (space bigint NOT NULL, occurred_at timestamptz NOT NULL,"
        " expires_at timestamptz NOT NULL, session bigint NOT NULL, agent bigint NOT NULL,"
        " entry integer NOT NULL, view smallint NOT NULL, role smallint NOT NULL,"
        " embedding halfvec(" + dimensions + ") STORAGE " + storage + " NOT NULL" + signs + ")",
        "CREATE UNIQUE INDEX {index} ON {schema}.{table} (space, view, entry)"
        " INCLUDE (occurred_at, expires_at, session, agent, role, " + included + ")",
        # Index-only scans need a fresh visibility map: vacuum after inserts, not only after deletes.
        "ALTER TABLE {schema}.{table} SET"
        " (autovacuum_vacuum_insert_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.02)",
    ):
        connection.execute(database.statement(template, table=table, index=f"{table}_cover"))


def check_width(width: int) -> None:
    """See that a column can hold vectors of a width.

    Raises:
        ConfigurationError: None can.
    """
    if not 1 <= width <= WIDEST:
        raise ConfigurationError(f"vectors may have 1 to {WIDEST:,} dimensions, not {width:,}")


def vector_tables(database: Database, connection: Connection[Row]) -> list[str]:
    """The tables of all embedders, the retired included: what is forgotten leaves them all."""
    rows = connection.execute(
        "SELECT relname::text FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.to_regnamespace(%s)"
        " AND relkind = 'r' AND relname ~ '^vector_[0-9]+$' ORDER BY oid",
        (database.schema,),
    ).fetchall()
    return [cast("str", row[0]) for row in rows]


class VectorTable:
    """The vectors of one embedder.

    Args:
        database: Where they are.
        embedder: Names the table.
        width: Dimensions.
    """

    def __init__(self, database: Database, embedder: int, width: int) -> None:
        self._database = database
        self.embedder = embedder
        self.width = width
        self.name = f"vector_{embedder}"
        self._writer = ColumnWriter(
            database,
            self.name,
            {
                "space": "bigint",
                "occurred_at": "timestamptz",
                "expires_at": "timestamptz",
                "session": "bigint",
                "agent": "bigint",
                "entry": "integer",
                "view": "smallint",
                "role": "smallint",
                "embedding": "halfvec",
            },
        )

    def check(self, vector: Vector) -> None:
        """See that a vector can stand in this table.

        Raises:
            ConfigurationError: It has another width, or components that are no numbers.
        """
        if vector.shape != (self.width,):
            raise ConfigurationError(
                f"a vector of {'x'.join(map(str, vector.shape))} dimensions does not fit an index of "
                f"{self.width}: use the embedder the index was made with, or run `memrag reembed`"
            )
        if not np.isfinite(vector).all():
            raise ConfigurationError("the embedder returned a vector with components that are not finite")

    def write(
        self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry], ids: Sequence[int]
    ) -> None:
        """Insert the vectors of entries that have one."""
        pairs = [
            (entry, number) for entry, number in zip(entries, ids, strict=True) if entry.vector is not None
        ]
        if not pairs:
            return
        rows = [entry for entry, _ in pairs]
        self._writer.write(
            connection,
            {
                "space": np.full(len(pairs), space, np.int64),
                "occurred_at": np.array([microseconds(entry.occurred_at) for entry in rows], np.int64),
                "expires_at": np.array([microseconds(entry.expires_at) for entry in rows], np.int64),
                "session": np.array([short_hash(entry.session) for entry in rows], np.int64),
                "agent": np.array([short_hash(entry.agent) for entry in rows], np.int64),
                "entry": np.array([number for _, number in pairs], np.int32),
                "view": np.array([VIEWS[entry.view] for entry in rows], np.int16),
                "role": np.array([ROLES[entry.role] for entry in rows], np.int16),
                "embedding": halfvecs([entry.vector for entry in rows if entry.vector is not None]),
            },
        )

    def read(
        self, connection: Connection[Row], space: int, records: Sequence[UUID]
    ) -> dict[tuple[UUID, View, int], Vector]:
        """The vectors of records, by record, view and part."""
        rows = connection.execute(
            self._database.statement(
                "SELECT e.record, e.view, e.part, v.embedding::real[] FROM {schema}.entry e"
                " JOIN {schema}.{table} v ON v.space = e.space AND v.view = e.view AND v.entry = e.id"
                " WHERE e.space = %s AND e.record = ANY(%s)",
                table=self.name,
            ),
            (space, list(records)),
            binary=True,
        ).fetchall()
        return {
            (record, VIEW_NAMES[view], part): np.asarray(values, np.float32)
            for record, view, part, values in cast("list[tuple[UUID, int, int, list[float]]]", rows)
        }

    def among(
        self, signal: DenseSignal, where: SearchFilter, permitted: Permitted
    ) -> tuple[bytes, Mapping[str, object]]:
        """The statement that ranks a few entries, and its parameters."""
        values = {
            **parameters(where, signal.views, signal.depth),
            "vector": halfvec(signal.vector),
            "in_spaces": [space for space, _ in permitted],
            "ids": [number for _, number in permitted],
        }
        return self._database.statement(
            _HIT + "SELECT v.space, v.entry, v.embedding <#> %(vector)s::halfvec AS distance"
            " FROM unnest(%(in_spaces)s::bigint[], %(ids)s::integer[]) a (space, id)"
            " CROSS JOIN LATERAL (SELECT space, entry, embedding FROM {schema}.{table} WHERE space = a.space"
            "  AND view = ANY(%(views)s) AND entry = a.id" + UNEXPIRED + " OFFSET 0) v" + _OF,
            table=self.name,
        ), values

    def query(
        self, signal: DenseSignal, where: SearchFilter, watermarks: Mapping[int, int]
    ) -> tuple[bytes, Mapping[str, object]]:
        """The statement that answers a signal, and its parameters.

        Args:
            signal: What to look for.
            where: What may be returned.
            watermarks: Spaces whose vectors stand in a copy with a neighbour graph, and up to which
                entry they do.
        """
        values = dict(parameters(where, signal.views, signal.depth))
        values["vector"] = halfvec(signal.vector)
        values["spaces"] = [space for space in where.spaces if space not in watermarks]
        values["candidates"] = max(CANDIDATES, 4 * signal.depth)
        parts = [self._exact("space = ANY(%(spaces)s)", where)] if values["spaces"] else []
        names = {"table": self.name}
        for number, (space, watermark) in enumerate(sorted(watermarks.items())):
            prefix = str(number)
            values[f"space_{number}"] = space
            values[f"watermark_{number}"] = watermark
            names[f"copy_{number}"] = f"{self.name}_space_{space}"
            behind: LiteralString = (
                "space = %(space_" + prefix + ")s AND entry > %(watermark_" + prefix + ")s"
            )
            parts.append(self._exact(behind, where))
            parts += [self._graph(prefix, VIEWS[view], where) for view in signal.views]
        return self._database.statement(_HIT + " UNION ALL ".join(parts) + _OF, **names), values

    def _exact(self, which: LiteralString, where: SearchFilter) -> LiteralString:
        rows: LiteralString = (
            " FROM {schema}.{table} WHERE "
            + which
            + " AND view = ANY(%(views)s)"
            + UNEXPIRED
            + conditions(where)
        )
        if self.width <= WIDEST_COVERED:
            return (
                "(SELECT space, entry, embedding <#> %(vector)s::halfvec AS distance"
                + rows
                + " ORDER BY distance, entry DESC LIMIT %(depth)s)"
            )
        width = str(self.width)
        return (
            "(SELECT v.space, v.entry, v.embedding <#> %(vector)s::halfvec AS distance"
            " FROM (SELECT space, view, entry"
            + rows
            + " ORDER BY signs <~> binary_quantize(%(vector)s::halfvec)::bit("
            + width
            + ") LIMIT %(candidates)s) c"
            " JOIN {schema}.{table} v ON v.space = c.space AND v.view = c.view AND v.entry = c.entry"
            " ORDER BY distance, entry DESC LIMIT %(depth)s)"
        )

    @staticmethod
    def _graph(prefix: LiteralString, view: int, where: SearchFilter) -> LiteralString:
        code = str(view)
        return (
            "(SELECT %(space_" + prefix + ")s::bigint AS space, entry, embedding <#> %(vector)s::halfvec AS distance"
            " FROM {schema}.{copy_" + prefix + "} WHERE view = " + code
            + " AND entry <= %(watermark_" + prefix + ")s" + UNEXPIRED + conditions(where)
            + " ORDER BY embedding <#> %(vector)s::halfvec LIMIT %(depth)s)"
        )  # fmt: skip


_HIT: Final = "SELECT e.space, e.record, e.view, e.part, -n.distance FROM (SELECT * FROM ("
_OF: Final = (
    ") a ORDER BY distance, entry DESC LIMIT %(depth)s) n"
    " JOIN {schema}.entry e ON e.space = n.space AND e.id = n.entry"
)
