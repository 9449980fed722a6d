"""Arithmetic on days, weeks, months and seasons that answers None where the calendar ends."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, date
from typing import Literal, NamedTuple

_FARTHEST = 366 * 1000


class Span(NamedTuple):
    """Some days in a row, both ends included; `recurring` when any year is meant."""

    start: date
    end: date
    recurring: bool = False


def day_span(year: int, month: int, day: int) -> Span | None:
    """One day, if there is one."""
    if (
        not MINYEAR <= year <= MAXYEAR
        or not 1 <= month <= 12
        or not 1 <= day <= calendar.monthrange(year, month)[1]
    ):
        return None
    found = date(year, month, day)
    return Span(found, found)


def month_span(year: int, month: int) -> Span | None:
    """One month."""
    if not MINYEAR <= year <= MAXYEAR or not 1 <= month <= 12:
        return None
    return Span(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))


def year_span(year: int) -> Span | None:
    """One year."""
    return Span(date(year, 1, 1), date(year, 12, 31)) if MINYEAR <= year <= MAXYEAR else None


def season_span(year: int, first_month: int) -> Span | None:
    """The three months from `first_month` on; winter ends in the next year."""
    if not MINYEAR <= year < MAXYEAR:
        return None
    last_year, last_month = (year + 1, first_month - 10) if first_month > 10 else (year, first_month + 2)
    return Span(
        date(year, first_month, 1), date(last_year, last_month, calendar.monthrange(last_year, last_month)[1])
    )


def days_from(today: date, days: int) -> Span | None:
    """The day so many days from today."""
    if abs(days) > _FARTHEST or not date.min.toordinal() <= today.toordinal() + days <= date.max.toordinal():
        return None
    found = date.fromordinal(today.toordinal() + days)
    return Span(found, found)


def months_from(today: date, months: int) -> Span | None:
    """The month so many months from today's."""
    year, month = divmod(today.year * 12 + today.month - 1 + months, 12)
    return month_span(year, month + 1)


def week_span(today: date, weeks: int) -> Span | None:
    """The week, Monday to Sunday, so many weeks from today's."""
    monday = days_from(today, 7 * weeks - today.weekday())
    sunday = days_from(today, 7 * weeks - today.weekday() + 6)
    return Span(monday.start, sunday.end) if monday and sunday else None


def weekday_span(today: date, weekday: int, which: Literal["last", "latest", "next"]) -> Span | None:
    """A day of the week: the last one before today, the latest up to today, or the next one after."""
    back = (today.weekday() - weekday) % 7
    if which == "next":
        return days_from(today, 7 - back)
    return days_from(today, -(back or 7) if which == "last" else -back)


def units_from(today: date, unit: str, count: int) -> Span | None:
    """So many days, weeks, months or years from today, as wide as people mean it."""
    if abs(count) > _FARTHEST:
        return None
    if unit == "day":
        return days_from(today, count)
    if unit == "week":
        first, last = days_from(today, 7 * count - 3), days_from(today, 7 * count + 3)
        return Span(first.start, last.end) if first and last else None
    return months_from(today, count) if unit == "month" else year_span(today.year + count)


def last_window(today: date, unit: str, count: int) -> Span | None:
    """The days, weeks, months or years up to today."""
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit] * count
    first = days_from(today, -days)
    return Span(first.start, today) if first else None


def yearly(today: date, of_year: Callable[[int], Span | None]) -> Span | None:
    """A span of no particular year: the latest that does not begin after today. A leap day may be old."""
    for year in range(today.year, max(MINYEAR, today.year - 9) - 1, -1):
        span = of_year(year)
        if span is not None and span.start <= today:
            return Span(span.start, span.end, recurring=True)
    return None
