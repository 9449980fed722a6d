"""Days that a question names become ranges in which to look."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from langchain_memrag.engine.when import DayRange, named_days, within
from langchain_memrag.stores.base import SearchFilter

TODAY = date(2026, 11, 30)
NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "first", "last", "yearly"),
    [
        ("What did we say on 13 July 2024?", date(2024, 7, 13), date(2024, 7, 13), False),
        ("我们2024年7月13日说了什么?", date(2024, 7, 13), date(2024, 7, 13), False),
        ("What happened on July 3rd?", date(2026, 7, 3), date(2026, 7, 3), True),
        ("What happened between 3 July 2024 and 9 July 2024?", date(2024, 7, 3), date(2024, 7, 9), False),
        ("2024年7月3日到2024年7月9日发生了什么?", date(2024, 7, 3), date(2024, 7, 9), False),
        ("2024年7月3日和2024年7月9日之间发生了什么?", date(2024, 7, 3), date(2024, 7, 9), False),
        ("between November 3 and February 2?", date(2026, 11, 3), date(2027, 2, 2), True),
        ("11月3日到2月2日做了什么?", date(2026, 11, 3), date(2027, 2, 2), True),
        ("What happened from May 2 to May 5?", date(2026, 5, 2), date(2026, 5, 5), True),
    ],
)
def test_days_are_exact(question: str, first: date, last: date, yearly: bool) -> None:
    assert named_days(question, TODAY) == (DayRange(first, last, yearly),)


@pytest.mark.parametrize(
    "question",
    [
        "What happened on 2 May 2024 and 5 May 2024?",
        "2024年5月2日和2024年5月5日发生了什么?",
        "between 5 May 2024 and 2 May 2024",
    ],
)
def test_two_days_are_not_the_days_between_them(question: str) -> None:
    days = {DayRange(date(2024, 5, 2), date(2024, 5, 2)), DayRange(date(2024, 5, 5), date(2024, 5, 5))}
    assert set(named_days(question, TODAY)) == days


@pytest.mark.parametrize(
    "question", ["十万年前发生了什么?", "May we march on?", "What do we like?", "", "今年怎么样?"]
)
def test_no_false_days(question: str) -> None:
    assert named_days(question, TODAY) == ()


def test_a_yearly_range_covers_any_year_and_the_turn_of_it() -> None:
    winter = DayRange(date(2025, 12, 1), date(2026, 2, 28), yearly=True)
    assert winter.covers(date(2019, 1, 15))
    assert winter.covers(date(2019, 12, 1))
    assert not winter.covers(date(2019, 3, 15))
    leap = DayRange(date(2024, 2, 29), date(2024, 2, 29), yearly=True)
    assert leap.covers(date(2023, 2, 28))


def test_only_years_in_which_something_was_said_are_searched() -> None:
    where = SearchFilter(spaces=(1,), now=NOW)
    days = (DayRange(date(2026, 7, 3), date(2026, 7, 3), yearly=True),)
    found = within(where, days, datetime(2022, 1, 1, tzinfo=UTC), datetime(2023, 12, 1, tzinfo=UTC))
    assert [(one.since.year, one.until.year) for one in found if one.since and one.until] == [
        (2023, 2023),
        (2022, 2022),
    ]
    assert within(where, days, datetime(2023, 8, 1, tzinfo=UTC), datetime(2023, 12, 1, tzinfo=UTC)) == []


def test_what_is_asked_for_besides_still_holds() -> None:
    since = datetime(2024, 7, 13, 12, tzinfo=UTC)
    where = SearchFilter(spaces=(1,), now=NOW, since=since, session="s")
    (found,) = within(
        where, (DayRange(date(2024, 7, 13), date(2024, 7, 13)),), datetime(2020, 1, 1, tzinfo=UTC), NOW
    )
    assert (found.since, found.session) == (since, "s")


def test_the_edges_of_the_calendar_are_safe() -> None:
    where = SearchFilter(spaces=(1,), now=NOW)
    for day in (date.min, date.max):
        within(
            where, (DayRange(day, day),), datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
        )
