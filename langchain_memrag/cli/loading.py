"""`memrag import`: judged lines into memory, batch by batch, with progress and a report."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import BaseModel, ConfigDict
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from langchain_memrag.cli.importing import BadLine, Batch, Batches, GoodLine, read_lines
from langchain_memrag.cli.output import console, note, plural, say
from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError, MemRAGError, ScopeError

__all__ = ["ImportProblem", "ImportReport", "import_file"]

_SHOWN: Final = 20
"""Bad lines that are printed as they are met; the rest is counted."""
_LISTED: Final = 10_000
"""Bad lines that a report lists; a file that is wrong throughout must not fill the memory."""


class ImportProblem(BaseModel):
    """A line that was left out, counted from 1, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: int
    reason: str


class ImportReport(BaseModel):
    """What an import did.

    Attributes:
        stored: Lines that are new.
        duplicates: Lines that were stored before.
        bad: Lines that could not be used.
        pending: Lines that are safe but could not be indexed yet; doing it again tries once more.
        users: How many users the lines belong to.
        problems: The bad lines, the first ten thousand of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stored: int
    duplicates: int
    bad: int
    pending: int
    users: int
    problems: tuple[ImportProblem, ...] = ()


@dataclass
class _Tally:
    """Counts of an import that is under way."""

    quiet: bool
    stored: int = 0
    duplicates: int = 0
    pending: int = 0
    bad: int = 0
    users: set[str] = field(default_factory=set)
    problems: list[ImportProblem] = field(default_factory=list)

    def reject(self, line: BadLine) -> None:
        self.bad += 1
        if self.bad <= _LISTED:
            self.problems.append(ImportProblem(line=line.number, reason=line.reason))
        if not self.quiet and self.bad <= _SHOWN:
            note(f"line {line.number}: {line.reason}", style="yellow")

    def report(self) -> ImportReport:
        return ImportReport(
            stored=self.stored,
            duplicates=self.duplicates,
            bad=self.bad,
            pending=self.pending,
            users=len(self.users),
            problems=tuple(sorted(self.problems, key=lambda problem: problem.line)),
        )


def import_file(memrag: MemRAG, path: Path, *, name: str | None, batch: int, quiet: bool) -> ImportReport:
    """Store the lines of a file.

    Args:
        memrag: Where to.
        path: The file; `-` is the standard input.
        name: Names the source in the keys of its turns; by default the name of the file.
        batch: Lines of one user and session that are written at once.
        quiet: Print nothing.

    Raises:
        StoreError: The database is away. What was reported so far is stored; doing it again goes on there.
    """
    tally = _Tally(quiet)
    batches = Batches(batch)
    source = name or ("stdin" if str(path) == "-" else path.name)
    with _reading(path) as (file, size), _progress(size, shown=not quiet) as (progress, task):
        for line in read_lines(file, source):
            progress.advance(task, line.size)
            if isinstance(line, BadLine):
                tally.reject(line)
                continue
            for ready in batches.add(line):
                _store(memrag, ready, tally)
        for ready in batches.rest():
            _store(memrag, ready, tally)
    if tally.stored:
        memrag.sweep()
        tally.pending = memrag.flush() if tally.pending else 0
    report = tally.report()
    if not quiet:
        _say_report(report)
    return report


@contextmanager
def _reading(path: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    if str(path) == "-":
        yield sys.stdin.buffer, None
        return
    try:
        # By bytes where the system names files by bytes: the locale may not know the letters of the name.
        name = str(path).encode("utf-8", "surrogateescape") if os.name == "posix" else path
        file = open(name, "rb")  # noqa: SIM115, PTH123
    except OSError as error:
        raise ConfigurationError(f"the file cannot be read: {error.strerror}") from None
    with file:
        about = os.fstat(file.fileno())
        yield file, about.st_size if stat.S_ISREG(about.st_mode) else None


@contextmanager
def _progress(size: int | None, *, shown: bool) -> Iterator[tuple[Progress, TaskID]]:
    screen = console(stderr=True)
    with Progress(
        TextColumn("importing"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not (shown and screen.is_terminal),
    ) as progress:
        yield progress, progress.add_task("importing", total=size)


def _store(memrag: MemRAG, batch: Batch, tally: _Tally) -> None:
    """Write a batch; where memory refuses a turn of it, find out which and keep the others."""
    try:
        _write(memrag, batch, tally)
    except ScopeError as error:
        _reject(batch.lines, error, tally)
    except ConfigurationError as error:
        if len(batch.lines) == 1:
            _reject(batch.lines, error, tally)
            return
        _store_one_by_one(memrag, batch, tally)


def _store_one_by_one(memrag: MemRAG, batch: Batch, tally: _Tally) -> None:
    refused: list[tuple[GoodLine, ConfigurationError]] = []
    for line in batch.lines:
        try:
            _write(memrag, Batch(batch.scope, (line,)), tally)
        except ConfigurationError as error:
            refused.append((line, error))
    if len(refused) == len(batch.lines):
        raise refused[0][1]  # it is not the lines: an embedder that is not the index's, say
    for line, reason in refused:
        _reject((line,), reason, tally)


def _reject(lines: Sequence[GoodLine], error: MemRAGError, tally: _Tally) -> None:
    for line in lines:
        tally.reject(BadLine(line.number, str(error)))


def _write(memrag: MemRAG, batch: Batch, tally: _Tally) -> None:
    receipt = memrag.remember([line.turn for line in batch.lines], batch.scope)
    tally.stored += receipt.stored
    tally.duplicates += receipt.duplicates
    tally.pending += receipt.pending
    tally.users.add(batch.scope.user_id)


def _say_report(report: ImportReport) -> None:
    if report.bad > _SHOWN:
        note(f"and {plural(report.bad - _SHOWN, 'more bad line')}", style="yellow")
    say(
        f"stored {plural(report.stored, 'line')} of {plural(report.users, 'user')}, "
        f"known already {report.duplicates:,}, bad {report.bad:,}, still to be indexed {report.pending:,}"
    )
