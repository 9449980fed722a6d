"""The one place where an error of Redis's client becomes one of ours, without a word of what was stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from redis import exceptions

from langchain_memrag.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from langchain_memrag.stores.faults import without_quotes

__all__ = ["faults_mapped", "translate"]

ENGINE: Final = "redis"

DRIVER_ERRORS: Final = (exceptions.RedisError, exceptions.RedisClusterException)

T = TypeVar("T")

_LOGIN: Final = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)

# A cache that refuses is of no more use than one that is away: both are left alone for a while.
_PASSING: Final = (
    exceptions.ConnectionError,
    exceptions.BusyLoadingError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)


def translate(error: Exception, operation: str) -> StoreError:
    """What a client's error is in our tree.

    Args:
        error: From the client or the server.
        operation: What was being done, such as `read the cache`.
    """
    kind = f"({type(error).__name__})"
    if isinstance(error, _LOGIN):
        text = f"the server refused the login; check user and password {kind}"
        return StoreError(text, engine=ENGINE, operation=operation)
    # A refused write (a full disk, no memory left) comes as a plain ResponseError with a code in front.
    refused = str(error).startswith(("MISCONF", "OOM", "LOADING", "READONLY", "NOREPLICAS", "MASTERDOWN"))
    if isinstance(error, exceptions.TimeoutError):
        text = f"the server took too long {kind}"
        return StoreTimeoutError(text, engine=ENGINE, operation=operation)
    if isinstance(error, _PASSING) or refused:
        text = f"the server cannot be reached, or takes no writes, just now {kind}"
        return StoreUnavailableError(text, engine=ENGINE, operation=operation)
    return StoreError(f"the server refused the command {kind}", engine=ENGINE, operation=operation)


def faults_mapped(operation: str, call: Callable[[], T]) -> T:
    """Do something with the client, and turn its errors into ours.

    Args:
        operation: What is done, as errors will say it.
        call: Does it.

    Raises:
        StoreError: The client's error in our tree.
    """
    return without_quotes(call, DRIVER_ERRORS, lambda error: translate(error, operation))
