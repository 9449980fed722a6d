"""The single questions of a message that asks several things at once. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MOST_QUESTIONS", "questions_of"]

MOST_QUESTIONS: Final = 3
"""So many questions of one message are asked on their own: each costs an embedding and a search."""

_SHORTEST: Final = 4
_SENTENCE_END = re.compile(r"(?<=[。！？!?；;])\s*|(?<=\.)\s+")


def questions_of(text: str) -> tuple[str, ...]:
    """The single questions of a message that asks more than one; else nothing.

    A vector of two questions is near the answer to neither, and the words of one drown those of the
    other. The last ones are kept: what people want to know comes after what they tell.

    Example:
        >>> questions_of("Where does Ann work? And when is her birthday?")
        ('Where does Ann work?', 'And when is her birthday?')
        >>> questions_of("你好。我表哥的电话是多少？")
        ()
    """
    pieces = (piece.strip() for piece in _SENTENCE_END.split(text))
    asked = [piece for piece in pieces if len(piece) >= _SHORTEST and piece.endswith(("?", "？"))]
    return tuple(asked[-MOST_QUESTIONS:]) if len(asked) > 1 else ()
