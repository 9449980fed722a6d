"""How scores spread over the graph from some entities: the same arithmetic on every engine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from langchain_memrag.stores.base import GraphFind

__all__ = ["DECAY", "DIGITS", "MOST_HOPS", "Reached", "combined", "passed_on", "rarity"]

DECAY: Final = 0.5
"""What is left of a score after one hop along a relation with much support."""

MOST_HOPS: Final = 2

DIGITS: Final = 12
"""Decimals that scores are kept to: logarithms differ in the last ones, and ties must be ties everywhere."""


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
    return round(1.0 / (1.0 + math.log(max(mentions, 1))), DIGITS)


def passed_on(score: float, weight: int, mentions: int) -> float:
    """What an entity is worth that was reached from another one.

    Args:
        score: Of the entity before it.
        weight: The support of the relation between them.
        mentions: Of the entity itself.
    """
    return round(score * DECAY * (weight / (weight + 1)) * rarity(mentions), DIGITS)


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
    scores = {record: round(1.0 - rest, DIGITS) for record, rest in missed.items()}
    ordered = sorted(scores, key=lambda record: (scores[record], record), reverse=True)[:limit]
    return [GraphFind(record, scores[record], paths[record].path) for record in ordered]
