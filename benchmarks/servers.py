"""A throw-away memory on an embedded server, and a bare connection to the same server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from langchain_core.embeddings import Embeddings

from langchain_memrag import MemRAG
from langchain_memrag.stores.embedded import EmbeddedPostgres

__all__ = ["Throwaway", "connect", "settle", "throwaway"]


@dataclass(frozen=True, slots=True)
class Throwaway:
    """A memory that goes when the benchmark ends.

    Attributes:
        url: Its server.
        folder: Where it is; more handles may be opened on it.
    """

    memory: MemRAG
    url: str
    folder: Path


@contextmanager
def throwaway(embeddings: Embeddings) -> Iterator[Throwaway]:
    """A new memory in a temporary folder. What the background would do is left to `settle`."""
    with (
        tempfile.TemporaryDirectory(prefix="memrag-bench-", ignore_cleanup_errors=True) as folder,
        EmbeddedPostgres.open(Path(folder) / "data") as server,
        MemRAG.open(Path(folder) / "data", embeddings=embeddings, background=False, cache="none") as memory,
    ):
        yield Throwaway(memory, server.url, Path(folder) / "data")


def connect(store: Throwaway) -> psycopg.Connection[tuple[object, ...]]:
    """A connection of its own, each statement a transaction."""
    return psycopg.connect(store.url, autocommit=True)


def settle(store: Throwaway) -> None:
    """Do now what happens behind the caller's back: heal, index big memories, vacuum."""
    store.memory.flush()
    store.memory.sweep()
    with connect(store) as connection:
        connection.execute("VACUUM (ANALYZE)")
