"""What is stored, hashed and compared: cleaning, blankness, keys of names, parts of long texts."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.text.scripts import FLAGS, JOINER, SKIN_TONES, VARIATION

_SURROGATE = re.compile("[\ud800-\udfff]")
# NUL is refused by Postgres; the other C0 controls and DEL mean nothing in a chat. Tab and line ends stay.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Letters by category, yet drawn as nothing: Hangul fillers, the Braille blank.
_DRAWN_AS_NOTHING = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufe0e\ufe0f]"
)
_SPACES = re.compile(r"\s+")
_QUOTES = (
    "\"'`\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f\u300a\u300b\u3008\u3009\u301d-\u301f\uff02\uff07"
)
_NAME_EDGE = re.compile(
    rf"^[\s{_QUOTES},;:!?、。，；：！？…·]+|[\s{_QUOTES},;:!?.、。，；：！？…·]+$",
)
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">", "【": "】", "〔": "〕", "（": "）"}
_STICKS_TO_THE_LEFT = re.compile(f"[{JOINER}{VARIATION}{SKIN_TONES}]")
_FLAG = re.compile(f"[{FLAGS}]")
_SENTENCE_END = re.compile(r"""[。！？!?；…]+["'”’」』）)\]]*|\.["'”’)\]]*(?=\s)""")


def normalise(text: str) -> str:
    """Clean a text for storage without changing what it says.

    Unicode NFC; NUL and other control characters except tab and line ends are dropped; surrogate pairs
    become the character they stand for and lone surrogates are dropped; outer whitespace is stripped.
    Emoji, joiners and right-to-left text are kept. Applying it twice changes nothing.
    """
    if not text.isascii():
        text = _CONTROL.sub("", without_surrogates(text))
        return unicodedata.normalize("NFC", text).strip()
    return _CONTROL.sub("", text).strip()


def without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined to the character they stand for and lone surrogates dropped."""
    if _SURROGATE.search(text):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return text


def is_blank(text: str) -> bool:
    """Whether nothing would be seen of a text: only whitespace, format and invisible characters."""
    return not any(_is_visible(char) for char in normalise(text))


def _is_visible(char: str) -> bool:
    if char.isspace() or char in _DRAWN_AS_NOTHING or "\ufe00" <= char <= "\ufe0f":
        return False
    return unicodedata.category(char) not in {"Cc", "Cf", "Zs", "Zl", "Zp"} and not (
        "\U000e0000" <= char <= "\U000e0fff"
    )


def content_hash(text: str) -> str:
    """SHA-256 of the normalised text, in hexadecimal."""
    return hashlib.sha256(normalise(text).encode()).hexdigest()


def name_key(name: str) -> str:
    """The key under which a name is the same name.

    Width and case are folded and whitespace is collapsed; the script is kept, so that two Chinese names
    never share a key. Quotes, brackets around the whole and sentence punctuation at the ends do not
    count, but the signs of `C++`, `C#` and `.NET` do. Empty only for a name in which nothing is visible.
    """
    folded = unicodedata.normalize("NFKC", normalise(name))
    folded = _INVISIBLE.sub("", folded)
    folded = unicodedata.normalize("NFKC", folded.casefold())
    folded = _SPACES.sub(" ", folded).strip()
    key = folded
    while True:
        stripped = _NAME_EDGE.sub("", key)
        if len(stripped) > 1 and _BRACKETS.get(stripped[0]) == stripped[-1]:
            stripped = stripped[1:-1]
        if stripped == key:
            break
        key = stripped
    return key or folded


def split_parts(text: str, limit: int = 1600) -> list[str]:
    """Cut a long text into parts of at most `limit` characters, each a slice of the text in order.

    A cut falls at the last end of a paragraph, a line, a sentence or a word in the second half of the
    window, in this order of preference, and only otherwise inside a run of characters, and then not
    inside one visible character. Parts in which nothing is visible are left out; a short text is one part.

    Raises:
        ConfigurationError: If `limit` is not positive.
    """
    if limit < 1:
        raise ConfigurationError(f"a part needs a limit of at least 1 character, not {limit}")
    parts: list[str] = []
    start = 0
    while len(text) - start > limit:
        cut = _cut_before(text, start, start + limit)
        parts.append(text[start:cut])
        start = cut
    parts.append(text[start:])
    return [part for part in parts if not is_blank(part)]


def _cut_before(text: str, start: int, end: int) -> int:
    half = start + (end - start) // 2
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, half, end)
        if found >= 0:
            return found + len(mark)
    sentence_ends = [found.end() for found in _SENTENCE_END.finditer(text, half, end)]
    if sentence_ends:
        return sentence_ends[-1]
    for index in range(end, half, -1):
        if text[index - 1].isspace():
            return index
    return _between_characters(text, start, end)


def _between_characters(text: str, start: int, end: int) -> int:
    # 64 steps pass the longest emoji sequence; a longer pile of marks is noise and may be cut anywhere.
    for index in range(end, max(start, end - 64), -1):
        here, before = text[index], text[index - 1]
        if unicodedata.combining(here) or _STICKS_TO_THE_LEFT.match(here) or before == JOINER:
            continue
        if _FLAG.match(here) and _FLAG.match(before) and _flags_before(text, start, index) % 2:
            continue
        if "\udc00" <= here <= "\udfff" and "\ud800" <= before <= "\udbff":
            continue
        return index
    return end


def _flags_before(text: str, start: int, index: int) -> int:
    count = 0
    while index - count > start and _FLAG.match(text[index - count - 1]) and count < 1000:
        count += 1
    return count
