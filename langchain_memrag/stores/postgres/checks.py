"""Whether a server will do, and if not, what its owner should change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import Connection, errors

from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.stores.postgres.address import Address
from langchain_memrag.stores.postgres.faults import ENGINE, redact, translate
from langchain_memrag.stores.postgres.migrate import Applied, read_applied
from langchain_memrag.stores.postgres.pools import Row
from langchain_memrag.stores.postgres.types import VectorTypes

__all__ = ["Fitness", "connected", "ensure_extension", "inspect"]

_OLDEST_SERVER = 15
_OLDEST_VECTOR = (0, 8)

_FACTS = """
SELECT current_setting('server_version_num')::int / 10000,
       current_setting('server_encoding'),
       (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = 'vector')
"""

_VECTOR_TYPES = """
SELECT t.typname, t.oid::bigint, t.typarray::bigint,
       pg_catalog.to_regtype(t.typname) = t.oid,
       (SELECT nspname FROM pg_catalog.pg_namespace n WHERE n.oid = t.typnamespace)
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_extension e ON e.extnamespace = t.typnamespace
WHERE e.extname = 'vector' AND t.typname IN ('vector', 'halfvec')
"""

# libpq gives no SQLSTATE for a refused connection, only the server's sentence. Where a server speaks
# another language the general message has to do.
_REFUSALS = (
    (r"password authentication failed|no password supplied", "the user or the password is wrong"),
    (r"no pg_hba\.conf entry", "the server does not admit this user from this host (pg_hba.conf)"),
    (r'role ".*" does not exist', "there is no such user on the server"),
    (r'database ".*" does not exist|no such database', "there is no such database; create it first"),
    (
        r"unsupported startup parameter",
        "this is a connection pooler; give the server's own URL as direct_url",
    ),
)
_FULL = r"too many (connections|clients)|remaining connection slots|no more connections allowed"


@dataclass(frozen=True, slots=True)
class Fitness:
    """What was found on a server that will do.

    Attributes:
        vector: pgvector's types, or `None` where the extension is still to be created.
        applied: The migrations done so far.
    """

    vector: VectorTypes | None
    applied: Applied


@contextmanager
def connected(address: Address, operation: str, conninfo: str | None = None) -> Iterator[Connection[Row]]:
    """A connection outside any pool, so that a refusal is told apart from a busy pool.

    Raises:
        ConfigurationError: The server refuses us for a reason that waiting does not cure.
        StoreUnavailableError: It cannot be reached.
    """
    try:
        connection = psycopg.connect(conninfo or address.conninfo, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise _refusal(error, address, operation) from error
    try:
        with connection:
            yield connection
    except errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"the database role may not set up {address.label}; let its owner run GRANT CREATE ON DATABASE, "
            "or create the schema and give it to the role"
        ) from redact(error)
    except psycopg.Error as error:
        raise translate(error, operation) from redact(error)


def inspect(connection: Connection[Row], schema: str, address: Address) -> Fitness:
    """Look at version, encoding, pgvector and migrations.

    Raises:
        ConfigurationError: Something will not do; the message says what and how to change it.
    """
    facts = connection.execute(_FACTS).fetchone()
    version, encoding, installed, available = facts if facts is not None else (0, "", None, None)
    if int(str(version)) < _OLDEST_SERVER:
        raise ConfigurationError(
            f"{address.label} runs PostgreSQL {version}; {_OLDEST_SERVER} or newer is needed"
        )
    if encoding != "UTF8":
        raise ConfigurationError(
            f"{address.label} is encoded in {encoding}; create the database with ENCODING 'UTF8'"
        )
    if installed is None and available is None:
        raise ConfigurationError(
            f"{address.label} has no pgvector; install the extension `vector` "
            f"({_wanted()} or newer) on the server, see https://github.com/pgvector/pgvector#installation"
        )
    if installed is None:
        return Fitness(None, Applied())
    _check_vector_version(str(installed), address)
    return Fitness(_vector_types(connection, address), read_applied(connection, schema))


def ensure_extension(connection: Connection[Row], address: Address) -> None:
    """Create pgvector's extension where it is missing.

    Raises:
        ConfigurationError: Our role may not.
    """
    try:
        # A second process may be creating it: then this waits, and fails on the unique name.
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    except (errors.UniqueViolation, errors.DuplicateObject):
        return
    except errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"the extension `vector` is not in {address.label} and the role may not create it; "
            "let a superuser run CREATE EXTENSION vector in that database"
        ) from redact(error)


def _check_vector_version(installed: str, address: Address) -> None:
    parts = tuple(int(part) for part in installed.split(".")[:2] if part.isdigit())
    if parts < _OLDEST_VECTOR:
        raise ConfigurationError(
            f"{address.label} has pgvector {installed}; {_wanted()} or newer is needed: install it and run "
            "ALTER EXTENSION vector UPDATE"
        )


def _vector_types(connection: Connection[Row], address: Address) -> VectorTypes:
    rows = connection.execute(_VECTOR_TYPES).fetchall()
    if not rows or not all(row[3] for row in rows):
        raise ConfigurationError(
            f"pgvector is in a schema of {address.label} that is not on the search path; run "
            "ALTER EXTENSION vector SET SCHEMA public, or put its schema on the role's search_path"
        )
    return VectorTypes(str(rows[0][4]), {str(row[0]): (int(str(row[1])), int(str(row[2]))) for row in rows})


def _refusal(
    error: psycopg.OperationalError, address: Address, operation: str
) -> ConfigurationError | StoreUnavailableError:
    said = str(error)
    for words, reason in _REFUSALS:
        if re.search(words, said):
            return ConfigurationError(f"cannot connect to {address.label}: {reason}")
    advice = "is the server running, and is the address right?"
    if re.search(_FULL, said):
        advice = "the server has no connection left; lower pool_size or raise max_connections"
    return StoreUnavailableError(
        f"cannot connect to {address.label}: {advice}", engine=ENGINE, operation=operation
    )


def _wanted() -> str:
    return ".".join(map(str, _OLDEST_VECTOR))
