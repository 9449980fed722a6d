"""Teaches connections our types from OIDs that were looked up once, so that it costs no query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from langchain_memrag.stores.postgres.pools import Row

__all__ = ["VectorTypes", "register_types"]

_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class VectorTypes:
    """Where one database keeps pgvector's types.

    Attributes:
        schema: The schema of the extension.
        oids: Name to (oid, array oid).
    """

    schema: str
    oids: Mapping[str, tuple[int, int]]


class _UtcLoader(Loader):
    """Reads a time in UTC whatever the session's zone is, so that the first and last days survive."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        return _POSTGRES_EPOCH + timedelta(microseconds=int.from_bytes(data, "big", signed=True))


def register_types(connection: Connection[Row], types: VectorTypes) -> None:
    """Register pgvector's types and UTC times on a connection, without asking the server."""
    for name, register in (("vector", register_vector_info), ("halfvec", register_halfvec_info)):
        oid, array_oid = types.oids[name]
        register(connection, TypeInfo(name, oid, array_oid))
    connection.adapters.register_loader("timestamptz", _UtcLoader)
