"""Numbered, append-only migrations, safe when many processes open a database at once.

Each step is applied in a transaction of its own together with the row that says so, under a lock that
is polled: a process that waits for its turn holds no snapshot, so nothing can wait for it in turn.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import LiteralString

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from langchain_memrag.errors import SchemaError, StoreUnavailableError
from langchain_memrag.stores.postgres.companions import (
    CHECKPOINTS,
    JOBS,
    install_checkpoints,
    install_jobs,
    newest_versions,
)
from langchain_memrag.stores.postgres.faults import ENGINE
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["Applied", "Migration", "migrate", "migrations", "read_applied", "up_to_date"]

# One lock for a whole database: an extension is created once, whichever schema asks first.
_LOCK = int.from_bytes(hashlib.sha256(b"langchain-memrag").digest()[:8], "big", signed=True)
_POLL = 0.05
_PATIENCE = 300.0
_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

_COMPANIONS: Mapping[str, Callable[[Connection[Row], str | None], None]] = {
    CHECKPOINTS: install_checkpoints,
    JOBS: install_jobs,
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: SQL in which `{schema}` stands for the schema."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Tells whether a step was changed after it was applied."""
        return hashlib.sha256("\n".join(self.sql.splitlines()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Applied:
    """What a database says was done to it.

    Attributes:
        checksums: By number of step.
        components: Version by component of another library.
    """

    checksums: Mapping[int, str] = field(default_factory=dict)
    components: Mapping[str, str] = field(default_factory=dict)


def migrations() -> list[Migration]:
    """All steps of this version, in order."""
    folder = resources.files("langchain_memrag.stores.postgres") / "migrations"
    found = [(match, entry) for entry in folder.iterdir() if (match := _NAME.fullmatch(entry.name))]
    steps = [Migration(int(m[1]), m[2], entry.read_text(encoding="utf-8")) for m, entry in found]
    return sorted(steps, key=lambda step: step.number)


def read_applied(connection: Connection[Row], schema: str) -> Applied:
    """What was done to a schema; nothing, if it does not exist."""
    names = Identifier(schema)
    exists = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL",
        (f"{schema}.migration", f"{schema}.component"),
    ).fetchone()
    if exists is None or not exists[0]:
        return Applied()
    steps = connection.execute(SQL("SELECT number, checksum FROM {}.migration").format(names))
    checksums = {int(str(number)): str(checksum) for number, checksum in steps}
    parts = connection.execute(SQL("SELECT name, version FROM {}.component").format(names))
    return Applied(checksums, {str(name): str(version) for name, version in parts})


def up_to_date(applied: Applied, steps: Sequence[Migration]) -> bool:
    """Whether a database has all that this version needs.

    A companion that a newer release of its library migrated is left alone: they stay compatible.

    Raises:
        SchemaError: The database is newer than this version, or a step was changed.
    """
    known = {step.number: step.checksum for step in steps}
    newer = sorted(set(applied.checksums) - set(known))
    if newer:
        raise SchemaError(
            f"the database has migration {newer[-1]:04}, this version knows up to {max(known):04}; "
            "upgrade langchain-memrag",
            engine=ENGINE,
            operation="open",
        )
    for number, checksum in applied.checksums.items():
        if checksum != known[number]:
            raise SchemaError(
                f"migration {number:04} was applied in another form than this version has it; "
                "install the version of langchain-memrag that made this database, or newer",
                engine=ENGINE,
                operation="open",
            )
    newest = newest_versions()
    current = all(applied.components.get(name, "") >= version for name, version in newest.items())
    return current and set(known) == set(applied.checksums)


def migrate(connection: Connection[Row], schema: str, steps: Sequence[Migration]) -> int:
    """Apply what is missing, on an autocommit session whose search path starts with `schema`.

    Returns:
        How many steps were applied.

    Raises:
        SchemaError: See `up_to_date`.
        StoreUnavailableError: Another process has been migrating for too long.
    """
    with _alone(connection):
        _create_tables(connection, schema)
        applied = read_applied(connection, schema)
        if up_to_date(applied, steps):
            return 0
        missing = [step for step in steps if step.number not in applied.checksums]
        for step in missing:
            _apply(connection, schema, step)
        return len(missing) + _apply_companions(connection, schema, applied)


def _create_tables(connection: Connection[Row], schema: str) -> None:
    name = Identifier(schema)
    # Asked first: IF NOT EXISTS still demands the right to create schemas.
    if not _true(connection, "SELECT to_regnamespace(%s) IS NOT NULL", schema):
        connection.execute(SQL("CREATE SCHEMA {}").format(name))
    connection.execute(
        SQL(
            "CREATE TABLE IF NOT EXISTS {schema}.migration ("
            "number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, "
            "applied_at timestamptz NOT NULL DEFAULT now());"
            "CREATE TABLE IF NOT EXISTS {schema}.component ("
            "name text PRIMARY KEY, version text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        ).format(schema=name)
    )


def _apply(connection: Connection[Row], schema: str, step: Migration) -> None:
    name = Identifier(schema)
    with connection.transaction():
        connection.execute(SQL(step.sql).format(schema=name))
        connection.execute(
            SQL("INSERT INTO {}.migration (number, name, checksum) VALUES (%s, %s, %s)").format(name),
            (step.number, step.name, step.checksum),
        )


def _apply_companions(connection: Connection[Row], schema: str, applied: Applied) -> int:
    count = 0
    for component, version in newest_versions().items():
        installed = applied.components.get(component)
        if installed is not None and installed >= version:
            continue
        with connection.transaction():
            _COMPANIONS[component](connection, installed)
            connection.execute(
                SQL(
                    "INSERT INTO {}.component (name, version) VALUES (%s, %s) "
                    "ON CONFLICT (name) DO UPDATE SET version = excluded.version, applied_at = now()"
                ).format(Identifier(schema)),
                (component, version),
            )
        count += 1
    return count


@contextmanager
def _alone(connection: Connection[Row]) -> Iterator[None]:
    deadline = time.monotonic() + _PATIENCE
    while not _true(connection, "SELECT pg_try_advisory_lock(%s)", _LOCK):
        if time.monotonic() > deadline:
            raise StoreUnavailableError(
                "another process has been migrating the database for minutes; see who holds an "
                "advisory lock in pg_locks",
                engine=ENGINE,
                operation="migrate",
            )
        time.sleep(_POLL)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def _true(connection: Connection[Row], query: LiteralString, value: object) -> bool:
    row = connection.execute(query, (value,)).fetchone()
    return row is not None and bool(row[0])
