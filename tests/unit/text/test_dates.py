from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from langchain_memrag.text import find_dates

TODAY = date(2024, 7, 20)  # a Saturday


def spans(text: str, today: date = TODAY) -> list[tuple[str, str, bool]]:
    return [
        (span.start.isoformat(), span.end.isoformat(), span.recurring) for span in find_dates(text, today)
    ]


def day(iso: str, recurring: bool = False) -> list[tuple[str, str, bool]]:
    return [(iso, iso, recurring)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened on 13 July 2024?", day("2024-07-13")),
        ("the 13th of July, 2024", day("2024-07-13")),
        ("July 13, 2024", day("2024-07-13")),
        ("2024-07-13", day("2024-07-13")),
        ("7/13/2024", day("2024-07-13")),
        ("13/7/2024", day("2024-07-13")),
        ("What did we discuss on July 3rd?", day("2024-07-03", recurring=True)),
        ("on december 5", day("2023-12-05", recurring=True)),
        ("Feb 29", day("2024-02-29", recurring=True)),
        ("May 8th", day("2024-05-08", recurring=True)),
        ("in July 2023", [("2023-07-01", "2023-07-31", False)]),
        ("in May", [("2024-05-01", "2024-05-31", True)]),
        ("last December", [("2023-12-01", "2023-12-31", False)]),
        ("in 2021", [("2021-01-01", "2021-12-31", False)]),
        ("yesterday", day("2024-07-19")),
        ("the day before yesterday", day("2024-07-18")),
        ("two days ago", day("2024-07-18")),
        ("3 weeks ago", [("2024-06-26", "2024-07-02", False)]),
        ("two months ago", [("2024-05-01", "2024-05-31", False)]),
        ("a year ago", [("2023-01-01", "2023-12-31", False)]),
        ("last week", [("2024-07-08", "2024-07-14", False)]),
        ("this weekend", [("2024-07-20", "2024-07-21", False)]),
        ("past 3 days", [("2024-07-17", "2024-07-20", False)]),
        ("last summer", [("2023-06-01", "2023-08-31", False)]),
        ("winter of 2022", [("2022-12-01", "2023-02-28", False)]),
        ("last Friday", day("2024-07-19")),
        ("next Friday", day("2024-07-26")),
        ("昨天", day("2024-07-19")),
        ("前天", day("2024-07-18")),
        ("2024年7月13日", day("2024-07-13")),
        ("二〇二四年七月十三日", day("2024-07-13")),
        ("２０２４年７月１３日", day("2024-07-13")),
        ("7月3日", day("2024-07-03", recurring=True)),
        ("十二月二十五号", day("2023-12-25", recurring=True)),
        ("去年7月3日", day("2023-07-03")),
        ("去年夏天", [("2023-06-01", "2023-08-31", False)]),
        ("2023年", [("2023-01-01", "2023-12-31", False)]),
        ("上周", [("2024-07-08", "2024-07-14", False)]),
        ("上周三", day("2024-07-10")),
        ("上上周", [("2024-07-01", "2024-07-07", False)]),
        ("上个月", [("2024-06-01", "2024-06-30", False)]),
        ("上个月5号", day("2024-06-05")),
        ("三天前", day("2024-07-17")),
        ("十年前", [("2014-01-01", "2014-12-31", False)]),
        ("最近三天", [("2024-07-17", "2024-07-20", False)]),
        ("星期三", day("2024-07-17")),
    ],
)
def test_reads_dates(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "we may march on, sun or rain",
        "may 5 people come?",
        "十万年前",
        "五亿年前的恐龙",
        "999999999 years ago",
        "9999 years ago",
        "2024-02-30",
        "February 31, 2024",
        "13月45日",
        "一周三次",
        "call 10:30",
        "version 2024.1",
        "Will Mark marry June?",
        "我们",
        "",
    ],
)
def test_what_is_no_date_yields_nothing(text: str) -> None:
    assert spans(text) == []


def test_several_dates_in_order_with_their_places() -> None:
    text = "Between 5 May 2023 and 昨天 we met twice, last week too."
    found = find_dates(text, TODAY)
    assert [text[span.start_index : span.end_index] for span in found] == ["5 May 2023", "昨天", "last week"]


def test_the_ends_of_the_calendar_are_safe() -> None:
    for today in (date.min, date.max, date(2024, 2, 29), date(9999, 12, 31), date(1, 1, 1)):
        for text in (
            "yesterday",
            "tomorrow",
            "last week",
            "next year",
            "Feb 29",
            "去年夏天",
            "上个月",
            "后天",
            "in 12 months",
            "last winter",
        ):
            for span in find_dates(text, today):
                assert span.start <= span.end


def test_never_raises() -> None:
    rng = random.Random(2)
    pieces = [
        "2024",
        "年",
        "月",
        "日",
        "号",
        "十",
        "万",
        "前",
        "上",
        "周",
        "July",
        "may",
        " ",
        "3rd",
        "/",
        "-",
        "ago",
        "days",
        "99999",
        "去年",
        "零",
    ]
    for step in range(6000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 10)))
        for span in find_dates(text, TODAY + timedelta(days=step)):
            assert span.start <= span.end
    find_dates("2024年" * 20_000, TODAY)
