"""What a message is after, guessed by rules: a fact, a view of things, or how things hang together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from langchain_memrag.text.english_names import GIVEN_NAMES
from langchain_memrag.text.english_words import COMMON
from langchain_memrag.text.entities import find_entities
from langchain_memrag.text.intent_rules import CHINESE, ENGLISH, Cues
from langchain_memrag.text.language import language_of

Category = Literal["factual", "semantic", "relational"]

_SURE, _LIKELY, _DEFAULT = 0.9, 0.7, 0.5
# An intent shows in the first words; a pasted document after them must not decide it.
_LONGEST_QUESTION = 600
_LONGEST_NAMED = 4000
# A full stop after fewer than three small letters abbreviates (Dr., e.g.).
_SENTENCE_END = re.compile(r"(?<=[!?。！？])\s*|(?<=[a-z]{3}\.)\s+")
_LOWER_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True)
class IntentGuess:
    """What a message seems to ask for.

    Attributes:
        category: `factual` (who, when, how many), `relational` (how people and things are connected) or
            `semantic` (views, reasons, summaries, and whatever is no question).
        entities: The names in it, in order.
        needs_tools: Whether it asks for something to be done or for what no memory holds: live data, sums.
        confidence: From 0 to 1; one half where nothing but the absence of signs decides.
    """

    category: Category
    entities: tuple[str, ...]
    needs_tools: bool
    confidence: float


def guess_intent(text: str) -> IntentGuess:
    """Guess what a message is after, without a model."""
    whole = " ".join(text[:_LONGEST_QUESTION].replace("’", "'").split())
    cues = CHINESE if language_of(whole) == "zh" else ENGLISH
    question = _last_question(whole)
    live = cues.live.search(question) is not None
    needs_tools = live or cues.tools.search(question) is not None or cues.tools.search(whole) is not None
    category, confidence = _category(question, cues, live=live, needs_tools=needs_tools)
    return IntentGuess(category, _entities(text), needs_tools, confidence)


def _last_question(text: str) -> str:
    """The question a longer message ends in: what comes before is talk."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    asking = [sentence for sentence in sentences if sentence.endswith(("?", "？"))]
    return asking[-1] if asking and len(sentences) > 1 else text


def _category(question: str, cues: Cues, *, live: bool, needs_tools: bool) -> tuple[Category, float]:  # noqa: PLR0911
    if needs_tools:
        return ("factual" if live else "semantic"), _LIKELY
    if not cues.asks.search(question):
        return "semantic", _LIKELY if cues.semantic.search(question) else _DEFAULT
    relational = cues.relational.search(question) is not None
    exact = cues.exact.search(question) is not None
    semantic = cues.semantic.search(question) is not None
    if relational and not exact:
        return "relational", _LIKELY if semantic else _SURE
    if exact and not semantic:
        return "factual", _LIKELY if relational else _SURE
    if semantic:
        return "semantic", _LIKELY if exact else _SURE
    if exact or cues.factual.search(question):
        return "factual", _LIKELY
    return "semantic", _DEFAULT


def _entities(text: str) -> tuple[str, ...]:
    found = tuple(mention.name for mention in find_entities(text[:_LONGEST_NAMED]))
    if found or not text.islower():
        return found
    # Typed without capitals: names that are no words are still names.
    names = (word for word in _LOWER_WORD.findall(text[:_LONGEST_QUESTION]) if word in GIVEN_NAMES - COMMON)
    return tuple(dict.fromkeys(names))
