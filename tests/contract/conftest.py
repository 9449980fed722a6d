from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from langchain_memrag.stores.postgres.database import Database
from tests.integration.conftest import guarded  # noqa: F401 - a server over TCP with a password


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """A migrated schema of its own."""
    schema = f"c_{uuid.uuid4().hex[:12]}"
    database = Database(postgres_url, schema=schema)
    database.open()
    yield database
    database.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
