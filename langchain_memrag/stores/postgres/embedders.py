"""Which embedder an index was made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from psycopg import Connection

from langchain_memrag.errors import StoreError
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.dense import check_width
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["EmbedderRegistry", "RegisteredEmbedder", "probes_of"]


@dataclass(frozen=True, slots=True)
class RegisteredEmbedder:
    """An embedder as the database remembers it.

    Attributes:
        id: Names its table of vectors.
        name: Provider and model.
        width: Dimensions.
        probes: How it embeds the probe texts, a row a text.
    """

    id: int
    name: str
    width: int
    probes: tuple[tuple[float, ...], ...]


class EmbedderRegistry:
    """The embedders of one database; at most one is active.

    Args:
        database: Where they are registered.
        create_table: Makes the table of vectors of an embedder, given connection, id and width.
    """

    def __init__(self, database: Database, create_table: Callable[[Connection[Row], int, int], None]) -> None:
        self._database = database
        self._create_table = create_table

    def active(self) -> RegisteredEmbedder | None:
        """The embedder that searches use, if one was registered."""
        with self._database.connection("read the embedder") as connection:
            row = connection.execute(
                self._database.statement(
                    "SELECT id, name, width, probes FROM {schema}.embedder WHERE state = 'active'"
                )
            ).fetchone()
        if row is None:
            return None
        ident, name, width, probes = cast("tuple[int, str, int, bytes]", row)
        return RegisteredEmbedder(ident, name, width, probes_of(probes, width))

    def register(self, name: str, width: int, probes: Sequence[Sequence[float]]) -> RegisteredEmbedder:
        """Make an embedder the active one, unless another process was faster; then that one is returned.

        What is stored already is marked to be indexed again, so that it gets vectors too.

        Raises:
            ConfigurationError: No table can hold vectors of this width.
        """
        check_width(width)
        packed = np.asarray(probes, dtype="<f4").tobytes()
        with self._database.transaction("register the embedder") as work:
            row = work.connection.execute(
                self._database.statement(
                    "INSERT INTO {schema}.embedder (name, width, probes, state) VALUES (%s, %s, %s, 'active')"
                    " ON CONFLICT (state) WHERE state = 'active' DO NOTHING RETURNING id"
                ),
                (name, width, packed),
            ).fetchone()
            if row is not None:
                self._create_table(work.connection, cast("int", row[0]), width)
                work.connection.execute(
                    self._database.statement(
                        # Engines keep the vectors of each embedder apart, so they begin anew, too. A mark
                        # that somebody is just taking away must not be passed over: hence no DO NOTHING.
                        "INSERT INTO {schema}.pending (space, record, work, not_before)"
                        " SELECT space, id, w.work, now() FROM {schema}.episode CROSS JOIN (SELECT 'index' AS work"
                        "  UNION ALL SELECT role FROM {schema}.engine WHERE role = 'search') w"
                        " ON CONFLICT (space, record, work) DO UPDATE SET attempts = 0"
                    )
                )
        active = self.active()
        if active is None:
            raise StoreError("it vanished again", engine="postgres", operation="register the embedder")
        return active


def probes_of(packed: bytes, width: int) -> tuple[tuple[float, ...], ...]:
    """How an embedder embeds the probe texts, as it is stored."""
    matrix = np.frombuffer(packed, dtype="<f4").reshape(-1, width)
    return tuple(tuple(float(x) for x in row) for row in matrix)
