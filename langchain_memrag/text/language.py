"""Which of the two languages a text is in."""

from __future__ import annotations

import re
from typing import Literal

from langchain_memrag.text.scripts import HAN, HANGUL, KANA

Language = Literal["en", "zh"]

_HAN = re.compile(f"[{HAN}]")
_KANA_HANGUL = re.compile(f"[{KANA}{HANGUL}]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")
# Japanese prose is a third kana or more; a Chinese text that quotes a Japanese name is far below.
_JAPANESE_SHARE = 0.25


def language_of(text: str) -> Language:
    """`zh` when Chinese characters outnumber Latin words, else `en` (also for Japanese and Korean)."""
    if text.isascii():
        return "en"
    han = len(_HAN.findall(text))
    if not han or len(_KANA_HANGUL.findall(text)) > han * _JAPANESE_SHARE:
        return "en"
    return "zh" if han >= len(_LATIN_WORD.findall(text)) else "en"
