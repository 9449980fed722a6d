"""What every command shares: opening memory by options and settings, and ending with an exit code."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

import typer
from pydantic import SecretStr

from langchain_memrag.cli.output import complain
from langchain_memrag.errors import ConfigurationError, MemRAGError, StoreError
from langchain_memrag.settings import read_settings

if TYPE_CHECKING:
    from langchain_memrag.engine.memrag import MemRAG
    from langchain_memrag.stores.base import Clock

__all__ = ["Exit", "opened", "prepare_process", "reporting"]


class Exit(IntEnum):
    """How a command may end; described in `langchain_memrag.cli`."""

    DONE = 0
    PARTIAL = 1
    MISTAKE = 2
    UNAVAILABLE = 3
    MODEL_FAILED = 4
    INTERRUPTED = 130


@contextmanager
def reporting(hint_on_interrupt: str = "") -> Iterator[None]:
    """Turn this package's errors into one sentence and an exit code; any other error keeps its trace.

    Args:
        hint_on_interrupt: What to say to somebody who stops the command.
    """
    try:
        yield
    except StoreError as error:
        complain(str(error))
        raise typer.Exit(Exit.UNAVAILABLE) from None
    except MemRAGError as error:
        complain(str(error))
        raise typer.Exit(Exit.MISTAKE) from None
    except KeyboardInterrupt:
        complain(f"interrupted. {hint_on_interrupt}".strip())
        raise typer.Exit(Exit.INTERRUPTED) from None


@contextmanager
def opened(location: str | None, *, clock: Clock | None = None, embeds: bool = True) -> Iterator[MemRAG]:
    """Memory at a location, with the engines of the settings; closed afterwards.

    Args:
        location: The option `--data`; the settings decide where it is missing.
        clock: Another time than that of the machine.
        embeds: Whether to embed, or to leave the embedder alone.
    """
    from langchain_memrag.engine.memrag import MemRAG, utc_now

    settings = read_settings()
    if location is None and settings.location is not None:
        location = settings.location.get_secret_value()
    if location is not None and not location.strip():
        raise ConfigurationError("the location is blank; give a folder or a postgresql:// URL")
    with MemRAG.open(
        location,
        embeddings=_embedder(settings.embeddings) if embeds else None,
        search=_told(settings.search),
        graph=_told(settings.graph),
        cache=settings.cache.get_secret_value(),
        direct_url=_told(settings.direct_url),
        schema=settings.db_schema,
        pool_size=settings.pool_size,
        # A command does its work and ends; what writes looks itself for what is left to do.
        background=False,
        clock=clock or utc_now,
    ) as memrag:
        yield memrag


def _told(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _embedder(named: str | None) -> str | None:
    from langchain_memrag.engine.embedding import DEFAULT

    if named is None:
        return DEFAULT
    return None if named.strip().lower() == "none" else named


def prepare_process() -> None:
    """Speak UTF-8 whatever the locale, since what is remembered may be in any script; keep warnings short."""
    if os.name == "posix":
        sys.argv = [os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in sys.argv]
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("memrag: %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)


class _OneLine(logging.Formatter):
    """Leaves traces out: what a person at a terminal can do stands in the message."""

    def formatException(self, ei: object) -> str:  # noqa: N802, ARG002 - the name is logging's
        return ""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).rstrip()
