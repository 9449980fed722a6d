"""Puts the engine together: which store plays which role, and what runs in which threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from langchain_core.embeddings import Embeddings

from langchain_memrag.engine.beside import Beside, Servers
from langchain_memrag.engine.caching import RecallCache
from langchain_memrag.engine.capture import Capture
from langchain_memrag.engine.embedding import Default, Embedder, choose_embedder
from langchain_memrag.engine.erasure import Eraser, EraserBeside, Selection
from langchain_memrag.engine.examining import Examiner
from langchain_memrag.engine.flow import drive
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.job_list import JobList
from langchain_memrag.engine.jobs import Background
from langchain_memrag.engine.maintenance import Maintenance
from langchain_memrag.engine.projecting import Projector
from langchain_memrag.engine.reading import Reading
from langchain_memrag.engine.recall import Recaller
from langchain_memrag.engine.reembedding import Reembedder
from langchain_memrag.engine.reindexing import Reindexer
from langchain_memrag.engine.searching import Searching
from langchain_memrag.engine.threads import Threads
from langchain_memrag.engine.upkeep import Upkeep
from langchain_memrag.ranking import RECIPE, Recipe
from langchain_memrag.records import Health, Receipt, Scope
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.checkpoints import CheckpointEraser
from langchain_memrag.stores.postgres.embedders import EmbedderRegistry, RegisteredEmbedder
from langchain_memrag.stores.postgres.entries import StatisticsReader
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.erasing import RecordEraser
from langchain_memrag.stores.postgres.graph import PostgresGraph
from langchain_memrag.stores.postgres.inspection import Inspection
from langchain_memrag.stores.postgres.projections import ProjectionStore
from langchain_memrag.stores.postgres.records import RecordStore
from langchain_memrag.stores.postgres.reembedding import Reembedding
from langchain_memrag.stores.postgres.search import PostgresSearch, create_vector_table
from langchain_memrag.stores.urls import Opened, open_database

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["Engine", "assemble"]


class Engine:
    """All parts of one open memory, each made once.

    Args:
        opened: The database.
        embedder: What this process embeds with, if anything.
        recipe: How signals become one ranking.
        servers: The engines beside Postgres.
        background: Whether to work behind the caller's back.
        clock: Gives the time.
    """

    def __init__(
        self,
        opened: Opened,
        registry: EmbedderRegistry,
        embedder: Embedder | None,
        recipe: Recipe,
        servers: Servers,
        *,
        background: bool,
        clock: Clock,
    ) -> None:
        self._opened = opened
        self.label = opened.label
        self.embedder = embedder
        database = opened.database
        # Callers that wait for a whole operation, and the arms of those operations, never share a pool:
        # one that is full of callers would leave no thread for the arms that they wait for.
        self.doors = Threads("memrag", database.pool_size)
        self._arms = Threads("memrag-arm", max(4, database.pool_size))
        records, episodes = RecordStore(database, clock), EpisodeReader(database)
        graph = PostgresGraph(database)

        def open_search(registered: RegisteredEmbedder | None) -> PostgresSearch:
            if registered is None:
                return PostgresSearch(database, None, None)
            return PostgresSearch(database, registered.id, registered.width)

        indexing = Indexing(registry, open_search, embedder)
        marks = ProjectionStore(database)
        self.beside = Beside(servers, marks, indexing, recipe, clock, self._arms)
        projector = Projector(self.beside.copies, marks, episodes, lambda: indexing.embedder_id, clock)
        cache = RecallCache(self.beside.cache, repr(recipe))
        self.capture = Capture(records, episodes, graph, indexing, projector, recipe, clock)
        searching = Searching(indexing, graph, self.beside.search, self.beside.graph)
        self.recaller = Recaller(
            records,
            episodes,
            StatisticsReader(database),
            searching,
            indexing,
            cache,
            recipe,
            self._arms,
            clock,
        )
        self.read = Reading(records, episodes, graph, indexing, clock)
        erased = EraserBeside(projector, cache, marks, clock)
        erasing, checkpoints = RecordEraser(database, clock), CheckpointEraser(database)
        self.eraser = Eraser(records, erasing, graph, indexing, checkpoints, erased)
        self.upkeep = Upkeep(records, self.capture, self.eraser, indexing, projector, clock)
        self._records = records
        self._background = self._worker(1) if background else None
        inspection = Inspection(database)
        self.examiner = Examiner(
            opened.label, records, inspection, indexing, graph, self.beside, marks, clock
        )
        self.maintenance = Maintenance(
            self.examiner,
            Reindexer(records, inspection, marks, self.beside, self.upkeep, clock),
            Reembedder(registry, Reembedding(database), episodes, recipe),
            JobList(database),
            self.beside,
            marks,
            self._worker,
            lambda: self.sweep(lambda: False),
            embedder,
            clock,
        )
        self.beside.open()
        if self._background is not None and records.unfinished():
            self._background.start()

    def selection(
        self,
        scope: Scope,
        *,
        ids: Sequence[UUID] | None,
        since: datetime | None,
        until: datetime | None,
        everything: bool,
        checkpoints: bool,
    ) -> Selection:
        """What is to be forgotten, checked; see `MemRAG.forget`."""
        return Selection(
            scope=scope,
            ids=None if ids is None else tuple(ids),
            since=since,
            until=until,
            everything=everything,
            checkpoints=checkpoints,
        )

    def after_write(self, receipt: Receipt, scope: Scope) -> None:
        """Wake the background, and tell it where there is work."""
        if self._background is None:
            return
        if not receipt.pending:
            self._background.start()
            return
        space = self._records.space_of(scope.user_id)
        if space is not None:
            self._background.nudge(space)

    def sweep(self, stop: Callable[[], bool]) -> None:
        """Erase the expired, heal, and index what has grown big."""
        self.upkeep.expire(stop=stop)
        drive(self.upkeep.heal(None, stop=stop), self.embedder)
        if self.beside.search is None:
            self.upkeep.index_big(stop=stop)

    def _worker(self, concurrency: int) -> Background:
        return Background(
            self._opened.database.session_conninfo, self._heal, self.sweep, concurrency=concurrency
        )

    def _heal(self, space: int, stop: Callable[[], bool]) -> None:
        drive(self.upkeep.heal_space(space, stop=stop), self.embedder)

    def checkpointer(self) -> BaseCheckpointSaver[str]:
        """A LangGraph saver on the same database."""
        from langchain_memrag.engine.checkpointer import MemRAGSaver

        return MemRAGSaver(self._opened.database, self.doors)

    def doctor(self, *, every: bool) -> Health:
        """What is connected, and what is wrong."""
        return self.examiner.examine(every=every)

    def stop_background(self) -> None:
        """Stop what runs behind the caller's back."""
        if self._background is not None:
            self._background.close()

    def close(self) -> None:
        """Stop everything, in the order in which nothing waits for what is gone."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._opened.close)
            stack.callback(self.beside.close)
            stack.callback(self._arms.close)
            stack.callback(self.doors.close)
            stack.callback(self.stop_background)


def assemble(  # noqa: PLR0913 - what `MemRAG.open` takes
    location: str | os.PathLike[str],
    *,
    embeddings: Embeddings | str | Default | None,
    direct_url: str | None,
    schema: str,
    pool_size: int,
    background: bool,
    clock: Clock,
    servers: Servers,
    recipe: Recipe = RECIPE,
) -> Engine:
    """Open the stores and make the engine; leaves nothing open when it fails."""
    try:
        opened = open_database(location, direct_url=direct_url, schema=schema, pool_size=pool_size)
    except BaseException:  # whatever it was, an interrupt included, nothing stays open
        servers.close()
        raise
    try:
        registry = EmbedderRegistry(opened.database, partial(create_vector_table, opened.database))
        active = registry.active()
        embedder = choose_embedder(embeddings, active.name if active else None)
        return Engine(opened, registry, embedder, recipe, servers, background=background, clock=clock)
    except BaseException:  # as above
        servers.close()
        opened.close()
        raise
