"""Times as people write them, in English and in Chinese, read as moments.

`13:56 on 8 May, 2023`, `May 8th, 2023 at 1:56 pm`, `2023/05/20 (Sat) 02:21`, `2024年4月1日 周一 上午8点05分`:
what names a day is read; what does not (`yesterday`, `day 3`, `2023`) is `None`, never a guess.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

__all__ = ["read_time"]

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH: Final = rf"(?P<name>{'|'.join(_MONTHS)})\b\.?"
_DAY: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<y>\d{4})"

_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<y>\d{4})\s*年\s*(?P<m>\d{1,2})\s*月(?:份)?(?:\s*(?P<d>\d{1,2})\s*[日号號])?",
        r"(?<!\d)(?P<y>\d{4})\s*[-/.]\s*(?P<m>\d{1,2})\s*[-/.]\s*(?P<d>\d{1,2})(?!\d)",
        rf"(?<!\d){_DAY}\s*(?:of\s+)?[-/ ]?\s*{_MONTH}[\s,/-]*(?:of\s+)?{_YEAR}",
        rf"\b{_MONTH}\s*{_DAY}(?!\d)[\s,]*{_YEAR}",
        rf"\b{_YEAR}[\s,]+{_MONTH}\s+{_DAY}(?!\d)",
        rf"\b{_MONTH}[\s,]*(?:of\s+)?{_YEAR}",
        r"(?<!\d)(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})(?!\d)",
        r"(?<!\d)(?P<y>(?:19|20)\d{2})(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])(?=T|\s|$)",
        r"(?<!\d)(?P<y>\d{4})-(?P<m>0[1-9]|1[0-2])(?![\d-])",
    )
)

_HALF_OF_DAY: Final = {
    "am": 0, "a.m.": 0, "凌晨": 0, "清晨": 0, "早上": 0, "早晨": 0, "上午": 0,
    "pm": 12, "p.m.": 12, "中午": 12, "下午": 12, "傍晚": 12, "晚上": 12, "晚间": 12, "夜里": 12, "深夜": 12,
}  # fmt: skip
_BEFORE: Final = r"(?:(?P<before>凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|晚间|夜里|深夜)\s*)?"
_AFTER: Final = r"(?:\s*(?P<after>[ap]m\b|[ap]\.m\.))?"

_CLOCKS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_BEFORE}(?<!\d)(?P<h>\d{{1,2}}):(?P<min>\d{{2}})(?::(?P<s>\d{{2}})(?:[.,]\d+)?)?{_AFTER}",
        rf"{_BEFORE}(?<!\d)(?P<h>\d{{1,2}})\s*[点點时時](?:钟|鐘)?"
        r"(?:(?P<part>半|一刻|三刻)|(?P<min>\d{1,2})分?(?:(?P<s>\d{1,2})秒)?)?",
        r"(?<!\d)(?P<h>\d{1,2})(?:\.(?P<min>\d{2}))?\s*(?P<after>[ap]m\b|[ap]\.m\.)",
        r"T(?P<h>\d{2})(?P<min>\d{2})(?P<s>\d{2})?",
        r"\b(?P<word>noon|midday|midnight)\b|(?P<zh_word>正午|午夜)",
    )
)
_PARTS: Final = {"半": 30, "一刻": 15, "三刻": 45}
_WORDS: Final = {"noon": 12, "midday": 12, "midnight": 0, "正午": 12, "午夜": 0}

_OFFSET: Final = re.compile(r"\s*(?:UTC|GMT)?\s*(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?(?!\d)")
_EPOCH: Final = re.compile(r"\d{9,10}(?:\.\d+)?|\d{12,13}")
_NUMERALS: Final = re.compile(r"[〇零一二三四五六七八九十廿]+(?=\s*[年月日号號点點时時分秒])")
_DIGITS: Final = dict(zip("〇零一二三四五六七八九", "00123456789", strict=True))


def read_time(written: object) -> datetime | None:
    """The moment that a time names, aware; `None` where it names no day.

    A time without a zone is taken to be on the speaker's own clock, which is called UTC here. A date
    without a time of day is its midnight, a month without a day its first.

    Args:
        written: A text; a number is taken for seconds (or milliseconds) since 1970.
    """
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return None
    text = unicodedata.normalize("NFKC", str(written)).strip()
    if _EPOCH.fullmatch(text):
        return _from_epoch(float(text))
    text = _NUMERALS.sub(lambda found: _numeral(found[0]), text)
    for pattern in _DATES:
        found = pattern.search(text)
        day = _day(found) if found else None
        if found is not None and day is not None:
            return _at_clock(day, f"{text[: found.start()]} {text[found.end() :]}")
    return None


def _from_epoch(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _numeral(text: str) -> str:
    """`二〇二四` is written digit by digit, `二十三` by tens."""
    text = text.replace("廿", "二十")
    if "十" not in text:
        return "".join(_DIGITS[char] for char in text)
    tens, _, ones = text.partition("十")
    number = 10 * int(_DIGITS.get(tens[-1:], "1")) + int(_DIGITS.get(ones[:1], "0"))
    return str(number)


def _day(found: re.Match[str]) -> datetime | None:
    group = found.groupdict()
    year, day = int(group["y"]), int(group.get("d") or 1)
    if group.get("name"):
        month = _MONTHS[group["name"].lower()]
    elif group.get("a"):
        month, day = int(group["a"]), int(group["b"])
        # Month first, as in the United States, unless dots or the numbers themselves say otherwise.
        if group["sep"] == "." or month > 12:
            month, day = day, month
    else:
        month = int(group["m"])
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _at_clock(day: datetime, rest: str) -> datetime:
    for pattern in _CLOCKS:
        found = pattern.search(rest)
        if found is None:
            continue
        group = found.groupdict()
        word = group.get("word") or group.get("zh_word")
        hour = _WORDS[word.lower()] if word else int(group["h"])
        half = (group.get("after") or group.get("before") or "").lower()
        if half in _HALF_OF_DAY:
            hour = _hour(hour, half)
        minute = int(group.get("min") or _PARTS.get(group.get("part") or "", 0))
        second = int(group.get("s") or 0)
        next_day = hour == 24
        try:
            moment = day.replace(hour=0 if next_day else hour, minute=minute, second=second)
        except ValueError:
            continue
        moment = moment.replace(tzinfo=_zone(rest[found.end() :]))
        return moment + timedelta(days=1) if next_day else moment
    return day


def _hour(hour: int, half: str) -> int:
    if hour > 12:
        return hour
    if half == "中午" and hour in {10, 11}:
        return hour  # 中午11点半 is before noon
    if half in {"晚上", "夜里", "深夜"} and hour == 12:
        return 24  # 晚上12点 ends the day
    if half in {"夜里", "深夜"} and hour < 6:
        return hour  # 深夜2点 is in the morning
    return hour % 12 + _HALF_OF_DAY[half]


def _zone(rest: str) -> tzinfo:
    found = _OFFSET.match(rest)
    if found is None:
        return UTC
    minutes = int(found["h"]) * 60 + int(found["m"] or 0)
    if minutes >= 24 * 60:
        return UTC
    return timezone(timedelta(minutes=-minutes if found["sign"] == "-" else minutes))
