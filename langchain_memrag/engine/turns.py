"""What `remember` is given, as drafts of episodes: validated, normalised, in order. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from langchain_core.messages import BaseMessage, ChatMessage
from langchain_core.utils.uuid import uuid7
from pydantic import ValidationError

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Role, Source, Turn, TurnFields
from langchain_memrag.stores.base import Draft
from langchain_memrag.text import is_blank

__all__ = ["Rememberable", "drafts_of", "turns_of"]

Rememberable = str | BaseMessage | Turn | tuple[str, str]
"""One thing to remember: a text, a LangChain message, a turn, or `(role, text)`."""

_ROLES: Final[Mapping[str, Role]] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}

_SOURCES: Final[Mapping[Role, Source]] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "system": "document",
}


def turns_of(what: Rememberable | Sequence[Rememberable], fields: TurnFields) -> list[Turn]:
    """What `remember` was given, as turns: validated, normalised, in order.

    Args:
        what: One thing or several. A message's own id, name and role win over the call's fields.
        fields: What holds for all turns that do not say otherwise.

    Raises:
        ConfigurationError: A blank text, an empty list, an unknown role, or a field of the wrong kind;
            says which turn, counted from 0, and never its text.
    """
    items = [what] if isinstance(what, str | BaseMessage | Turn) or _is_pair(what) else list(what)
    if not items:
        raise ConfigurationError("there is nothing to remember: the list of turns is empty")
    if fields.get("key") is not None and len(items) > 1:
        raise ConfigurationError(
            f"one key was given for {len(items)} turns; give each its own with Turn(content, key=...)"
        )
    return [_turn(item, fields, position) for position, item in enumerate(items)]


def _is_pair(what: object) -> bool:
    return (
        isinstance(what, tuple)
        and len(what) == 2
        and all(isinstance(part, str) for part in what)
        and what[0] in _ROLES
    )


def _turn(item: object, fields: TurnFields, position: int) -> Turn:
    try:
        turn = _validated(item, fields, position)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "content"
        raise ConfigurationError(f"turn {position}: {where}: {first['msg']}") from None
    if is_blank(turn.content):
        raise ConfigurationError(f"turn {position} is blank; there is nothing in it to remember")
    return turn


def _validated(item: object, fields: TurnFields, position: int) -> Turn:
    if isinstance(item, Turn):
        own = {name: getattr(item, name) for name in item.model_fields_set}
        return Turn.model_validate({**fields, **own})
    if isinstance(item, str):
        return Turn.model_validate({**fields, "content": item})
    if isinstance(item, BaseMessage):
        return Turn.model_validate({**fields, **_message_fields(item, position)})
    if isinstance(item, tuple | list) and len(item) == 2:
        role, content = item
        return Turn.model_validate({**fields, "role": _role(role, position), "content": content})
    raise ConfigurationError(
        f"turn {position}: cannot remember a {type(item).__name__}; "
        f"give a string, a message, a Turn or a (role, text) pair"
    )


def _message_fields(message: BaseMessage, position: int) -> dict[str, object]:
    kind = (
        message.role
        if isinstance(message, ChatMessage)
        else message.type.removesuffix("MessageChunk").lower()
    )
    found: dict[str, object] = {"content": message.text, "role": _role(kind, position)}
    if message.id:
        found["key"] = message.id
    if message.name and message.type != "tool":
        found["speaker"] = message.name
    return found


def _role(role: object, position: int) -> Role:
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        raise ConfigurationError(
            f"turn {position}: unknown role; use one of {', '.join(sorted(set(_ROLES.values())))}"
        )
    return known


def drafts_of(turns: Sequence[Turn], now: datetime) -> list[Draft]:
    """Turns as they will be recorded, with ids of their own.

    Raises:
        ConfigurationError: Metadata that is not JSON, such as a NaN.
    """
    return [_draft(turn, now, position) for position, turn in enumerate(turns)]


def _draft(turn: Turn, now: datetime, position: int) -> Draft:
    said = turn.occurred_at or now
    offset = said.utcoffset() or timedelta(0)
    try:
        metadata = (
            json.dumps(dict(turn.metadata), ensure_ascii=False, allow_nan=False) if turn.metadata else "{}"
        )
        expires_at = None if turn.ttl is None else now + turn.ttl
    except ValueError:
        raise ConfigurationError(f"turn {position}: metadata holds a number that is not finite") from None
    except OverflowError:
        expires_at = None  # beyond the year 9999: it never expires
    return Draft(
        id=uuid7(),
        role=turn.role,
        content=turn.content,
        speaker=turn.speaker,
        occurred_at=_in_utc(said, position),
        utc_offset=int(offset.total_seconds()),
        source=turn.source or _SOURCES[turn.role],
        key=turn.key,
        expires_at=expires_at,
        metadata=_storable(metadata),
    )


def _in_utc(said: datetime, position: int) -> datetime:
    try:
        return said.astimezone(UTC)
    except OverflowError:
        raise ConfigurationError(
            f"turn {position}: occurred_at is outside the years 1 to 9999 in UTC"
        ) from None


def _storable(metadata: str) -> str:
    # Postgres refuses NUL and lone surrogates in JSON, escaped or not; they are cleaned as in content.
    if "\\u0000" not in metadata and not any("\ud800" <= char <= "\udfff" for char in metadata):
        return metadata
    return json.dumps(_cleaned(json.loads(metadata)), ensure_ascii=False)


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(item) for name, item in value.items()}
    return value
