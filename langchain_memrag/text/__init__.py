"""The pure text layer: cleaning, terms, names, dates and intents, in English and Chinese. No I/O."""

from __future__ import annotations

from langchain_memrag.text.dates import DateSpan, find_dates
from langchain_memrag.text.entities import EntityMention, EntityType, find_entities
from langchain_memrag.text.intent import IntentGuess, guess_intent
from langchain_memrag.text.language import Language, language_of
from langchain_memrag.text.normalise import content_hash, is_blank, name_key, normalise, split_parts
from langchain_memrag.text.tokenise import query_terms, term_hash, terms

__all__ = [
    "DateSpan",
    "EntityMention",
    "EntityType",
    "IntentGuess",
    "Language",
    "content_hash",
    "find_dates",
    "find_entities",
    "guess_intent",
    "is_blank",
    "language_of",
    "name_key",
    "normalise",
    "query_terms",
    "split_parts",
    "term_hash",
    "terms",
]
