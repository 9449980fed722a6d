"""An answer without a model: what memory holds, quoted with its date, or that it does not know. Pure.

Recall always brings its best hits, for a question that memory cannot answer too. So a hit is quoted only
if enough of the question's words stand in it, or if its dense score stands out from the other hits'.
Nothing is inferred: the reader gets the words that were said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from langchain_memrag.prompts import format_date
from langchain_memrag.text import Language, language_of, normalise, query_terms, split_parts, terms

__all__ = ["Evidence", "Extract", "extract_answer", "is_question"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something remembered that may answer a question.

    Attributes:
        id: The record's id.
        text: As it was said.
        role: Whose message it was.
        speaker: A name, where there is one.
        said_at: When, by the speaker's clock.
        signals: Raw score by signal.
    """

    id: str
    text: str
    role: str = "user"
    speaker: str | None = None
    said_at: datetime | None = None
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extract:
    """An extractive answer.

    Attributes:
        text: In the question's language.
        sources: Ids of what it quotes; empty when it quotes nothing.
    """

    text: str
    sources: tuple[str, ...] = ()


QUOTES = 3
"""How many hits an answer quotes at most."""

_QUOTED_LENGTH = 280
# Set on the labelled memories of tests/data/extractive_*.jsonl, for few wrong quotes rather than many right
# ones: words that question and answer share, words with the dense score's agreement, dense score alone.
_ENOUGH_WORDS = 0.6
_SOME_WORDS, _SOME_LIFT = 0.25, 0.2
_ENOUGH_LIFT = 0.3
# What is nearly as good as the best is quoted too.
_NEARLY = 0.75
# Words that shape a question and rarely stand in its answer ("in which city"): they count, but little.
_SOFT = frozenset(
    """
    name call favourit favorit kind type sort thing time day date week month year old long far big much mani
    number place citi town countri colour color job work go get make do say said tell told know rememb mention
    talk like want need live
    名字 叫 喜欢 喜歡 最 做 去 看 有 记得 記得 知道 说 说过 說過 提到 今天 想 时间 時間 地方 东西 東西 事 事情
    岁 几岁 幾歲 号码 號碼 住 会 曾经 平时 城市 国家 國家 颜色 顏色 工作 职业 職業
    """.split()  # noqa: SIM905 - a page of words is easier to read
)
# Words that say nothing about the answer at all.
_IDLE = frozenset("now current still again ever ani some about 现在 現在 目前 还是 也".split())  # noqa: SIM905
_SOFT_WEIGHT = 0.35

_ENGLISH_QUESTION = re.compile(
    r"^\W*(?:(?:and|so|but|hey|hi|hello|please|ok|okay)\W+)*"
    r"(?:who|whom|whose|what|when|where|which|why|how|do|does|did|is|are|am|was|were|can|could|will|would|should"
    r"|shall|may|has|have|had|isn't|aren't|don't|doesn't|didn't|remind|tell|list|show|recall|find|summari[sz]e"
    r"|(?:who|what|when|where|why|how)['’](?:s|re|d))\b",
    re.IGNORECASE,
)
_CHINESE_QUESTION = re.compile(
    "[？?]|[吗嗎呢么麼][。.!！~～\\s]*$|什么|什麼|怎么|怎麼|怎样|怎樣|如何|为何|為何|为什么|為什麼|是否|是不是|有没有|有沒有"
    "|多少|多久|多大|多长|哪[个個些里裡儿兒位年天本家种種款条條]|几[点點岁歲号號月年个個次天]|谁|誰|啥"
    "|^(?:请|請)?(?:告诉|告訴|提醒|回忆|回憶|总结|總結|列出|帮我找|幫我找)"
)

_UNKNOWN = {
    "en": "I don't know; I remember nothing about that.",
    "zh": "我不知道，记忆里没有相关的内容。",
}
_NOTED = {"en": "Noted.", "zh": "好的，记住了。"}
_AWAY = {"en": "I cannot reach my memory just now.", "zh": "我暂时无法访问记忆。"}


def is_question(text: str) -> bool:
    """Whether a text asks for something, by its marks and words, in English and Chinese."""
    if language_of(text) == "zh":
        return bool(_CHINESE_QUESTION.search(text))
    return "?" in text or "？" in text or bool(_ENGLISH_QUESTION.match(text))


def extract_answer(question: str, evidence: Sequence[Evidence], *, reachable: bool = True) -> Extract:
    """Answer from what was recalled.

    Args:
        question: What the user says.
        evidence: What was recalled, best first. Questions in it are not evidence.
        reachable: Whether memory could be read at all.

    Returns:
        Quotes with their dates; that nothing is known; or, for what is no question, that it is noted.
    """
    language = language_of(question)
    if not is_question(question):
        return Extract(_NOTED[language])
    if not reachable:
        return Extract(_AWAY[language])
    wanted = _weights(question)
    baseline = min((score for item in evidence if (score := _dense(item)) is not None), default=None)
    rated = [
        (rating, item)
        for item in evidence
        if not _asks(item, question) and (rating := _rating(item, wanted, baseline)) is not None
    ]
    if not rated:
        return Extract(_UNKNOWN[language])
    best = max(rating for rating, _ in rated)
    chosen = [item for rating, item in rated if rating >= _NEARLY * best][:QUOTES]
    lines = [_quote(item, wanted, language) for item in chosen]
    return Extract("\n".join(lines), tuple(item.id for item in chosen))


def _asks(item: Evidence, question: str) -> bool:
    text = normalise(item.text)
    return text == normalise(question) or (is_question(text) and len(split_parts(text, 120)) == 1)


def _weights(question: str) -> Mapping[str, float]:
    found = set(query_terms(question))
    found = found - _IDLE or found
    return {term: _SOFT_WEIGHT if term in _SOFT else 1.0 for term in found}


def _rating(item: Evidence, wanted: Mapping[str, float], baseline: float | None) -> float | None:
    """How well a hit answers, `None` if not well enough to be quoted."""
    words = _coverage(item.text, wanted)
    lift = _lift(_dense(item), baseline)
    if words >= _ENOUGH_WORDS or lift >= _ENOUGH_LIFT or (words >= _SOME_WORDS and lift >= _SOME_LIFT):
        return words + lift
    return None


def _coverage(text: str, wanted: Mapping[str, float]) -> float:
    """The share of the question's words that stand in a text, by weight."""
    found = set(terms(text))
    shared = {term for term in wanted if term in found}
    if not shared or (max(wanted.values()) == 1 and not any(wanted[term] == 1 for term in shared)):
        return 0.0  # "my favourite colour" tells nothing of "my favourite film"
    return sum(wanted[term] for term in shared) / sum(wanted.values())


def _dense(item: Evidence) -> float | None:
    return max((score for name, score in item.signals.items() if name.startswith("dense")), default=None)


def _lift(score: float | None, baseline: float | None) -> float:
    """How far a cosine stands above the weakest hit's, as a share of the way to a perfect match.

    Embedders differ in where unrelated texts lie (near 0.75 here, near 0 there); the share does not.
    """
    if score is None or baseline is None or baseline >= 1:
        return 0.0
    return max(0.0, (score - baseline) / (1 - baseline))


def _quote(item: Evidence, wanted: Mapping[str, float], language: Language) -> str:
    text = _shortened(item.text, wanted)
    who = item.speaker
    if language == "zh":
        said = f"{who}说" if who else {"user": "你说", "assistant": "我说"}.get(item.role, "记录写着")
        when = f"{format_date(item.said_at, language)}，" if item.said_at else ""
        return f"{when}{said}：“{text}”"
    said = f"{who} said" if who else {"user": "you said", "assistant": "I said"}.get(item.role, "a note said")
    when = f"On {format_date(item.said_at, language)} " if item.said_at else ""
    line = f"{when}{said}: “{text}”"
    return line[0].upper() + line[1:]


def _shortened(text: str, wanted: Mapping[str, float]) -> str:
    """The part of a long text that says most of what was asked."""
    if len(text) <= _QUOTED_LENGTH:
        return text
    parts = split_parts(text, _QUOTED_LENGTH)
    best = max(parts, key=lambda part: _coverage(part, wanted)) if parts else text[:_QUOTED_LENGTH]
    before = "" if best is parts[0] else "… "
    after = "" if best is parts[-1] else " …"
    return f"{before}{best.strip()}{after}"
