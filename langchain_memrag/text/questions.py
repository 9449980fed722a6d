"""What a message asks, when it asks several things at once, and of which days it asks. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date
from typing import Final

from langchain_memrag.text.dates import DateSpan, find_dates

__all__ = ["MOST_QUESTIONS", "Period", "periods_of", "questions_of"]

MOST_QUESTIONS: Final = 3
"""So many questions of one message are asked on their own: each costs an embedding and a search."""

_SHORTEST: Final = 4
_SENTENCE_END = re.compile(r"(?<=[。！？!?；;])\s*|(?<=\.)\s+")
_FROM = re.compile(r"(?:\b(?:between|from)(?:\s+the)?|[从從自由在])\s*$", re.IGNORECASE)
_AND = re.compile(
    r"\s*(?:and|to|till|until|through|-|\u2013|\u2014|~|到|至|和|与)\s*(?:the\s+)?", re.IGNORECASE
)
_TO = re.compile(r"\s*(?:to|till|until|through|-|\u2013|\u2014|~|到|至)\s*(?:the\s+)?", re.IGNORECASE)


def questions_of(text: str) -> tuple[str, ...]:
    """The single questions of a message that asks more than one; else nothing.

    A vector of two questions is near the answer to neither, and the words of one drown those of the
    other. The last ones are kept: what people want to know comes after what they tell.

    Example:
        >>> questions_of("Where does Ann work? And when is her birthday?")
        ('Where does Ann work?', 'And when is her birthday?')
        >>> questions_of("你好。我表哥的电话是多少？")
        ()
    """
    pieces = (piece.strip() for piece in _SENTENCE_END.split(text))
    asked = [piece for piece in pieces if len(piece) >= _SHORTEST and piece.endswith(("?", "？"))]
    return tuple(asked[-MOST_QUESTIONS:]) if len(asked) > 1 else ()


@dataclass(frozen=True, slots=True)
class Period:
    """Days that a question names, both ends included.

    Attributes:
        start: The first day.
        end: The last day.
        recurring: No year was said, so that any year will do.
    """

    start: date
    end: date
    recurring: bool = False

    def covers(self, day: date) -> bool:
        """Whether the period holds a day, of any year where it recurs."""
        if not self.recurring or (self.end - self.start).days >= 365:
            return self.start <= day <= self.end
        first, last, asked = ((one.month, one.day) for one in (self.start, self.end, day))
        return first <= asked <= last if first <= last else asked >= first or asked <= last


def periods_of(text: str, today: date) -> tuple[Period, ...]:
    """The days, months or years that a question names; "between May 2nd and May 20th" is one period.

    Args:
        text: The question.
        today: The day it is asked on, from which "yesterday" and 上个月 are counted.

    Example:
        >>> periods_of("What did we do between 2 May 2023 and 5 May 2023?", date(2024, 1, 1))
        (Period(start=datetime.date(2023, 5, 2), end=datetime.date(2023, 5, 5), recurring=False),)
    """
    found = find_dates(text, today)
    periods: list[Period] = []
    place = 0
    while place < len(found):
        one = found[place]
        other = found[place + 1] if place + 1 < len(found) else None
        if other is not None and _is_range(text, one, other):
            periods.append(_joined(one, other))
            place += 2
        else:
            periods.append(Period(one.start, one.end, one.recurring))
            place += 1
    return tuple(periods)


def _is_range(text: str, one: DateSpan, other: DateSpan) -> bool:
    between = text[one.end_index : other.start_index]
    opened = _FROM.search(text[: one.start_index]) or _FROM.match(text[one.start_index : one.end_index])
    return bool((_AND if opened else _TO).fullmatch(between))


def _joined(one: DateSpan, other: DateSpan) -> Period:
    if one.recurring and other.recurring:
        return Period(one.start, other.end, recurring=True)
    # "from May 2 to May 20, 2023": a year that is said once holds for both.
    start, end = one.start, other.end
    if one.recurring:
        start = _in_year(start, end.year)
        start = start if start <= end else _in_year(start, end.year - 1)
    elif other.recurring:
        end = _in_year(end, start.year)
        end = end if end >= start else _in_year(end, start.year + 1)
    return Period(min(start, other.start), max(end, one.end)) if start > end else Period(start, end)


def _in_year(day: date, year: int) -> date:
    year = min(max(year, MINYEAR), MAXYEAR)
    leap_day = (day.month, day.day) == (2, 29)
    return date(year, 2, 28) if leap_day else day.replace(year=year)
