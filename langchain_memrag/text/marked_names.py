"""Names that carry their own mark: quotes of every style, addresses, handles, versions, identifiers."""

from __future__ import annotations

# ruff: noqa: SIM905  (a page of words is easier to read and to amend than a page of quoted words)
import re

from langchain_memrag.text.english_names import FOLLOWS_WORK, LOWERCASE_TECHNOLOGIES, TECHNOLOGIES
from langchain_memrag.text.english_words import BEING, COMMON, GRAMMAR, OPENERS, TALK
from langchain_memrag.text.mention import EntityMention, EntityType
from langchain_memrag.text.scripts import HAN

_QUOTED = re.compile(
    r"《(?P<a>[^《》\n]{1,60})》|〈(?P<b>[^〈〉\n]{1,60})〉"
    r"|「(?P<c>[^「」\n]{1,60})」|『(?P<d>[^『』\n]{1,60})』"
    r"|[“〝](?P<e>[^“”\n]{1,80})[”〞]|(?<!\w)\"(?P<f>[^\"\n]{1,80})\"|«(?P<i>[^«»\n]{1,80})»"
    # A single quote opens after a space and closes before a space: an apostrophe does neither.
    r"|(?<!\w)‘(?P<g>\w[^\n‘]{0,79}?)’(?!\w)|(?<![\w'])'(?P<h>\w[^\n]{0,79}?)'(?!\w)"
)
_QUOTE_MARKS = re.compile("[《〈「『“〝\"«‘']")
_IN_HAN_QUOTES = frozenset("abcd")
_TITLE_QUOTES = frozenset("ab")
_HAN = re.compile(f"[{HAN}]")
_CLAUSE = re.compile(r"[，。！？；：,!?;:\n…]|\.\s")
_LATIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_HAN_UTTERANCE = re.compile(r"^[我你他她它您咱这那请别不没好是嗯哦哈]|[了吗吧呢啊呀哦嘛的啦]$")
_HAN_WORK_CUE = re.compile(r"[歌书曲剧诗]|电影|小说|节目|文章|漫画|动画|专辑|游戏|看过|读过|听过|唱|追")
_SPOKEN = GRAMMAR - frozenset("a an the of in on at to and or for with by from".split())

_TOP_LEVEL = frozenset(
    "com org net io cn dev local internal corp lan edu gov uk de fr jp ru ai app co info tv xyz cloud site "
    "tw hk".split()
)
_FILES = frozenset(
    "pdf txt md csv tsv json jsonl yaml yml toml ini py ipynb ts tsx jsx html css sh sql log zip tar gz doc "
    "docx xls xlsx ppt pptx png jpg jpeg gif svg mp3 mp4 mov wav exe dll rs go java cpp".split()
)
_HINT = re.compile(r"[@#_\d]|[A-Za-z][.+][A-Za-z+]|://")
_W = "[A-Za-z0-9_]"
_IDENTIFIER = re.compile(
    rf"""
      https?://(?P<url>[A-Za-z0-9.-]+)[^\s<>"'，。；！？、）】》」』]*
    | (?<![A-Za-z0-9_.+-])(?P<email>[A-Za-z0-9][A-Za-z0-9_.+-]{{0,63}}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)
    | (?<![A-Za-z0-9_.])(?P<ip>\d{{1,3}}(?:\.\d{{1,3}}){{3}})(?!\d|\.\d)
    | (?<![A-Za-z0-9_.])(?P<version>[vV]\d+(?:\.\d+)+(?:[-.]?(?:alpha|beta|rc|dev|post)\.?\d*)?)
    | (?<![A-Za-z0-9_/&.])(?P<handle>[@\#]\w(?:[\w.-]{{0,38}}\w)?)
    | (?<![A-Za-z0-9_@.-])(?P<dotted>[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+)
    | (?<!{_W})(?P<sign>[A-Za-z]\+\+|[A-Z]\#)(?!{_W})
    | (?<![A-Za-z0-9_.-])(?P<code>[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)+)(?![A-Za-z0-9_])
    """,
    re.VERBOSE,
)
_PRODUCT_VERSION = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<name>[A-Za-z]{1,30}[+#]{0,2}(?:\.js)?) (?P<number>\d+\.\d+(?:\.\d+)*)(?![\d%])"
)
_NOT_CODES = frozenset("mid pre post top under over late early non multi semi anti half sub co re".split())
_NOT_PRODUCTS = frozenset(
    "chapter section table figure page step part level room unit version lesson".split()
)
_PLAIN_GROUPS: dict[str, EntityType] = {
    "url": "host",
    "email": "handle",
    "version": "version",
    "sign": "technology",
}
_THREE_NUMBERS = re.compile(r"\d+\.\d+\.\d{1,3}")
_LONGEST_QUOTE_WORDS = 8


def find_quoted(text: str) -> list[EntityMention]:
    """Titles and terms in quotes; what somebody says in quotes is no name."""
    if not _QUOTE_MARKS.search(text):
        return []
    found = []
    for match in _QUOTED.finditer(text):
        style = match.lastgroup or ""
        content = match[style].strip()
        trimmed = content.rstrip(".,。，!?！？") if style not in _TITLE_QUOTES else content
        kind = _quote_type(
            trimmed, style, text[max(0, match.start() - 40) : match.start()], content != trimmed
        )
        if kind is not None:
            start = match.start(style) + match[style].index(trimmed)
            found.append(EntityMention(trimmed, kind, start, start + len(trimmed)))
    return found


def _quote_type(content: str, style: str, before: str, punctuated: bool) -> EntityType | None:
    if not any(char.isalnum() for char in content):
        return None
    if style in _TITLE_QUOTES:
        return "work"
    if _HAN.search(content):
        return _han_quote_type(content, before)
    return _latin_quote_type(content, before, punctuated)


def _latin_quote_type(content: str, before: str, punctuated: bool) -> EntityType | None:
    words = _LATIN_WORD.findall(content)
    if not words or len(words) > _LONGEST_QUOTE_WORDS or _CLAUSE.search(content):
        return None
    keys = [word.lower().replace("’", "'") for word in words]
    before_words = _LATIN_WORD.findall(before.lower())[-3:]
    cued = any(word in FOLLOWS_WORK for word in before_words) or bool(_HAN_WORK_CUE.search(before[-8:]))
    if words[0][0].isupper() and all(word[0].isupper() or len(word) < 4 for word in words):
        if len(words) > 1:
            return None if punctuated and keys[0] in TALK else "work"
        return "work" if cued else None if keys[0] in TALK | OPENERS else "quoted"
    spoken = len(words) > 3 or any(key in _SPOKEN or key in BEING or key in TALK for key in keys)
    if not punctuated and not spoken:
        return "quoted"
    return "work" if cued and not punctuated and words[0][0].isupper() else None


def _han_quote_type(content: str, before: str) -> EntityType | None:
    if len(content) > 20 or _CLAUSE.search(content):
        return None
    if _HAN_WORK_CUE.search(before[-8:]):
        return "work"
    return None if _HAN_UTTERANCE.search(content) else "quoted"


def find_identifiers(text: str) -> list[EntityMention]:
    """Hosts, addresses, handles, versions, file names and names of software that spell themselves."""
    if not _HINT.search(text):
        return []
    found = []
    for match in _IDENTIFIER.finditer(text):
        group = match.lastgroup or ""
        name = match[group]
        kind = _identifier_type(group, name)
        if kind is not None:
            found.append(EntityMention(name, kind, match.start(group), match.end(group)))
    for match in _PRODUCT_VERSION.finditer(text):
        key = match["name"].lower()
        known = key.removesuffix(".js") in TECHNOLOGIES and (
            match["name"][0].isupper() or key in LOWERCASE_TECHNOLOGIES
        )
        if known or (match["name"][0].isupper() and key not in COMMON and key not in _NOT_PRODUCTS):
            found.append(EntityMention(match["name"], "technology", match.start("name"), match.end("name")))
            found.append(EntityMention(match[0], "version", match.start(), match.end()))
    return found


def _identifier_type(group: str, name: str) -> EntityType | None:
    if group in _PLAIN_GROUPS:
        return _PLAIN_GROUPS[group]
    if group == "ip":
        return "host" if all(int(part) < 256 for part in name.split(".")) else None
    if group == "handle":
        return None if name[1:].isdigit() and len(name) < 3 else "handle"
    if group == "dotted":
        return _dotted_type(name)
    prefix = re.split("[-_]", name, maxsplit=1)[0].lower()
    has_digit = any(char.isdigit() for char in name)
    if "_" in name:
        return "handle" if has_digit and name[-1].isdigit() else "technology"
    return "technology" if has_digit and prefix not in _NOT_CODES else None


def _dotted_type(name: str) -> EntityType | None:
    last = name.rsplit(".", 1)[1]
    if _THREE_NUMBERS.fullmatch(name):
        return "version"
    if not any(char.isalpha() for char in name):
        return None
    if last in _TOP_LEVEL or name.startswith("www."):
        return "host"
    if last.lower() in _FILES or last in {"js", "NET"}:
        return "technology"
    return None
