"""The commands. Each reads its arguments, calls the facade, and prints; the work is done elsewhere."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from langchain_memrag.cli.maintaining import jobs_app, register
from langchain_memrag.cli.output import say, say_fields, say_health, say_json, say_recall
from langchain_memrag.cli.running import Exit, opened, prepare_process, reporting
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import RecallFilter, Scope, TurnFields

__all__ = ["app", "run"]

app = typer.Typer(
    name="memrag",
    help="Long-term memory for agents: remember, recall, and see why.",
    epilog="Exit codes: 0 done, 1 done in part, 2 a mistake in the input, 3 the database cannot be used, "
    "4 the model failed, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    # A trace with local variables would print what users said.
    pretty_exceptions_enable=False,
)


class RoleName(StrEnum):
    """Whose message it was."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Story(StrEnum):
    """Which stories the demo tells."""

    EN = "en"
    ZH = "zh"
    ALL = "all"


register(app)
app.add_typer(jobs_app)

User = Annotated[str, typer.Option("--user", "-u", help="Whose memory; there is no default.")]
Session = Annotated[str | None, typer.Option("--session", "-s", help="The conversation.")]
Data = Annotated[
    str | None,
    typer.Option("--data", "-d", help="Data folder or postgresql:// URL [MEMRAG_LOCATION, else ./.memrag]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for a program.")]


def run() -> None:
    """Run the command that the process was started with."""
    prepare_process()
    app()


@app.command()
def chat(
    user: User,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="Continue this conversation; else a new one.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The answering model, such as openai:gpt-5-mini [MEMRAG_MODEL]")
    ] = None,
    fast_model: Annotated[str | None, typer.Option(help="A model for intents [MEMRAG_FAST_MODEL]")] = None,
    data: Data = None,
) -> None:
    """Talk with an agent that remembers. Without a model it answers from memory alone."""
    from langchain_memrag.cli.chatting import chat_with  # LangGraph takes a second to load: not for --help

    with reporting("What you said is stored."), opened(data) as memrag:
        ended = chat_with(memrag, user=user, session=session, model=model, fast_model=fast_model)
    raise typer.Exit(ended)


@app.command()
def remember(  # noqa: PLR0917 - typer reads options from parameters
    text: Annotated[list[str], typer.Argument(help="What was said; `-` reads it from the standard input.")],
    user: User,
    session: Session = None,
    role: Annotated[RoleName, typer.Option(help="Whose message it was.")] = RoleName.USER,
    speaker: Annotated[str | None, typer.Option(help="The name of who said it.")] = None,
    occurred_at: Annotated[
        str | None, typer.Option(help="When, with its UTC offset: 2026-03-02T09:00:00+00:00")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The same key again stores nothing twice.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Store what was said: each argument is one turn."""
    with reporting():
        fields: TurnFields = {"role": role.value, "speaker": speaker, "key": key}
        fields["occurred_at"] = _time(occurred_at)
        turns = [sys.stdin.read() if turn == "-" else turn for turn in text]
        scope = Scope(user, session)
        with opened(data) as memrag:
            receipt = memrag.remember(turns, scope, **fields)
            if receipt.pending:
                memrag.flush(scope)
    if as_json:
        say_json(receipt)
        return
    say(f"stored {receipt.stored}, known already {receipt.duplicates}")
    for identifier in receipt.ids:
        say(str(identifier), style="dim")


@app.command()
def recall(
    question: Annotated[str, typer.Argument(help="In English or Chinese.")],
    user: User,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="Search in this conversation only.")
    ] = None,
    k: Annotated[int, typer.Option("-k", "--limit", help="How many hits at most.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each hit was found.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find what is known about a question. Never calls a model."""
    with reporting():
        scope = Scope(user)
        where = RecallFilter(session_id=Scope(user, session).session_id)
        with opened(data) as memrag:
            found = memrag.recall(question, scope, k=k, where=where)
    if as_json:
        say_json(found)
    else:
        say_recall(found, explain=explain)


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="JSON lines; `-` is the standard input."),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Names the source [the file's name]; the same name and line again stores nothing."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Lines that are written at once.")] = 256,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Store a file of messages, one JSON object a line; run it again to go on where it stopped.

    Fields: user_id, content, and if you like session_id, role, speaker, occurred_at, id, metadata.
    """
    from langchain_memrag.cli.loading import import_file

    with reporting("Run the same command again to go on."), opened(data) as memrag:
        report = import_file(memrag, file, name=name, batch=batch, quiet=as_json)
    if as_json:
        say_json(report)
    raise typer.Exit(Exit.PARTIAL if report.bad else Exit.DONE)


@app.command()
def stats(user: User, data: Data = None, as_json: Json = False) -> None:
    """The size of one user's memory."""
    with reporting():
        scope = Scope(user)
        with opened(data) as memrag:
            found = memrag.stats(scope)
    if as_json:
        say_json(found)
    else:
        say_fields(found)


@app.command()
def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Index and copy what is missing, erase what should be gone.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Compare every memory across the stores, not a hundred of them.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Look whether everything is well: what is connected, versions, counts, what is left to do."""
    with reporting("Run it again to go on."), opened(data) as memrag:
        health = memrag.maintenance.repair(every=every) if repair else memrag.doctor(every=every)
    if as_json:
        say_json(health)
    else:
        say_health(health)
    raise typer.Exit(Exit.PARTIAL if health.problems else Exit.DONE)


@app.command()
def migrate(data: Data = None, as_json: Json = False) -> None:
    """Bring the database's schema up to this version; every other command does so too when it opens it."""
    with reporting(), opened(data) as memrag:
        health = memrag.doctor()
    if as_json:
        say_json(health)
    else:
        say(f"The schema is at version {health.schema_version}.", style="green")


@app.command()
def demo(
    language: Annotated[Story, typer.Option("--language", "-l", help="Which story.")] = Story.ALL,
    data: Annotated[
        str | None,
        typer.Option("--data", "-d", help="Play here and keep it; else in a folder that is removed."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell a story over three sessions in three processes, and answer from memory. No model, no network."""
    from langchain_memrag.cli.demo import play_demo

    languages = ("en", "zh") if language is Story.ALL else (language.value,)
    with reporting():
        as_told = play_demo(languages, location=data, as_json=as_json)
    raise typer.Exit(Exit.DONE if as_told else Exit.PARTIAL)


@app.command("demo-session", hidden=True)
def demo_session(
    story: Annotated[str, typer.Argument()],
    number: Annotated[int, typer.Argument()],
    user: Annotated[str, typer.Option("--user")],
    report: Annotated[Path | None, typer.Option("--report")] = None,
    quiet: Annotated[bool, typer.Option("--quiet")] = False,
) -> None:
    """Play one session of a story: a process of its own, started by `demo`."""
    from langchain_memrag.cli.demo import play_session

    with reporting():
        as_told = play_session(story, number, user=user, report=report, quiet=quiet)
    raise typer.Exit(Exit.DONE if as_told else Exit.PARTIAL)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError("--occurred-at must look like 2026-03-02T09:00:00+00:00") from None
    if moment.tzinfo is None:
        raise ConfigurationError("--occurred-at needs its UTC offset, as in 2026-03-02T09:00:00+00:00")
    return moment
