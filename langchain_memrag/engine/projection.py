"""One engine beside Postgres, as the others see it: its store behind a breaker, once it knows this memory."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar
from uuid import UUID

from langchain_memrag.engine.breaker import Breaker
from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import StoreUnavailableError
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.projections import EngineRole, ProjectionStore, RegisteredEngine
from langchain_memrag.stores.server import Server

__all__ = ["Projection"]

S = TypeVar("S")
R = TypeVar("R")


class Projection(Generic[S]):
    """An engine for one role, which may be away at any time.

    When it is met, and again each time it was away, it is asked whether it knows this memory: an engine
    that comes back without its data is filled again from the record.

    Args:
        role: What it is for.
        server: The connection.
        store: Gives what plays the role on it.
        projections: Where work for it is marked.
        clock: Gives the time.
        threads: Where it is asked whether it is back.
    """

    def __init__(
        self,
        role: EngineRole,
        server: Server,
        store: Callable[[], S],
        projections: ProjectionStore,
        clock: Clock,
        threads: Threads,
    ) -> None:
        self.role: EngineRole = role
        self.server = server
        self.engine = server.engine
        self._store = store
        self._projections = projections
        self._clock = clock
        # Whoever asks whether it is back also sees whose data it has: no caller waits for either.
        self._breaker = Breaker(self.engine, self._sign_of_life, threads, time.monotonic)
        self._lock = threading.Lock()
        self._met = threading.Event()
        self._memory: UUID | None = None

    def open(self) -> None:
        """See whose data the engine holds, and have every write mark work for it from now on.

        An engine that is away is registered all the same: it is met when it is there.

        Raises:
            ConfigurationError: It holds the data of another memory; nothing is registered.
            StoreError: It refused to be used, because of the login, say.
        """
        self._memory = self._projections.memory()
        with contextlib.suppress(StoreUnavailableError), self._watched():
            self.server.knows(self._memory)
        self._register()
        with contextlib.suppress(StoreUnavailableError):
            self.meet("open")

    def _register(self) -> None:
        known = self._projections.engines().get(self.role)
        mine = RegisteredEngine(self.role, self.engine, self.server.label)
        if known != mine:
            self._projections.register(mine, self._clock(), fill=known is None or known.name != mine.name)

    @property
    def away(self) -> bool:
        """Whether it did not answer and has not been seen since."""
        return self._breaker.is_open

    def use(self, operation: str, call: Callable[[S], R], *, reads: bool = False) -> R:
        """Meet the engine if that was not done yet, then do something with its store.

        Args:
            operation: What, as errors will say it.
            call: Given the store.
            reads: Whether what it holds matters, so that one that is met for the first time will not do.

        Raises:
            StoreUnavailableError: It is away, or holds nothing yet; at once where that is known.
            ConfigurationError: It holds the data of another memory.
        """
        if not self.meet(operation) and reads:
            raise StoreUnavailableError("it holds nothing yet", engine=self.engine, operation=operation)
        return self.call(operation, call)

    def call(self, operation: str, call: Callable[[S], R]) -> R:
        """Do something with the store of an engine that was met; asks nothing of Postgres.

        Raises:
            StoreUnavailableError: As for `use`.
        """
        self._breaker.check(operation)
        with self._watched():
            result = call(self._store())
        self._breaker.worked()
        return result

    def check(self, operation: str) -> None:
        """See that it is not known to be away, without asking it.

        Raises:
            StoreUnavailableError: It did not answer, and has not been seen since.
        """
        self._breaker.check(operation)

    def meet(self, operation: str) -> bool:
        """See that the engine knows this memory; tells whether it did.

        Raises:
            StoreUnavailableError: As for `use`.
            ConfigurationError: As for `use`.
        """
        if self._met.is_set():
            return True
        self._breaker.check(operation)
        with self._lock:
            if self._met.is_set():
                return True
            # Whoever was before us here may have found out that it is away.
            self._breaker.check(operation)
            return self._introduced()

    def _sign_of_life(self) -> None:
        self.server.version()
        with self._lock:
            if not self._met.is_set():
                self._introduced()

    def _introduced(self) -> bool:
        """Ask the engine whether it knows this memory, and see that it does; the lock is held."""
        if self._memory is None:
            self._memory = self._projections.memory()
        memory = self._memory
        with self._watched():
            known = self.server.knows(memory)
        if not known:
            # Marked before it is adopted: who is killed in between is followed by one who does it again.
            if self.role != "cache":
                self._projections.mark(self.role, self._clock(), space=None)
            with self._watched():
                self.server.adopt(memory)
        self._met.set()
        return known

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except StoreUnavailableError:
            self._met.clear()
            self._breaker.failed()
            raise

    def answers(self) -> bool:
        """Ask whether it is there, if it was away; waits for the answer."""
        return self._breaker.probe()
