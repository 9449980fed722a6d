"""The one place where an error of Redis's client becomes one of ours, without a word of what was stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from redis import exceptions

from langchain_memrag.errors import StoreError, StoreUnavailableError

__all__ = ["faults_mapped", "translate"]

ENGINE: Final = "redis"

T = TypeVar("T")

_LOGIN: Final = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)

# A cache that refuses is of no more use than one that is away: both are left alone for a while.
_PASSING: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
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
    if isinstance(error, _PASSING) or refused:
        text = f"the server cannot be reached, or takes no writes, just now {kind}"
        return StoreUnavailableError(text, engine=ENGINE, operation=operation)
    return StoreError(f"the server refused the command {kind}", engine=ENGINE, operation=operation)


class RedactedError(Exception):
    """Stands for a client's error whose text may quote what a user said."""


def faults_mapped(operation: str, call: Callable[[], T]) -> T:
    """Do something with the client, and turn its errors into ours.

    Args:
        operation: What is done, as errors will say it.
        call: Does it.

    Raises:
        StoreError: The client's error in our tree.
    """
    try:
        return call()
    except (exceptions.RedisError, exceptions.RedisClusterException) as error:
        mapped, kind = translate(error, operation), type(error).__name__
    # Not in the handler, nor in a context manager: there, Python would keep the error as the context.
    raise mapped from RedactedError(kind)
