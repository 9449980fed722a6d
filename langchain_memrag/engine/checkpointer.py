"""LangGraph's Postgres saver, one for sync and async hosts, on the memory's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import BasePostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import Capabilities, Cursor
from psycopg.rows import DictRow, dict_row

from langchain_memrag.engine.threads import Threads
from langchain_memrag.stores.postgres.database import Database

__all__ = ["MemRAGSaver"]


class MemRAGSaver(PostgresSaver):
    """Checkpoints beside the memory; get it with `MemRAG.checkpointer()`.

    The stock saver raises under `ainvoke`, and one lock of its own makes every thread of a process wait
    for every other. Here each call borrows a connection, and the async half does the same in threads.

    As with every saver, whoever names a thread gets its conversation: memory is kept apart by user,
    checkpoints by thread alone. Give each user thread ids of his own, unless they are to share the thread.

    Args:
        database: Where the checkpoints are kept, in the memory's schema.
        threads: Run the async half.
        serde: How channel values become bytes; LangGraph's own by default.
    """

    def __init__(
        self, database: Database, threads: Threads, *, serde: SerializerProtocol | None = None
    ) -> None:
        # Not PostgresSaver's own: it holds one connection or pool, and a lock that nothing here needs.
        BasePostgresSaver.__init__(self, serde=serde)
        self.pipe = None
        self.supports_pipeline = Capabilities().has_pipeline()
        self._database = database
        self._threads = threads

    def setup(self) -> None:
        """See that the tables are there; the memory's own migrations make them."""
        self._database.open()

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the saver's signature
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first. All are read before the first is given out: the caller may take its
        time, or ask for another one, without holding the connection.
        """  # noqa: D205
        yield from tuple(super().list(config, filter=filter, before=before, limit=limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the saver's signature
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""

        def found() -> tuple[CheckpointTuple, ...]:
            return tuple(self.list(config, filter=filter, before=before, limit=limit))

        for one in await self._threads.run(found):
            yield one

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        return await self._threads.run(self.get_tuple, config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async twin of `put`."""
        return await self._threads.run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Async twin of `put_writes`."""
        await self._threads.run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        await self._threads.run(self.delete_thread, thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async twin of `prune`."""
        await self._threads.run(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async twin of `get_delta_channel_history`."""
        return await self._threads.run(self.get_delta_channel_history, config=config, channels=channels)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """The saver's one way to the database: a connection of its own for each call."""
        with self._database.session("checkpoint") as connection:
            together = connection.pipeline() if self.supports_pipeline else connection.transaction()
            with (
                together if pipeline else nullcontext(),
                connection.cursor(binary=True, row_factory=dict_row) as cursor,
            ):
                yield cursor
