"""What a question asks for, by rules, in English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from langchain_memrag.text.entities import find_entities

__all__ = ["IntentGuess", "guess_intent"]

_RELATIONAL = re.compile(r"\b(relat|connect|between|who knows|introduc)|关系|认识", re.IGNORECASE)
_SEMANTIC = re.compile(r"\b(why|how|like|love|prefer|opinion|favou?rite)\b|喜欢|为什么|怎么", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IntentGuess:
    """A guess."""

    category: Literal["factual", "semantic", "relational"]
    entities: tuple[str, ...]
    needs_tools: bool
    confidence: float


def guess_intent(text: str) -> IntentGuess:
    """Guess what a question asks for."""
    names = tuple(one.name for one in find_entities(text))
    if _RELATIONAL.search(text):
        return IntentGuess("relational", names, needs_tools=False, confidence=0.7)
    if _SEMANTIC.search(text):
        return IntentGuess("semantic", names, needs_tools=False, confidence=0.6)
    return IntentGuess("factual", names, needs_tools=False, confidence=0.5)
