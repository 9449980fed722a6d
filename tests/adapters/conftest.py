"""A whole memory on a schema of its own, with embeddings that cost nothing, for every adapter."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings

Texts = Callable[[str], list[str]]


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    name = f"a_{uuid.uuid4().hex[:12]}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@pytest.fixture
def memrag(postgres_url: str, schema: str) -> Iterator[MemRAG]:
    with MemRAG.open(
        postgres_url, schema=schema, embeddings=WordHashEmbeddings(), background=False
    ) as opened:
        yield opened


@pytest.fixture
def texts(memrag: MemRAG) -> Texts:
    """What a user's memory holds, `role: text`, in the order in which it was stored."""

    def of(user: str) -> list[str]:
        page = memrag.history(Scope(user), limit=1000)
        ordered = sorted(page.episodes, key=lambda episode: episode.seq)
        return [f"{episode.role}: {episode.content}" for episode in ordered]

    return of
