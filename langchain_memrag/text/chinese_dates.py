"""How Chinese says dates: 2024年7月13日, 去年夏天, 上周三, 三天前."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from langchain_memrag.text.calendar_spans import (
    Span,
    day_span,
    days_from,
    last_window,
    month_span,
    months_from,
    season_span,
    units_from,
    week_span,
    weekday_span,
    year_span,
    yearly,
)

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_SCALES = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_NUMERAL = "[0-9零〇一二两兩三四五六七八九十]"
_COUNT = r"(?P<count>[0-9]{1,9}|[零〇一二两兩三四五六七八九十百千万萬亿億]{1,12})"
_YEARS = {"前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2, "後年": 2}
_DAYS = {
    "大前天": -3, "前天": -2, "前晚": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "昨夜": -1,
    "今天": 0, "今日": 0, "今晚": 0, "今早": 0, "明天": 1, "明日": 1, "明早": 1, "明晚": 1,
    "后天": 2, "後天": 2, "大后天": 3, "大後天": 3,
}  # fmt: skip
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
_WEEKDAYS = {char: value for value, char in enumerate("一二三四五六")} | {"日": 6, "天": 6}
_UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "週": "week",
    "星期": "week",
    "礼拜": "week",
    "禮拜": "week",
}
_UNITS |= {"月": "month", "年": "year"}
_RELATIVE_YEAR = "前年|去年|今年|本年|明年|后年|後年"
_WEEK = "(?:个|個)?(?:周|週|星期|礼拜|禮拜)"


def _number(words: str) -> int | None:
    """A numeral; None for one that is none (十百)."""
    if words.isascii():
        return int(words)
    if not any(char in _SCALES or char in _MYRIADS for char in words):
        return int("".join(str(_DIGITS[char]) for char in words))
    total = section = digit = 0
    for char in words:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _SCALES:
            section += (digit or 1) * _SCALES[char]
            digit = 0
        elif char in _MYRIADS:
            total = (total + section + digit) * _MYRIADS[char]
            section = digit = 0
        else:
            return None
    return total + section + digit


def _part(words: str) -> int | None:
    """The number of a month or a day, in either kind of digits, or mixed ones: None."""
    if words.isascii() or not any(char.isascii() for char in words):
        return _number(words)
    return None


def _year_of(match: re.Match[str], today: date) -> int | None:
    if match["relative"]:
        return today.year + _YEARS[match["relative"]]
    return _part(match["year"])


def _full(match: re.Match[str], today: date) -> Span | None:
    year, month, day = _year_of(match, today), _part(match["month"]), _part(match["day"])
    return day_span(year, month, day) if year and month and day else None


def _year_month(match: re.Match[str], today: date) -> Span | None:
    year, month = _year_of(match, today), _part(match["month"])
    return month_span(year, month) if year and month else None


def _year_season(match: re.Match[str], today: date) -> Span | None:
    year = _year_of(match, today)
    return season_span(year, _SEASONS[match["season"]]) if year else None


def _year(match: re.Match[str], today: date) -> Span | None:
    year = _year_of(match, today)
    return year_span(year) if year else None


def _month_day(match: re.Match[str], today: date) -> Span | None:
    month, day = _part(match["month"]), _part(match["day"])
    return yearly(today, lambda year: day_span(year, month, day)) if month and day else None


def _month(match: re.Match[str], today: date) -> Span | None:
    month = _part(match["month"])
    return yearly(today, lambda year: month_span(year, month)) if month else None


def _step_month(match: re.Match[str], today: date) -> Span | None:
    step = {"上": -1, "下": 1}.get(match["step"][0], 0) * len(match["step"].rstrip("个個"))
    span = months_from(today, step)
    if span is None or not match["day"]:
        return span
    day = _part(match["day"])
    return day_span(span.start.year, span.start.month, day) if day else None


def _step_week(match: re.Match[str], today: date) -> Span | None:
    step = {"上": -1, "下": 1}.get(match["step"][0], 0) * len(match["step"])
    week = week_span(today, step)
    if week is None or not match["weekday"]:
        return week
    if match["weekday"] == "末":
        return Span(week.start + timedelta(days=5), week.end)
    return days_from(week.start, _WEEKDAYS[match["weekday"]])


def _weekday(match: re.Match[str], today: date) -> Span | None:
    return weekday_span(today, _WEEKDAYS[match["weekday"]], "latest")


def _day(match: re.Match[str], today: date) -> Span | None:
    return days_from(today, _DAYS[match[0]])


def _away(match: re.Match[str], today: date) -> Span | None:
    count = _number(match["count"])
    direction = -1 if match["direction"] in {"前", "之前", "以前"} else 1
    return units_from(today, _UNITS[match["unit"]], direction * count) if count else None


def _half_year_ago(_: re.Match[str], today: date) -> Span | None:
    return months_from(today, -6)


def _few_ago(match: re.Match[str], today: date) -> Span | None:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[_UNITS[match["unit"]]]
    first, last = days_from(today, -9 * days), days_from(today, -2 * days)
    return Span(first.start, last.end) if first and last else None


def _window(match: re.Match[str], today: date) -> Span | None:
    count = _number(match["count"])
    return last_window(today, _UNITS[match["unit"]], count) if count else None


_Y = (
    rf"(?:(?P<relative>{_RELATIVE_YEAR})的?"
    r"|(?<![0-9零〇一二三四五六七八九])(?P<year>[12][0-9]{3}|[一二][零〇一二三四五六七八九]{3})\s?年的?)"
)
_M = rf"(?<![0-9])(?P<month>{_NUMERAL}{{1,3}})\s?月(?:份)?"
_D = rf"(?P<day>{_NUMERAL}{{1,3}})\s?[日号號]"
_UNIT = r"(?:个|個)?(?P<unit>天|日|周|週|星期|礼拜|禮拜|月|年)"

CHINESE_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"{_Y}\s?{_M.replace('(?<![0-9])', '')}\s?{_D}", _full),
        (rf"{_Y}\s?{_M.replace('(?<![0-9])', '')}", _year_month),
        (rf"{_Y}\s?(?P<season>[春夏秋冬])(?:天|季)?", _year_season),
        (rf"{_COUNT}\s?{_UNIT}(?P<direction>之前|以前|前|之后|以后|之後|以後|后|後)", _away),
        (r"半年(?:之前|以前|前)", _half_year_ago),
        (rf"(?:好几|几|幾|数){_UNIT}(?:之前|以前|前)", _few_ago),
        (rf"(?:最近|过去|過去|近)的?这?{_COUNT}\s?{_UNIT}", _window),
        (
            rf"(?P<step>上{{1,2}}(?:个|個)|下{{1,2}}(?:个|個)|这(?:个|個)|這個|本|上|下)月(?:份)?(?:的?{_D})?",
            _step_month,
        ),
        (rf"(?P<step>上{{1,2}}|下{{1,2}}|这|這|本){_WEEK}(?P<weekday>[一二三四五六日天末])?", _step_week),
        (rf"{_M}\s?{_D}", _month_day),
        (rf"{_M}(?![0-9])", _month),
        (_Y, _year),
        ("大?[前后後]天|昨[天日晚夜]|今[天日晚早]|明[天日早晚]|前晚", _day),
        (
            r"(?:星期|礼拜|禮拜|(?<![一二三四五六七八九十两几上下这本每])[周週])(?P<weekday>[一二三四五六日天])(?![个個])",
            _weekday,
        ),
    )
)
