"""One Postgres database: connections, transactions, and whether it is fit to hold a memory.

The main pool keeps no session state, so that it works behind a transaction-mode PgBouncer: every
name is qualified, nothing is `SET` outside a transaction, nothing is prepared unless asked for. What
does need a session of its own (migrations, checkpoints, jobs) goes through `session_pool`, which takes
the direct URL.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier
from psycopg_pool import ConnectionPool

from langchain_memrag.errors import StoreError
from langchain_memrag.stores.base import Transaction
from langchain_memrag.stores.postgres.address import parse_address, valid_schema
from langchain_memrag.stores.postgres.checks import Fitness, connected, ensure_extension, inspect
from langchain_memrag.stores.postgres.faults import ENGINE, faults_mapped
from langchain_memrag.stores.postgres.migrate import Migration, migrate, migrations, up_to_date
from langchain_memrag.stores.postgres.pools import LazyPool, Row
from langchain_memrag.stores.postgres.types import register_types

__all__ = ["Database", "PostgresTransaction"]

# The default of a database may be stricter; reading afresh after a lock was taken relies on this one.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"


class PostgresTransaction(Transaction):
    """An open transaction of a `Database`."""

    def __init__(self, database: Database, connection: Connection[Row]) -> None:
        self.database = database
        self.connection = connection


class Database:
    """A schema in a Postgres database.

    Nothing connects before `open` or the first use; both are safe from many threads.

    Args:
        url: Where it is; may lead through a transaction-mode PgBouncer.
        direct_url: A way past the pooler for what needs a session; `url` by default.
        schema: Where all tables live.
        pool_size: At most so many connections at once, plus `session_pool_size`.
        session_pool_size: At most so many sessions for checkpoints and migrations.
        prepared: Prepare statements on the server; not behind a pooler.
        patience: How many seconds a caller waits for a connection.

    Raises:
        ConfigurationError: A URL or the schema's name is malformed.
    """

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        schema: str = "memrag",
        pool_size: int = 8,
        session_pool_size: int = 4,
        prepared: bool = False,
        patience: float = 15.0,
    ) -> None:
        self.schema = valid_schema(schema)
        self.pool_size = pool_size
        self._address = parse_address(url)
        self._direct = self._address if direct_url is None else parse_address(direct_url)
        self._opening = threading.RLock()
        self._fitness: Fitness | None = None
        self._statements: dict[tuple[str, ...], bytes] = {}
        self._main = LazyPool(
            lambda: self._address.conninfo,
            size=pool_size,
            wait=patience,
            prepare_threshold=5 if prepared else None,
            configure=self._configure,
        )
        self._session = LazyPool(
            lambda: self.session_conninfo,
            size=session_pool_size,
            wait=patience,
            prepare_threshold=5,
            configure=self._configure,
        )

    def __repr__(self) -> str:
        return f"Database({self.label}, schema={self.schema!r})"

    @property
    def label(self) -> str:
        """Host, port and database, without credentials."""
        return self._address.label

    @property
    def schema_version(self) -> int:
        """The number of the last migration."""
        return max(self._opened().applied.checksums, default=0)

    @property
    def session_conninfo(self) -> str:
        """How another library connects to the same schema, past the pooler. Holds the password."""
        return self._sessions_in(self._opened())

    @property
    def session_pool(self) -> ConnectionPool[Connection[Row]]:
        """The driver's pool of sessions that look for names in the schema first."""
        self.open()
        return self._session.driver_pool()

    @contextmanager
    def session(self, operation: str) -> Iterator[Connection[Row]]:
        """An autocommit session that looks for names in the schema first, for libraries that name none.

        Args:
            operation: What it is for, as errors will say it.

        Raises:
            StoreError: Whatever the driver raised, mapped.
        """
        self.open()
        with faults_mapped(operation), self._session.connection() as connection:
            yield connection

    def open(self) -> None:
        """Connect, see that the server will do, and migrate the schema when it is behind.

        Opening what is open does nothing.

        Raises:
            ConfigurationError: The server, its version, its extensions or our rights will not do.
            StoreUnavailableError: It cannot be reached.
            SchemaError: The schema is of a newer version.
        """
        self._opened()

    def close(self) -> None:
        """Close all connections; the database cannot be used again."""
        self._main.close()
        self._session.close()

    @contextmanager
    def connection(self, operation: str) -> Iterator[Connection[Row]]:
        """An autocommit connection for as long as the block runs.

        Args:
            operation: What it is for, as errors will say it.

        Raises:
            StoreError: Whatever the driver raised, mapped.
        """
        self.open()
        with faults_mapped(operation), self._main.connection() as connection:
            yield connection

    @contextmanager
    def transaction(self, operation: str, *, pipeline: bool = False) -> Iterator[PostgresTransaction]:
        """One transaction: committed at the end of the block, rolled back when it raises.

        Args:
            operation: What it is for, as errors will say it.
            pipeline: Send statements without waiting for their results, `BEGIN` and `COMMIT` included.
                A failure may then surface at a later statement, and `COPY` is not possible.

        Raises:
            StoreError: Whatever the driver raised, mapped. When the connection was lost during the
                commit nobody knows whether it took place.
        """
        with self.connection(operation) as connection:
            with connection.pipeline() if pipeline else contextlib.nullcontext():
                connection.execute(_BEGIN)
                yield PostgresTransaction(self, connection)
                committed = connection.execute("COMMIT")
            if committed.statusmessage != "COMMIT":
                # Postgres answers the COMMIT of a failed transaction with a quiet ROLLBACK.
                raise StoreError("the transaction was rolled back", engine=ENGINE, operation=operation)

    @contextmanager
    def joined(self, within: Transaction | None, operation: str) -> Iterator[Connection[Row]]:
        """The connection of a transaction to join, or of one of its own.

        Args:
            within: Joined if it is one of this database.
            operation: What it is for.
        """
        if isinstance(within, PostgresTransaction) and within.database is self:
            with faults_mapped(operation):
                yield within.connection
        else:
            with self.transaction(operation) as own:
                yield own.connection

    def statement(self, template: LiteralString, **identifiers: str) -> bytes:
        """SQL with `{schema}`, and other identifiers by name, filled in and quoted. Braces are doubled.

        Identifiers are names of our own making; what users say is always a parameter.
        """
        key = (template, *identifiers.values())
        rendered = self._statements.get(key)
        if rendered is None:
            names = {name: Identifier(value) for name, value in identifiers.items()}
            text = SQL(template).format(schema=Identifier(self.schema), **names).as_string(None)
            rendered = self._statements[key] = text.encode()
        return rendered

    def _opened(self) -> Fitness:
        return self._fitness or self._open_first()

    def _open_first(self) -> Fitness:
        with self._opening:
            if self._fitness is None:
                steps = migrations()
                with connected(self._address, "open") as connection:
                    fitness = inspect(connection, self.schema, self._address)
                if fitness.vector is None or not up_to_date(fitness.applied, steps):
                    fitness = self._migrate(steps)
                self._fitness = fitness
            return self._fitness

    def _migrate(self, steps: Sequence[Migration]) -> Fitness:
        with connected(self._direct, "migrate") as connection:
            ensure_extension(connection, self._direct)
            fitness = inspect(connection, self.schema, self._direct)
        with connected(self._direct, "migrate", self._sessions_in(fitness)) as connection:
            migrate(connection, self.schema, steps)
            return inspect(connection, self.schema, self._direct)

    def _sessions_in(self, fitness: Fitness) -> str:
        extension = [] if fitness.vector is None else [fitness.vector.schema]
        return self._direct.with_search_path(self.schema, *extension)

    def _configure(self, connection: Connection[psycopg.rows.TupleRow]) -> None:
        if self._fitness is not None and self._fitness.vector is not None:
            register_types(connection, self._fitness.vector)
