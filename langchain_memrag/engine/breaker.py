"""A circuit breaker: an engine that is away costs one caller its budget, and the others nothing.

(Nygard, Release It!, 2007.) What opens it is a failure to answer; what closes it is an answer to a probe,
which runs in a thread of its own, so that no caller waits to find out whether the engine is back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import MemRAGError, StoreUnavailableError

__all__ = ["Breaker"]

logger = logging.getLogger(__name__)

_FIRST_REST: Final = 0.5
_LONGEST_REST: Final = 30.0


class Breaker:
    """Keeps callers away from an engine that does not answer.

    Args:
        engine: Its name.
        probe: Asks it for a sign of life; raises where there is none.
        threads: Where probes run that nobody waits for.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, engine: str, probe: Callable[[], object], threads: Threads, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._probe = probe
        self._threads = threads
        self._clock = clock
        self._lock = threading.Lock()
        self._open_since: float | None = None
        self._rest = _FIRST_REST
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether callers are kept away."""
        return self._open_since is not None

    def check(self, operation: str) -> None:
        """Let a caller through, or refuse him at once; asks in the background whether the engine is back.

        Raises:
            StoreUnavailableError: The engine did not answer the last time, and has not been seen since.
        """
        with self._lock:
            if self._open_since is None:
                return
            rested = self._clock() - self._open_since >= self._rest
            start = rested and not self._probing
            self._probing = self._probing or start
        if start:
            try:
                self._threads.submit(self._try)
            except RuntimeError:  # the memory is being closed
                self._probing = False
        raise StoreUnavailableError(
            "it did not answer and is left alone until it does", engine=self._engine, operation=operation
        )

    def failed(self) -> None:
        """Note that the engine did not answer."""
        with self._lock:
            if self._open_since is None:
                logger.warning("%s does not answer; going on without it", self._engine)
            self._open_since = self._clock()

    def worked(self) -> None:
        """Note that the engine did what a caller asked for."""
        if self._rest != _FIRST_REST:
            with self._lock:
                self._rest = _FIRST_REST

    def probe(self) -> bool:
        """Ask the engine now, and wait; tells whether it answers."""
        with self._lock:
            if self._open_since is None:
                return True
            self._probing = True
        self._try()
        return not self.is_open

    def _try(self) -> None:
        try:
            self._probe()
        except MemRAGError:
            answers = False
        else:
            answers = True
        with self._lock:
            self._probing = False
            # Doubled also by an answer: an engine that answers probes and nothing else is asked less often.
            self._rest = min(2 * self._rest, _LONGEST_REST)
            if answers and self._open_since is not None:
                self._open_since = None
                logger.warning("%s answers again", self._engine)
            elif not answers:
                self._open_since = self._clock()
