"""Which embedder an index was made with: settled once, whoever comes first."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.embedders import EmbedderRegistry

from .recording import Record, alone

PROBES = ((0.6, 0.8), (1.0, 0.0), (0.0, -1.0))


def registry(database: Database, made: list[int]) -> EmbedderRegistry:
    return EmbedderRegistry(database, lambda connection, ident, width: made.append(ident))


def test_an_embedder_is_remembered_as_it_was(database: Database) -> None:
    made: list[int] = []
    assert registry(database, made).active() is None
    given = registry(database, made).register("nano/多语言", 2, PROBES)
    assert (given.name, given.width) == ("nano/多语言", 2)
    assert [list(row) for row in given.probes] == [pytest.approx(row) for row in PROBES]
    assert registry(database, made).active() == given
    assert made == [given.id]


def test_the_first_of_many_wins(open_database: Callable[..., Database]) -> None:
    databases = [open_database(pool_size=2) for _ in range(8)]
    made: list[int] = []

    def register(number: int) -> str:
        return registry(databases[number], made).register(f"model{number}", 2, PROBES).name

    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(register, range(8)))
    assert len(names) == len(made) == 1


def test_what_was_indexed_without_vectors_is_marked_again(database: Database) -> None:
    record = Record(database)
    ids = record.write("a", "乙", "c")
    with record.store.indexing(record.space(), alone(ids[:2]), done=True):
        pass
    assert record.pending() == {ids[2]}
    registry(database, []).register("m", 2, PROBES)
    assert record.pending() == set(ids)


def test_who_knows_of_no_embedder_does_not_call_done_what_another_embeds(database: Database) -> None:
    record = Record(database)
    ids = record.write("a", "乙")
    with record.store.indexing(record.space(), alone(ids[:1]), done=True, vectors=False) as work:
        assert work.claimed == {ids[0]}
    assert record.pending() == {ids[1]}
    registry(database, []).register("m", 2, PROBES)
    with record.store.indexing(record.space(), alone(ids), done=True, vectors=False) as work:
        assert work.claimed == set(ids)
    assert record.pending() == set(ids)
    with record.store.indexing(record.space(), alone(ids), done=True, vectors=True):
        pass
    assert record.pending() == set()


def test_a_table_that_cannot_be_made_leaves_no_embedder(database: Database) -> None:
    def fail(connection: object, ident: int, width: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        EmbedderRegistry(database, fail).register("m", 2, PROBES)
    assert registry(database, []).active() is None
