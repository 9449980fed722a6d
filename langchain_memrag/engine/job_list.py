"""The jobs that wait, run or failed, for a person to look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import procrastinate
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job as QueuedJob

from langchain_memrag.errors import NotFoundError, StoreUnavailableError
from langchain_memrag.records import Job
from langchain_memrag.stores.postgres.database import Database

__all__ = ["JobList"]

_FAILED: Final = "failed"
"""What would not run again by itself. Jobs of ours are never cancelled."""


class JobList:
    """Lists, retries and drops jobs. A job is only a nudge: dropping one loses no work, the sweep finds it.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def jobs(self) -> tuple[Job, ...]:
        """All jobs, the oldest first; those that succeeded are gone.

        Raises:
            StoreUnavailableError: The database cannot be reached.
        """
        with self._manager("list jobs") as manager:
            return tuple(_job(one) for one in manager.list_jobs())

    def retry(self, ident: int, now: datetime) -> None:
        """Run a job again that ended without success.

        Raises:
            NotFoundError: There is no such job, or it waits or runs anyway, or another one does.
            StoreUnavailableError: The database cannot be reached.
        """
        with self._manager("retry a job") as manager:
            found = [one for one in manager.list_jobs(id=ident) if one.status == _FAILED]
            if not found:
                raise NotFoundError(f"there is no job {ident} that failed; `memrag jobs list` shows them")
            try:
                manager.retry_job_by_id(ident, retry_at=now)
            except UniqueViolation:
                raise NotFoundError(
                    f"another job for the work of job {ident} waits already; drop this one"
                ) from None

    def drop(self, ident: int) -> None:
        """Remove a job that does not run.

        Raises:
            NotFoundError: There is no such job, or it runs just now.
            StoreUnavailableError: The database cannot be reached.
        """
        with self._database.session("drop a job") as connection:
            gone = connection.execute(
                "DELETE FROM procrastinate_jobs WHERE id = %s AND status <> 'doing'", (ident,)
            ).rowcount
        if not gone:
            raise NotFoundError(
                f"there is no job {ident} that could be dropped; `memrag jobs list` shows them"
            )

    @contextmanager
    def _manager(self, operation: str) -> Iterator[procrastinate.manager.JobManager]:
        connector = procrastinate.SyncPsycopgConnector(
            conninfo=self._database.session_conninfo, min_size=1, max_size=1, timeout=10
        )
        try:
            with procrastinate.App(connector=connector).open() as app:
                yield app.job_manager
        except ConnectorException as error:
            # Its text may hold the address with the password.
            kind = type(error).__name__
            raise StoreUnavailableError(
                f"the jobs cannot be read ({kind})", engine="postgres", operation=operation
            ) from None


def _job(job: QueuedJob) -> Job:
    space = job.task_kwargs.get("space")
    return Job(
        id=job.id or 0,
        task=job.task_name,
        status=str(job.status),
        attempts=job.attempts,
        space=space if isinstance(space, int) else None,
        scheduled_at=job.scheduled_at,
    )
