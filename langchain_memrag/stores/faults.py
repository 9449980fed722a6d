"""Turning an error of a driver into one of ours, so that nothing of what it quotes goes along."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from langchain_memrag.errors import MemRAGError, StoreError

__all__ = ["RedactedError", "without_quotes"]

T = TypeVar("T")


class RedactedError(Exception):
    """Stands for a driver's error whose text may quote what a user said; names its kind."""


def without_quotes(
    call: Callable[[], T],
    raised: tuple[type[Exception], ...],
    translate: Callable[[Exception], StoreError],
) -> T:
    """Do something with a driver, and turn its errors into ours.

    Args:
        call: Does it.
        raised: What the driver raises.
        translate: Gives our error, without a word of what was stored.

    Raises:
        StoreError: The driver's error in our tree; a `RedactedError` is its cause.
    """
    try:
        return call()
    except MemRAGError:  # some drivers raise what these are kinds of
        raise
    except raised as error:
        mapped, kind = translate(error), type(error).__name__
    # Not in the handler, nor in a context manager: there, Python would keep the error as the context.
    raise mapped from RedactedError(kind)
