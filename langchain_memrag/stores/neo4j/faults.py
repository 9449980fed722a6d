"""The one place where an error of Neo4j's driver becomes one of ours.

What the server says may quote a parameter, and a parameter holds what a user said. So a message names
the kind of error, its status code and what to do, and the driver's error is kept as `__cause__` without
its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from neo4j import exceptions

from langchain_memrag.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from langchain_memrag.stores.faults import without_quotes

__all__ = ["faults_mapped", "translate"]

ENGINE = "neo4j"

DRIVER_ERRORS = (exceptions.Neo4jError, exceptions.DriverError)

T = TypeVar("T")

# Trying again later may help with these; the other kinds need a person.
_PASSING = (
    exceptions.ServiceUnavailable,
    exceptions.SessionExpired,
    exceptions.TransientError,
    exceptions.ConnectionPoolError,
    exceptions.DatabaseError,
    exceptions.TokenExpired,
)

# Whatever the kind of the error: the work was cut short.
_PASSING_CODES = ("TransactionTimedOut", "Transaction.Terminated", "Transaction.LockClientStopped")

_HINTS: Mapping[type[Exception], str] = {
    exceptions.AuthError: "the server refused the login; check user and password in the URL",
    exceptions.Forbidden: "the user may not do this; grant read, write and schema rights",
    exceptions.ForbiddenOnReadOnlyDatabase: "the database takes no writes; give the address of the primary",
    exceptions.NotALeader: "this member takes no writes; use a neo4j:// URL",
    exceptions.DatabaseUnavailable: "the database is not started",
    exceptions.ConnectionAcquisitionTimeoutError: "no connection became free in time; raise pool_size",
    exceptions.ConfigurationError: "the driver refused the URL or an option",
    exceptions.IncompleteCommit: "the connection broke during the commit; try again",
    exceptions.DatabaseError: "the database failed at it; its disk may be full, its log says more",
    exceptions.CypherSyntaxError: "the server does not know this Cypher; it must be Neo4j 5.23 or newer",
    exceptions.TransientError: "writers collided, or the work took too long; try again",
    exceptions.ServiceUnavailable: "the server cannot be reached just now",
    exceptions.SessionExpired: "the server cannot be reached just now",
}

_CODES: Mapping[str, str] = {
    "Neo.ClientError.Database.DatabaseNotFound": "there is no such database",
    "Neo.ClientError.Security.CredentialsExpired": "the first password must be changed before anything else",
    "Neo.ClientError.Transaction.TransactionTimedOut": "the transaction took too long",
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration": "the transaction took too long",
    "Neo.TransientError.General.MemoryPoolOutOfMemoryError": "the transaction may take no more memory",
}


def translate(error: Exception, operation: str) -> StoreError:
    """What a driver's error is in our tree, without a word of what was stored.

    Args:
        error: From the driver or the server.
        operation: What was being done, such as `walk the graph`.
    """
    code = _code(error)
    hint = _CODES.get(code) or next((text for cls, text in _HINTS.items() if isinstance(error, cls)), "")
    kind = f"({type(error).__name__}{' ' + code if code else ''})"
    if isinstance(error, _PASSING) or any(one in code for one in _PASSING_CODES):
        message = f"{hint or 'the server cannot be reached just now'} {kind}"
        cls = StoreTimeoutError if "TransactionTimedOut" in code else StoreUnavailableError
        return cls(message, engine=ENGINE, operation=operation)
    refused = "the server refused the query" if code else "the driver could not do it"
    return StoreError(f"{hint or refused} {kind}", engine=ENGINE, operation=operation)


def _code(error: Exception) -> str:
    """The server's status code; the driver's own errors have none."""
    return (error.code or "") if isinstance(error, exceptions.Neo4jError) else ""


def faults_mapped(operation: str, call: Callable[[], T]) -> T:
    """Do something with the driver, and turn its errors into ours.

    Args:
        operation: What is done, as errors will say it.
        call: Does it.

    Raises:
        StoreError: The driver's error in our tree.
    """
    return without_quotes(call, DRIVER_ERRORS, lambda error: translate(error, operation))
