"""The least that a recall can cost: the nearest vectors of one user, by bare SQL, exact or by HNSW."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from pgvector.psycopg import register_vector
from pgvector.psycopg.halfvec import HalfVector
from servers import Throwaway, connect

__all__ = ["FLOORS", "Floor"]

FLOORS: Final = ("exact", "hnsw")
_NEAREST: Final = 10

# Adding nothing keeps the planner from the nearest-neighbour index.
_EXACT: Final = (
    f"SELECT id, embedding <#> %(vector)s AS far FROM bare.vector WHERE space = %(space)s "
    f"ORDER BY (embedding <#> %(vector)s) + 0 LIMIT {_NEAREST}"
)
_HNSW: Final = (
    f"SELECT id, embedding <#> %(vector)s AS far FROM bare.vector_{{space}} "
    f"ORDER BY embedding <#> %(vector)s LIMIT {_NEAREST}"
)


class Floor:
    """Vectors of several users in one bare table with a covering index, and each big user's with HNSW.

    Args:
        store: Whose server it uses.
        width: Of the vectors.
    """

    def __init__(self, store: Throwaway, width: int) -> None:
        self._connection = connect(store)
        self._width = width
        self._connection.execute("CREATE SCHEMA bare")
        register_vector(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def fill(self, vectors: Mapping[int, NDArray[np.float32]], *, graphs: Sequence[int]) -> None:
        """Store the vectors of each space, mixed as they would arrive, and index them.

        Args:
            vectors: One row a vector, by space.
            graphs: The spaces that get an HNSW index.
        """
        column = f"embedding halfvec({self._width}) NOT NULL"
        self._connection.execute(f"CREATE TABLE bare.vector (space int NOT NULL, id int NOT NULL, {column})")
        order = [(space, row) for space, rows in vectors.items() for row in range(len(rows))]
        Random(5).shuffle(order)
        self._copy("bare.vector", ((space, row, vectors[space][row]) for space, row in order))
        self._connection.execute("SET maintenance_work_mem = '512MB'")
        self._connection.execute("CREATE INDEX ON bare.vector (space) INCLUDE (id, embedding)")
        for space in graphs:
            table = f"bare.vector_{space}"
            self._connection.execute(f"CREATE TABLE {table} (space int NOT NULL, id int NOT NULL, {column})")
            self._copy(table, ((space, row, vector) for row, vector in enumerate(vectors[space])))
            self._connection.execute(f"CREATE INDEX ON {table} USING hnsw (embedding halfvec_ip_ops)")
        self._connection.execute("VACUUM (ANALYZE)")

    def nearest(self, kind: str, space: int, vector: Sequence[float]) -> list[int]:
        """The nearest ten, by `exact` or `hnsw`."""
        query = _EXACT if kind == "exact" else _HNSW.format(space=space)
        found = self._connection.execute(query, {"space": space, "vector": HalfVector(vector)}, prepare=True)
        return [row[0] for row in found if isinstance(row[0], int)]

    def _copy(self, table: str, rows: Iterable[tuple[int, int, NDArray[np.float32]]]) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} (space, id, embedding) FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.set_types(["int4", "int4", "halfvec"])
            for space, number, vector in rows:
                copy.write_row((space, number, HalfVector(vector)))
