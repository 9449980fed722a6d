"""The role of a cache, and the one that lives in the process.

Values are bytes, keyed by space, kind and key, and last for a limited time. What a space is told to forget
goes by value; and whoever computed something before that cannot put it back afterwards.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

__all__ = ["BIGGEST_VALUE", "Cache", "CacheKey", "ProcessCache", "Stamp"]

BIGGEST_VALUE: Final = 1_000_000
"""Bytes of a value; what is larger is not kept."""


_FORGOTTEN_SPACES: Final = 10_000


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Under what a value is kept.

    Attributes:
        space: Whose it is.
        kind: What it is.
        digest: Of all that it depends on.
    """

    space: int
    kind: Literal["recall", "embedding"]
    digest: bytes


Stamp = int
"""The generation of a space when a value was computed."""


class Cache(ABC):
    """Keeps values for a while; losing one costs time and nothing else.

    Attributes:
        engine: Its name, as in errors and reports.
    """

    engine: ClassVar[str]

    @abstractmethod
    def get(self, key: CacheKey) -> bytes | None:
        """The value, if it is there.

        Raises:
            StoreUnavailableError: The engine cannot be reached or was too slow.
        """

    @abstractmethod
    def put(self, key: CacheKey, value: bytes, *, stamp: Stamp, seconds: float) -> bool:
        """Keep a value.

        Args:
            key: Under which.
            value: At most `BIGGEST_VALUE` bytes; a larger one is not kept.
            stamp: The space's generation when the value was computed.
            seconds: How long.

        Returns:
            Whether it is kept: not if the space forgot something since.
        """

    @abstractmethod
    def forget(self, space: int, stamp: Stamp | None) -> int:
        """Erase the values of a space.

        Args:
            space: Whose.
            stamp: Nothing older than this generation is taken any more; nothing at all where it is `None`,
                since the space is gone.

        Returns:
            How many values went.
        """

    @abstractmethod
    def count(self, space: int) -> int:
        """How many values of a space are kept."""


@dataclass(frozen=True, slots=True)
class _Kept:
    value: bytes
    until: float


class ProcessCache(Cache):
    """A cache in the memory of the process, bounded in bytes; what was used last goes last.

    Args:
        most_bytes: Of all values together.
        clock: Seconds, monotonic.
    """

    engine = "process"

    def __init__(self, most_bytes: int = 32_000_000, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[CacheKey, _Kept] = OrderedDict()
        self._spaces: dict[int, set[CacheKey]] = {}
        self._forgotten: OrderedDict[int, float] = OrderedDict()
        self._bytes = 0

    def get(self, key: CacheKey) -> bytes | None:
        """See `Cache.get`."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            if found.until <= self._clock():
                self._drop(key)
                return None
            self._kept.move_to_end(key)
            return found.value

    def put(self, key: CacheKey, value: bytes, *, stamp: Stamp, seconds: float) -> bool:
        """See `Cache.put`."""
        if len(value) > min(BIGGEST_VALUE, self._most_bytes):
            return False
        with self._lock:
            if stamp < self._forgotten.get(key.space, 0):
                return False
            self._drop(key)
            self._kept[key] = _Kept(value, self._clock() + seconds)
            self._spaces.setdefault(key.space, set()).add(key)
            self._bytes += len(value)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))
        return True

    def forget(self, space: int, stamp: Stamp | None) -> int:
        """See `Cache.forget`."""
        with self._lock:
            self._forgotten[space] = float("inf") if stamp is None else stamp
            self._forgotten.move_to_end(space)
            # Whoever computed something before that is long done.
            while len(self._forgotten) > _FORGOTTEN_SPACES:
                self._forgotten.popitem(last=False)
            keys = list(self._spaces.get(space, ()))
            now = self._clock()
            living = sum(self._kept[key].until > now for key in keys)
            for key in keys:
                self._drop(key)
            return living

    def count(self, space: int) -> int:
        """See `Cache.count`."""
        with self._lock:
            now = self._clock()
            return sum(self._kept[key].until > now for key in self._spaces.get(space, ()))

    def _drop(self, key: CacheKey) -> None:
        found = self._kept.pop(key, None)
        if found is None:
            return
        self._bytes -= len(found.value)
        own = self._spaces[key.space]
        own.discard(key)
        if not own:
            del self._spaces[key.space]
