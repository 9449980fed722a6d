"""From what the arms found to one ranking: values in, values out.

What is here was measured on long conversations in English (LoCoMo), short statements in Chinese
(MemDaily) and questions about dates (TemporalMemoryDataset): NDCG@10 over all questions, each line added
to those above it; in brackets the two halves of the users, none of which is in both.

| step | LoCoMo | MemDaily |
| --- | --- | --- |
| words alone (BM25) | .46 | .71 |
| vectors alone (multilingual-e5-small) | .39 | .79 |
| both, convex, min-max over all | .51 | .81 |
| both, min-max over the best of each, question words left out | .54 | .82 |
| and the turns around a hit | .60 | .82 |
| and the single questions of a message that asks several | .60 | .85 |

Questions that name a day ("what did they discuss on July 3rd?") went from .19 to .34 when what was said on
that day came first.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Generic, TypeVar

__all__ = [
    "RECIPE",
    "RECIPES",
    "Fused",
    "Recipe",
    "Share",
    "best_of",
    "estimate_tokens",
    "fuse",
    "idf",
    "impact",
    "pack",
    "recency",
    "spread",
    "wilson_lower_bound",
]

Id = TypeVar("Id", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How signals become one ranking; named, frozen, and changed only with `dataclasses.replace`.

    Attributes:
        name: Under which a benchmark reports it.
        depth: How many hits an arm returns, or as many as are asked for if that is more; scores are
            normalised over these. 50 to 200 differ by .003.
        weights: Signal name, such as `dense:turn`, to its weight in the convex sum. What is not named
            does not run.
        k1: BM25's saturation of term frequency (Robertson and Zaragoza, 2009).
        b: BM25's share of length normalisation.
        average_length: Terms of an average entry: a constant, so that an impact never goes stale.
        before: What a turn gets of the scores of the turns before it, nearest first.
        after: What a turn gets of the scores of the turns after it, nearest first.
        spread_from: From how many of the best hits new neighbours are drawn in.
        named_day: What a turn gets for being said on a day that the question names.
        single_questions: Whether each question of a message that asks several is asked on its own too.
        recency_weight: The most that recency adds, as a share of the best fused score.
        half_life_days: After so many days that bonus is half.
        duplicate: Word overlap (Jaccard) from which on a later hit says the same as a better one.
        graph_hops: How far the graph arm goes for a factual or semantic question.
        relational_hops: How far it goes for a relational one.
    """

    name: str
    depth: int = 50
    weights: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({"dense:turn": 0.9, "lexical:turn": 1.0, "graph": 0.1})
    )
    k1: float = 0.9
    b: float = 0.35
    average_length: float = 32.0
    before: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    after: tuple[float, ...] = (0.3, 0.2, 0.1)
    spread_from: int = 10
    named_day: float = 1.0
    single_questions: bool = True
    recency_weight: float = 0.02
    half_life_days: float = 30.0
    duplicate: float = 0.9
    graph_hops: int = 0
    relational_hops: int = 1


RECIPE: Final = Recipe("default")
"""The recipe that recall uses."""

RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            RECIPE,
            Recipe("words", weights=MappingProxyType({"lexical:turn": 1.0})),
            Recipe("vectors", weights=MappingProxyType({"dense:turn": 1.0})),
        )
    }
)


def impact(frequency: int, length: int, recipe: Recipe) -> float:
    """The document's part of BM25 for one term, computed once and stored with the posting.

    Args:
        frequency: How often the term stands in the entry; at least 1.
        length: Terms in the entry, repeats counted.
        recipe: Gives `k1`, `b` and the average length.

    Returns:
        Between 0 and 1.
    """
    norm = recipe.k1 * (1 - recipe.b + recipe.b * length / recipe.average_length)
    return frequency / (frequency + norm)


def idf(frequency: int, total: int) -> float:
    """The query's part of BM25: how telling a term is in a space (the form that is never negative).

    Args:
        frequency: Entries that hold the term; counts above `total` are taken as `total`.
        total: Entries in the space.
    """
    holds = min(frequency, total)
    return math.log(1 + (total - holds + 0.5) / (holds + 0.5))


@dataclass(frozen=True, slots=True)
class Share:
    """What one signal knows of a hit.

    Attributes:
        signal: Its name.
        score: Raw, as the engine gave it.
        rank: From 1.
        share: What it adds to the fused score.
    """

    signal: str
    score: float
    rank: int
    share: float


@dataclass(frozen=True, slots=True)
class Fused(Generic[Id]):
    """A hit of several signals.

    Attributes:
        score: The sum of the shares.
        shares: Largest first.
    """

    id: Id
    score: float
    shares: tuple[Share, ...]


def fuse(signals: Mapping[str, Sequence[tuple[Id, float]]], recipe: Recipe) -> list[Fused[Id]]:
    """Convex fusion of min-max normalised scores (Bruch et al., 2023, arXiv:2210.11934).

    Each signal is normalised over what it returned; equal scores, or a single hit, count in full. A score
    that is not finite is passed over, and so is a signal that the recipe does not weigh.

    Args:
        signals: Name to hits, best first; an id that comes twice counts with its best score.
        recipe: Gives the weights.

    Returns:
        Best first; ties keep the order in which ids first came.
    """
    shares: dict[Id, list[Share]] = {}
    for name, hits in signals.items():
        weight = recipe.weights.get(name, 0.0)
        best: dict[Id, float] = {}
        for ident, score in hits:
            if math.isfinite(score) and score > best.get(ident, -math.inf):
                best[ident] = score
        if not weight or not best:
            continue
        low, high = min(best.values()), max(best.values())
        ordered = sorted(best.items(), key=lambda pair: -pair[1])
        for rank, (ident, score) in enumerate(ordered, 1):
            normal = (score - low) / (high - low) if high > low else 1.0
            shares.setdefault(ident, []).append(Share(name, score, rank, weight * normal))
    fused = [
        Fused(ident, math.fsum(one.share for one in own), tuple(sorted(own, key=lambda one: -one.share)))
        for ident, own in shares.items()
    ]
    return sorted(fused, key=lambda hit: -hit.score)


def best_of(rankings: Sequence[Sequence[Fused[Id]]]) -> list[Fused[Id]]:
    """One ranking of several questions: each hit as the question it answers best saw it.

    Args:
        rankings: One for each question, made by the same recipe.

    Returns:
        Best first; ties keep the order in which ids first came.
    """
    best: dict[Id, Fused[Id]] = {}
    for ranking in rankings:
        for hit in ranking:
            known = best.get(hit.id)
            if known is None or hit.score > known.score:
                best[hit.id] = hit
    return sorted(best.values(), key=lambda hit: -hit.score)


def spread(
    scores: Mapping[Id, float],
    before: Mapping[Id, Sequence[Id]],
    after: Mapping[Id, Sequence[Id]],
    recipe: Recipe,
) -> dict[Id, float]:
    """Let each turn share in the scores of the turns around it.

    In a conversation the answer often stands beside the words that match the question.

    Args:
        scores: Fused scores, best first.
        before: For a turn the turns before it, nearest first.
        after: For a turn the turns after it, nearest first.
        recipe: Gives the weights, and from how many hits turns that no arm found are drawn in.

    Returns:
        What is added to each turn that gets anything; turns that no arm found are among them.
    """
    sources = list(scores)[: recipe.spread_from]
    reached = set(scores)
    for source in sources:
        reached.update(list(before.get(source, ()))[: len(recipe.after)])
        reached.update(list(after.get(source, ()))[: len(recipe.before)])
    gains: dict[Id, float] = {}
    for giver, score in scores.items():
        for around, weights in ((after, recipe.before), (before, recipe.after)):
            for taker, weight in zip(around.get(giver, ()), weights, strict=False):
                if taker in reached:
                    gains[taker] = gains.get(taker, 0.0) + weight * score
    return gains


def recency(age_days: float, half_life_days: float) -> float:
    """1 for now, a half after each half-life, never 0; what lies ahead counts as now."""
    return math.exp2(-max(age_days, 0.0) / half_life_days)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes: four Latin characters, or one of CJK, a token."""
    wide = sum(1 for char in text if ord(char) >= 0x2E80)
    return wide + math.ceil((len(text) - wide) / 4)


def pack(sizes: Sequence[int], budget: int, most: int) -> list[int]:
    """Which hits fit, best first: one that is too long is passed over for shorter ones behind it.

    Args:
        sizes: Tokens of each hit, best hit first.
        budget: Tokens in all; 0 means no limit.
        most: Hits at most.

    Returns:
        Positions in `sizes`, ascending.
    """
    chosen: list[int] = []
    left = budget
    for position, size in enumerate(sizes):
        if len(chosen) == most:
            break
        if not budget or size <= left:
            chosen.append(position)
            left -= size
    return chosen


def wilson_lower_bound(successes: int, trials: int, z: float = 1.96) -> float:
    """The rate that a success count is good for (Wilson, 1927): 0 without trials, cautious with few.

    Args:
        successes: 0 to `trials`.
        trials: At least 0.
        z: Standard deviations; 1.96 is 95 % confidence.

    Raises:
        ValueError: Counts out of range.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if not trials:
        return 0.0
    rate = successes / trials
    middle = rate + z * z / (2 * trials)
    margin = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    return max(0.0, (middle - margin) / (1 + z * z / trials))
