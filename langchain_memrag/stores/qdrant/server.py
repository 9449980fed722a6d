"""A Qdrant: a server, or the client's own local mode in a folder or in memory."""

from __future__ import annotations

import atexit
import math
import os
import re
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar
from uuid import UUID

import portalocker
from qdrant_client import QdrantClient, models

from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.stores.qdrant.address import MEMORY, QdrantAddress, QdrantOptions, parse_address
from langchain_memrag.stores.qdrant.faults import DRIVER_ERRORS, ENGINE, faults_mapped, may_be_missing
from langchain_memrag.stores.qdrant.layout import create_once
from langchain_memrag.stores.server import SearchServer

if TYPE_CHECKING:
    from langchain_memrag.stores.qdrant.index import QdrantIndex

__all__ = ["QdrantServer", "open_client"]

T = TypeVar("T")

_FEW: Final = 10


def open_client(address: QdrantAddress, options: QdrantOptions) -> QdrantClient:
    """A client for an address; one for a server connects when it is first used.

    Raises:
        StoreUnavailableError: Somebody has the folder open, in this process or in another.
    """
    if address.url is not None:
        # The key goes as a header: as an argument it gives a warning wherever the URL is plain http.
        return QdrantClient(
            url=address.url,
            headers={"api-key": address.key} if address.key else None,
            timeout=math.ceil(options.timeout),
            prefer_grpc=options.prefer_grpc,
            grpc_port=options.grpc_port,
            check_compatibility=False,
        )
    if address.folder is None:
        return QdrantClient(location=MEMORY)
    if _taken(Path(address.folder)):
        raise StoreUnavailableError(
            f"{address.label} is open already, here or in another process; a folder takes one opener, "
            "give the URL of a server for many",
            engine=ENGINE,
            operation="open",
        )
    # Threads take turns by a lock of ours, so SQLite need not insist on the one that opened it.
    return QdrantClient(path=address.folder, force_disable_check_same_thread=True)


def _taken(folder: Path) -> bool:
    """Whether a client has a folder; asked first, since one that is refused leaves its files open."""
    try:
        with (folder / ".lock").open("r+") as file:
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            portalocker.unlock(file)
    except FileNotFoundError:
        return False
    except portalocker.exceptions.LockException:
        return True
    return False


@dataclass(frozen=True, slots=True)
class _Connection:
    """A client, and what its callers hold while they use it."""

    client: QdrantClient
    turn: AbstractContextManager[object]


_living: weakref.WeakSet[QdrantServer] = weakref.WeakSet()
# A parent's clients are never used or closed by a forked child; they are only kept from the collector.
_abandoned: list[_Connection] = []


class QdrantServer(SearchServer):
    """A Qdrant with the collections of one memory.

    Args:
        url: `qdrant://key@host:port` (`qdrant+s` for TLS), `qdrant:///folder`, or `:memory:`.
        options: How to use it.
        connect: Makes the client.
    """

    engine: ClassVar[str] = ENGINE

    def __init__(
        self,
        url: str,
        options: QdrantOptions | None = None,
        *,
        connect: Callable[[QdrantAddress, QdrantOptions], QdrantClient] = open_client,
    ) -> None:
        self.address, self.options = parse_address(url, options or QdrantOptions())
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._closed = False
        self._signed = False
        _living.add(self)

    def __repr__(self) -> str:
        return f"QdrantServer({self.label!r}, prefix={self.options.prefix!r})"

    @property
    def label(self) -> str:
        """See `Server.label`."""
        return self.address.label

    def index(self, embedder: int | None, width: int | None) -> QdrantIndex:
        """The index of one embedder.

        Args:
            embedder: Names its collection; `None` for words alone.
            width: Dimensions of its vectors; `None` exactly where there is no embedder.
        """
        from langchain_memrag.stores.qdrant.index import QdrantIndex

        return QdrantIndex(self, embedder, width)

    def call(self, operation: str, work: Callable[[QdrantClient], T]) -> T:
        """Do something with the client; in local mode, one thread at a time.

        Raises:
            StoreError: What the client raised, in our words.
        """

        def use() -> T:
            connection = self._connected(operation)
            with connection.turn:
                return work(connection.client)

        return faults_mapped(operation, use)

    def call_on(self, collection: str, operation: str, work: Callable[[QdrantClient], T]) -> T | None:
        """Do something with a collection; `None` if there is no such collection."""

        def tried(client: QdrantClient) -> T | None:
            try:
                return work(client)
            except DRIVER_ERRORS as error:
                # Not every "not found" is about the collection: a wrong path of the URL says so too.
                if not may_be_missing(error) or client.collection_exists(collection):
                    raise
            self._see_data(client, collection, operation)
            return None

        return self.call(operation, tried)

    def _see_data(self, client: QdrantClient, missing: str, operation: str) -> None:
        """See that what is missing is a collection alone: a server that lost everything has to be filled."""
        if self._signed and missing != self._about and not client.collection_exists(self._about):
            self._signed = False
            raise StoreUnavailableError(
                "the server lost its data; they are copied to it again", engine=ENGINE, operation=operation
            )

    def collections(self) -> list[str]:
        """All collections of entries, those of retired embedders included."""
        mine = re.compile(re.escape(self.options.prefix) + r"_([0-9]+|words)")
        found = self.call("list the collections", lambda client: client.get_collections())
        return sorted(each.name for each in found.collections if mine.fullmatch(each.name))

    def knows(self, memory: UUID) -> bool:
        """See `Server.knows`."""
        owners = self._owners()
        # What stands here without a name may be anybody's.
        if owners - {memory} or (not owners and any(self._size(name) for name in self.collections())):
            raise self._foreign()
        self._signed = bool(owners)
        return self._signed

    def adopt(self, memory: UUID) -> None:
        """See `Server.adopt`."""
        if self.knows(memory):
            return
        # Two memories may be here at once, both having seen nothing. Each puts its name down and looks
        # again: at least one of them sees the other.
        self._sign(memory)
        if self._owners() != {memory}:
            self.call_on(
                self._about, "adopt", lambda client: client.delete(self._about, [str(memory)], wait=True)
            )
            raise self._foreign()
        self._signed = True

    @property
    def _about(self) -> str:
        return f"{self.options.prefix}_about"

    def _owners(self) -> set[UUID]:
        found = self.call_on(
            self._about,
            "adopt",
            lambda client: client.scroll(self._about, limit=_FEW, with_payload=False)[0],
        )
        return {UUID(str(record.id)) for record in found or ()}

    def _size(self, name: str) -> int:
        found = self.call_on(name, "adopt", lambda client: client.count(name, exact=True))
        return 0 if found is None else found.count

    def _sign(self, memory: UUID) -> None:
        point = models.PointStruct(id=str(memory), vector={}, payload={"memory": str(memory)})
        empty = models.CreateCollection(vectors={}, shard_number=1, replication_factor=self.options.replicas)

        def sign(client: QdrantClient) -> None:
            create_once(client, self._about, empty)
            client.upsert(self._about, [point], wait=True)

        self.call("adopt", sign)

    def _foreign(self) -> ConfigurationError:
        return ConfigurationError(
            f"the collections {self.options.prefix}_* of {self.label} belong to another memory: "
            "set another prefix, as in ?prefix=other"
        )

    def drop(self, embedder: int | None) -> bool:
        """Drop the collection of an embedder that is used no more; returns whether it was there."""
        name = collection_name(self.options, embedder)

        def drop(client: QdrantClient) -> bool:
            return client.collection_exists(name) and client.delete_collection(name)

        return self.call("drop a collection", drop)

    def version(self) -> str:
        """See `Server.version`."""
        found = self.call("ask for the version", lambda client: client.info())
        return f"{found.version} (local mode)" if self.address.local else found.version

    def close(self) -> None:
        """See `Server.close`."""
        with self._lock:
            connection, self._connection, self._closed = self._connection, None, True
        if connection is not None:
            with connection.turn:
                connection.client.close()

    def _connected(self, operation: str) -> _Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailableError(
                    "it was closed; open it again", engine=ENGINE, operation=operation
                )
            if self._connection is None:
                client = self._connect(self.address, self.options)
                # Threads break the local mode; a server's client takes as many as come.
                turn = threading.RLock() if self.address.local else nullcontext()
                self._connection = _Connection(client, turn)
            return self._connection

    def _forget_parent(self) -> None:
        """Start anew in a forked child; the sockets and the lock on a folder are the parent's."""
        self._lock = threading.Lock()
        if self._connection is not None:
            # A client closes itself when it is collected, and that unlocks the folder under its parent.
            vars(self._connection.client)["close"] = _leave_open
            _abandoned.append(self._connection)
            self._connection = None


def collection_name(options: QdrantOptions, embedder: int | None) -> str:
    """The collection of an embedder, or the one for words alone."""
    return f"{options.prefix}_{'words' if embedder is None else int(embedder)}"


def _leave_open(**_: object) -> None:
    """Stands for the `close` of a client that is somebody else's."""


def _at_exit() -> None:
    # Later, when modules are gone, a client of a folder fails to close itself and says so.
    for server in list(_living):
        if server.address.local:
            server.close()


atexit.register(_at_exit)


def _after_fork() -> None:
    for server in list(_living):
        server._forget_parent()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
