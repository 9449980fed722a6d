"""How good a ranking is: binary NDCG and recall at a depth, averaged over all questions of a set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from retrieval_sets import Question

__all__ = ["Scores", "score"]

Scores = dict[str, float | int]
"""`ndcg@10`, `recall@5`, `recall@10`, and how many `queries`."""

_NDCG_DEPTH = 10
_RECALL_DEPTHS = (5, 10)


def score(questions: Sequence[Question], rankings: Mapping[str, Sequence[str]]) -> Scores:
    """Score the rankings of a set.

    Args:
        questions: What was asked.
        rankings: Passage ids by question id, best first; a question without one has found nothing.
    """
    found = [_scores_of(question, rankings.get(question.id, ())) for question in questions]
    names = ["ndcg@10", *(f"recall@{depth}" for depth in _RECALL_DEPTHS)]
    averages: Scores = {name: fmean(one[name] for one in found) if found else 0.0 for name in names}
    return {**averages, "queries": len(found)}


def _scores_of(question: Question, ranking: Sequence[str]) -> dict[str, float]:
    wanted: frozenset[object] = frozenset(question.evidence)
    ranked: Sequence[object] = ranking
    if question.groups:
        # Several passages state one fact: the first of them counts, the others take no place.
        group_of: dict[str, int] = {}
        for number, group in enumerate(question.groups):
            for passage in group:
                group_of.setdefault(passage, number)
        wanted = frozenset(group_of.values())
        ranked = list(dict.fromkeys(group_of.get(passage, passage) for passage in ranking))
    places = [place for place, passage in enumerate(ranked, start=1) if passage in wanted]
    gain = math.fsum(1 / math.log2(place + 1) for place in places if place <= _NDCG_DEPTH)
    best = math.fsum(1 / math.log2(place + 1) for place in range(1, min(len(wanted), _NDCG_DEPTH) + 1))
    scores = {"ndcg@10": gain / best}
    for depth in _RECALL_DEPTHS:
        scores[f"recall@{depth}"] = sum(place <= depth for place in places) / len(wanted)
    return scores
