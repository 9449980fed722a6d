"""Work behind the caller's back: a procrastinate worker in one thread of the process, with a loop of its own.

What is left to do is a fact in the record. A job is only the nudge to look there; the sweep, once a
minute, finds what no nudge reached, including what a process that was killed left behind.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.tasks import Task

from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import MemRAGError

__all__ = ["Background"]

logger = logging.getLogger(__name__)

SWEEP_EVERY: Final = "* * * * *"
"""Once a minute, as cron writes it."""

_STOP_WITHIN: Final = 30.0
_RETRY_AFTER: Final = (1.0, 2.0, 5.0, 15.0)
_STALLED_AFTER: Final = 60.0

_HealTask = Task[[int], Coroutine[Any, Any, None], [int]]

Chore = Callable[[Callable[[], bool]], None]
"""Does some work; asks between two pieces of it whether it is to stop."""


class Background:
    """Runs the chores of one open memory.

    Args:
        conninfo: For procrastinate: a direct connection, whose search path is the schema.
        heal: Indexes what is pending in one space.
        sweep: Looks for all that is left to do, in every space.
        concurrency: How many pieces of work at once.
    """

    def __init__(
        self,
        conninfo: str,
        heal: Callable[[int, Callable[[], bool]], None],
        sweep: Chore,
        *,
        concurrency: int = 1,
    ) -> None:
        self._concurrency = concurrency
        self._conninfo = conninfo
        self._heal = heal
        self._sweep = sweep
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._nudge: _HealTask | None = None
        self._exit_hook: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the thread; a no-op where it runs already, cheap enough for every write."""
        if self._thread is not None and self._pid == os.getpid():
            return
        with self._lock:
            if self._stopping.is_set() or (self._thread is not None and self._pid == os.getpid()):
                return
            self._pid = os.getpid()
            self._loop = self._main = self._nudge = None
            self._thread = threading.Thread(target=self._run, name="memrag-background", daemon=True)
            if self._exit_hook is None:
                me = weakref.ref(self)
                self._exit_hook = lambda: _close(me)
                atexit.register(self._exit_hook)
            self._thread.start()

    def nudge(self, space: int) -> None:
        """Ask for one space to be healed soon. Never waits; what is missed is found by the sweep."""
        self.start()
        loop, task = self._loop, self._nudge
        if loop is None or task is None:
            return  # still starting: it begins with a sweep
        with contextlib.suppress(RuntimeError):  # the loop closed in between
            asyncio.run_coroutine_threadsafe(_defer(task, space), loop).add_done_callback(_report)

    def close(self) -> None:
        """Stop after the piece of work at hand, and wait for the thread to end."""
        self._stopping.set()
        with self._lock:
            thread, loop = self._thread, self._loop
        if self._exit_hook is not None:
            atexit.unregister(self._exit_hook)
        if thread is None or self._pid != os.getpid() or thread is threading.current_thread():
            return
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._cancel)
        thread.join(_STOP_WITHIN)
        if thread.is_alive():
            logger.warning("the background thread did not stop within %.0f s", _STOP_WITHIN)

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._supervise())

    async def _supervise(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        failures = 0
        while not self._stopping.is_set():
            try:
                await self._work()
            except (ConnectorException, MemRAGError, OSError) as error:
                wait = _RETRY_AFTER[min(failures, len(_RETRY_AFTER) - 1)]
                failures += 1
                logger.warning("background work stopped (%s); again in %.0f s", type(error).__name__, wait)
                await asyncio.sleep(wait)

    async def _work(self) -> None:
        threads = Threads("memrag-chore", self._concurrency)
        connector = procrastinate.PsycopgConnector(
            conninfo=self._conninfo, min_size=1, max_size=3 + self._concurrency, timeout=10
        )
        app = procrastinate.App(connector=connector)
        sweep = self._tasks(app, threads)
        try:
            async with app.open_async():
                with contextlib.suppress(AlreadyEnqueued):
                    await sweep.configure(queueing_lock="sweep").defer_async(timestamp=0)
                await app.run_worker_async(
                    name="memrag",
                    concurrency=self._concurrency,
                    install_signal_handlers=False,
                    delete_jobs="successful",
                    shutdown_graceful_timeout=_STOP_WITHIN,
                )
        finally:
            self._nudge = None
            # A second time where it was opened; where opening was cut off, nothing else ends the pool's
            # tasks: one that was just connecting has swallowed its cancellation and waits for work.
            await connector.close_async()
            threads.close()

    def _tasks(self, app: procrastinate.App, threads: Threads) -> _HealTask:
        async def heal(space: int) -> None:
            await threads.run(self._heal, space, self._stopping.is_set)

        async def sweep(timestamp: int) -> None:  # noqa: ARG001 - procrastinate's periodic tasks get one
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_AFTER):
                await app.job_manager.retry_job(job)
            await threads.run(self._sweep, self._stopping.is_set)

        retry = procrastinate.RetryStrategy(max_attempts=5, exponential_wait=2)
        self._nudge = app.task(name="memrag.heal", retry=retry)(heal)
        task = app.task(name="memrag.sweep", queueing_lock="sweep", pass_context=False)(sweep)
        app.periodic(cron=SWEEP_EVERY)(task)
        return task


async def _defer(task: _HealTask, space: int) -> None:
    with contextlib.suppress(AlreadyEnqueued):
        await task.configure(lock=f"space:{space}", queueing_lock=f"heal:{space}").defer_async(space=space)


def _report(done: Future[None]) -> None:
    if not done.cancelled() and done.exception() is not None:
        logger.warning(
            "a nudge was not sent (%s); the sweep will find the work", type(done.exception()).__name__
        )


def _close(me: weakref.ReferenceType[Background]) -> None:
    background = me()
    if background is not None:
        background.close()
