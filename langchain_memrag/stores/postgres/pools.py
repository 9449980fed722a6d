"""Connection pools that open on first use, survive a fork, and notice a dead peer for free."""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg import Connection
from psycopg.pq import PipelineStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

__all__ = ["LazyPool", "Row", "piped"]

Row = tuple[object, ...]

# A parent's connections are never used or closed by a forked child; they are only kept from the
# garbage collector, whose finalisers would complain about them.
_abandoned: list[object] = []
_living: weakref.WeakSet[LazyPool] = weakref.WeakSet()


def piped(connection: Connection[Row]) -> bool:
    """Whether statements go out without waiting for their results just now; COPY is not possible then."""
    return connection.pgconn.pipeline_status != PipelineStatus.OFF


class LazyPool:
    """A pool of autocommit connections that costs nothing until it is used.

    Args:
        conninfo: For the driver; asked for when the pool opens.
        size: At most so many connections; 1 works.
        wait: How many seconds a caller waits for a connection.
        prepare_threshold: After how many uses a statement is prepared; `None` for never, which is what
            a transaction-mode PgBouncer needs.
        configure: Called with each new connection; must not run a statement.
    """

    def __init__(
        self,
        conninfo: Callable[[], str],
        *,
        size: int,
        wait: float = 15.0,
        prepare_threshold: int | None = None,
        configure: Callable[[Connection[Row]], None] | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._size = size
        self._wait = wait
        self._kwargs: Mapping[str, object] = {"autocommit": True, "prepare_threshold": prepare_threshold}
        self._configure = configure
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection[Row]] | None = None
        self._closed = False
        _living.add(self)

    @contextmanager
    def connection(self) -> Iterator[Connection[Row]]:
        """Borrow a connection. It goes back idle, or is dropped when it cannot.

        Raises:
            psycopg.Error: There is none to be had, or whatever the block raised.
        """
        pool = self.driver_pool()
        connection = _take(pool, time.monotonic() + self._wait)
        try:
            yield connection
        finally:
            _settle(connection)
            pool.putconn(connection)

    def driver_pool(self) -> ConnectionPool[Connection[Row]]:
        """The driver's own pool, opened now if it was not."""
        pool = self._pool
        if pool is not None:
            return pool
        with self._lock:
            if self._closed:
                raise PoolClosed("the pool is closed")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo(),
                    kwargs=dict(self._kwargs),
                    min_size=0,
                    max_size=self._size,
                    open=True,
                    configure=self._configure,
                    timeout=self._wait,
                    # Longer back-offs than this would outlast an outage that is over.
                    reconnect_timeout=5.0,
                    num_workers=min(self._size, 2),
                )
            return self._pool

    def close(self) -> None:
        """Close all connections and end the pool's threads; later use is an error."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None:
            pool.close(timeout=5.0)

    def forget_parent(self) -> None:
        """Start anew in a forked child; the sockets are the parent's."""
        self._lock = threading.Lock()
        if self._pool is not None:
            _abandoned.append(self._pool)
            self._pool = None


def _take(pool: ConnectionPool[Connection[Row]], deadline: float) -> Connection[Row]:
    """A live connection. One that died while it was idle is replaced: nothing was sent on it yet."""
    while (left := deadline - time.monotonic()) > 0:
        connection = pool.getconn(timeout=left)
        if _alive(connection):
            return connection
        connection.close()
        pool.putconn(connection)
    raise PoolTimeout("no live connection in time")


def _alive(connection: Connection[Row]) -> bool:
    """Whether an idle connection still has its peer, without a round trip while it is silent."""
    if connection.closed:
        return False
    if not _readable(connection.fileno()):
        return True
    # The server said something unasked: a notice, or that it is gone.
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _readable(fileno: int) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(fileno, select.POLLIN | select.POLLERR | select.POLLHUP)
        return bool(poll.poll(0))
    return bool(select.select([fileno], [], [], 0)[0])


def _settle(connection: Connection[Row]) -> None:
    """Leave no transaction open on a connection that goes back."""
    if connection.closed or connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        return
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()


def _after_fork() -> None:
    for pool in list(_living):
        pool.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
