"""The recipe with one part taken out at a time, so that each part shows what it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from langchain_memrag.ranking import RECIPE, Recipe

__all__ = ["ABLATIONS"]


def _without(signal: str) -> Recipe:
    """Without a signal, in whichever views it searches."""
    left = {name: weight for name, weight in RECIPE.weights.items() if name.partition(":")[0] != signal}
    return replace(RECIPE, name=f"no-{signal}", weights=MappingProxyType(left))


_RECIPES: Final = (
    _without("dense"),
    _without("lexical"),
    _without("graph"),
    replace(RECIPE, name="no-neighbours", before=(), after=()),
    replace(RECIPE, name="no-named-days", named_day=0.0),
    replace(RECIPE, name="no-single-questions", single_questions=False),
    replace(RECIPE, name="no-recency", recency_weight=0.0),
    replace(RECIPE, name="no-diversity", duplicate=2.0),
)

ABLATIONS: Final[Mapping[str, Recipe]] = MappingProxyType({recipe.name: recipe for recipe in _RECIPES})
"""By what a line of the table calls it."""
