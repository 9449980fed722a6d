"""One flow, two hosts: the engine's steps are generators that ask for embeddings and do the rest.

A flow yields what it wants embedded and is sent the vectors. `drive` calls the model from a thread of
the caller's; `adrive` awaits the model's own async half and runs the flow's blocking steps in our
threads. So the logic is written once, and no event loop is ever made here (compare httpx's auth flows).
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_memrag.engine.embedding import Embedder, Fingerprint
from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.base import Vector

__all__ = ["Documents", "Flow", "Question", "Recognition", "Reply", "adrive", "drive"]

logger = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Documents:
    """Passages to embed."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to embed."""

    text: str


@dataclass(frozen=True, slots=True)
class Recognition:
    """The probe texts are to be embedded."""


Wish = Documents | Question | Recognition


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a wish.

    Attributes:
        vectors: In the order asked; empty where it failed.
        fingerprint: For a `Recognition`.
        failure: The kind of error, where the model failed; its text may hold what users said.
        refusal: The error, where what the model returned can never be used.
    """

    vectors: tuple[Vector, ...] = ()
    fingerprint: Fingerprint | None = None
    failure: str | None = None
    refusal: ConfigurationError | None = None


Flow = Generator[Wish, Reply, R]


@dataclass(frozen=True, slots=True)
class _Finished(Generic[R]):
    value: R


def _step(flow: Flow[R], reply: Reply | None) -> Wish | _Finished[R]:
    try:
        return next(flow) if reply is None else flow.send(reply)
    except StopIteration as stop:
        return _Finished(stop.value)


def drive(flow: Flow[R], embedder: Embedder | None) -> R:
    """Run a flow to its end on this thread."""
    reply: Reply | None = None
    while True:
        wish = _step(flow, reply)
        if isinstance(wish, _Finished):
            return wish.value
        try:
            reply = _fulfil(wish, embedder)
        except Exception as error:  # noqa: BLE001 - any model, any client: a turn must not be lost to it
            reply = _failed(error, embedder)


def _fulfil(wish: Wish, embedder: Embedder | None) -> Reply:
    if embedder is None:
        return Reply(failure="no embedder")
    match wish:
        case Documents(texts):
            return Reply(tuple(embedder.documents(texts)))
        case Question(text):
            return Reply((embedder.query(text),))
        case Recognition():
            return Reply(fingerprint=embedder.fingerprint())


async def adrive(flow: Flow[R], embedder: Embedder | None, threads: Threads) -> R:
    """Async twin of `drive`."""
    reply: Reply | None = None
    while True:
        wish = await threads.run(_step, flow, reply)
        if isinstance(wish, _Finished):
            return wish.value
        try:
            reply = await _afulfil(wish, embedder)
        except Exception as error:  # noqa: BLE001 - as in `drive`
            reply = _failed(error, embedder)


async def _afulfil(wish: Wish, embedder: Embedder | None) -> Reply:
    if embedder is None:
        return Reply(failure="no embedder")
    match wish:
        case Documents(texts):
            return Reply(tuple(await embedder.adocuments(texts)))
        case Question(text):
            return Reply((await embedder.aquery(text),))
        case Recognition():
            return Reply(fingerprint=await embedder.afingerprint())


def _failed(error: Exception, embedder: Embedder | None) -> Reply:
    kind = type(error).__name__
    logger.warning("embedder %s failed: %s", embedder.name if embedder else None, kind)
    return Reply(failure=kind, refusal=error if isinstance(error, ConfigurationError) else None)
