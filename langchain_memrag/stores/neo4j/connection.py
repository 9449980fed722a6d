"""The driver, and how long anything may take on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import Event, Lock
from typing import Final, TypeVar, cast

import neo4j

from langchain_memrag.stores.neo4j import cypher
from langchain_memrag.stores.neo4j.address import Neo4jOptions, parse_address
from langchain_memrag.stores.neo4j.faults import faults_mapped

__all__ = ["Neo4jConnection", "Row"]

Row = Mapping[str, object]

T = TypeVar("T")

GRACE: Final = 0.5
"""Seconds beyond its budget that a walk is waited for: the way there and back."""

LONG_GRACE: Final = 3.0
"""The same for everything else: the server looks every two seconds for what takes too long."""


class Neo4jConnection:
    """Runs statements of one namespace on one database, each bounded in time, and maps what goes wrong.

    Args:
        url: As for `Neo4jGraph`.
        options: How it is used.

    Raises:
        ConfigurationError: The URL cannot be read.
    """

    def __init__(self, url: str, options: Neo4jOptions) -> None:
        self._options = options
        self._address = parse_address(url)
        self.label = self._address.label
        """Where it is, without credentials."""
        self.namespace = options.namespace or self._address.namespace or "MemRAG"
        """What all labels and constraints start with."""
        self._database = options.database or self._address.database
        self._prepared = Event()
        self._preparing = Lock()
        self._forking = Lock()
        self._pid = os.getpid()
        self._driver = self._connect()

    def _connect(self) -> neo4j.Driver:
        user, password = self._address.user, self._address.password
        return faults_mapped(
            "read the URL",
            lambda: neo4j.GraphDatabase.driver(
                self._address.label,
                auth=None if user is None else (user, password),
                max_connection_pool_size=self._options.pool_size,
                connection_timeout=self._options.connect_timeout,
                connection_acquisition_timeout=2 * self._options.connect_timeout,
                max_transaction_retry_time=self._options.retry_time,
                notifications_min_severity="OFF",
                telemetry_disabled=True,
            ),
        )

    def close(self) -> None:
        """Close all connections."""
        # Those of a parent process are the parent's to close.
        if self._pid == os.getpid():
            self._driver.close()

    def _session(self, retry_time: float | None = None) -> neo4j.Session:
        if self._pid != os.getpid():
            self._after_fork()
        retry_time = self._options.retry_time if retry_time is None else retry_time
        return self._driver.session(database=self._database, max_transaction_retry_time=retry_time)

    def _after_fork(self) -> None:
        with self._forking:
            if self._pid != os.getpid():
                _left_to_parents.append(self._driver)
                self._driver = self._connect()
                self._preparing = Lock()  # whoever held it did not come along
                self._pid = os.getpid()

    def text(self, statement: str) -> str:
        """A statement of ours for this namespace; nothing that a user says is ever put in."""
        return statement.format(ns=self.namespace)

    def prepare(self) -> None:
        """Make the constraints, once; the first write does it where nobody else did."""
        if self._prepared.is_set():
            return
        with self._preparing:
            if self._prepared.is_set():
                return
            for statement in (*cypher.SCHEMA, cypher.WAIT_FOR_SCHEMA):
                self._run("make constraints", self._statement(statement, {}), self._options.timeout)
            self._prepared.set()

    def prepare_anew(self) -> None:
        """Make the constraints with the next write: whatever lost its data lost them too."""
        self._prepared.clear()

    def read(self, operation: str, statement: str, **values: object) -> list[Row]:
        """Run a statement that changes nothing, again where the connection broke.

        Raises:
            StoreUnavailableError: The server cannot be reached, or is too slow.
            StoreError: It refused.
        """
        return self._run(operation, self._statement(statement, values), self._options.timeout, reads=True)

    def read_once(
        self, operation: str, statement: str, values: dict[str, object], budget: float | None
    ) -> list[Row]:
        """The same within a budget, which trying again would spend twice.

        Args:
            operation: What is done, as errors will say it.
            statement: Of `cypher`.
            values: Its parameters.
            budget: Seconds, counted from when a connection is at hand.
        """
        if budget is None:
            return self.read(operation, statement, **values)
        work = self._statement(statement, values)
        # To the server, 0 means as long as it likes.
        return self._run(operation, work, max(budget, 0.001), grace=GRACE, reads=True, retry_time=0)

    def write(self, operation: str, work: Callable[[neo4j.ManagedTransaction], T]) -> T:
        """Run a transaction, again where it collided with another one.

        Args:
            operation: What is done, as errors will say it.
            work: Done anew each time.

        Raises:
            StoreUnavailableError: The server cannot be reached, or is too slow.
            StoreError: It refused.
        """
        self.prepare()
        return self._run(operation, work, self._options.timeout)

    def _statement(
        self, statement: str, values: dict[str, object]
    ) -> Callable[[neo4j.ManagedTransaction], list[Row]]:
        def work(tx: neo4j.ManagedTransaction) -> list[Row]:
            return cast("list[Row]", tx.run(self.text(statement), values).data())

        return work

    def _run(
        self,
        operation: str,
        work: Callable[[neo4j.ManagedTransaction], T],
        budget: float,
        *,
        grace: float = LONG_GRACE,
        reads: bool = False,
        retry_time: float | None = None,
    ) -> T:
        @neo4j.unit_of_work(timeout=budget)
        def bounded(tx: neo4j.ManagedTransaction) -> T:
            _bound_reads(tx, budget + grace)
            return work(tx)

        def managed() -> T:
            # `BEGIN` goes along with the first statement, as in the driver's own `execute_query`: it saves a
            # round trip, and what is waited for is waited for in `bounded`.
            with self._session(retry_time) as session, session._pipelined_begin:  # noqa: SLF001
                return session.execute_read(bounded) if reads else session.execute_write(bounded)

        return faults_mapped(operation, managed)


_left_to_parents: Final[list[neo4j.Driver]] = []
"""Drivers that came along through a fork: whoever drops one closes, or is warned of, what is not his."""


def _bound_reads(tx: neo4j.ManagedTransaction, seconds: float) -> None:
    """Wait no longer for any answer within this transaction; then the connection counts as broken.

    A server that stands still keeps its connections, and the driver has no setting for it: it waits as long
    as the server once asked for, which is two minutes.
    """
    socket = tx._connection.socket  # noqa: SLF001
    # The name is that of 6.0; before, there was one for both directions.
    bound = getattr(socket, "set_read_timeout", None) or socket.settimeout
    bound(seconds)
