"""What the graph knows: entities, and how they relate."""

from __future__ import annotations

from uuid import UUID

from langchain_memrag.records.basics import Record, RelationType, UtcTime

__all__ = [
    "Entity",
    "Relation",
]


class Entity(Record):
    """Something with a name, as one user's memory knows it.

    Attributes:
        key: NFKC, case-folded, script kept: what equality is decided by.
        name: As it was first written.
        type: What kind of thing it is, such as `person` or `place`.
        aliases: Other spellings that were seen.
        mentions: How many records mention it.
    """

    key: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    mentions: int = 0


class Relation(Record):
    """A directed edge between two entities of one space.

    Attributes:
        source: Key of the entity it starts from.
        target: Key of the entity it points to.
        type: From the closed vocabulary.
        predicate: The words of the text, where there are any.
        weight: How many records support it.
        records: The ids of records that support it.
        valid_from: From when on it holds in the world; `None` means unknown.
        valid_to: Until when it held; `None` means it still does.
    """

    source: str
    target: str
    type: RelationType
    predicate: str = ""
    weight: int = 1
    records: tuple[UUID, ...] = ()
    valid_from: UtcTime | None = None
    valid_to: UtcTime | None = None
