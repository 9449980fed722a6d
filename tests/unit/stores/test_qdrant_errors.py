"""Every error of Qdrant's client has a place in our tree, and none brings a stored word along."""

from __future__ import annotations

import inspect
import sqlite3
import traceback
from collections.abc import Iterator

import grpc
import httpx
import pytest
from qdrant_client import QdrantClient
from qdrant_client.common import client_exceptions
from qdrant_client.http import exceptions

from langchain_memrag.errors import ConfigurationError, StoreError, StoreTimeoutError, StoreUnavailableError
from langchain_memrag.stores.qdrant import QdrantServer
from langchain_memrag.stores.qdrant.faults import DRIVER_ERRORS, faults_mapped, may_be_missing, translate

SECRET = "my PIN is 4711, 密码是四七一一"


class RpcFailure(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode | None = None) -> None:
        super().__init__(SECRET)
        self._code = code

    def code(self) -> grpc.StatusCode | None:
        return self._code


def response(status: int) -> exceptions.UnexpectedResponse:
    return exceptions.UnexpectedResponse(status, SECRET, SECRET.encode(), httpx.Headers({"x-word": "4711"}))


def made(cls: type[Exception]) -> Exception:
    """An error of a class, with a user's words in it wherever it takes any."""
    if issubclass(cls, exceptions.UnexpectedResponse):
        return response(400)
    if issubclass(cls, exceptions.ResponseHandlingException):
        return cls(httpx.ConnectError(SECRET))
    if issubclass(cls, client_exceptions.ResourceExhaustedResponse):
        return cls(SECRET, 3)
    if issubclass(cls, httpx.HTTPStatusError):
        request = httpx.Request("GET", "http://host")
        return cls(SECRET, request=request, response=httpx.Response(500, request=request))
    return cls(SECRET)


def errors_in(*modules: object) -> Iterator[type[Exception]]:
    for module in modules:
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Exception) and cls.__module__.split(".")[0] in (
                "qdrant_client",
                "httpx",
                "grpc",
            ):
                yield cls  # fmt: skip


STREAMS = (httpx.StreamError, httpx.CookieConflict)
"""About streamed bodies and cookies, which the client has none of."""

ALL = sorted(
    {
        cls
        for cls in errors_in(exceptions, client_exceptions, httpx)
        if not issubclass(cls, STREAMS) and not issubclass(cls, Warning)
    }
    | {
        RpcFailure,
        ValueError,
        RuntimeError,
        sqlite3.OperationalError,
        sqlite3.DatabaseError,
        PermissionError,
    },
    key=lambda cls: cls.__name__,
)


def test_the_list_of_errors_is_not_empty() -> None:
    names = {cls.__name__ for cls in ALL}
    assert {"UnexpectedResponse", "ResponseHandlingException", "ResourceExhaustedResponse"} <= names
    assert {"ConnectTimeout", "ReadError", "InvalidURL"} <= names


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_error_of_the_client_is_mapped(cls: type[Exception]) -> None:
    assert issubclass(cls, DRIVER_ERRORS)

    def fail() -> None:
        raise made(cls)

    with pytest.raises(StoreError) as caught:
        faults_mapped("search", fail)
    assert (caught.value.engine, caught.value.operation) == ("qdrant", "search")
    assert caught.value.__context__ is None or isinstance(
        caught.value.__context__, type(caught.value.__cause__)
    )
    assert "4711" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("error", "expected", "advice"),
    [
        (response(500), StoreUnavailableError, "HTTP 500"),
        (response(503), StoreUnavailableError, "HTTP 503"),
        (response(507), StoreUnavailableError, "disk"),
        (response(429), StoreUnavailableError, "try again"),
        (response(408), StoreTimeoutError, "too long"),
        (response(400), StoreError, "refused"),
        (response(401), StoreError, "API key"),
        (response(403), StoreError, "API key"),
        (response(404), StoreError, "address"),
        (response(413), StoreError, "batch"),
        (client_exceptions.ResourceExhaustedResponse(SECRET, 3), StoreUnavailableError, "try again"),
        (exceptions.ResponseHandlingException(httpx.ReadTimeout(SECRET)), StoreTimeoutError, "long"),
        (exceptions.ResponseHandlingException(httpx.ConnectError(SECRET)), StoreUnavailableError, "reached"),
        (exceptions.ResponseHandlingException(ConnectionRefusedError()), StoreUnavailableError, "reached"),
        (exceptions.ResponseHandlingException(ValueError(SECRET)), StoreError, "version"),
        (exceptions.ResponseHandlingException(httpx.UnsupportedProtocol(SECRET)), StoreError, "URL"),
        (RpcFailure(grpc.StatusCode.UNAVAILABLE), StoreUnavailableError, "reached"),
        (RpcFailure(grpc.StatusCode.DEADLINE_EXCEEDED), StoreTimeoutError, "too long"),
        (RpcFailure(grpc.StatusCode.RESOURCE_EXHAUSTED), StoreUnavailableError, "try again"),
        (RpcFailure(grpc.StatusCode.UNAUTHENTICATED), StoreError, "API key"),
        (RpcFailure(grpc.StatusCode.INVALID_ARGUMENT), StoreError, "INVALID_ARGUMENT"),
        (RpcFailure(), StoreError, "RpcFailure"),
        (sqlite3.OperationalError(SECRET), StoreUnavailableError, "disk"),
        (PermissionError(SECRET), StoreUnavailableError, "rights"),
        (RuntimeError(SECRET), StoreError, "refused"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_what_is_worth_trying_again(error: Exception, expected: type[StoreError], advice: str) -> None:
    mapped = translate(error, "search")
    assert type(mapped) is expected
    assert advice in str(mapped)
    assert "4711" not in str(mapped)


@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
def test_every_status_of_grpc_is_named(code: grpc.StatusCode) -> None:
    assert code.name in str(translate(RpcFailure(code), "search"))


def test_only_not_found_may_be_a_missing_collection() -> None:
    assert may_be_missing(response(404))
    assert may_be_missing(RpcFailure(grpc.StatusCode.NOT_FOUND))
    assert not may_be_missing(response(500))
    assert not may_be_missing(RpcFailure(grpc.StatusCode.UNAVAILABLE))


def test_our_own_errors_pass() -> None:
    error = ConfigurationError("ours")

    def fail() -> None:
        raise error

    with pytest.raises(ConfigurationError) as caught:
        faults_mapped("search", fail)
    assert caught.value is error


def answering(status: int) -> QdrantServer:
    """A server that says the same to everything, and quotes what it was sent."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=SECRET.encode())

    client = QdrantClient(url="http://host", check_compatibility=False, transport=httpx.MockTransport(answer))
    return QdrantServer("qdrant://key4711@host", connect=lambda address, options: client)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500, 503])
def test_no_answer_of_a_server_is_quoted(status: int) -> None:
    server = answering(status)
    with pytest.raises(StoreError) as caught:
        server.index(1, 8).count(7)
    assert isinstance(caught.value, StoreUnavailableError) == (status >= 500)
    assert "4711" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None or "4711" not in str(caught.value.__context__)
    server.close()


def test_a_closed_server_says_so() -> None:
    server = QdrantServer(":memory:")
    server.close()
    with pytest.raises(StoreUnavailableError, match="open it again"):
        server.index(1, 8).count(7)
    server.close()
