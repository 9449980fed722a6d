"""How scores spread over the graph from some entities: the same arithmetic on every engine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from langchain_memrag.stores.base import GraphFind

__all__ = ["DECAY", "MOST_HOPS", "Reached", "combined", "rarity"]

DECAY: Final = 0.5
"""What is left of a score after one hop along a relation with much support."""

MOST_HOPS: Final = 2


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity on the way, and how well it was reached.

    Attributes:
        space: Whose entity it is.
        key: Its key.
        score: 0 to 1.
        path: Names from a seed to it.
    """

    space: int
    key: str
    score: float
    path: tuple[str, ...]


def rarity(mentions: int) -> float:
    """How telling an entity is: 1 for one mention, less for one that stands everywhere."""
    return 1.0 / (1.0 + math.log(max(mentions, 1)))


def combined(mentions: Iterable[tuple[Reached, UUID]], limit: int) -> list[GraphFind]:
    """Records by how well the entities that they mention were reached; ties by newest record.

    Args:
        mentions: Each entity reached, with each record that mentions it.
        limit: How many records at most.
    """
    missed: dict[UUID, float] = {}
    paths: dict[UUID, Reached] = {}
    for one, record in mentions:
        missed[record] = missed.get(record, 1.0) * (1.0 - one.score)
        if record not in paths or one.score > paths[record].score:
            paths[record] = one
    # A record that is reached in several ways is likelier than one that is reached in one.
    ordered = sorted(missed, key=lambda record: (1.0 - missed[record], record), reverse=True)[:limit]
    return [GraphFind(record, 1.0 - missed[record], paths[record].path) for record in ordered]
