"""Every error of the driver has a place in our tree, and none brings a stored word or a password along."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable

import pytest
from neo4j import exceptions

from langchain_memrag.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from langchain_memrag.stores.neo4j.faults import faults_mapped, translate

SECRET = "my PIN is 4711, 密码是四七一一"

ALL = sorted(
    {
        cls
        for cls in vars(exceptions).values()
        if inspect.isclass(cls) and issubclass(cls, exceptions.Neo4jError | exceptions.DriverError)
    },
    key=lambda cls: cls.__name__,
)


def raised(cls: type[Exception], code: str = "") -> Exception:
    """An error as the driver makes it: those of the server have a status code."""
    if issubclass(cls, exceptions.ResultError | exceptions.TransactionError | exceptions.SessionError):
        return cls(None, SECRET)
    error = cls(SECRET)
    if code:
        assert isinstance(error, exceptions.Neo4jError)
        error._neo4j_code = code
    return error


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_the_list_of_errors_is_complete() -> None:
    assert {exceptions.ServiceUnavailable, exceptions.AuthError, exceptions.ConstraintError} <= set(ALL)
    assert len(ALL) > 25


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_driver_error_is_mapped_without_its_text(cls: type[Exception]) -> None:
    with pytest.raises(StoreError) as caught:
        faults_mapped("walk the graph", failing(raised(cls)))
    error = caught.value
    assert error.engine == "neo4j"
    assert error.operation == "walk the graph"
    assert cls.__name__ in str(error)
    assert error.__cause__ is not None
    assert error.__context__ is None
    assert error.__cause__.__context__ is None
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__cause__)
    assert SECRET not in shown
    assert "4711" not in shown


PASSING = {
    exceptions.ServiceUnavailable,
    exceptions.ReadServiceUnavailable,
    exceptions.WriteServiceUnavailable,
    exceptions.RoutingServiceUnavailable,
    exceptions.IncompleteCommit,
    exceptions.SessionExpired,
    exceptions.TransientError,
    exceptions.DatabaseUnavailable,
    exceptions.NotALeader,
    exceptions.ForbiddenOnReadOnlyDatabase,
    exceptions.ConnectionPoolError,
    exceptions.ConnectionAcquisitionTimeoutError,
    exceptions.DatabaseError,
    exceptions.TokenExpired,
}


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_what_time_may_cure_is_unavailable(cls: type[Exception]) -> None:
    error = translate(raised(cls), "write the graph")
    assert (type(error) is StoreUnavailableError) == (cls in PASSING)


@pytest.mark.parametrize(
    ("code", "expected", "advice"),
    [
        ("Neo.ClientError.Transaction.TransactionTimedOut", StoreTimeoutError, "too long"),
        (
            "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
            StoreTimeoutError,
            "too long",
        ),
        ("Neo.ClientError.Transaction.Terminated", StoreUnavailableError, "Terminated"),
        ("Neo.ClientError.Database.DatabaseNotFound", StoreError, "no such database"),
        ("Neo.ClientError.Security.CredentialsExpired", StoreError, "first password"),
        ("Neo.ClientError.Schema.ConstraintValidationFailed", StoreError, "ConstraintValidationFailed"),
    ],
)
def test_a_status_code_says_what_to_do(code: str, expected: type[StoreError], advice: str) -> None:
    error = translate(raised(exceptions.ClientError, code), "write the graph")
    assert type(error) is expected
    assert advice in str(error)


@pytest.mark.parametrize(
    ("cls", "advice"),
    [
        (exceptions.AuthError, "user and password"),
        (exceptions.Forbidden, "rights"),
        (exceptions.CypherSyntaxError, "5.23"),
        (exceptions.DatabaseError, "disk"),
        (exceptions.ConnectionAcquisitionTimeoutError, "pool_size"),
    ],
)
def test_what_matters_says_what_to_do(cls: type[Exception], advice: str) -> None:
    assert advice in str(translate(raised(cls), "read entities"))


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        faults_mapped("read entities", failing(ZeroDivisionError()))


def test_a_result_comes_back() -> None:
    assert faults_mapped("read entities", lambda: "图") == "图"
