"""The commands for whoever runs a memory: reindex, reembed, worker, jobs, detach."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_memrag.cli.output import console, note, say, say_json
from langchain_memrag.cli.running import Exit, opened, reporting
from langchain_memrag.records import Scope
from langchain_memrag.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_memrag.engine.reindexing import IndexRole

__all__ = ["jobs_app", "register"]

jobs_app = typer.Typer(
    name="jobs", help="The jobs that wait, run or failed.", no_args_is_help=True, rich_markup_mode=None
)

Data = Annotated[
    str | None,
    typer.Option("--data", "-d", help="Data folder or postgresql:// URL [MEMRAG_LOCATION, else ./.memrag]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for a program.")]


class Index(StrEnum):
    """What can be filled anew."""

    POSTGRES = "postgres"
    SEARCH = "search"
    GRAPH = "graph"


_NAMES: Final[Mapping[Index, IndexRole]] = {
    Index.POSTGRES: "postgres",
    Index.SEARCH: "search",
    Index.GRAPH: "graph",
}


class Role(StrEnum):
    """What an engine beside Postgres may be for."""

    SEARCH = "search"
    GRAPH = "graph"
    CACHE = "cache"


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(reindex)
    app.command()(reembed)
    app.command()(worker)
    app.command()(detach)


def reindex(
    user: Annotated[str | None, typer.Option("--user", "-u", help="Of this user; else of all.")] = None,
    index: Annotated[
        list[Index] | None,
        typer.Option("--engine", "-e", help="What to fill [every engine beside Postgres, or Postgres]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Only do what an earlier run left.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Fill an empty or a new engine from the record, without embedding again. Stop it and it can go on."""
    with reporting("Run it again with --resume to go on."):
        scope = None if user is None else Scope(user)
        roles: list[IndexRole] | None = [_NAMES[one] for one in index] if index else None
        with opened(data) as memrag, _bar("records") as show:
            left = memrag.maintenance.reindex(scope, roles, resume=resume, progress=show)
    if as_json:
        say_json({"left": left})
    elif left:
        note(f"{left:,} records are left; run it again with --resume", style="bold red")
    else:
        say("All is indexed.", style="green")
    raise typer.Exit(Exit.PARTIAL if left else Exit.DONE)


def reembed(
    embeddings: Annotated[
        str, typer.Argument(help="The new embedder: `local`, or such as openai:text-embedding-3-small.")
    ],
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Afterwards drop the vectors that are not searched any more.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Move to another embedder while recall keeps answering with the old one. Stop it and it can go on."""
    hint = "The old vectors are whole; run it again to go on."
    with reporting(hint), opened(data, embeds=False) as memrag, _bar("entries") as show:
        moved = memrag.maintenance.reembed(embeddings, progress=show)
    # Opened anew, it knows the new embedder: an engine keeps the vectors of each apart.
    hint = "The memory has moved; run it again to fill the engines."
    with reporting(hint), opened(data, embeds=False) as memrag:
        if read_settings().search is not None:
            with _bar("records to copy") as show:
                memrag.maintenance.reindex(None, ["search"], resume=True, progress=show)
        dropped = memrag.maintenance.drop_retired() if drop_old else 0
    if as_json:
        say_json({"moved": moved, "dropped": dropped})
    else:
        say("The memory is at the new embedder: open it with that from now on.", style="green")
        if not drop_old:
            say("The old vectors are kept; run it again with --drop-old when no process uses them.")


def worker(
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Pieces of work at once.")] = 1,
    data: Data = None,
) -> None:
    """Do background work until stopped: index, copy, erase what expired. Many may run beside each other."""
    ended = threading.Event()

    def end(number: int, frame: object) -> None:  # noqa: ARG001 - what signal handlers are given
        ended.set()

    with reporting(), opened(data) as memrag:
        before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            note("Working; stop with Ctrl-C.")
            memrag.maintenance.work(ended, concurrency=concurrency)
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def detach(role: Annotated[Role, typer.Argument(help="What the engine was for.")], data: Data = None) -> None:
    """Do without an engine beside Postgres from now on. What it holds stays where it is."""
    with reporting(), opened(data, embeds=False) as memrag:
        memrag.maintenance.detach(role.value)
    say(f"Postgres plays the role of {role.value} again.", style="green")


@jobs_app.command("list")
def list_jobs(data: Data = None, as_json: Json = False) -> None:
    """Show the jobs that wait, run or failed."""
    with reporting(), opened(data, embeds=False) as memrag:
        jobs = memrag.maintenance.jobs()
    if as_json:
        say_json({"jobs": [job.model_dump(mode="json") for job in jobs]})
        return
    for job in jobs:
        where = "" if job.space is None else f" of memory {job.space}"
        say(f"{job.id:>8}  {job.status:<9}  {job.task}{where}, tried {job.attempts} times")
    if not jobs:
        say("There are none.")


@jobs_app.command("retry")
def retry_job(
    ident: Annotated[int, typer.Argument(metavar="ID", help="Its number, from `memrag jobs list`.")],
    data: Data = None,
) -> None:
    """Run a job again that ended without success."""
    with reporting(), opened(data, embeds=False) as memrag:
        memrag.maintenance.retry_job(ident)
    say("It will run again.", style="green")


@jobs_app.command("drop")
def drop_job(
    ident: Annotated[int, typer.Argument(metavar="ID", help="Its number, from `memrag jobs list`.")],
    data: Data = None,
) -> None:
    """Remove a job that does not run. The work that it pointed to is found by the next sweep."""
    with reporting(), opened(data, embeds=False) as memrag:
        memrag.maintenance.drop_job(ident)
    say("It is gone.", style="green")


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, which a terminal shows and a file does not."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    place = console(stderr=True)
    # Into a file it would write an empty line.
    with Progress(*columns, console=place, transient=True, disable=not place.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield show
