"""Real servers: one on a Unix socket for everybody, one over TCP that asks for a password."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from langchain_memrag.stores.postgres.database import Database

from .servers import Server, start_server


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    """A name that no other test has; what is made under it is dropped."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


@pytest.fixture
def open_database(postgres_url: str, schema: str) -> Iterator[Callable[..., Database]]:
    """Opens databases on the test's own schema, and closes them."""
    opened: list[Database] = []

    def open_one(**options: object) -> Database:
        database = Database(str(options.pop("url", postgres_url)), **{"schema": schema, **options})
        opened.append(database)
        return database

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database: Callable[..., Database]) -> Database:
    """A migrated schema of its own."""
    database = open_database()
    database.open()
    return database


@dataclass(frozen=True)
class Guarded:
    """A server over TCP.

    Attributes:
        server: To be stopped and started again by the tests that need it.
        password: The superuser's.
    """

    server: Server
    password: str

    def url(self, *, user: str = "postgres", password: str | None = None, database: str = "postgres") -> str:
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.server.port}/{database}"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server over TCP with scram passwords."""
    password = secrets.token_urlsafe(12)
    with start_server(tmp_path_factory.mktemp("guarded"), password=password) as server:
        yield Guarded(server, password)
