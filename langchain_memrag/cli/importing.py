"""A file of JSON lines, as turns to remember: parsed, judged and grouped. Reads bytes, writes nothing.

Each line is one message; all fields but `user_id` and `content` may be missing or null:

    {"user_id": "ann", "session_id": "s1", "role": "user", "speaker": "Ann", "content": "Hello",
     "occurred_at": "2026-03-02T09:00:00+00:00", "id": "m1", "metadata": {"channel": "web"}}

An unusable line becomes a `BadLine` with its number and a reason in which no user's text stands;
the other lines are not touched by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, Final, NoReturn

from pydantic import ValidationError

from langchain_memrag.errors import ScopeError
from langchain_memrag.records import Role, Scope, Turn
from langchain_memrag.text import is_blank

__all__ = ["MAX_LINE", "BadLine", "Batch", "Batches", "GoodLine", "line_of", "read_lines"]

MAX_LINE: Final = 32 * 1024 * 1024
"""The longest line in bytes; a file that is one endless line must not fill the memory."""

FIELDS: Final = ("user_id", "session_id", "role", "speaker", "content", "occurred_at", "id", "metadata")

_ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "system": "system",
}


@dataclass(frozen=True, slots=True)
class GoodLine:
    """A line that can be remembered, counted from 1, and where the file stands after it."""

    number: int
    scope: Scope
    turn: Turn
    size: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be remembered, counted from 1, and why."""

    number: int
    reason: str
    size: int = 0


class _UnusableError(ValueError):
    """Why a line cannot be used; the message is for the person who imports."""


def read_lines(file: BinaryIO, source: str) -> Iterator[GoodLine | BadLine]:
    """Judge every line of a file that is not blank, one after the other.

    Args:
        file: Opened for bytes; read once, a line at a time.
        source: Names the file in the keys of its turns; the same name again means the same turns.
    """
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        size = len(raw)
        if size > MAX_LINE and not raw.endswith(b"\n"):
            size += _skip_line(file)
            yield BadLine(number, f"longer than {MAX_LINE // 1024**2} MB", size)
            continue
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield line_of(raw, number, source, size)


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while rest := file.readline(MAX_LINE):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped


def line_of(raw: bytes, number: int, source: str, size: int = 0) -> GoodLine | BadLine:
    """One line, judged.

    Example:
        >>> line_of(b'{"user_id": "ann", "content": "Hello"}', 1, "chat.jsonl").turn.content
        'Hello'
        >>> line_of(b'{"user_id": "ann"}', 2, "chat.jsonl").reason
        'content is missing'
    """
    try:
        fields = _fields_of(raw)
        scope = _scope_of(fields)
        return GoodLine(number, scope, _turn_of(fields, scope, number, source), size)
    except (_UnusableError, ScopeError) as problem:
        return BadLine(number, str(problem), size)


def _fields_of(raw: bytes) -> dict[str, object]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _UnusableError("not UTF-8") from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except _UnusableError:
        raise
    except json.JSONDecodeError as error:
        raise _UnusableError(f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):
        raise _UnusableError("not JSON that can be read: nested too deep, or a number too long") from None
    if not isinstance(value, dict):
        raise _UnusableError("not a JSON object")
    if not set(value) <= set(FIELDS):
        # Not skipped: a misspelt occurred_at would silently date the turn today.
        raise _UnusableError(f"a field that is not known; the fields are {', '.join(FIELDS)}")
    return {name: content for name, content in value.items() if content is not None}


def _refuse_constant(_: str) -> NoReturn:
    raise _UnusableError("a number that is not finite")


def _text(fields: Mapping[str, object], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _UnusableError(f"{name} must be a string")
    return value


def _scope_of(fields: Mapping[str, object]) -> Scope:
    user = _text(fields, "user_id")
    if user is None:
        raise _UnusableError("user_id is missing")
    return Scope(user, _text(fields, "session_id"))


def _turn_of(fields: Mapping[str, object], scope: Scope, number: int, source: str) -> Turn:
    content = _text(fields, "content")
    if content is None:
        raise _UnusableError("content is missing")
    if is_blank(content):
        raise _UnusableError("content is blank")
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        raise _UnusableError("metadata must be an object")
    try:
        return Turn(
            content=content,
            role=_role_of(fields),
            speaker=_text(fields, "speaker"),
            occurred_at=_time_of(fields),
            key=_key_of(fields, scope, content, number, source),
            metadata=metadata,
        )
    except ValidationError as error:
        names = {str(problem["loc"][0]) for problem in error.errors(include_input=False) if problem["loc"]}
        raise _UnusableError(f"{', '.join(sorted(names))} cannot be used") from None


def _role_of(fields: Mapping[str, object]) -> Role:
    name = _text(fields, "role")
    role = _ROLES.get("user" if name is None else name)
    if role is None:
        raise _UnusableError("role must be user, assistant, tool or system")
    return role


def _time_of(fields: Mapping[str, object]) -> datetime | None:
    text = _text(fields, "occurred_at")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment.astimezone(UTC)  # the first and the last day of the calendar do not fit everywhere
    except (ValueError, OverflowError):
        raise _UnusableError("occurred_at is not an ISO 8601 time between the years 1 and 9999") from None
    if moment.tzinfo is None:
        raise _UnusableError("occurred_at needs its UTC offset, as in 2026-03-02T09:00:00+00:00") from None
    return moment


def _key_of(fields: Mapping[str, object], scope: Scope, content: str, number: int, source: str) -> str:
    """What makes a second import of the same line a no-op.

    Its id where it has one, else its place in the file and what it says: two "yes" are two turns.
    """
    own = fields.get("id")
    if own is not None and (isinstance(own, bool) or not isinstance(own, str | int)):
        raise _UnusableError("id must be a string or a whole number")
    place = [str(own)] if own is not None and str(own).strip() else [str(number), content]
    kind = "id" if len(place) == 1 else "place"
    parts = json.dumps([kind, source, scope.session_id, *place])
    return "import:" + hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of one user and session, in the order of the file."""

    scope: Scope
    lines: tuple[GoodLine, ...]


@dataclass
class Batches:
    """Gathers lines by user and session, so that a file in which many alternate is still written in batches.

    Args:
        size: Lines in a full batch.
        held: Characters that may wait in all; beyond it the fullest batches are handed out early.
    """

    size: int = 256
    held: int = 16 * 1024 * 1024
    _waiting: dict[Scope, list[GoodLine]] = field(default_factory=dict, init=False)
    _weight: int = field(default=0, init=False)

    def add(self, line: GoodLine) -> Iterator[Batch]:
        """Take a line; give what is ready to be written."""
        waiting = self._waiting.setdefault(line.scope, [])
        waiting.append(line)
        self._weight += _weight(line)
        if len(waiting) >= self.size:
            yield self._take(line.scope)
        elif self._weight > self.held:
            yield from self.rest()

    def rest(self) -> Iterator[Batch]:
        """Give all that still waits."""
        for scope in list(self._waiting):
            yield self._take(scope)

    def _take(self, scope: Scope) -> Batch:
        lines = self._waiting.pop(scope)
        self._weight -= sum(map(_weight, lines))
        return Batch(scope, tuple(lines))


def _weight(line: GoodLine) -> int:
    # The record around a text weighs about a kilobyte, however short the text.
    return len(line.turn.content) + line.size + 1024
