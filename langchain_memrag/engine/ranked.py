"""From candidates to hits: fuse, spread, recency, no two that say the same, pack. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from langchain_memrag.engine.when import DayRange
from langchain_memrag.ranking import (
    Fused,
    Recipe,
    Share,
    best_of,
    estimate_tokens,
    fuse,
    pack,
    recency,
    spread,
)
from langchain_memrag.records import Episode, Hit, RecallOptions, SignalScore, local_time
from langchain_memrag.stores.postgres.episodes import Glimpse

__all__ = ["Candidates", "Ranked", "hits_of", "neighbours_wanted", "rank"]

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """All that a ranking is made of. Records go by the integers of their ids, which compare fast.

    Attributes:
        asked: For the whole message, and for each single question of it, signal name to
            `(record, raw score)`, best first.
        details: What a signal matched by, by signal and record.
        glimpses: The records that may be shown; whatever else the arms found is passed over.
        days: The days that the question names.
    """

    asked: Sequence[Mapping[str, Sequence[tuple[int, float]]]]
    details: Mapping[tuple[str, int], str]
    glimpses: Mapping[int, Glimpse]
    days: tuple[DayRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record in its place.

    Attributes:
        score: The sum of its shares.
        shares: By signal.
    """

    id: UUID
    score: float
    shares: tuple[Share, ...]


def neighbours_wanted(candidates: Candidates, recipe: Recipe) -> list[int]:
    """Turns that no arm found, but that stand beside the best that some arm did find."""
    best = [hit.id for hit in _fused(candidates, recipe)[: recipe.spread_from]]
    beside = (
        ident
        for one in best
        for ident in (
            *candidates.glimpses[one].before[: len(recipe.after)],
            *candidates.glimpses[one].after[: len(recipe.before)],
        )
    )
    return [ident for ident in dict.fromkeys(beside) if ident not in candidates.glimpses]


def rank(candidates: Candidates, recipe: Recipe, now: datetime, wanted: int) -> list[Ranked]:
    """The records, best first, none saying the same as a better one.

    Args:
        candidates: What the arms found.
        recipe: How to weigh it.
        now: From which age is counted.
        wanted: About how many will be shown; a few more are returned, for those that do not fit.
    """
    fused = _fused(candidates, recipe)
    scores = {hit.id: hit.score for hit in fused}
    shares = {hit.id: list(hit.shares) for hit in fused}
    _add_neighbours(shares, scores, candidates, recipe)
    _add_days(shares, candidates, recipe)
    _add_recency(shares, max(scores.values(), default=0.0), candidates, recipe, now)
    found = [
        Ranked(candidates.glimpses[ident].id, sum(one.share for one in own), tuple(own))
        for ident, own in shares.items()
    ]

    def order(one: Ranked) -> tuple[float, datetime, int]:
        glimpse = candidates.glimpses[one.id.int]
        return one.score, glimpse.occurred_at, glimpse.seq

    # Equal scores: what was said last first.
    return _distinct(sorted(found, key=order, reverse=True), candidates, recipe, 2 * wanted)


def hits_of(
    ranked: Sequence[Ranked], episodes: Mapping[UUID, Episode], candidates: Candidates, options: RecallOptions
) -> tuple[tuple[Hit, ...], int]:
    """The hits that fit the budget, and how many tokens they take."""
    there = [one for one in ranked if one.id in episodes]
    sizes = [estimate_tokens(episodes[one.id].content) for one in there]
    chosen = pack(sizes, options.token_budget, options.k)
    hits = tuple(_hit(there[position], episodes[there[position].id], candidates) for position in chosen)
    return hits, sum(sizes[position] for position in chosen)


def _fused(candidates: Candidates, recipe: Recipe) -> list[Fused[int]]:
    shown = (
        {
            name: [(ident, score) for ident, score in hits if ident in candidates.glimpses]
            for name, hits in signals.items()
        }
        for signals in candidates.asked
    )
    return best_of([fuse(signals, recipe) for signals in shown])


def _add_neighbours(
    shares: dict[int, list[Share]], scores: Mapping[int, float], candidates: Candidates, recipe: Recipe
) -> None:
    before = {ident: one.before for ident, one in candidates.glimpses.items()}
    after = {ident: one.after for ident, one in candidates.glimpses.items()}
    gains = spread(scores, before, after, recipe)
    ordered = sorted(
        (pair for pair in gains.items() if pair[0] in candidates.glimpses), key=lambda pair: -pair[1]
    )
    for position, (ident, gain) in enumerate(ordered, 1):
        shares.setdefault(ident, []).append(Share("neighbours", gain, position, gain))


def _add_days(shares: dict[int, list[Share]], candidates: Candidates, recipe: Recipe) -> None:
    if not candidates.days:
        return
    for ident, one in candidates.glimpses.items():
        day = local_time(one.occurred_at, one.utc_offset).date()
        if any(days.covers(day) for days in candidates.days):
            shares.setdefault(ident, []).append(Share("time", 1.0, 1, recipe.named_day))


def _add_recency(
    shares: dict[int, list[Share]], best: float, candidates: Candidates, recipe: Recipe, now: datetime
) -> None:
    if not recipe.recency_weight:
        return
    newest = sorted(shares, key=lambda ident: candidates.glimpses[ident].occurred_at, reverse=True)
    for position, ident in enumerate(newest, 1):
        age = (now - candidates.glimpses[ident].occurred_at).total_seconds() / _DAY
        fresh = recency(age, recipe.half_life_days)
        shares[ident].append(Share("recency", fresh, position, recipe.recency_weight * best * fresh))


def _distinct(ranked: Sequence[Ranked], candidates: Candidates, recipe: Recipe, most: int) -> list[Ranked]:
    kept: list[Ranked] = []
    seen: list[frozenset[str]] = []
    for one in ranked:
        if len(kept) == most:
            break
        words = _words(candidates.glimpses[one.id.int].text)
        if any(_overlap(words, other) >= recipe.duplicate for other in seen):
            continue
        seen.append(words)
        kept.append(one)
    return kept


def _words(text: str) -> frozenset[str]:
    """What two texts are compared by: words, or pairs of characters where no spaces divide words."""
    folded = text.casefold()
    words = folded.split()
    if len(words) > len(folded) // 12:
        return frozenset(words)
    return frozenset(folded[i : i + 2] for i in range(len(folded) - 1)) or frozenset(words)


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    smaller, larger = sorted((len(left), len(right)))
    if not larger or smaller / larger < 0.5:
        return 0.0
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)


def _hit(one: Ranked, episode: Episode, candidates: Candidates) -> Hit:
    return Hit(
        id=episode.id,
        layer="episode",
        text=episode.content,
        score=one.score,
        signals=tuple(
            SignalScore(
                name=share.signal,
                score=share.score,
                rank=share.rank,
                share=share.share,
                detail=candidates.details.get((share.signal, episode.id.int), ""),
            )
            for share in sorted(one.shares, key=lambda share: -share.share)
        ),
        sources=(episode.id,),
        episode=episode,
    )
