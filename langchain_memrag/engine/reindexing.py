"""Filling an index anew from the record: nothing is embedded twice, and whoever stops it can go on.

What is to be done is marked in the record first, so a run that is cut off leaves marks and no gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from langchain_memrag.engine.beside import Beside
from langchain_memrag.engine.flow import Flow
from langchain_memrag.engine.upkeep import Upkeep
from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.records import Scope
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.inspection import Inspection
from langchain_memrag.stores.postgres.projections import ProjectionStore
from langchain_memrag.stores.postgres.records import RecordStore

__all__ = ["IndexRole", "Progress", "Reindexer"]

IndexRole = Literal["postgres", "search", "graph"]
"""What can be filled anew: the index and graph in Postgres, or the engine of a role."""

Progress = Callable[[int, int], None]
"""Told how many records are done, and of how many."""


class Reindexer:
    """Fills indexes anew.

    Args:
        records: Finds the user, and counts what is left.
        inspection: Marks for Postgres.
        marks: Marks for the engines.
        beside: The engines.
        upkeep: Does what is marked.
        clock: Gives the time.
    """

    def __init__(
        self,
        records: RecordStore,
        inspection: Inspection,
        marks: ProjectionStore,
        beside: Beside,
        upkeep: Upkeep,
        clock: Clock,
    ) -> None:
        self._records = records
        self._inspection = inspection
        self._marks = marks
        self._beside = beside
        self._upkeep = upkeep
        self._clock = clock

    def reindex(
        self,
        scope: Scope | None,
        roles: Sequence[IndexRole] | None,
        *,
        resume: bool,
        progress: Progress,
        stop: Callable[[], bool],
    ) -> Flow[int]:
        """Fill indexes of one user, or of all.

        Args:
            scope: Whose; all where it is `None`.
            roles: What; by default every engine beside Postgres, or Postgres where there is none.
            resume: Only do what an earlier run marked.
            progress: Told after each portion.
            stop: Asked between two portions.

        Returns:
            How many records are left to do.

        Raises:
            ConfigurationError: A role that no engine was named for.
            StoreUnavailableError: An engine does not answer; what is marked stays marked.
        """
        wanted = self._checked(roles)
        space = None if scope is None else self._records.space_of(scope.user_id)
        if scope is not None and space is None:
            return 0
        if not resume:
            now = self._clock()
            for role in wanted:
                if role == "postgres":
                    self._inspection.mark_all(space, now)
                else:
                    self._marks.mark(role, now, space=space)
        total = self._left(wanted, space)
        done = 0
        progress(done, total)

        def report() -> None:
            # What is written meanwhile is left, too, and must not turn the bar back.
            nonlocal done
            done = max(done, total - self._left(wanted, space))
            progress(done, total)

        yield from self._upkeep.heal_space(space, stop=stop, report=report)
        left = self._left(wanted, space)
        if "postgres" in wanted and not left:
            for one in self._inspection.spaces() if space is None else [space]:
                self._inspection.mend(one)
        return left

    def _checked(self, roles: Sequence[IndexRole] | None) -> tuple[IndexRole, ...]:
        there: list[IndexRole] = [own.role for own in self._beside.copies]
        wanted = tuple(dict.fromkeys(roles)) if roles else tuple(there) or ("postgres",)
        for role in wanted:
            if role not in get_args(IndexRole):
                raise ConfigurationError(f"reindex: {role!r} is none of {', '.join(get_args(IndexRole))}")
            if role != "postgres" and role not in there:
                raise ConfigurationError(f"reindex: no engine was named for {role}; give {role}=...")
        for own in self._beside.copies:
            if own.role not in wanted:
                continue
            if not own.projection.answers():
                raise StoreUnavailableError(
                    "it does not answer", engine=own.projection.engine, operation="reindex"
                )
            own.projection.server.version()
        return wanted

    def _left(self, roles: Sequence[IndexRole], space: int | None) -> int:
        return sum(
            self._records.pending_count(space) if role == "postgres" else self._marks.lag(role, space).copies
            for role in roles
        )
