"""Looking whether the stores agree, and making them agree again.

Counts of whole memories and samples of their records are compared; a memory for which work is still
marked is left out, since it differs for a known reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from langchain_memrag.engine.beside import Beside
from langchain_memrag.engine.copies import Copies
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.projection import Projection
from langchain_memrag.errors import ConfigurationError, StoreError, StoreUnavailableError
from langchain_memrag.records import EngineHealth, Health
from langchain_memrag.stores.base import Clock, GraphStore
from langchain_memrag.stores.postgres.inspection import Inspection
from langchain_memrag.stores.postgres.projections import (
    Lag,
    Projected,
    ProjectionStore,
    RegisteredEngine,
)
from langchain_memrag.stores.postgres.records import RecordStore

__all__ = ["Examiner"]

SAMPLED_MEMORIES: Final = 100
"""Memories whose counts are compared, unless all are asked for."""

SAMPLED_RECORDS: Final = 20
"""Records looked at of each."""


@dataclass(slots=True)
class _Findings:
    """What is wrong.

    Attributes:
        problems: For a person.
        differing: Spaces whose copies differ, by role.
    """

    problems: list[str] = field(default_factory=list)
    differing: dict[Projected, list[int]] = field(default_factory=dict)


class Examiner:
    """Examines an open memory.

    Args:
        label: Where it is.
        records: Versions and counts of the record.
        inspection: Looks at the record.
        indexing: The search index in Postgres.
        graph: The graph in Postgres.
        beside: The engines beside Postgres.
        marks: How far they are behind.
        clock: Gives the time.
    """

    def __init__(
        self,
        label: str,
        records: RecordStore,
        inspection: Inspection,
        indexing: Indexing,
        graph: GraphStore,
        beside: Beside,
        marks: ProjectionStore,
        clock: Clock,
    ) -> None:
        self._label = label
        self._records = records
        self._inspection = inspection
        self._indexing = indexing
        self._graph = graph
        self._beside = beside
        self._marks = marks
        self._clock = clock

    def examine(self, *, every: bool) -> Health:
        """Look at everything.

        Args:
            every: Compare all memories, not a hundred of them.
        """
        findings = _Findings()
        health = self._records.health(self._label)
        lost = self._inspection.unindexed(self._vectors())
        if lost.entries or lost.vectors:
            findings.problems.append(
                f"{lost.entries} turns are in no index and {lost.vectors} have no vector: "
                "run `memrag doctor --repair`"
            )
        if damaged := self._inspection.miscounted():
            findings.problems.append(
                f"{len(damaged)} memories lost entries of their index: run `memrag doctor --repair`"
            )
        engines = tuple(self._engines(findings, every=every))
        return health.model_copy(
            update={"engines": engines, "problems": (*health.problems, *findings.problems)}
        )

    def repair(self, heal: Callable[[], None], *, every: bool) -> None:
        """Mark what is missing, erase what should not be there, and copy it anew.

        Args:
            heal: Does what is marked.
            every: As for `examine`.
        """
        damaged = self._inspection.miscounted()
        for space in damaged:
            self._inspection.mark_all(space, self._clock())
        self._inspection.mark_unindexed(self._vectors(), self._clock())
        # First what is known to be left: only then is what differs a fault.
        heal()
        for space in damaged:
            self._inspection.mend(space)
        findings = _Findings()
        list(self._engines(findings, every=every))
        for own in self._beside.copies:
            for space in findings.differing.get(own.role, []):
                # Marked first, so that recall asks Postgres while the copy is made anew.
                self._marks.mark(own.role, self._clock(), space=space)
                own.erase(space, None)
                # And again: another process may have copied in between, and what it copied was erased.
                self._marks.mark(own.role, self._clock(), space=space)
        heal()

    def _vectors(self) -> str | None:
        _ = self._indexing.search
        registered = self._indexing.registered
        return None if registered is None else f"vector_{registered.id}"

    def _engines(self, findings: _Findings, *, every: bool) -> list[EngineHealth]:
        known = self._marks.engines()
        mine = {projection.role: projection for projection in self._beside.projections}
        return [
            self._engine(engine, mine.get(role), findings, every=every)
            for role, engine in sorted(known.items())
        ]

    def _engine(
        self,
        engine: RegisteredEngine,
        projection: Projection[Any] | None,
        findings: _Findings,
        *,
        every: bool,
    ) -> EngineHealth:
        lag = self._marks.lag(engine.role)
        health = EngineHealth(
            role=engine.role,
            engine=engine.name,
            place=engine.place,
            state="elsewhere",
            waiting=lag.copies,
            erasures=lag.erasures,
            refused=lag.refused,
        )
        _note_refused(engine, lag, findings)
        if projection is None:
            findings.problems.append(
                f"{engine.name} is known as the engine for {engine.role}, and was not named here: give "
                f"{engine.role}=..., or drop it with `memrag detach {engine.role}`"
            )
            return health
        try:
            version = projection.server.version()
            projection.answers()
            projection.meet("doctor")
        except StoreUnavailableError as error:
            findings.problems.append(f"{error}")
            return health.model_copy(update={"state": "away"})
        except (StoreError, ConfigurationError) as error:
            findings.problems.append(f"{error}")
            return health.model_copy(update={"state": "away"})
        ready = health.model_copy(update={"state": "ready", "version": version})
        copies = next((own for own in self._beside.copies if own.role == engine.role), None)
        if copies is None:
            return ready
        compared, differing = self._compare(copies, every=every)
        findings.differing[copies.role] = differing
        if differing:
            findings.problems.append(
                f"{engine.name} differs from Postgres in {len(differing)} of {compared} memories: "
                "run `memrag doctor --repair`"
            )
        return ready.model_copy(update={"compared": compared, "differing": len(differing)})

    def _compare(self, copies: Copies[Any], *, every: bool) -> tuple[int, list[int]]:
        spaces = self._inspection.settled(copies.role, limit=None if every else SAMPLED_MEMORIES)
        # Of single records a search engine counts what it keeps by retired embedders, too.
        several = copies.role == "search" and self._inspection.has_retired()
        differing = []
        for space in spaces:
            agrees = copies.left(space, None) == self._held(copies.role, space, None)
            if agrees:
                sample = self._inspection.sample(space, SAMPLED_RECORDS, self._clock())
                left, held = copies.left(space, sample), self._held(copies.role, space, sample)
                agrees = left >= held if several else left == held
            if not agrees:
                differing.append(space)
        # What was written while it was looked at is no difference.
        still = set(self._inspection.settled(copies.role, limit=None)) if differing else set()
        return len(spaces), [space for space in differing if space in still]

    def _held(self, role: Projected, space: int, records: list[UUID] | None) -> int:
        if role == "search":
            search = self._indexing.search
            return search.count(space) if records is None else search.count_of(space, records)
        return sum(self._graph.counts(space)) if records is None else self._graph.count_of(space, records)


def _note_refused(engine: RegisteredEngine, lag: Lag, findings: _Findings) -> None:
    if lag.refused:
        findings.problems.append(
            f"{engine.name} has refused {lag.refused} records more than once: look at its log, then run "
            "`memrag doctor --repair`"
        )
