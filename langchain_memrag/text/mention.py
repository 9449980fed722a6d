"""What the finders of entities hand on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

EntityType = Literal[
    "person",
    "organization",
    "place",
    "product",
    "technology",
    "work",
    "handle",
    "host",
    "version",
    "quoted",
    "other",
]


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A name as it stands in a text.

    Attributes:
        name: The words of the name, as written.
        type: What kind of thing it seems to be; `other` where nothing tells.
        start: Index of its first character in the text.
        end: Index after its last character.
    """

    name: str
    type: EntityType
    start: int
    end: int


class Taken:
    """The characters that a name has already been found in."""

    def __init__(self, mentions: Iterable[EntityMention] = ()) -> None:
        self._spans = [(mention.start, mention.end) for mention in mentions]

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any character between `start` and `end` is taken."""
        return any(left < end and start < right for left, right in self._spans)

    def add(self, start: int, end: int) -> None:
        """Take the characters between `start` and `end`."""
        self._spans.append((start, end))
