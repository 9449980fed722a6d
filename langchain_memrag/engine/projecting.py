"""Keeping the engines beside Postgres like the record: copies after the write, marks for what was missed.

    T2 commits, with marks -> copy at once -> the marks go.   Away? The marks stay; the sweep copies later.

Copies are idempotent by record id. Postgres holds all that recall needs, so a copy that is late costs
speed and nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from langchain_memrag.engine.copies import Copies, Copyable
from langchain_memrag.errors import MemRAGError, StoreError, StoreUnavailableError
from langchain_memrag.records import StoreCount
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.projections import WHOLE_SPACE, ProjectionStore

__all__ = ["Projector"]

logger = logging.getLogger(__name__)

BATCH: Final = 256
"""Records that are copied in one go."""

TURN: Final = 5.0
"""Seconds that a copy waits until others have made room; longer, and it is left to the sweep."""


class Projector:
    """Copies records to the engines beside Postgres, and erases what is forgotten from them.

    Args:
        copies: What each engine holds.
        marks: What is left to do for them.
        episodes: What was said.
        embedder: Names the embedder that this process knows the memory by.
        clock: By which it is judged whether refused work is tried again.
    """

    def __init__(
        self,
        copies: Sequence[Copies[Any]],
        marks: ProjectionStore,
        episodes: EpisodeReader,
        embedder: Callable[[], int | None],
        clock: Clock,
    ) -> None:
        self._embedder = embedder
        self.copies = tuple(copies)
        self._marks = marks
        self._episodes = episodes
        self._clock = clock
        # A copy that is on its way to an engine that stands still holds a connection to Postgres. Those who
        # read shall not run out of them, nor those who write.
        self._room = {own.role: threading.BoundedSemaphore(marks.most_copies) for own in self.copies}

    def copy(self, what: Copyable) -> None:
        """Copy what was just indexed. An engine that is away costs nothing but a mark, which is there."""
        for own in self.copies:
            self._copy(own, what)

    def heal(
        self,
        space: int | None,
        *,
        stop: Callable[[], bool],
        report: Callable[[], None],
        wait: bool = False,
    ) -> None:
        """Erase and copy what was left; each record is tried once.

        Args:
            space: Of one space, or of all where it is `None`.
            stop: Asked between two portions.
            report: Called after each.
            wait: Wait for those who are copying some of it just now.
        """
        for own in self.copies:
            if self._is_there(own):
                self._erase_left(own, stop)
                self._copy_left(own, space, stop, report, wait)

    def erase(self, space: int, records: Sequence[UUID] | None) -> list[StoreCount]:
        """Erase records, or all of a space, from every engine that answers; the others follow later.

        Returns:
            What each engine gave up.
        """
        found = []
        for own in self.copies:
            gone = self._erase(own, space, records)
            if gone is not None:
                found.append(StoreCount(store=own.projection.engine, kind=own.kind, count=gone))
        return found

    def residue(self, space: int, records: Sequence[UUID] | None) -> list[StoreCount]:
        """What engines still hold of records, or of a space. One that cannot be asked may hold all."""
        found = []
        for own in self.copies:
            engine = own.projection.engine
            try:
                found.append(StoreCount(store=engine, kind=own.kind, count=own.left(space, records)))
            except StoreError:
                count = 1 if records is None else len(records)
                found.append(StoreCount(store=engine, kind="erasures to come", count=count))
        return found

    def _is_there(self, own: Copies[Any]) -> bool:
        """See whether an engine answers, and what it lacks, before it is read what is to be done for it."""
        try:
            if not own.projection.answers():
                return False
            own.projection.meet("copy")
        except StoreUnavailableError as error:
            logger.debug("%s is behind: %s", own.projection.engine, error)  # its breaker has said so, once
            return False
        except MemRAGError as error:
            logger.warning("nothing is copied to %s: %s", own.projection.engine, error)
            return False
        return True

    def _copy(self, own: Copies[Any], what: Copyable, *, wait: bool = False) -> bool:
        """Copy records that are marked; tells whether the engine answered."""
        room = self._room[own.role]
        if not room.acquire(timeout=TURN):
            logger.debug("%s is behind: it has too much to do", own.projection.engine)
            return False
        try:
            return self._copy_now(own, what, wait)
        finally:
            room.release()

    def _copy_now(self, own: Copies[Any], what: Copyable, wait: bool) -> bool:
        try:
            # Before the marks are locked: an engine that is met for the first time is given more of them.
            own.projection.meet("copy")
            embedder = self._embedder()
            with self._marks.copying(own.role, what.space, what.records, embedder, wait=wait) as claimed:
                own.write(what, claimed)
        except StoreUnavailableError as error:
            logger.debug("%s is behind: %s", own.projection.engine, error)  # its breaker has said so, once
            return False
        except StoreError as error:
            logger.warning("%s refused a copy: %s", own.projection.engine, error)
            self._marks.refused(own.role, what.space, what.records, self._clock(), error)
        except MemRAGError as error:
            logger.warning("nothing is copied to %s: %s", own.projection.engine, error)
            return False
        return True

    def _copy_left(
        self,
        own: Copies[Any],
        space: int | None,
        stop: Callable[[], bool],
        report: Callable[[], None],
        wait: bool,
    ) -> None:
        after: tuple[int, UUID] | None = None
        while not stop():
            due = self._marks.due(own.role, self._clock(), space=space, limit=BATCH, after=after)
            if not due:
                return
            after = due[-1]
            for one in sorted({space for space, _ in due}):
                records = [record for space, record in due if space == one]
                if not self._copy_again(own, one, records, wait):
                    return
            report()

    def _copy_again(self, own: Copies[Any], space: int, records: Sequence[UUID], wait: bool) -> bool:
        read = self._episodes.to_index(space, records, self._clock())
        what = own.made_of(space, read)
        # What has expired, or is half erased, has nothing to copy; its marks go all the same.
        return self._copy(own, Copyable(space, tuple(records), what.entries, what.graph), wait=wait)

    def _erase(self, own: Copies[Any], space: int, records: Sequence[UUID] | None) -> int | None:
        marked = [WHOLE_SPACE] if records is None else list(records)
        if not marked:
            return 0
        try:
            gone = own.erase(space, records)
        except StoreUnavailableError as error:
            logger.warning("%s erases later: %s", own.projection.engine, error)
            return None
        except StoreError as error:
            logger.warning("%s refused to erase: %s", own.projection.engine, error)
            self._marks.refused(f"erase_{own.role}", space, marked, self._clock(), error)
            return None
        self._marks.erased(own.role, space, marked)
        return gone

    def _erase_left(self, own: Copies[Any], stop: Callable[[], bool]) -> None:
        while not stop():
            waiting = self._marks.erasures(own.role, self._clock(), limit=BATCH)
            if not waiting:
                return
            for space, records in waiting.items():
                whole = WHOLE_SPACE in records
                if self._erase(own, space, None if whole else records) is None:
                    return
                if whole:
                    self._marks.erased(own.role, space, records)
