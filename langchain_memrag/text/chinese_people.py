"""Where the Chinese name of a person ends, given how the tagger cut the text."""

from __future__ import annotations

import re
from typing import NamedTuple

import rjieba

from langchain_memrag.text import chinese_names as names
from langchain_memrag.text.scripts import HAN

_HAN_WORD = re.compile(f"[{HAN}]+")
# Function words: where the tagger glued one to a name, it is not part of it.
_FUNCTION = "是在有和的了去来说要就都也被把给对跟叫会能让做吃与很不还也从到想用为个位"
_TAIL = _FUNCTION + "写买打看听走问带送等住开当穿找教学唱"
FUNCTION_INSIDE = re.compile(f"[{_FUNCTION}]")
_GIVEN_TAGS = frozenset("n nr nrt ns nz a g j x ng nrfg an b zg ag z".split())  # noqa: SIM905
_LAST_TAGS = _GIVEN_TAGS | {"vg", "dg", "q"}
_WORDLIKE = names.WORDLIKE_SURNAMES


class Token(NamedTuple):
    """A word as the tagger cut it, with its place in the text."""

    word: str
    tag: str
    start: int
    end: int


def is_foreign(word: str) -> bool:
    """Whether every character is one that foreign names are written in."""
    return bool(word) and all(char in names.FOREIGN for char in word)


def name_end(token: Token, following: Token | None) -> int:
    """Where the name of a person that starts with a token ends; 0 where none does."""
    if following is not None and _HAN_WORD.fullmatch(following.word):
        if token.word in names.PREFIXES:
            return _nickname_end(following)
        if _is_split_name(token, following):
            return following.end
    end = _end_inside(token)
    if end and following is not None and end == following.start and _completes(token, following):
        return following.end
    return end


def _nickname_end(following: Token) -> int:
    """小 + 陈, and 小 + 刘写, where the tagger glued a verb to the surname."""
    first = following.word[0]
    if first not in names.SURNAMES:
        return 0
    if len(following.word) == 1:
        return following.end if following.tag.startswith("nr") else 0
    glued = len(following.word) == 2 and first not in _WORDLIKE and not rjieba.has_word(following.word)
    return following.start + 1 if glued else 0


def _is_split_name(token: Token, following: Token) -> bool:
    """Whether a surname and the word after it are one name: 冯 + 程程, 欧阳 + 娜娜."""
    given = following.word
    single = len(token.word) == 1 and token.word in names.SURNAMES
    if not (single or token.word in names.COMPOUND_SURNAMES):
        return False
    if len(given) > 2 or following.tag not in _GIVEN_TAGS or FUNCTION_INSIDE.search(given):
        return False
    if given in names.NOT_NAMES or given in names.TITLES:
        return False
    likely = all(char in names.GIVEN_ENDINGS for char in given)
    if len(given) == 1:
        plain = token.word in _WORDLIKE and rjieba.has_word(token.word + given)
        return likely and token.tag.startswith("nr") and not plain
    return token.tag.startswith("nr") or (likely and token.word not in _WORDLIKE)


def _completes(token: Token, following: Token) -> bool:
    """Whether one more character belongs to a name that was cut short: 刘子 + 轩."""
    return (
        len(token.word) == 2
        and len(following.word) == 1
        and (following.word in names.GIVEN_ENDINGS or following.tag == "nr")
        and following.tag in _LAST_TAGS
        and not FUNCTION_INSIDE.search(following.word)
    )


def _end_inside(token: Token) -> int:
    """Where the name ends that a token is, or starts with; 0 where it is none."""
    word = token.word
    if word in names.NOT_NAMES or word in names.NOT_PLACES or not 2 <= len(word) <= 6:
        return 0
    if word in names.FAMOUS or token.tag == "nrfg":
        return token.end
    if len(word) == 2 and word[0] in names.PREFIXES:
        return token.end if _is_nickname(token) else 0
    if token.tag in {"nr", "nrt"} and len(word) > 2 and is_foreign(word) and rjieba.has_word(word):
        return token.end
    if token.tag != "nr":
        return 0
    known = rjieba.has_word(word)
    while not known and len(word) > 2 and word[-1] in _TAIL:
        word = word[:-1]
    return token.start + len(word) if _is_full_name(word, known=known) else 0


def _is_full_name(word: str, *, known: bool) -> bool:
    compound = word.startswith(names.COMPOUND_SURNAMES)
    if not (compound or word[0] in names.SURNAMES) or len(word) > (4 if compound else 3):
        return False
    if FUNCTION_INSIDE.search(word[1:]):
        return False
    if len(word) == 2:
        return word[1] in names.GIVEN_ENDINGS or not (known or word[0] in _WORDLIKE)
    return known or len(word) > 3 or not _is_plain(word[1:])


def _is_nickname(token: Token) -> bool:
    word = token.word
    if word in names.PREFIXED_WORDS:
        return False
    if word[1] in names.SURNAMES - _WORDLIKE:
        return True
    return (
        token.tag.startswith("nr") and word[0] in "小阿" and word[1] in names.SURNAMES | names.GIVEN_ENDINGS
    )


def _is_plain(word: str) -> bool:
    """Whether two characters after a surname are an everyday word, so that the three are no name."""
    tagged = rjieba.tag(word, hmm=False)
    return len(tagged) == 1 and tagged[0][1][:1] in {"v", "d", "p", "r", "c", "t", "m", "f", "u"}
