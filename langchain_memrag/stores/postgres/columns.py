"""Rows of fixed width, written column by column.

A row of numbers has the same shape in every tuple of Postgres's binary COPY, so a whole batch is one
numpy array and no Python runs per row: 30,000 postings are formatted in a millisecond. A few rows go
faster as arrays in one INSERT, which can be pipelined with others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection

from langchain_memrag.stores.base import Vector
from langchain_memrag.stores.postgres.codes import moment_literal
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.pools import Row, piped

__all__ = ["Column", "ColumnWriter", "Columns", "halfvec", "halfvecs"]

Column = NDArray[np.generic]

Columns = Mapping[str, Column]
"""A table's columns by name, all of one length."""

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_HALFVEC_HEADER = 4
# From about so many bytes on, the two extra round trips of COPY pay for themselves.
_COPY_FROM = 4_000


class ColumnWriter:
    """Writes rows into one table.

    Args:
        database: Where the table is.
        table: Its name.
        columns: Column name to SQL type.
    """

    def __init__(
        self, database: Database, table: str, columns: Mapping[LiteralString, LiteralString]
    ) -> None:
        names = ", ".join(columns)
        arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
        self._columns = columns
        self._copy = database.statement(
            "COPY {schema}.{table} (" + names + ") FROM STDIN (FORMAT BINARY)", table=table
        )
        self._insert = database.statement(
            "INSERT INTO {schema}.{table} (" + names + ") SELECT * FROM unnest(" + arrays + ")", table=table
        )

    def write(self, connection: Connection[Row], columns: Columns) -> None:
        """Insert rows.

        Args:
            connection: Inside the transaction that the rows belong to.
            columns: In the width of their SQL type: `int16`, `int32`, `int64`, `float32`; times as
                `microseconds` in `int64`; embeddings as `halfvecs`.
        """
        values = [columns[name] for name in self._columns]
        size = sum(column.nbytes for column in values)
        if size < _COPY_FROM or piped(connection):
            kinds = self._columns.values()
            connection.execute(self._insert, [_as_list(*pair) for pair in zip(values, kinds, strict=True)])
            return
        with connection.cursor().copy(self._copy) as copy:
            copy.write(_HEADER)
            copy.write(_rows(values))
            copy.write(_TRAILER)


def halfvecs(vectors: Sequence[Vector]) -> Column:
    """Embeddings as a column of `halfvec` in its binary form."""
    stacked = np.stack(list(vectors)).astype(">f2")
    width = stacked.shape[1]
    packed = np.zeros(len(stacked), dtype=[("width", ">u2"), ("unused", ">u2"), ("values", ">f2", (width,))])
    packed["width"] = width
    packed["values"] = stacked
    return packed.view(np.dtype((np.void, packed.dtype.itemsize))).reshape(-1)


def halfvec(vector: Vector) -> str:
    """An embedding as the literal of a `halfvec`."""
    return _literal(vector.astype(np.float16))


def _rows(values: Sequence[Column]) -> bytes:
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for number, column in enumerate(values):
        fields += [(f"size{number}", ">i4"), (f"value{number}", column.dtype.newbyteorder(">").str)]
    rows = np.empty(len(values[0]), dtype=fields)
    rows["fields"] = len(values)
    for number, column in enumerate(values):
        rows[f"size{number}"] = column.dtype.itemsize
        rows[f"value{number}"] = column
    return rows.tobytes()


def _as_list(column: Column, kind: str) -> list[object]:
    if kind == "timestamptz":
        return [moment_literal(value) for value in column.tolist()]
    if column.dtype.kind == "V":
        return [_literal(np.frombuffer(value, ">f2", offset=_HALFVEC_HEADER)) for value in column]
    return list(column.tolist())


def _literal(values: Column) -> str:
    return "[" + ",".join(map(repr, values.tolist())) + "]"
