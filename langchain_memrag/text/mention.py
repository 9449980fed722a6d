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
    """The characters of a text that a name has already been found in."""

    def __init__(self, length: int, mentions: Iterable[EntityMention] = ()) -> None:
        self._mask = bytearray(length)
        for mention in mentions:
            self.add(mention.start, mention.end)

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any character between `start` and `end` is taken."""
        return self._mask.find(1, start, end) >= 0

    def add(self, start: int, end: int) -> None:
        """Take the characters between `start` and `end`."""
        self._mask[start:end] = b"\x01" * (end - start)
