"""A whole memory on a schema of its own, with embeddings that cost nothing and a clock set by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.testing.embeddings import WordHashEmbeddings


class HandClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, step: timedelta) -> None:
        self.now += step


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@pytest.fixture
def open_memory(postgres_url: str, schema: str, clock: HandClock) -> Iterator[Callable[..., MemRAG]]:
    opened: list[MemRAG] = []

    def open_one(**options: object) -> MemRAG:
        defaults: dict[str, object] = {
            "embeddings": WordHashEmbeddings(64),
            "schema": schema,
            "background": False,
            "clock": clock,
        }
        memory = MemRAG.open(postgres_url, **{**defaults, **options})
        opened.append(memory)
        return memory

    yield open_one
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., MemRAG]) -> MemRAG:
    return open_memory()
