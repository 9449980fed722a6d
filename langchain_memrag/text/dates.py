"""Dates that a text names, in English and Chinese: exact days, months, years, seasons, and how long ago.

Only what says a date is read as one: "we" is no weekday, "may" and "march on" are no months, and a time
that no calendar holds (十万年前) yields nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from langchain_memrag.text.chinese_dates import CHINESE_RULES
from langchain_memrag.text.mention import Taken

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_WEEKDAYS = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        start=1,
    )
} | {"a": 1, "an": 1, "couple": 2, "a couple of": 2}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_STEPS = {"last": -1, "past": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}

_FULL_WIDTH_DIGITS = {0xFF10 + digit: str(digit) for digit in range(10)}
_MONTH = (
    r"(?P<month>january|jan|february|feb|march|mar|april|apr|may|june|jun|july|jul|august|aug|september|sept|sep"
    r"|october|oct|november|nov|december|dec)"
)
_LONG_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november|december)"
)
_DAY = r"(?P<day>[0-3]?[0-9])(?P<ordinal>st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
_COUNT = (
    r"(?P<count>[0-9]{1,4}|a couple of|an|a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
)
_UNIT = r"(?P<unit>day|week|month|year)s?"
_STEP = r"(?P<step>last|past|previous|this|current|next|coming)"


@dataclass(frozen=True, slots=True)
class DateSpan:
    """The days that a few words of a text stand for, both ends included.

    Attributes:
        start: The first day.
        end: The last day.
        start_index: Index of the words' first character.
        end_index: Index after their last character.
        recurring: No year was said ("July 3rd", "in May"): any year is meant, and `start` and `end` are
            those of the latest one that does not begin after today.
    """

    start: date
    end: date
    start_index: int
    end_index: int
    recurring: bool = False


_Rule = tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]]


def find_dates(text: str, today: date) -> list[DateSpan]:
    """The dates in a text, in order. Never raises, whatever the text.

    Args:
        text: What was asked or said.
        today: The day it was said on, from which "yesterday" and 去年 are counted.
    """
    found: list[DateSpan] = []
    taken = Taken(len(text))
    text = text.translate(_FULL_WIDTH_DIGITS)
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if taken.overlaps(start, end):
                continue
            span = read(match, today)
            if span is not None:
                taken.add(start, end)
                found.append(DateSpan(span.start, span.end, start, end, span.recurring))
    return sorted(found, key=lambda span: span.start_index)


def _iso(match: re.Match[str], _: date) -> Span | None:
    return day_span(int(match["year"]), int(match["month"]), int(match["day"]))


def _slashed(match: re.Match[str], _: date) -> Span | None:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    # 7/13 is July 13th and 13/7 too; where both would do, the American order.
    return day_span(year, first, second) or day_span(year, second, first)


def _named_day(match: re.Match[str], today: date) -> Span | None:
    month, day = _MONTHS[match["month"].lower()], int(match["day"])
    if match["year"]:
        return day_span(int(match["year"]), month, day)
    if match["month"] in {"may", "march", "mar"} and not match["ordinal"] and not match["cue"]:
        return None
    return yearly(today, lambda year: day_span(year, month, day))


def _named_month(match: re.Match[str], _: date) -> Span | None:
    return month_span(int(match["year"]), _MONTHS[match["month"].lower()])


def _month_of_step(match: re.Match[str], today: date) -> Span | None:
    month, step = _MONTHS[match["month"].lower()], _STEPS[match["step"].lower()]
    if step == 0:
        return month_span(today.year, month)
    if step < 0:
        return month_span(today.year if month < today.month else today.year - 1, month)
    return month_span(today.year if month > today.month else today.year + 1, month)


def _any_month(match: re.Match[str], today: date) -> Span | None:
    return yearly(today, lambda year: month_span(year, _MONTHS[match["month"].lower()]))


def _season(match: re.Match[str], today: date) -> Span | None:
    first = _SEASONS[match["season"].lower()]
    if match["year"]:
        return season_span(int(match["year"]), first)
    if match["step"]:
        step = _STEPS[match["step"].lower()]
        span = season_span(today.year, first)
        if step < 0 and span is not None and span.end >= today:
            return season_span(today.year - 1, first)
        return season_span(today.year + max(step, 0), first)
    return yearly(today, lambda year: season_span(year, first))


def _year(match: re.Match[str], _: date) -> Span | None:
    return year_span(int(match["year"]))


def _relative_day(match: re.Match[str], today: date) -> Span | None:
    words = " ".join(match[0].lower().split())
    return days_from(today, _DAYS[words])


_DAYS = {
    "the day before yesterday": -2,
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
    "day after tomorrow": 2,
}


def _count(words: str) -> int:
    return int(words) if words.isdigit() else _NUMBERS[" ".join(words.lower().split())]


def _ago(match: re.Match[str], today: date) -> Span | None:
    return units_from(today, match["unit"].lower(), -_count(match["count"]))


def _in_units(match: re.Match[str], today: date) -> Span | None:
    return units_from(today, match["unit"].lower(), _count(match["count"]))


def _few_ago(match: re.Match[str], today: date) -> Span | None:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"].lower()]
    first, last = days_from(today, -7 * days), days_from(today, -2 * days)
    return Span(first.start, last.end) if first and last else None


def _window(match: re.Match[str], today: date) -> Span | None:
    return last_window(today, match["unit"].lower(), _count(match["count"]))


def _step(match: re.Match[str], today: date) -> Span | None:
    step, unit = _STEPS[match["step"].lower()], match["unit"].lower()
    if unit == "week":
        return week_span(today, step)
    if unit == "weekend":
        week = week_span(today, step)
        return Span(week.start + timedelta(days=5), week.end) if week else None
    if unit == "month":
        return months_from(today, step)
    return year_span(today.year + step)


def _weekday(match: re.Match[str], today: date) -> Span | None:
    number = _WEEKDAYS[match["weekday"].lower()]
    cue = match["step"].lower() if match["step"] else "on"
    return weekday_span(
        today, number, "next" if cue in {"next", "coming"} else "last" if cue != "on" else "latest"
    )


def _rules() -> Iterator[_Rule]:
    def rule(pattern: str, read: Callable[[re.Match[str], date], Span | None]) -> _Rule:
        return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", re.IGNORECASE | re.ASCII), read

    cue = r"(?:(?P<cue>on|by|until|since|of|before|after|from|in)\s+(?:the\s+)?)?"
    year = rf"(?:(?:,|\s+of|\s+in)?\s+{_YEAR})?"
    yield rule(rf"{_YEAR}[-/.](?P<month>[01]?[0-9])[-/.](?P<day>[0-3]?[0-9])", _iso)
    yield rule(rf"(?P<first>[0-3]?[0-9])/(?P<second>[0-3]?[0-9])/{_YEAR}", _slashed)
    yield rule(rf"{cue}{_DAY}\s+(?:of\s+)?{_MONTH}\.?{year}", _named_day)
    yield rule(rf"{cue}{_MONTH}\.?\s+(?:the\s+)?{_DAY}(?!:[0-9]){year}", _named_day)
    yield rule(rf"{_MONTH}\.?,?\s+(?:of\s+)?{_YEAR}", _named_month)
    yield rule(rf"{_STEP}\s+{_LONG_MONTH}", _month_of_step)
    yield rule(rf"(?:in|during|since|until|before|after|of|early|late|mid)(?:\s+|-){_LONG_MONTH}", _any_month)
    yield rule(
        rf"(?:{_STEP}\s+)?(?P<season>spring|summer|autumn|fall|winter)\s+(?:of\s+|in\s+)?{_YEAR}", _season
    )
    yield rule(rf"{_STEP}\s+(?P<season>spring|summer|autumn|fall|winter)(?P<year>)", _season)
    yield rule(
        r"(?:in|during|over)\s+(?:the\s+)?(?P<season>spring|summer|autumn|winter)(?P<year>)(?P<step>)",
        _season,
    )
    yield rule(rf"(?:in|during|of|since|year|until|before|after|from|by)\s+(?:the\s+year\s+)?{_YEAR}", _year)
    yield rule(r"\s+".join(("(?:the\\s+)?day", "(?:before\\s+yesterday|after\\s+tomorrow)")), _relative_day)
    yield rule(
        r"yesterday|last\s+night|today|tonight|this\s+(?:morning|afternoon|evening)|tomorrow", _relative_day
    )
    yield rule(rf"{_COUNT}\s+{_UNIT}\s+(?:ago|earlier|back)", _ago)
    yield rule(rf"(?:a\s+few|several|some)\s+{_UNIT}\s+(?:ago|earlier|back)", _few_ago)
    yield rule(
        rf"in\s+{_COUNT}\s+{_UNIT}(?:'s\s+time)?|{_COUNT.replace('count', 'more')}\s+days?\s+from\s+now",
        _later,
    )
    yield rule(rf"(?:last|past|previous)\s+{_COUNT}\s+{_UNIT}", _window)
    yield rule(rf"{_STEP}\s+(?P<unit>weekend|week|month|year)", _step)
    weekday = "(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    yield rule(rf"(?:on\s+)?(?:{_STEP}|on)\s+{weekday}", _weekday)


def _later(match: re.Match[str], today: date) -> Span | None:
    return _in_units(match, today) if match["count"] else days_from(today, _count(match["more"]))


_RULES: tuple[_Rule, ...] = (*_rules(), *CHINESE_RULES)
