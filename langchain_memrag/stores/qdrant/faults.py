"""The one place where an error of Qdrant's client becomes one of ours.

What the server answers may quote a payload, and what the client says may quote the request. So a message
names the kind of error, its status and what to do, and the client's error is kept out of the chain.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import grpc  # type: ignore[import-untyped]
import httpx
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from langchain_memrag.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from langchain_memrag.stores.faults import without_quotes

__all__ = ["DRIVER_ERRORS", "ENGINE", "faults_mapped", "may_be_missing", "translate"]

T = TypeVar("T")

ENGINE: Final = "qdrant"

DRIVER_ERRORS: Final[tuple[type[Exception], ...]] = (
    ApiException,
    QdrantException,
    grpc.RpcError,
    httpx.HTTPError,
    httpx.InvalidURL,
    # What the local mode raises: for a bad argument, when it is closed, from its files.
    ValueError,
    RuntimeError,
    sqlite3.Error,
    OSError,
)

_NO_ANSWER: Final = "the server cannot be reached just now"
_LATE: Final = "the server took too long"
_LOGIN: Final = "the server refused the API key; check it"
_BUSY: Final = "the server takes no more requests just now; try again"
_TROUBLE: Final = "the server is in trouble; see its log, its disk and its memory"
_REFUSED: Final = "the server refused the request"
_GONE: Final = "the collection is not there, or the address is not that of Qdrant"

_STATUSES: Final[Mapping[int, tuple[str, bool]]] = {
    401: (_LOGIN, False),
    403: (_LOGIN, False),
    404: (_GONE, False),
    408: (_LATE, True),
    413: ("the request is too big for the server; lower QdrantOptions.batch", False),
    425: (_BUSY, True),
    429: (_BUSY, True),
}

_CODES: Final[Mapping[str, tuple[str, bool]]] = {
    "UNAVAILABLE": (_NO_ANSWER, True),
    "DEADLINE_EXCEEDED": (_LATE, True),
    "CANCELLED": (_NO_ANSWER, True),
    "ABORTED": (_BUSY, True),
    "RESOURCE_EXHAUSTED": (_BUSY, True),
    "INTERNAL": (_TROUBLE, True),
    "UNKNOWN": (_TROUBLE, True),
    "DATA_LOSS": (_TROUBLE, True),
    "UNAUTHENTICATED": (_LOGIN, False),
    "PERMISSION_DENIED": (_LOGIN, False),
    "NOT_FOUND": (_GONE, False),
    "UNIMPLEMENTED": ("the server is too old for this client", False),
}


def translate(error: Exception, operation: str) -> StoreError:
    """What a client's error is in our tree, without a word of what was stored.

    Args:
        error: From the client or the server.
        operation: What was being done, such as `search`.
    """
    hint, passing, kind = _judged(error)
    cls = StoreTimeoutError if hint == _LATE else StoreUnavailableError if passing else StoreError
    return cls(f"{hint} ({kind})", engine=ENGINE, operation=operation)


def _judged(error: Exception) -> tuple[str, bool, str]:
    """What to say, whether trying again may help, and what kind of error it was."""
    name = type(error).__name__
    judged = (_REFUSED, False)
    match error:
        case UnexpectedResponse():
            status = error.status_code or 0
            judged = _STATUSES.get(status, (_TROUBLE, True) if status >= 500 else judged)
            name = f"HTTP {status}"
        case ResourceExhaustedResponse():
            judged, name = (_BUSY, True), "HTTP 429"
        case ResponseHandlingException():
            judged, name = _judged_source(error.source), type(error.source).__name__
        case httpx.HTTPError() | httpx.InvalidURL():
            judged = _judged_source(error)
        case grpc.RpcError():
            code = grpc_code(error)
            judged, name = _CODES.get(code, judged), f"gRPC {code or name}"
        case sqlite3.Error() | OSError():
            judged = ("the folder cannot be read or written; check its rights and the disk", True)
        case ValueError() | RuntimeError():
            judged = ("the client refused the request", False)
        case _:
            pass
    return *judged, name


def _judged_source(source: Exception) -> tuple[str, bool]:
    """What stopped a request before there was an answer, or made the answer unreadable."""
    match source:
        case httpx.TimeoutException():
            return _LATE, True
        case httpx.UnsupportedProtocol() | httpx.InvalidURL():
            return "the client refused the URL", False
        case httpx.TransportError() | OSError():
            return _NO_ANSWER, True
        case _:
            return "the answer cannot be read; is it a Qdrant of a version that fits?", False


def grpc_code(error: Exception) -> str:
    """The name of a gRPC status; empty where the error has none."""
    code = getattr(error, "code", None)
    status = code() if callable(code) else None
    return str(getattr(status, "name", ""))


def may_be_missing(error: Exception) -> bool:
    """Whether an error is what a collection that is not there gives; only asking for it makes it sure."""
    if isinstance(error, UnexpectedResponse):
        return error.status_code == 404
    if isinstance(error, grpc.RpcError):
        return grpc_code(error) == "NOT_FOUND"
    return isinstance(error, ValueError)


def faults_mapped(operation: str, call: Callable[[], T]) -> T:
    """Do something with the client, and turn its errors into ours.

    Args:
        operation: What is done, as errors will say it.
        call: Does it.

    Raises:
        StoreError: The client's error in our tree.
    """
    return without_quotes(call, DRIVER_ERRORS, lambda error: translate(error, operation))
