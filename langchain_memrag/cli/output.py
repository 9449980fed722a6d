"""What a person or a program reads from a command. Remembered text is data: no markup, no control codes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, JsonValue
from rich.console import Console
from rich.text import Text

from langchain_memrag.prompts import format_time
from langchain_memrag.records import EngineHealth, Health, Recall
from langchain_memrag.text import language_of

__all__ = [
    "boxes",
    "complain",
    "console",
    "harmless",
    "note",
    "say",
    "say_fields",
    "say_health",
    "say_json",
    "say_recall",
]

# A remembered text must not move the cursor or set the title of a reader's terminal.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console(*, stderr: bool = False) -> Console:
    """A console on the stream of this moment; long lines are left to the terminal."""
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def boxes() -> Console:
    """A console for panels and indented texts, which are wrapped to the width of the terminal."""
    return Console(highlight=False, markup=False, emoji=False)


def harmless(text: str) -> str:
    """A text without what a terminal would obey."""
    return _CONTROL.sub("", text)


def say(text: str = "", style: str = "", end: str = "\n") -> None:
    """Print for a person."""
    console().print(Text(harmless(text), style=style), end=end)


def note(text: str, style: str = "dim") -> None:
    """Print beside the result, on stderr."""
    console(stderr=True).print(Text(harmless(text), style=style))


def complain(text: str) -> None:
    """Say what went wrong, in one line."""
    note(f"memrag: {text}", style="bold red")


def say_json(value: BaseModel | Mapping[str, JsonValue]) -> None:
    """Print for a program: one JSON document, text as it was said."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else dict(value)
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()


def say_fields(value: BaseModel) -> None:
    """Print a record for a person, one field a line."""
    for name, content in value.model_dump(mode="json").items():
        if isinstance(content, list):
            content = ", ".join(map(str, content))  # noqa: PLW2901
        say(f"{name.replace('_', ' '):<12} {'-' if content in (None, '') else content}")


def say_health(health: Health) -> None:
    """Print what `doctor` sees."""
    say_fields(health.model_copy(update={"problems": (), "engines": ()}))
    for one in health.engines:
        known = f"{one.engine} {one.version}".strip()
        say(f"{one.role:<12} {known} at {one.place}: {one.state}{_lag(one)}")
    for problem in health.problems:
        say(f"! {problem}", style="bold red")
    if not health.problems:
        say("All is well.", style="green")


def _lag(engine: EngineHealth) -> str:
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (engine.waiting, "to copy"),
            (engine.erasures, "to erase"),
            (engine.refused, "refused"),
        )
        if count
    ]
    if engine.compared:
        parts.append(f"{engine.compared - engine.differing:,} of {engine.compared:,} memories agree")
    return f", {', '.join(parts)}" if parts else ""


def say_recall(recall: Recall, *, explain: bool) -> None:
    """Print what was found, and on request why."""
    if explain:
        say(recall.explain())
        return
    for gone in recall.degraded:
        note(f"without {gone.arm}: {gone.reason}")
    if not recall.hits:
        say(_nothing(recall.query))
    for position, hit in enumerate(recall.hits, 1):
        episode = hit.episode
        who = episode.speaker_or_role if episode else hit.layer
        when = format_time(episode.said_at, language_of(recall.query)) + " " if episode else ""
        say(f"{position:>2}. {when}{who}: {hit.text}")


def _nothing(query: str) -> str:
    return "没有找到相关记忆。" if language_of(query) == "zh" else "Nothing was found."


def plural(count: int, one: str, many: Sequence[str] = ()) -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else (many[0] if many else one + 's')}"
