"""Names found by rules, in English and Chinese: people, places, organisations, works, software, addresses.

Marks are read first (quotes, addresses, identifiers), then capital letters, then, where there is Chinese,
the tagger's names. Talk ("OK", "Thanks"), family words, months, weekdays, holidays, nationalities and the
capital of a sentence's first word name nothing.
"""

from __future__ import annotations

import re

from langchain_memrag.text.chinese_entities import find_chinese_names
from langchain_memrag.text.latin_names import find_latin_names
from langchain_memrag.text.marked_names import find_identifiers, find_quoted
from langchain_memrag.text.mention import EntityMention, EntityType, Taken
from langchain_memrag.text.normalise import name_key
from langchain_memrag.text.scripts import HAN

__all__ = ["EntityMention", "EntityType", "find_entities"]

_HAN = re.compile(f"[{HAN}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A longer text is looked through in slices, so that the cost stays in proportion to its length.
_SLICE = 4000


def find_entities(text: str) -> list[EntityMention]:
    """The names in a text, in order, each once (the first of those that share a `name_key`).

    A version names its product too: `Python 3.11` gives `Python` and `Python 3.11`, which overlap. A prefix
    that names the speaker is the caller's to strip. Never raises, whatever the text.
    """
    text = _SURROGATE.sub("\ufffd", text)
    mentions: list[EntityMention] = []
    for offset, part in _slices(text):
        mentions.extend(
            EntityMention(mention.name, mention.type, mention.start + offset, mention.end + offset)
            for mention in _find(part)
        )
    seen: dict[str, EntityMention] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.start, mention.end)):
        seen.setdefault(name_key(mention.name), mention)
    return list(seen.values())


def _find(text: str) -> list[EntityMention]:
    quoted = find_quoted(text)
    taken = Taken(len(text), quoted)
    marked = [mention for mention in find_identifiers(text) if not taken.overlaps(mention.start, mention.end)]
    taken = Taken(len(text), [*quoted, *marked])
    in_chinese = not text.isascii() and _HAN.search(text) is not None
    latin = find_latin_names(text, taken, in_chinese=in_chinese)
    if not in_chinese:
        return [*quoted, *marked, *latin]
    taken = Taken(len(text), [*quoted, *marked, *latin])
    return [*quoted, *marked, *latin, *find_chinese_names(text, taken)]


def _slices(text: str) -> list[tuple[int, str]]:
    slices, start = [], 0
    while len(text) - start > _SLICE:
        end = start + _SLICE
        found = max(text.rfind(mark, start + 1, end) for mark in ("\n", "。", ". ", " "))
        cut = found + 1 if found > start else end
        slices.append((start, text[start:cut]))
        start = cut
    slices.append((start, text[start:]))
    return slices
