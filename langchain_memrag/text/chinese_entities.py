"""Names in Chinese text: what the tagger calls a name, checked, and what it splits or misses, joined."""

from __future__ import annotations

# ruff: noqa: SIM905  (a page of words is easier to read and to amend than a page of quoted words)
import re

import rjieba

from langchain_memrag.text import chinese_names as names
from langchain_memrag.text.chinese_people import FUNCTION_INSIDE, Token, is_foreign, name_end
from langchain_memrag.text.mention import EntityMention, EntityType, Taken
from langchain_memrag.text.scripts import HAN
from langchain_memrag.text.traditional import simplified

_HAN_WORD = re.compile(f"[{HAN}]+")
_SURNAME = f"(?:{'|'.join(names.COMPOUND_SURNAMES)}|[{''.join(sorted(names.SURNAMES))}])"
_TITLE = "|".join(sorted(names.TITLES, key=len, reverse=True))
_TITLED = re.compile(rf"{_SURNAME}(?:[{HAN}]{{1,2}}(?:{_TITLE})(?![{HAN}])|(?:{_TITLE}))")
_AFTER_PLACE = frozenset("人话菜市省")
_BEFORE_PLACE = frozenset(
    "在 去 到 从 来自 住 住在 回 飞 飞往 往 抵达 前往 离开 位于 来到 去过 来 至 途经 搬到".split()
)
_CALLED = re.compile(
    rf"(?:名叫|取名叫|叫做|叫作|名字叫|名字是|名为|叫)([{HAN}]{{2,5}})(?=[，。！？、；,.!?;\s）)]|$)"
)
_KEEPS_ANIMAL = re.compile(r"[公司店馆厅铺厂]|餐厅|饭店|学校|团队|乐队")
_ORGANIZATION: EntityType = "organization"
_PLACE: EntityType = "place"
_PRODUCT: EntityType = "product"
_SUFFIXES: tuple[tuple[str, EntityType], ...] = tuple(
    sorted(
        [(suffix, "organization") for suffix in names.ORGANIZATION_SUFFIXES]
        + [(suffix, "place") for suffix in names.PLACE_SUFFIXES],
        key=lambda pair: -len(pair[0]),
    )
)
_SUFFIXES_BY_LAST: dict[str, list[tuple[str, EntityType]]] = {}
for _suffix, _kind in _SUFFIXES:
    _SUFFIXES_BY_LAST.setdefault(_suffix[-1], []).append((_suffix, _kind))
_SUFFIX_WORDS = frozenset(suffix for suffix, _ in _SUFFIXES)
_KNOWN: dict[str, EntityType] = {
    **dict.fromkeys(names.BRANDS_ORGANIZATION, _ORGANIZATION),
    **dict.fromkeys(names.BRANDS_PRODUCT, _PRODUCT),
    **dict.fromkeys(names.PLACES, _PLACE),
}
# By their first two characters, the longest first: one pattern of all names would try each at every place.
_KNOWN_BY_HEAD: dict[str, list[str]] = {}
for _name in sorted(_KNOWN, key=len, reverse=True):
    _KNOWN_BY_HEAD.setdefault(_name[:2], []).append(_name)
_NAMING_TAGS = frozenset({"ns", "nt", "nz", "nr", "nrt", "j", "eng", "s", "nrfg"})
_MOST_INNER_WORDS = 5


def find_chinese_names(text: str, taken: Taken) -> list[EntityMention]:
    """The names in the Chinese part of a text; `taken` gains what is found."""
    folded = simplified(text)
    tokens = _tag(folded)
    finder = _Finder(text, tokens, taken)
    for match in _TITLED.finditer(folded):
        if finder.is_titled_name(match):
            finder.take(match.start(), match.end(), "person")
    finder.institutions()
    finder.known(folded)
    finder.people()
    finder.places()
    for match in _CALLED.finditer(folded):
        finder.called(match)
    return finder.found


def _tag(text: str) -> list[Token]:
    tokens, at = [], 0
    for word, tag in rjieba.tag(text, hmm=True):
        tokens.append(Token(word, tag, at, at + len(word)))
        at += len(word)
    return tokens


class _Finder:
    """One pass over one text; collects mentions in places not yet taken."""

    def __init__(self, text: str, tokens: list[Token], taken: Taken) -> None:
        self.found: list[EntityMention] = []
        self._text = text
        self._tokens = tokens
        self._starting = {token.start: token for token in tokens}
        self._ends = {token.end for token in tokens}
        self._taken = taken

    def take(self, start: int, end: int, kind: EntityType) -> bool:
        """Record a name unless another one has its place."""
        if self._taken.overlaps(start, end):
            return False
        self._taken.add(start, end)
        self.found.append(EntityMention(self._text[start:end], kind, start, end))
        return True

    def is_titled_name(self, match: re.Match[str]) -> bool:
        """Whether a surname and a title are that (王老师), not the end of another word (高级工程师)."""
        token = self._starting.get(match.start())
        if token is None or match[0] in names.NOT_NAMES or token.word in names.NOT_NAMES:
            return False
        if FUNCTION_INSIDE.search(match[0][1:]):
            return False
        return len(token.word) == 1 or token.tag.startswith("nr")

    def institutions(self) -> None:
        """Names that end in what the thing is: 北京大学, 深圳华银科技有限公司, 浦东机场, 建国路."""
        # From the right, so that a university's hospital is one name and not two.
        for index in range(len(self._tokens) - 1, -1, -1):
            token = self._tokens[index]
            ending = _suffix_of(token.word)
            if ending is None or self._taken.overlaps(token.start, token.end):
                continue
            kind = ending[1]
            following = self._tokens[index + 1].word if index + 1 < len(self._tokens) else ""
            if following in _SUFFIX_WORDS and len(following) > 1 and following not in {"中心"}:
                continue
            if token.word not in _SUFFIX_WORDS:
                if _names_itself(token, ending):
                    placed = kind == "organization" and token.tag not in {"nt", "ns"} and self._placed(index)
                    self.take(self._tokens[index - placed].start, token.end, kind)
                continue
            first, named = self._reach_left(index)
            if named:
                self.take(self._tokens[first].start, token.end, kind)

    def _placed(self, index: int) -> bool:
        """Whether a place stands right before an institution and belongs to its name: 上海仁爱医院."""
        return (
            index > 0 and self._tokens[index - 1].tag == "ns" and self._tokens[index - 1].word in names.PLACES
        )

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
        while first < index and not _names_an_institution(self._tokens[first]):
            first += 1
        return first, named and first < index

    def known(self, folded: str) -> None:
        """Places, companies and products that everybody knows, where a word begins with one."""
        for token in self._tokens:
            for name in _KNOWN_BY_HEAD.get(folded[token.start : token.start + 2], ()):
                end = token.start + len(name)
                if folded.startswith(name, token.start) and self._ends_name(
                    token, name, folded[end : end + 1]
                ):
                    self.take(token.start, end, _KNOWN[name])
                    break

    def _ends_name(self, token: Token, name: str, following: str) -> bool:
        """Whether a known name ends where it seems to, and does not only open another word."""
        if len(name) > 2 or token.start + len(name) in self._ends:
            return True
        return following in _AFTER_PLACE or len(token.word) - len(name) > 1

    def people(self) -> None:
        """Names of people: whole, split after the surname, with 小, 老 or 阿, and foreign ones with a dot."""
        for index, token in enumerate(self._tokens):
            if token.word == "·":
                self._foreign(index)
        for index, token in enumerate(self._tokens):
            if self._taken.overlaps(token.start, token.end) or not _HAN_WORD.fullmatch(token.word):
                continue
            following = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
            end = name_end(token, following)
            if end:
                self.take(token.start, end, "person")

    def _foreign(self, index: int) -> None:
        first = last = index
        if index == 0 or index + 1 >= len(self._tokens):
            return
        if not (is_foreign(self._tokens[index - 1].word) and is_foreign(self._tokens[index + 1].word)):
            return
        first, last = index - 1, index + 1
        while last + 1 < len(self._tokens) and self._tokens[last + 1].tag in {"nr", "nrt", "nrfg"}:
            last += 1
        self.take(self._tokens[first].start, self._tokens[last].end, "person")

    def places(self) -> None:
        """What the tagger calls a place or an institution, and what the context makes one."""
        before = ""
        for token in self._tokens:
            word, previous = token.word, before
            before = word
            if (
                word in names.NOT_NAMES
                or word in names.NOT_PLACES
                or not _HAN_WORD.fullmatch(word)
                or len(word) < 2
            ):
                continue
            if token.tag == "nt" and word not in _SUFFIX_WORDS and word not in names.GENERIC:
                ending = _suffix_of(word)
                if (
                    len(word) > 2
                    and rjieba.has_word(word)
                    and (ending is None or _names_itself(token, ending))
                ):
                    self.take(token.start, token.end, "organization")
            elif token.tag == "ns" and rjieba.has_word(word) and not word.endswith(("话", "菜", "语", "人")):
                # Two characters alone may be any word; after 在 or 去 they are a place.
                located = len(word) > 2 or previous in _BEFORE_PLACE
                if located:
                    self.take(token.start, token.end, "place")

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
        if any(token.tag in {"r", "y", "ul", "uj", "p", "m", "d", "c"} for token in inside):
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


def _suffix_of(word: str) -> tuple[str, EntityType] | None:
    for suffix, kind in _SUFFIXES_BY_LAST.get(word[-1:], ()):
        if word.endswith(suffix):
            return suffix, kind
    return None


def _names_itself(token: Token, ending: tuple[str, EntityType]) -> bool:
    """Whether one word is a whole name with its suffix: 清华大学 is, 分公司 and 高速公路 are not."""
    word = token.word
    if word in names.NOT_NAMES or word in names.NOT_PLACES or len(word) < 3:
        return False
    suffix, kind = ending
    stem = word[: -len(suffix)]
    if stem in names.GENERIC:
        return False
    if token.tag in {"ns", "nt"}:
        return True
    if len(stem) < 2:
        return False
    if stem in _KNOWN or stem == "人民" or _tag_of(stem) in {"ns", "nt", "nz", "nr", "nrt"}:
        return True
    return token.tag == "nz" and kind == "place"


def _names_an_institution(token: Token) -> bool:
    if token.word in names.GENERIC or token.word in names.INNER or token.word in names.NOT_NAMES:
        return token.word in {"人民", "中国", "北方", "南方", "东方"}
    if token.word in _KNOWN or token.tag in _NAMING_TAGS:
        return len(token.word) > 1
    return token.tag in {"n", "vn"} and len(token.word) > 1 and not rjieba.has_word(token.word)


def _tag_of(word: str) -> str:
    tagged = rjieba.tag(word, hmm=False)
    return tagged[0][1] if len(tagged) == 1 else ""
