"""The lexical analyser, one for documents and queries: a text becomes the terms it can be found by.

English words become their Snowball stems. Chinese text becomes dictionary words, with character bigrams
where the dictionary has none, so that a name which was cut differently in another sentence still meets
itself. Identifiers (`gpt-5-mini`, `192.168.0.1`, `user_42`, `C++`) are terms as a whole and in parts.
Widths, cases and accents are folded. Nothing visible yields nothing: emoji are terms, and a text of
symbols alone yields its symbols.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import rjieba
from snowballstemmer.english_stemmer import EnglishStemmer

from langchain_memrag.text import stopwords
from langchain_memrag.text.normalise import without_surrogates
from langchain_memrag.text.scripts import (
    EMOJI,
    EMOJI_TAGS,
    FLAGS,
    HAN,
    HANGUL,
    INDIC,
    JOINER,
    KANA,
    SKIN_TONES,
    UNSPACED,
    VARIATION,
)

_CONTENT, _QUESTION, _STOP = 0, 1, 2
# Longer runs are base64, hashes or noise: neither stemmed nor kept in a cache.
_LONGEST_WORD = 48
_CACHED_WORDS = 1 << 16

_BIGRAMMED = KANA + HANGUL + UNSPACED
# An address; a number with thousands; else words held together by one joining sign each. The signs before
# and after belong to `@ann`, `#12`, `.NET`, `C++`, `C#` and `Disney+`.
_SHAPE = (
    r"(?:https?|ftp)://[^\s<>\"'`]+"
    r"|(?<![\d.])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\d,])"
    r"|(?:[@#]|(?<![\w.])\.(?=[A-Za-z]))?{word}(?:[.\-@:/'&+#]{word})*(?:\+{{1,2}}|\#)?"
)
_ASCII = re.compile(_SHAPE.format(word="[A-Za-z0-9_]+"))
_WORD = rf"(?:[^\W{HAN}{_BIGRAMMED}]|[{INDIC}])+"
_HAN_RUN = re.compile(f"[{HAN}]+")
_BIGRAM_RUN = re.compile(f"[{_BIGRAMMED}]+")
_EMOJI_UNIT = f"(?:[{FLAGS}]{{2}}|[{EMOJI}{FLAGS}][{VARIATION}{SKIN_TONES}{EMOJI_TAGS}\u20e3]*)"
_EMOJI_RUN = re.compile(f"{_EMOJI_UNIT}(?:{JOINER}{_EMOJI_UNIT})*")
_ANY = re.compile(
    "|".join((_HAN_RUN.pattern, _BIGRAM_RUN.pattern, _EMOJI_RUN.pattern, _SHAPE.format(word=_WORD)))
)

_SIMPLE = re.compile(r"[a-z]+")
_PIECES = re.compile(rf"(?:[^\W_]|[{INDIC}])+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_POSSESSIVE = re.compile(r"'(?:s|ll|d|ve|re|m)?$")
_ACRONYM = re.compile(r"[a-z](?:\.[a-z])+")
_VERSION = re.compile(r"v(\d+(?:\.\w+)*)")
_URL_TAIL = ".,;:!?)]}"
# Accents, Hebrew points, Arabic vowel signs and the lengthening stroke: people leave them out when they ask.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]"
)
_MARKED = re.compile("[\u00c0-\u058f\u0591-\u06ff\u1e00-\u1fff]")
_UNSEEN = re.compile(
    "[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff]"
)
_LOOKALIKES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"})


class _Token(NamedTuple):
    """What one stretch of text contributes, and whether it counts."""

    level: int
    terms: tuple[str, ...]


class _Segment(NamedTuple):
    """A Chinese segment; a loose one (a single character, a guess) is also seen through bigrams."""

    level: int
    terms: tuple[str, ...]
    loose: bool


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repeats; stop words are left out unless there is nothing else."""
    return _pick(list(_tokens(text)), _QUESTION) or _symbols(text)


def query_terms(text: str) -> list[str]:
    """The terms of a question: the same as a document's, without the words that make it a question.

    When nothing else is left, they are the terms of the text.
    """
    tokens = list(_tokens(text))
    return _pick(tokens, _CONTENT) or _symbols(text)


@lru_cache(maxsize=_CACHED_WORDS)
def term_hash(term: str) -> int:
    """A 32-bit signed number for a term, the same in every process and on every machine."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big", signed=True)


def _pick(tokens: list[_Token], level: int) -> list[str]:
    for highest in range(level, _STOP + 1):
        picked = [term for token in tokens if token.level <= highest for term in token.terms]
        if picked:
            return picked
    return []


def _symbols(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", without_surrogates(text))
    hidden = {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"}
    return [char for char in folded if not char.isspace() and unicodedata.category(char) not in hidden]


def _tokens(text: str) -> Iterator[_Token]:
    if text.isascii():
        yield from map(_token, _ASCII.findall(text))
        return
    for run in _ANY.findall(_fold(text)):
        if _HAN_RUN.match(run):
            yield from _han(run)
        elif _BIGRAM_RUN.match(run):
            yield _Token(_CONTENT, _bigrams(run) or (run,))
        elif _EMOJI_RUN.match(run):
            yield _Token(_CONTENT, _emoji(run))
        else:
            yield _token(run)


def _fold(text: str) -> str:
    text = unicodedata.normalize("NFKC", without_surrogates(text))
    text = _UNSEEN.sub("", text).translate(_LOOKALIKES)
    if _MARKED.search(text):
        text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))
    return text


def _token(run: str) -> _Token:
    return _short_token(run) if len(run) <= _LONGEST_WORD else _compound(run)


@lru_cache(maxsize=_CACHED_WORDS)
def _short_token(run: str) -> _Token:
    word = run.casefold()
    if word in stopwords.ENGLISH:
        return _Token(_STOP, (word,))
    if word in stopwords.ENGLISH_QUESTION:
        return _Token(_QUESTION, (word,))
    if _SIMPLE.fullmatch(word) and not _is_camel(run):
        return _Token(_CONTENT, (_stem(word),))
    return _compound(run)


def _is_camel(run: str) -> bool:
    return not (run.islower() or run.isupper() or run[1:].islower())


def _compound(run: str) -> _Token:
    """An identifier, a possessive, a number: the whole, and the parts that carry something."""
    if "://" in run:
        run = run.split("://", 1)[1].rstrip(_URL_TAIL)
    word = run.casefold()
    if "," in word:
        word = run = word.replace(",", "")
    if "'" in word:
        run = _POSSESSIVE.sub("", run)
        word = run.casefold()
        if _SIMPLE.fullmatch(word):
            return _short_token(run) if len(run) <= _LONGEST_WORD else _Token(_CONTENT, (word,))
    found = [_stem(word)]
    if "/" in word and "." in word.split("/", 1)[0]:
        found.append(word.split("/", 1)[0])
    if _ACRONYM.fullmatch(word):
        return _Token(_CONTENT, (word, word.replace(".", "")))
    version = _VERSION.fullmatch(word)
    if version:
        found += (version[1], *version[1].split("."))
    found.extend(_parts(run))
    return _Token(_CONTENT, tuple(dict.fromkeys(part for part in found if part)))


def _parts(run: str) -> Iterator[str]:
    for piece in _PIECES.findall(run):
        word = piece.casefold()
        if word in stopwords.ENGLISH:
            continue
        yield _stem(word)
        if piece.isascii() and _is_camel(piece) and len(piece) <= _LONGEST_WORD:
            humps = (hump.lower() for hump in _CAMEL.findall(piece))
            yield from (_stem(hump) for hump in humps if len(hump) > 2 and hump not in stopwords.ENGLISH)


def _stem(word: str) -> str:
    # The stemmer keeps its state in itself, so threads must not share one; making one costs little.
    if len(word) > _LONGEST_WORD or not _SIMPLE.fullmatch(word):
        return word
    return str(EnglishStemmer().stemWord(word))


def _emoji(run: str) -> tuple[str, ...]:
    bare = re.sub(f"[{VARIATION}]", "", run)
    units = [re.sub(f"[{SKIN_TONES}]", "", unit) or unit for unit in bare.split(JOINER)]
    return tuple(dict.fromkeys((bare, *units)))


def _han(run: str) -> Iterator[_Token]:
    loose = ""
    for segment in rjieba.cut(run, hmm=True):
        level, found, is_loose = _segment(segment) if len(segment) <= _LONGEST_WORD else _analyse(segment)
        if is_loose:
            loose += segment
        else:
            yield from _loose_bigrams(loose)
            loose = ""
        yield _Token(level, found)
    yield from _loose_bigrams(loose)


def _loose_bigrams(run: str) -> Iterator[_Token]:
    if len(run) > 1:
        yield _Token(_CONTENT, _bigrams(run))


def _analyse(segment: str) -> _Segment:
    if segment in stopwords.CHINESE:
        return _Segment(_STOP, (segment,), loose=False)
    if segment in stopwords.CHINESE_QUESTION:
        return _Segment(_QUESTION, (segment,), loose=False)
    known = len(segment) > 1 and rjieba.has_word(segment)
    inner = tuple(_inner_words(segment)) if known else ()
    if known and not inner and len(segment) == 3:
        # Mostly names (王小明): people are asked for by the given name alone.
        inner = _bigrams(segment)
    # A guess of two characters is its own bigram.
    whole = () if len(segment) == 2 and not known else (segment,)
    return _Segment(_CONTENT, (*inner, *whole), loose=not known)


_segment = lru_cache(maxsize=_CACHED_WORDS)(_analyse)


def _inner_words(word: str) -> Iterable[str]:
    for size in (2, 3):
        if len(word) > size:
            for start in range(len(word) - size + 1):
                inner = word[start : start + size]
                if rjieba.has_word(inner) and inner not in stopwords.CHINESE:
                    yield inner


def _bigrams(run: str) -> tuple[str, ...]:
    return tuple(left + right for left, right in pairwise(run))
