"""What whoever runs a memory does with it: fill indexes, move to another embedder, repair, look at jobs.

Sync only: these are long, and belong into a process of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, get_args

from langchain_core.embeddings import Embeddings

from langchain_memrag.engine.beside import Beside
from langchain_memrag.engine.embedding import Embedder, choose_embedder
from langchain_memrag.engine.examining import Examiner
from langchain_memrag.engine.flow import drive
from langchain_memrag.engine.job_list import JobList
from langchain_memrag.engine.jobs import Background
from langchain_memrag.engine.reembedding import Reembedder
from langchain_memrag.engine.reindexing import IndexRole, Progress, Reindexer
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Health, Job, Scope
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.projections import EngineRole, ProjectionStore

__all__ = ["Maintenance"]


def _silent(done: int, total: int) -> None:
    pass


def _never() -> bool:
    return False


_POLL: Final = 0.2


class Maintenance:
    """Maintains an open memory; get it with `MemRAG.maintenance`.

    Args:
        examiner: Compares the stores.
        reindexer: Fills indexes.
        reembedder: Moves to another embedder.
        jobs: What waits and what failed.
        beside: The engines beside Postgres.
        marks: What is left to do for them.
        worker: Makes what does background work in this process.
        sweep: Does what is left to do.
        embedder: What this process embeds with, if anything.
        clock: Gives the time.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one parameter a part, each made by the assembly
        self,
        examiner: Examiner,
        reindexer: Reindexer,
        reembedder: Reembedder,
        jobs: JobList,
        beside: Beside,
        marks: ProjectionStore,
        worker: Callable[[int], Background],
        sweep: Callable[[], None],
        embedder: Embedder | None,
        clock: Clock,
    ) -> None:
        self._examiner = examiner
        self._reindexer = reindexer
        self._reembedder = reembedder
        self._jobs = jobs
        self._beside = beside
        self._marks = marks
        self._worker = worker
        self._sweep = sweep
        self._embedder = embedder
        self._clock = clock

    def reindex(
        self,
        scope: Scope | None = None,
        roles: Sequence[IndexRole] | None = None,
        *,
        resume: bool = False,
        progress: Progress = _silent,
        stop: Callable[[], bool] = _never,
    ) -> int:
        """Fill indexes anew from the record; nothing is embedded twice, recall answers throughout.

        Args:
            scope: Of one user, or of all where it is `None`.
            roles: `postgres`, `search`, `graph`; by default every engine beside Postgres, or Postgres where
                there is none.
            resume: Only do what an earlier run left.
            progress: Told how many records are done, and of how many.
            stop: Asked between two portions; what is left stays marked.

        Returns:
            How many records are left to do.

        Raises:
            ConfigurationError: A role that no engine was named for.
            StoreUnavailableError: An engine does not answer.
        """
        flow = self._reindexer.reindex(scope, roles, resume=resume, progress=progress, stop=stop)
        return drive(flow, self._embedder)

    def reembed(
        self,
        embeddings: Embeddings | str,
        *,
        progress: Progress = _silent,
        stop: Callable[[], bool] = _never,
    ) -> bool:
        """Move the memory to another embedder while recall keeps answering with the one it has.

        Stopped or killed in the middle, it leaves the old vectors whole; run again, it goes on. Afterwards
        every process opens the memory with the new embedder; until then it recalls by what was embedded
        before, and leaves what is written pending.

        Args:
            embeddings: The new embedder.
            progress: Told how many index entries are done, and of how many.
            stop: Asked between two portions.

        Returns:
            Whether the memory is at the new embedder now.

        Raises:
            ConfigurationError: The embedder cannot be used; the memory is as it was.
            StoreError: It failed in the middle; the memory is as it was.
        """
        target = choose_embedder(embeddings, None)
        return drive(self._reembedder.move(progress=progress, stop=stop), target)

    def drop_retired(self) -> int:
        """Drop the vectors of embedders that the memory has moved away from; returns of how many.

        Raises:
            ConfigurationError: The engine of the search index, which holds some too, was not named.
            StoreUnavailableError: It is away.
        """
        if self._beside.search is None and "search" in self._marks.engines():
            raise ConfigurationError("the engine for search holds old vectors, too: give search=...")

        def drop_copy(embedder: int) -> None:
            if self._beside.search is not None:
                self._beside.drop_index(embedder)

        return self._reembedder.drop_retired(drop_copy)

    def repair(self, *, every: bool = False) -> Health:
        """Index and copy what is missing, erase what should not be there, and look again.

        Args:
            every: Compare all memories, not a hundred of them.
        """
        self._examiner.repair(self._sweep, every=every)
        return self._examiner.examine(every=every)

    def jobs(self) -> tuple[Job, ...]:
        """The jobs that wait, run or failed, the oldest first."""
        return self._jobs.jobs()

    def retry_job(self, ident: int) -> None:
        """Run a job again that ended without success.

        Raises:
            NotFoundError: There is no such job, or it waits or runs anyway.
        """
        self._jobs.retry(ident, self._clock())

    def drop_job(self, ident: int) -> None:
        """Remove a job that does not run; the work that it pointed to stays marked.

        Raises:
            NotFoundError: There is no such job, or it runs just now.
        """
        self._jobs.drop(ident)

    def detach(self, role: EngineRole) -> None:
        """Do without an engine from now on: nothing is marked for it any more. Its data stay where they are.

        Args:
            role: `search`, `graph` or `cache`.

        Raises:
            ConfigurationError: There is no such role, or no engine is known for it.
        """
        if role not in get_args(EngineRole):
            raise ConfigurationError(f"detach: {role!r} is none of {', '.join(get_args(EngineRole))}")
        if role not in self._marks.engines():
            raise ConfigurationError(f"detach: no engine is known for {role}")
        self._marks.drop(role)

    def work(self, until: threading.Event, *, concurrency: int = 1) -> None:
        """Do background work in this process until an event is set: what `memrag worker` runs.

        Args:
            until: Ends it, after the piece of work at hand.
            concurrency: How many pieces at once.
        """
        if concurrency < 1:
            raise ConfigurationError(f"concurrency must be at least 1, not {concurrency}")
        worker = self._worker(concurrency)
        worker.start()
        try:
            while not until.wait(_POLL):
                pass
        finally:
            worker.close()
