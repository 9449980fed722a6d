"""What all records share: frozen, closed, aware times, normalised text, and their closed lists of words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, JsonValue

from langchain_memrag.text import normalise

__all__ = [
    "LONGEST_IDENTIFIER",
    "Arm",
    "Category",
    "Layer",
    "Metadata",
    "Record",
    "RelationType",
    "Role",
    "Source",
    "Text",
    "UtcTime",
]

Role = Literal["user", "assistant", "tool", "system"]
"""Whose message it was."""

Source = Literal["user", "assistant", "tool", "document"]
"""Where a text comes from; only `user` and `assistant` text may ever become a fact about the user."""

Layer = Literal["episode", "fact", "procedure", "chunk"]
"""The layer of memory that a record belongs to."""

Category = Literal["factual", "semantic", "relational"]
"""What a question asks for, which decides how the arms are weighted."""

Arm = Literal["dense", "lexical", "graph", "time", "cache"]
"""A way by which recall finds records; the cache finds what was found before."""

RelationType = Literal[
    "RELATED_TO",
    "MENTIONED_WITH",
    "PART_OF",
    "CAUSES",
    "USES",
    "KNOWS",
    "WORKS_FOR",
    "MEMBER_OF",
    "LIVES_IN",
    "LOCATED_IN",
    "OWNS",
    "CREATED",
    "LIKES",
    "DISLIKES",
    "HAS_PROPERTY",
    "HAPPENED_ON",
]
"""The closed vocabulary of relations; whatever else a text says is `RELATED_TO` plus its free predicate."""

Metadata = Mapping[str, JsonValue]
"""What a caller wants kept beside a turn. Identity keys inside it are data and never decide whose it is."""


LONGEST_IDENTIFIER: Final = 512
"""Characters of a user, session, agent or key; an index holds every one of them whole."""


def _to_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


UtcTime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
"""An aware time, kept in UTC. A naive time is refused."""

Text = Annotated[str, AfterValidator(normalise)]


class Record(BaseModel):
    """Base of all records: frozen, and closed to fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
