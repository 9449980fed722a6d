"""What is done behind the caller's back, or at once on request: heal, expire, index big memories."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from langchain_memrag.engine.capture import Capture
from langchain_memrag.engine.erasure import Eraser
from langchain_memrag.engine.flow import Flow
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.projecting import Projector
from langchain_memrag.records import Scope
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.records import Pending, RecordStore

__all__ = ["Upkeep"]

logger = logging.getLogger(__name__)

BATCH: Final = 128
"""Records healed before it is asked again whether to stop."""


def _never() -> bool:
    return False


def _nothing() -> None:
    pass


class Upkeep:
    """Finds what is left to do by looking at the record, and does it.

    Args:
        records: Where unfinished work is marked.
        capture: Indexes.
        eraser: Erases.
        indexing: The search index.
        projector: Copies to the engines beside Postgres.
        clock: Says what has expired.
    """

    def __init__(
        self,
        records: RecordStore,
        capture: Capture,
        eraser: Eraser,
        indexing: Indexing,
        projector: Projector,
        clock: Clock,
    ) -> None:
        self._projector = projector
        self._records = records
        self._capture = capture
        self._eraser = eraser
        self._indexing = indexing
        self._clock = clock

    def heal(
        self, scope: Scope | None, *, stop: Callable[[], bool] = _never, wait: bool = False
    ) -> Flow[int]:
        """Index what is pending, of one user or of all.

        Args:
            scope: Of whom.
            stop: Asked between two portions.
            wait: Wait for those who are copying some of it just now, so that it does not count as pending.

        Returns:
            How many turns are still pending, for Postgres or an engine.
        """
        yield from self._indexing.ready()
        space = None
        if scope is not None:
            space = self._records.space_of(scope.user_id)
            if space is None:
                return 0
        yield from self.heal_space(space, stop=stop, wait=wait)
        return self._records.pending_count(space, [own.role for own in self._projector.copies])

    def heal_space(
        self,
        space: int | None,
        *,
        stop: Callable[[], bool] = _never,
        report: Callable[[], None] = _nothing,
        wait: bool = False,
    ) -> Flow[None]:
        """Index what is pending in one space, or in all, and copy it; each record is tried once."""
        yield from self._index(space, stop, report)
        self._projector.heal(space, stop=stop, report=report, wait=wait)

    def _index(self, space: int | None, stop: Callable[[], bool], report: Callable[[], None]) -> Flow[None]:
        last: Pending | None = None
        while not stop():
            waiting = self._records.pending(space=space, limit=BATCH, after=last)
            if not waiting:
                return
            last = waiting[-1]
            for one in sorted({item.space for item in waiting}):
                yield from self._capture.index(one, [item.record for item in waiting if item.space == one])
            report()

    def expire(self, *, stop: Callable[[], bool] = _never) -> None:
        """Erase what has expired, in every space and store."""
        self._eraser.expire(self._clock(), BATCH, stop)
        self._eraser.clear_left(stop)

    def index_big(self, *, stop: Callable[[], bool] = _never) -> None:
        """Give big memories an index of their own for vectors, where the engine needs one."""
        search = self._indexing.search
        for space in search.unprepared():
            if stop():
                return
            search.prepare(space)
