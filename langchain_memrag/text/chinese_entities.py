"""Names in Chinese text: what the tagger calls a name, checked, and what it splits or misses, joined."""

from __future__ import annotations

import re
from typing import NamedTuple

import rjieba

from langchain_memrag.text import chinese_names as names
from langchain_memrag.text.mention import EntityMention, EntityType, Taken
from langchain_memrag.text.scripts import HAN
from langchain_memrag.text.traditional import simplified

_HAN_WORD = re.compile(f"[{HAN}]+")
_SURNAME = f"(?:{'|'.join(names.COMPOUND_SURNAMES)}|[{''.join(sorted(names.SURNAMES))}])"
_TITLE = "|".join(sorted(names.TITLES, key=len, reverse=True))
_TITLED = re.compile(rf"{_SURNAME}[{HAN}]{{0,2}}?(?:{_TITLE})(?![{HAN}])|{_SURNAME}(?:{_TITLE})")
_CALLED = re.compile(
    rf"(?:名叫|取名叫|叫做|叫作|名字叫|名字是|名为|叫)([{HAN}]{{2,5}})(?=[，。！？、；,.!?;\s）)]|$)"
)
_KEEPS_ANIMAL = re.compile(r"[公司店馆厅铺厂]|餐厅|饭店|学校|团队|乐队")
_SUFFIXES: tuple[tuple[str, EntityType], ...] = tuple(
    sorted(
        [(suffix, "organization") for suffix in names.ORGANIZATION_SUFFIXES]
        + [(suffix, "place") for suffix in names.PLACE_SUFFIXES],
        key=lambda pair: -len(pair[0]),
    )
)
_SUFFIX_WORDS = frozenset(suffix for suffix, _ in _SUFFIXES)
_KNOWN: dict[str, EntityType] = (
    dict.fromkeys(names.BRANDS_ORGANIZATION, "organization")
    | dict.fromkeys(names.BRANDS_PRODUCT, "product")
    | dict.fromkeys(names.PLACES, "place")
)
_KNOWN_NAME = re.compile("|".join(sorted((name for name in _KNOWN), key=len, reverse=True)))
_NAMING_TAGS = frozenset({"ns", "nt", "nz", "nr", "nrt", "j", "eng", "s", "nrfg"})
_GIVEN_TAGS = frozenset(
    {"n", "nr", "nrt", "ns", "nz", "a", "g", "j", "x", "ng", "nrfg", "an", "b", "zg", "ag"}
)
_WORDLIKE = names.WORDLIKE_SURNAMES
_MOST_INNER_WORDS = 5


class _Token(NamedTuple):
    word: str
    tag: str
    start: int
    end: int


def find_chinese_names(text: str, taken: Taken) -> list[EntityMention]:
    """The names in the Chinese part of a text; `taken` gains what is found."""
    folded = simplified(text)
    tokens = _tag(folded)
    starts = {token.start for token in tokens}
    ends = {token.end for token in tokens}
    finder = _Finder(text, tokens, taken)
    for match in _TITLED.finditer(folded):
        if match.start() in starts and match[0] not in names.NOT_NAMES:
            finder.take(match.start(), match.end(), "person")
    finder.institutions()
    for match in _KNOWN_NAME.finditer(folded):
        if match.start() in starts or match.end() in ends:
            finder.take(match.start(), match.end(), _KNOWN[match[0]])
    finder.people()
    finder.places()
    for match in _CALLED.finditer(folded):
        finder.called(match)
    return finder.found


def _tag(text: str) -> list[_Token]:
    tokens, at = [], 0
    for word, tag in rjieba.tag(text, hmm=True):
        tokens.append(_Token(word, tag, at, at + len(word)))
        at += len(word)
    return tokens


class _Finder:
    """One pass over one text; collects mentions in places not yet taken."""

    def __init__(self, text: str, tokens: list[_Token], taken: Taken) -> None:
        self.found: list[EntityMention] = []
        self._text = text
        self._tokens = tokens
        self._taken = taken

    def take(self, start: int, end: int, kind: EntityType) -> bool:
        """Record a name unless another one has its place."""
        if self._taken.overlaps(start, end):
            return False
        self._taken.add(start, end)
        self.found.append(EntityMention(self._text[start:end], kind, start, end))
        return True

    def institutions(self) -> None:
        """Names that end in what the thing is: 北京大学, 深圳华银科技有限公司, 浦东机场, 建国路."""
        for index, token in enumerate(self._tokens):
            kind = _suffix_kind(token.word)
            if kind is None or self._taken.overlaps(token.start, token.end):
                continue
            following = self._tokens[index + 1].word if index + 1 < len(self._tokens) else ""
            if following in _SUFFIX_WORDS and len(following) > 1 and following not in {"中心"}:
                continue
            first, named = self._reach_left(index)
            whole = token.word not in _SUFFIX_WORDS
            if whole and first == index and not _names_itself(token, kind):
                continue
            if not whole and not named:
                continue
            self.take(self._tokens[first].start, token.end, kind)

    def _reach_left(self, index: int) -> tuple[int, bool]:
        first, named = index, False
        while first > 0 and index - first < _MOST_INNER_WORDS:
            token = self._tokens[first - 1]
            if not _HAN_WORD.fullmatch(token.word) or self._taken.overlaps(token.start, token.end):
                break
            if _names_an_institution(token):
                named = True
            elif token.word not in names.INNER and not (token.word in _SUFFIX_WORDS and len(token.word) > 1):
                break
            first -= 1
        while first < index and not named:
            first += 1
        return first, named

    def people(self) -> None:
        """Names of people: whole, split after the surname, with 小, 老 or 阿, and foreign ones with a dot."""
        for index, token in enumerate(self._tokens):
            if token.word == "·":
                self._foreign(index)
        for index, token in enumerate(self._tokens):
            if self._taken.overlaps(token.start, token.end) or not _HAN_WORD.fullmatch(token.word):
                continue
            following = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
            if self._split_name(token, following):
                continue
            if _is_person(token):
                self.take(token.start, token.end, "person")

    def _split_name(self, token: _Token, following: _Token | None) -> bool:
        if following is None or not _HAN_WORD.fullmatch(following.word) or following.end > len(self._text):
            return False
        end = following.end
        if token.word in names.PREFIXES and len(following.word) == 1:
            return (
                following.word in names.SURNAMES
                and following.tag.startswith("nr")
                and self.take(token.start, end, "person")
            )
        surname = token.word in names.COMPOUND_SURNAMES or (
            len(token.word) == 1 and token.word in names.SURNAMES and token.tag.startswith("nr")
        )
        if not surname or len(following.word) > 2 or following.tag not in _GIVEN_TAGS:
            return False
        if following.word in names.NOT_NAMES or following.word in names.TITLES:
            return False
        if (
            len(following.word) == 1
            and token.word in _WORDLIKE
            and rjieba.has_word(following.word + token.word)
        ):
            return False
        return self.take(token.start, end, "person")

    def _foreign(self, index: int) -> None:
        first = last = index
        if index == 0 or index + 1 >= len(self._tokens):
            return
        if not (
            _HAN_WORD.fullmatch(self._tokens[index - 1].word)
            and _HAN_WORD.fullmatch(self._tokens[index + 1].word)
        ):
            return
        first, last = index - 1, index + 1
        while last + 1 < len(self._tokens) and self._tokens[last + 1].tag in {"nr", "nrt", "nrfg"}:
            last += 1
        self.take(self._tokens[first].start, self._tokens[last].end, "person")

    def places(self) -> None:
        """What the tagger calls a place, an institution or, with a people's ending, where they are from."""
        for token in self._tokens:
            word = token.word
            if word in names.NOT_NAMES or not _HAN_WORD.fullmatch(word) or len(word) < 2:
                continue
            if word.endswith("人") and len(word) > 2 and _tag_of(word[:-1]) == "ns":
                self.take(token.start, token.end - 1, "place")
            elif token.tag == "ns" and not word.endswith(("话", "菜", "语", "人")):
                self.take(token.start, token.end, "place")
            elif token.tag == "nt" and word not in _SUFFIX_WORDS and word not in names.GENERIC:
                self.take(token.start, token.end, "organization")

    def called(self, match: re.Match[str]) -> None:
        """A name that is introduced as one: 我的猫叫咪咪."""
        name, start = match[1], match.start(1)
        if (
            name in names.NOT_CALLED
            or name in names.NOT_NAMES
            or any(name.startswith(w) for w in _NOT_AFTER_CALLED)
        ):
            return
        inside = [token for token in self._tokens if token.start >= start and token.end <= match.end(1)]
        if any(token.tag in {"r", "y", "ul", "p"} for token in inside):
            return
        before = self._text[max(0, match.start() - 6) : match.start()]
        kind: EntityType = "organization" if _KEEPS_ANIMAL.search(before) else "person"
        self.take(start, match.end(1), kind)


_NOT_AFTER_CALLED = (
    "什么",
    "我",
    "你",
    "他",
    "她",
    "它",
    "外卖",
    "车",
    "出租",
    "滴滴",
    "醒",
    "做",
    "作",
    "不",
    "人",
    "大家",
    "起",
)


def _suffix_kind(word: str) -> EntityType | None:
    for suffix, kind in _SUFFIXES:
        if word.endswith(suffix):
            return kind
    return None


def _names_itself(token: _Token, kind: EntityType) -> bool:
    """Whether one word is a whole name with its suffix: 清华大学 is, 分公司 and 高速公路 are not."""
    word = token.word
    if word in names.NOT_NAMES or len(word) < 3:
        return False
    if token.tag in {"ns", "nt"}:
        return True
    suffix = next(suffix for suffix, _ in _SUFFIXES if word.endswith(suffix))
    stem = word[: -len(suffix)]
    if stem in names.GENERIC or len(stem) < 2:
        return False
    if stem in _KNOWN or _tag_of(stem) in {"ns", "nt", "nz", "nr", "nrt"}:
        return True
    return token.tag == "nz" and kind == "place"


def _names_an_institution(token: _Token) -> bool:
    if token.word in names.GENERIC or token.word in names.INNER or token.word in names.NOT_NAMES:
        return token.word in {"人民", "中国", "北方", "南方", "东方"}
    if token.word in _KNOWN or token.tag in _NAMING_TAGS:
        return len(token.word) > 1
    return token.tag in {"n", "vn"} and len(token.word) > 1 and not rjieba.has_word(token.word)


def _tag_of(word: str) -> str:
    tagged = rjieba.tag(word, hmm=False)
    return tagged[0][1] if len(tagged) == 1 else ""


def _is_person(token: _Token) -> bool:
    word = token.word
    if word in names.NOT_NAMES or len(word) < 2 or len(word) > 5:
        return False
    if len(word) == 2 and word[0] in names.PREFIXES and word not in names.PREFIXED_WORDS:
        return token.tag.startswith("nr") or word[1] in names.SURNAMES - _WORDLIKE
    if token.tag in {"nr", "nrfg"}:
        surname = word[0] in names.SURNAMES or word.startswith(names.COMPOUND_SURNAMES)
        return (surname and len(word) <= (4 if word.startswith(names.COMPOUND_SURNAMES) else 3)) or (
            len(word) > 2 and rjieba.has_word(word)
        )
    return token.tag == "nrt" and rjieba.has_word(word) and len(word) > 1
