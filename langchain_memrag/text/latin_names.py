"""Names in capital letters: runs of words, acronyms, CamelCase, and which capitals name nothing."""

from __future__ import annotations

# ruff: noqa: SIM905  (a page of words is easier to read and to amend than a page of quoted words)
import re
from collections.abc import Sequence
from functools import cached_property

from langchain_memrag.text import english_names as names
from langchain_memrag.text import english_words as words
from langchain_memrag.text.mention import EntityMention, EntityType, Taken
from langchain_memrag.text.scripts import HAN, HANGUL, KANA

_LETTER = rf"[^\W\d_{HAN}{KANA}{HANGUL}]"
_WORD = re.compile(
    rf"(?:[A-Z]\.)+(?=\s?[A-Z])|{_LETTER}(?:{_LETTER}|\d)*(?:[&'’-]{_LETTER}(?:{_LETTER}|\d)*)*"
)
_CAMEL = re.compile(r"[a-z]{1,2}[A-Z]\w+|\w*[a-z]\w*[A-Z]\w*")
_SMALL_CAMEL = re.compile(r"[a-z]{1,2}[A-Z]\w+")
_CODE = re.compile(r"[a-z]+\d+[a-z][a-z0-9]*")
_POSSESSIVE = re.compile(r"['’][sS]$")
_OPENING = " \t\"'“‘(*•>[「『《–—-"
_SENTENCE_ENDS = ".!?…\n\r:;。！？：；"
_ABBREVIATIONS = frozenset("mr mrs ms dr prof st jr sr vs gen sgt capt rev hon".split())
_MODEL_NUMBER = re.compile(r" \d{1,3}(?=\s*(?:$|[,;:!?，。！？、)]|\.(?!\d)))")
_PERSON_CUES = frozenset(
    "with met told asked called named and friend boss husband wife brother sister cousin neighbor colleague "
    "girlfriend boyfriend partner son daughter dog cat thanks hi hey hello dear saw invited by".split()
)
_NEVER = words.TALK | words.CALENDAR | words.FAMILY | words.GRAMMAR
_LONGEST_RUN = 7
_SHOUTING = 0.6


class _Text:
    """A text as words with their places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = [match.span() for match in _WORD.finditer(text)]
        self.words = [text[start:end] for start, end in self.spans]
        self.keys = [word.lower().replace("’", "'") for word in self.words]

    @cached_property
    def is_shouted(self) -> bool:
        letters = [char for word in self.words for char in word if char.isalpha()]
        return len(letters) > 5 and sum(map(str.isupper, letters)) > _SHOUTING * len(letters)

    @cached_property
    def mid_sentence_keys(self) -> frozenset[str]:
        return frozenset(
            key
            for index, key in enumerate(self.keys)
            if self.is_capital(index) and not self.opens_sentence(index)
        )

    def is_capital(self, index: int) -> bool:
        word = self.words[index]
        return word[0].isupper() or _SMALL_CAMEL.fullmatch(word) is not None

    def gap(self, index: int) -> str:
        """What stands between a word and the next one."""
        return self.text[self.spans[index][1] : self.spans[index + 1][0]]

    def key(self, index: int) -> str:
        return self.keys[index] if 0 <= index < len(self.keys) else ""

    def opens_sentence(self, index: int) -> bool:
        at = self.spans[index][0] - 1
        while at >= 0 and self.text[at] in _OPENING:
            at -= 1
        if at < 0:
            return True
        char = self.text[at]
        if (
            char == "."
            and index
            and (self.keys[index - 1].strip(".") in _ABBREVIATIONS or "." in self.words[index - 1])
        ):
            return False
        return char in _SENTENCE_ENDS or (ord(char) > 0x2600 and not char.isalnum())


def find_latin_names(text: str, taken: Taken, *, in_chinese: bool) -> list[EntityMention]:
    """The names in the Latin (or Cyrillic, Greek) letters of a text.

    Args:
        text: The text.
        taken: Places where a name has been found already.
        in_chinese: Whether the words stand in Chinese text, where no sentence starts with a capital.
    """
    parsed = _Text(text)
    found: list[EntityMention] = []
    index, count = 0, len(parsed.words)
    while index < count:
        key = parsed.keys[index]
        if not parsed.is_capital(index):
            if (key in names.LOWERCASE_TECHNOLOGIES or _CODE.fullmatch(key)) and not taken.overlaps(
                *parsed.spans[index]
            ):
                found.append(EntityMention(parsed.words[index], "technology", *parsed.spans[index]))
            index += 1
            continue
        run = _run(parsed, index, taken)
        if run:
            mention = _name(parsed, run, in_chinese=in_chinese)
            if mention is not None:
                found.append(mention)
        index = max(run[-1] if run else index, index) + 1
    return found


def _counts(parsed: _Text, index: int, taken: Taken) -> bool:
    """Whether a word may be part of a name."""
    return (
        parsed.is_capital(index)
        and _bare(parsed.keys[index]) not in _NEVER
        and words.CRY.fullmatch(parsed.keys[index]) is None
        and not taken.overlaps(*parsed.spans[index])
        and not (parsed.is_shouted and parsed.words[index].isupper() and len(parsed.words[index]) > 1)
    )


def _run(parsed: _Text, first: int, taken: Taken) -> list[int]:
    """The words of one name: capitals side by side, small connecting words between them."""
    # "Will" may be the verb or the name; a title may open a name though it never is one by itself.
    if not _counts(parsed, first, taken) and not (
        parsed.keys[first] == "will"
        or (parsed.keys[first] in words.TITLES and not taken.overlaps(*parsed.spans[first]))
    ):
        return []
    run = [first]
    while run[-1] + 1 < len(parsed.words) and len(run) < _LONGEST_RUN:
        last = run[-1]
        if _POSSESSIVE.search(parsed.words[last]) and parsed.keys[last + 1] not in names.OWNED_ENDINGS:
            break
        gap = parsed.gap(last)
        if gap == ". " and parsed.keys[last] in _ABBREVIATIONS:
            gap = " "
        if gap not in {" ", "-", ""}:
            break
        step = last + 1
        while step < min(last + 3, len(parsed.words) - 1) and _connects(parsed, step):
            step += 1
        if not _counts(parsed, step, taken):
            break
        run.extend(range(last + 1, step + 1))
    return run


def _connects(parsed: _Text, index: int) -> bool:
    return parsed.words[index] in names.CONNECTORS and parsed.gap(index) == " "


def _bare(key: str) -> str:
    return key[:-2] if key.endswith("'s") else key


def _name(parsed: _Text, run: list[int], *, in_chinese: bool) -> EntityMention | None:
    opens = not in_chinese and parsed.opens_sentence(run[0])
    titled = False
    while run:
        key = parsed.keys[run[0]]
        is_title = key in words.TITLES and not (
            len(run) > 1 and (key == "saint" or parsed.key(run[1]) in names.CONNECTORS)
        )
        if is_title:
            titled = True
        elif key in names.CONNECTORS or (key in words.NATIONALITIES and len(run) == 1):
            titled = False
        elif not (opens and _is_opener(parsed, run)):
            break
        opens = False
        run = run[1:]
    if not run or (titled and _bare(parsed.keys[run[0]]) in words.COMMON - names.GIVEN_NAMES):
        return None
    if len(run) == 1 and not titled:
        if opens and not _opens_with_name(parsed, run[0]):
            return None
        if not opens and _is_emphasis(parsed.words[run[0]], _bare(parsed.keys[run[0]])):
            return None
    start, end = parsed.spans[run[0]][0], parsed.spans[run[-1]][1]
    name = _POSSESSIVE.sub("", parsed.text[start:end])
    if name.lower().replace("’", "'") in words.HOLIDAYS or sum(map(str.isalnum, name)) < 2:
        return None
    number = _number_after(parsed, run)
    if number:
        name += number
    return EntityMention(name, "person" if titled else _type(parsed, run, name), start, start + len(name))


def _is_emphasis(word: str, key: str) -> bool:
    """Whether a capital inside a sentence is only there for effect: "JUST do it", "the BEST"."""
    if _is_known(key):
        return False
    return key in words.OPENERS or (word.isupper() and len(word) > 1 and key in words.COMMON)


def _is_opener(parsed: _Text, run: Sequence[int]) -> bool:
    """Whether the first word of a sentence stands before a name rather than in it."""
    key = parsed.keys[run[0]]
    if len(run) == 1:
        return False
    if key not in words.COMMON:
        return (
            key not in names.GIVEN_NAMES
            and key.endswith(("ing", "ed", "ly"))
            and _is_known(parsed.keys[run[1]])
        )
    following = _bare(parsed.keys[run[1]])
    if key in names.GIVEN_NAMES:
        return key == "will" and following in names.GIVEN_NAMES
    if key in names.ORGANIZATIONS or key in names.TECHNOLOGIES:
        return following in names.GIVEN_NAMES
    if key in words.OPENERS and key not in names.PLACE_OPENINGS:
        return True
    return following in names.GIVEN_NAMES


def _opens_with_name(parsed: _Text, index: int) -> bool:
    """Whether the capital of a sentence's first word is a name's."""
    word, key = parsed.words[index], _bare(parsed.keys[index])
    following = parsed.key(index + 1)
    side_by_side = index + 1 < len(parsed.words) and parsed.gap(index) == " "
    acts = side_by_side and following in words.DEEDS
    is_ = side_by_side and following in words.BEING
    paired = (
        side_by_side
        and following in {"and", "or"}
        and index + 2 < len(parsed.words)
        and parsed.is_capital(index + 2)
    )
    owns = _POSSESSIVE.search(word) is not None
    if key in words.NOUNLIKE_NAMES:
        return acts or paired
    if key in words.VERBLIKE_NAMES:
        return acts or paired or owns or (is_ and key != "will")
    known = (
        key in names.GIVEN_NAMES
        or key in names.PLACES
        or key in names.ORGANIZATIONS
        or key in names.TECHNOLOGIES
    )
    if key in words.COMMON:
        return known and (acts or is_ or paired)
    if (
        known
        or key in parsed.mid_sentence_keys
        or _CAMEL.fullmatch(word)
        or (word.isupper() and len(word) > 1)
    ):
        return True
    if key.endswith(words.COMMON_ENDINGS):
        return False
    return acts or is_ or paired or owns


def _is_known(key: str) -> bool:
    return (
        key in names.GIVEN_NAMES
        or key in names.PLACES
        or key in names.ORGANIZATIONS
        or key in names.TECHNOLOGIES
    )


def _is_common(key: str) -> bool:
    """Whether a word, or what it is the plural of, is a plain one."""
    return key in words.COMMON or (
        key.endswith("s") and (key[:-1] in words.COMMON or key[:-2] in words.COMMON)
    )


def _number_after(parsed: _Text, run: Sequence[int]) -> str:
    """The number of a model ("Model 3"), where it ends the clause and the name is nobody's."""
    if _bare(parsed.keys[run[0]]) in names.GIVEN_NAMES:
        return ""
    match = _MODEL_NUMBER.match(parsed.text, parsed.spans[run[-1]][1])
    return match[0] if match else ""


def _type(parsed: _Text, run: Sequence[int], name: str) -> EntityType:
    keys = [_bare(parsed.keys[index]) for index in run]
    before, after = parsed.key(run[0] - 1), parsed.key(run[-1] + 1)
    if before in {"the", "a", "an"}:
        before = parsed.key(run[0] - 2)
    if len(run) == 1:
        return _type_of_one(parsed, run[0], keys[0], before, after)
    return _type_of_many(keys, name, before, after)


def _type_of_one(parsed: _Text, index: int, key: str, before: str, after: str) -> EntityType:  # noqa: PLR0911
    word = parsed.words[index]
    given, place = key in names.GIVEN_NAMES, key in names.PLACES
    acts = after in words.DEEDS or _POSSESSIVE.search(word) is not None
    if given:
        if place and before in names.FOLLOWS_PLACE | {"from", "to", "of"}:
            return "place"
        return (
            "organization"
            if before in names.FOLLOWS_ORGANIZATION and key in names.ORGANIZATIONS
            else "person"
        )
    if key in names.ORGANIZATIONS and not (place and before in names.FOLLOWS_PLACE):
        return "organization"
    if place:
        return "place"
    if key in names.TECHNOLOGIES:
        return "technology"
    if _CAMEL.fullmatch(word) and not (word.startswith(("Mc", "Mac", "De", "La", "Le")) or acts):
        return "technology"
    if before in {"read", "reading", "watched", "watching"}:
        return "work"
    if before in names.FOLLOWS_PLACE:
        return "place"
    if before in names.FOLLOWS_ORGANIZATION:
        return "organization"
    if word.isupper():
        return "other"
    return (
        "person"
        if acts or after in words.BEING or before in _PERSON_CUES or key not in words.COMMON
        else "other"
    )


def _type_of_many(keys: Sequence[str], name: str, before: str, after: str) -> EntityType:  # noqa: PLR0911
    first, last = keys[0], keys[-1]
    if (
        last in names.ORGANIZATION_ENDINGS
        or after in {"cafe", "restaurant", "hotel", "bank", "company", "store"}
        or (first in names.ORGANIZATION_OPENINGS and "of" in keys)
    ):
        return "organization"
    if last in names.PLACE_ENDINGS or first in names.PLACE_OPENINGS or first in names.PLACES:
        return "place"
    if before in names.FOLLOWS_WORK and first not in names.GIVEN_NAMES:
        return "work"
    if first in names.GIVEN_NAMES:
        return "person"
    if first in names.ORGANIZATIONS or first in names.TECHNOLOGIES or last in names.PRODUCT_WORDS:
        return "product"
    if _CAMEL.search(name) or any(char.isdigit() for char in name):
        return "product"
    if not any(key in words.COMMON for key in keys):
        return "person"
    return "person" if after in words.DEEDS or before in _PERSON_CUES else "other"
