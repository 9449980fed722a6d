"""The days that a question names, as ranges in which turns may have been said. Pure.

Asked about a day, people want that day: on questions such as "what did they discuss on July 3rd?"
NDCG@10 went from .19 to .34 when turns of the named days came first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Final

from langchain_memrag.stores.base import SearchFilter
from langchain_memrag.text import DateSpan, find_dates

__all__ = ["DayRange", "named_days", "within"]

LONGEST: Final = timedelta(days=100)
"""A longer span ("this year") tells too little."""

MOST: Final = 3
"""How many ranges are searched, the latest first."""

# A speaker's day may begin up to 14 hours before that of UTC, and end up to 12 after it.
_EAST, _WEST = timedelta(hours=14), timedelta(hours=12)

_THROUGH = re.compile(r"\s*(?:to|until|till|through|-|–|—|到|至)\s*", re.IGNORECASE)
# "May 2nd and May 5th" are two days; "between May 2nd and May 5th" are four.
_AND = re.compile(r"\s*(?:and|和|与)\s*", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+)?$", re.IGNORECASE)
_BETWEEN_THEM = re.compile(r"\s*(?:之间|期间)")


@dataclass(frozen=True, slots=True)
class DayRange:
    """Some days, both ends included.

    Attributes:
        yearly: No year was named: the same days of any year are meant.
    """

    start: date
    end: date
    yearly: bool = False

    def covers(self, day: date) -> bool:
        """Whether a day is among them."""
        if not self.yearly:
            return self.start <= day <= self.end
        return any(
            one.start <= day <= one.end for one in (self.of_year(day.year), self.of_year(day.year - 1))
        )

    def of_year(self, year: int) -> DayRange:
        """The same days, beginning in another year."""
        try:
            start = self.start.replace(year=max(year, 1))
        except ValueError:  # 29 February
            start = self.start.replace(year=max(year, 1), day=28)
        return DayRange(start, start + (self.end - self.start))


def named_days(text: str, today: date) -> tuple[DayRange, ...]:
    """The days that a question names; "between X and Y" is one range. Empty for most questions."""
    spans = find_dates(text, today)
    ranges = [DayRange(span.start, span.end, span.recurring) for span in spans]
    merged = set()
    for (one, left), (other, right) in pairwise(list(zip(spans, ranges, strict=True))):
        both = left.yearly and right.yearly
        if not _joined(text, one, other) or (left.start > right.end and not both):
            continue
        end = right.end if left.start <= right.end else _next_year(right.end)
        merged |= {left, right}
        ranges.append(DayRange(left.start, end, both))
    return tuple(one for one in dict.fromkeys(ranges) if one not in merged and one.end - one.start <= LONGEST)


def _joined(text: str, one: DateSpan, other: DateSpan) -> bool:
    gap = text[one.end_index : other.start_index]
    if _THROUGH.fullmatch(gap):
        return True
    around = _BETWEEN.search(text[: one.start_index]) or _BETWEEN_THEM.match(text[other.end_index :])
    return bool(_AND.fullmatch(gap) and around)


def _next_year(day: date) -> date:
    try:
        return day.replace(year=day.year + 1)
    except ValueError:  # 29 February, or the end of the calendar
        return day if day.year == date.max.year else day.replace(year=day.year + 1, day=28)


def within(
    where: SearchFilter, days: tuple[DayRange, ...], first: datetime, last: datetime
) -> list[SearchFilter]:
    """A filter for each range of days in which a memory has turns, the latest first.

    Args:
        where: What is asked for besides.
        days: The days.
        first: When the memory's first turn was said.
        last: When its last turn was said.
    """
    years = range(last.year, first.year - 2, -1)
    dated = [one for day in days for one in ([day.of_year(year) for year in years] if day.yearly else [day])]
    filters = []
    for one in sorted(dated, key=lambda one: one.start, reverse=True):
        since = _midnight(one.start) - _EAST
        until = _midnight(one.end) + timedelta(days=1) + _WEST
        if since > last or until <= first:
            continue
        since = max(since, where.since) if where.since else since
        until = min(until, where.until) if where.until else until
        if since < until:
            filters.append(replace(where, since=since, until=until))
    return filters[:MOST]


def _midnight(day: date) -> datetime:
    # The calendar has an edge; a day's room is kept from it.
    safe = min(max(day, date(1, 1, 3)), date(9999, 12, 28))
    return datetime.combine(safe, time(), tzinfo=UTC)
