"""A clock that stands still until it is moved."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from langchain_memrag.errors import ConfigurationError

__all__ = ["FakeClock"]


class FakeClock:
    """Gives the time it was told, in UTC; safe to share between threads.

    Args:
        now: Where it starts; aware.
        step: How far it moves by itself after each reading.

    Raises:
        ConfigurationError: A naive time.

    Example:
        >>> clock = FakeClock(datetime(2026, 5, 3, tzinfo=UTC))
        >>> clock.advance(days=1)
        >>> clock().isoformat()
        '2026-05-04T00:00:00+00:00'
    """

    def __init__(
        self,
        now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC),
        step: timedelta = timedelta(0),
    ) -> None:
        self._lock = threading.Lock()
        self._step = step
        self._now = _aware(now)

    def __call__(self) -> datetime:
        """The time."""
        with self._lock:
            now = self._now
            self._now += self._step
            return now

    def set(self, now: datetime) -> None:
        """Move to a time; backwards too.

        Raises:
            ConfigurationError: A naive time.
        """
        with self._lock:
            self._now = _aware(now)

    def advance(self, *, days: float = 0, hours: float = 0, seconds: float = 0) -> None:
        """Move forwards, or backwards by a negative amount."""
        with self._lock:
            self._now += timedelta(days=days, hours=hours, seconds=seconds)


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ConfigurationError("a clock needs an aware time, such as datetime(2026, 5, 3, tzinfo=UTC)")
    return moment.astimezone(UTC)
