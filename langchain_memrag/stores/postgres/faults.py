"""The one place where a psycopg error becomes one of ours.

What the server says about a failure may quote a row, and a row holds what a user said. So a message
names the kind of error, its SQLSTATE and what to do, and the driver's error, kept as `__cause__`,
loses its text as well unless it is about the connection alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from langchain_memrag.errors import SchemaError, StoreError, StoreTimeoutError, StoreUnavailableError

__all__ = ["faults_mapped", "translate"]

ENGINE = "postgres"

_SCHEMA_FAULTS = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.UndefinedObject,
    errors.InvalidSchemaName,
)

_HINTS: Mapping[type[psycopg.Error], str] = {
    PoolTimeout: "no connection became free in time; the server is down, or pool_size is too small",
    PoolClosed: "the database is closed; open it again",
    TooManyRequests: "too many callers wait for a connection; raise pool_size",
    errors.TooManyConnections: "the server has no connection left; lower pool_size or raise max_connections",
    errors.DiskFull: "the server's disk is full; free some space",
    errors.ReadOnlySqlTransaction: "the server takes no writes; give the URL of the primary",
    errors.InsufficientPrivilege: "the database role lacks a privilege on the schema",
    errors.QueryCanceled: "the statement took too long or was cancelled",
    errors.AdminShutdown: "the server is shutting down",
    errors.CrashShutdown: "the server crashed and is restarting",
    errors.CannotConnectNow: "the server is starting up",
    errors.DeadlockDetected: "two writers waited for each other; try again",
    errors.SerializationFailure: "two writers collided; try again",
}


def translate(error: psycopg.Error, operation: str) -> StoreError:
    """What a driver's error is in our tree, without a word of what was stored.

    Args:
        error: From psycopg or its pool.
        operation: What was being done, such as `remember`.
    """
    kind = type(error).__name__
    code = f" {error.sqlstate}" if error.sqlstate else ""
    hint = next((text for cls, text in _HINTS.items() if isinstance(error, cls)), "")
    if isinstance(error, _SCHEMA_FAULTS):
        message = f"the schema is not the one expected; run `memrag migrate` ({kind}{code})"
        return SchemaError(message, engine=ENGINE, operation=operation)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | errors.ReadOnlySqlTransaction):
        message = f"{hint or 'the database cannot be reached just now'} ({kind}{code})"
        cls = StoreTimeoutError if isinstance(error, errors.QueryCanceled) else StoreUnavailableError
        return cls(message, engine=ENGINE, operation=operation)
    message = f"{hint or 'the database refused the statement'} ({kind}{code})"
    return StoreError(message, engine=ENGINE, operation=operation)


def redact(error: psycopg.Error) -> psycopg.Error:
    """Take the words out of an error that may quote a row or a parameter."""
    about_connection = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if error.sqlstate is not None or not about_connection:
        error.args = (f"SQLSTATE {error.sqlstate}" if error.sqlstate else "raised by the driver",)
    return error


@contextmanager
def faults_mapped(operation: str) -> Iterator[None]:
    """Turn psycopg's errors into ours for as long as the block runs."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, operation) from redact(error)
