"""One whole memory for all adapters, emptied after each test, with embeddings that cost nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings

Texts = Callable[[str], list[str]]


@pytest.fixture(scope="session")
def schema(postgres_url: str) -> Iterator[str]:
    name = f"a_{uuid.uuid4().hex[:12]}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


@pytest.fixture(scope="session")
def shared(postgres_url: str, schema: str) -> Iterator[MemRAG]:
    with MemRAG.open(
        postgres_url, schema=schema, embeddings=WordHashEmbeddings(), background=False
    ) as opened:
        yield opened


@pytest.fixture(scope="session")
def session(postgres_url: str, schema: str, shared: MemRAG) -> Iterator[psycopg.Connection]:
    options = f"-c search_path={schema}"
    with psycopg.connect(postgres_url, autocommit=True, options=options) as connection:
        yield connection


@pytest.fixture
def memrag(shared: MemRAG, session: psycopg.Connection) -> Iterator[MemRAG]:
    yield shared
    for (user,) in session.execute("SELECT key FROM space WHERE kind = 'user'").fetchall():
        assert shared.forget(Scope(user), everything=True).clean
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
        session.execute(SQL("DELETE FROM {}").format(Identifier(table)))


@pytest.fixture
def texts(memrag: MemRAG) -> Texts:
    """What a user's memory holds, `role: text`, in the order in which it was stored."""

    def of(user: str) -> list[str]:
        page = memrag.history(Scope(user), limit=1000)
        ordered = sorted(page.episodes, key=lambda episode: episode.seq)
        return [f"{episode.role}: {episode.content}" for episode in ordered]

    return of
