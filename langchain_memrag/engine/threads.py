"""Running the synchronous stores from async code: our own bounded threads, no event loop of our own."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["Threads"]

P = ParamSpec("P")
R = TypeVar("R")


class Threads:
    """A bounded pool of threads that carries the caller's context variables along.

    The default executor of asyncio is not used: it has few threads, belongs to one loop, and other
    libraries fill it. Threads start with the first call, and anew in a forked child, which inherits none.

    Args:
        name: Prefix of the threads' names.
        size: How many at most; at least 1.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()
        self._closed = False

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start a call; its context variables are those of the caller.

        Raises:
            RuntimeError: The pool is closed.
        """
        call = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
        return self._running().submit(call)

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Await a blocking call from whatever loop is running."""
        return await asyncio.wrap_future(self.submit(function, *args, **kwargs))

    def close(self) -> None:
        """Wait for what runs, then let the threads go."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.shutdown(wait=True, cancel_futures=True)

    def _running(self) -> ThreadPoolExecutor:
        pool = self._pool
        if pool is not None and self._pid == os.getpid():
            return pool
        if self._pid != os.getpid():
            self._lock = threading.Lock()  # the parent may have forked while another thread held it
        with self._lock:
            if self._closed:
                raise RuntimeError("the memory is closed")
            if self._pool is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._pool = ThreadPoolExecutor(max_workers=self._size, thread_name_prefix=self._name)
            return self._pool
