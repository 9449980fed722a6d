"""What was found before, as long as it would be found again.

A recall is kept under its space, the space's generation and sequence, the question and the options. Every
write moves the generation or the sequence, which are read from Postgres, so in every process what was kept
before it is out of reach at once. Nothing is kept of a space for which work is left to do.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import numpy as np
from pydantic import ValidationError

from langchain_memrag.engine.projection import Projection
from langchain_memrag.errors import StoreError
from langchain_memrag.records import Degradation, Recall, RecallOptions, Scope
from langchain_memrag.stores.base import Vector
from langchain_memrag.stores.cache import Cache, CacheKey
from langchain_memrag.stores.postgres.records import SpaceState

__all__ = ["RecallCache", "Remembered"]

logger = logging.getLogger(__name__)

R = TypeVar("R")

RECALL_SECONDS: Final = 600.0
EMBEDDING_SECONDS: Final = 86_400.0

_FORMAT: Final = 1
"""Of the values; another version reads what it does not understand as nothing."""

Remembered = tuple[Recall | None, Degradation | None]
"""What was kept, and why it may not have been looked for."""


class RecallCache:
    """Keeps recalls, and the vectors of questions.

    Args:
        cache: Where: in the process, or on an engine that may be away; `None` keeps nothing.
        salt: Of what else every answer depends on, such as the recipe.
    """

    def __init__(self, cache: Cache | Projection[Cache] | None, salt: str) -> None:
        self._cache = cache
        self._salt = salt

    @property
    def engine(self) -> str:
        """What keeps the values, as reports name it."""
        return "cache" if self._cache is None else self._cache.engine

    @property
    def shared(self) -> bool:
        """Whether it is an engine that other processes use too."""
        return isinstance(self._cache, Projection)

    def answers(self) -> bool:
        """Ask whether it is there, if it was away; waits for the answer."""
        return not isinstance(self._cache, Projection) or self._cache.answers()

    def key(
        self,
        state: SpaceState,
        asked: str,
        scope: Scope,
        options: RecallOptions,
        now: datetime,
        embedder: str,
    ) -> CacheKey | None:
        """Under what a recall is kept; `None` where it must not be."""
        if self._cache is None or not state.settled:
            return None
        parts = (
            _FORMAT,
            self._salt,
            embedder,
            state.generation,
            state.seq,
            # Named days and ages are counted from today.
            now.date().isoformat(),
            asked,
            scope.session_id if options.working else None,
            options.model_dump(mode="json", exclude={"timeout"}),
        )
        return CacheKey(state.id, "recall", _digest(parts))

    def find(self, key: CacheKey, scope: Scope, now: datetime) -> Remembered:
        """A recall that was kept, unless something in it has expired since."""
        try:
            value = self._use("read the cache", lambda cache: cache.get(key))
        except StoreError as error:
            return None, _away(error)
        if value is None:
            return None, None
        try:
            found = Recall.model_validate_json(zlib.decompress(value))
        except (ValidationError, zlib.error, ValueError) as error:
            logger.warning("a value of the cache cannot be read (%s)", type(error).__name__)
            return None, None
        if found.scope.user_id != scope.user_id or _expired(found, now):
            return None, None
        return found.model_copy(update={"scope": scope, "cached": True}), None

    def keep(self, key: CacheKey, state: SpaceState, recall: Recall) -> None:
        """Keep a recall that nothing was missing from."""
        value = zlib.compress(recall.model_dump_json().encode(), 1)
        self._put(key, value, state.generation, RECALL_SECONDS)

    def vector(self, space: int, embedder: str, text: str) -> Vector | None:
        """The vector of a question, if it was kept."""
        try:
            value = self._use("read the cache", lambda cache: cache.get(_vector_key(space, embedder, text)))
        except StoreError:
            return None  # whoever looked for the recall has said so
        return None if value is None else np.frombuffer(value, np.float32)

    def keep_vector(self, state: SpaceState, embedder: str, text: str, vector: Vector) -> None:
        """Keep the vector of a question."""
        value = np.ascontiguousarray(vector, np.float32).tobytes()
        self._put(_vector_key(state.id, embedder, text), value, state.generation, EMBEDDING_SECONDS)

    def forget(self, space: int, generation: int | None) -> int:
        """Erase what is kept of a space; see `Cache.forget`.

        Raises:
            StoreUnavailableError: The engine is away.
        """
        return self._use("clear the cache", lambda cache: cache.forget(space, generation)) or 0

    def count(self, space: int) -> int:
        """How many values are kept of a space.

        Raises:
            StoreUnavailableError: The engine is away.
        """
        return self._use("count the cache", lambda cache: cache.count(space)) or 0

    def _put(self, key: CacheKey, value: bytes, generation: int, seconds: float) -> None:
        try:
            self._use(
                "write the cache", lambda cache: cache.put(key, value, stamp=generation, seconds=seconds)
            )
        except StoreError as error:
            logger.debug("nothing is kept: %s", error)  # its breaker has said so

    def _use(self, operation: str, call: Callable[[Cache], R | None]) -> R | None:
        if self._cache is None:
            return None
        if isinstance(self._cache, Projection):
            return self._cache.use(operation, call)
        return call(self._cache)


def _digest(parts: object) -> bytes:
    said = json.dumps(parts, ensure_ascii=False, sort_keys=True).encode()
    return hashlib.blake2b(said, digest_size=20).digest()


def _vector_key(space: int, embedder: str, text: str) -> CacheKey:
    return CacheKey(space, "embedding", _digest((_FORMAT, embedder, text)))


def _away(error: StoreError) -> Degradation:
    return Degradation(arm="cache", reason=f"{error.engine}: {type(error).__name__}")


def _expired(recall: Recall, now: datetime) -> bool:
    shown = [*(hit.episode for hit in recall.hits), *recall.working]
    return any(one is not None and one.expires_at is not None and one.expires_at <= now for one in shown)
