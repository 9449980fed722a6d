from __future__ import annotations

import random
from datetime import date

import pytest

from langchain_memrag.text.questions import MOST_QUESTIONS, Period, periods_of, questions_of

TODAY = date(2024, 6, 15)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (
            "Where does Ann work? And when is her birthday?",
            ("Where does Ann work?", "And when is her birthday?"),
        ),
        ("我表哥的电话是多少？另外，大会在哪里开？", ("我表哥的电话是多少？", "另外，大会在哪里开？")),
        ("It rained. Where is it? I forgot. Who has it?", ("Where is it?", "Who has it?")),
        ("今天天气真好。她在哪里上班？我忘了！她叫什么名字？", ("她在哪里上班？", "她叫什么名字？")),
    ],
)
def test_questions_of_one_message_are_told_apart(text: str, asked: tuple[str, ...]) -> None:
    assert questions_of(text) == asked


@pytest.mark.parametrize(
    "text",
    [
        "Where does Ann work?",
        "你好。我表哥的电话是多少？",
        "Does Tim read C. S. Lewis?",
        "Is gpt-5.1 or 192.168.0.1 meant?",
        "What??!?",
        "no question at all. none.",
        "",
        "？？？",
    ],
)
def test_one_question_stays_whole(text: str) -> None:
    assert questions_of(text) == ()


def test_the_last_questions_are_kept() -> None:
    asked = questions_of(" ".join(f"Who is number {number}?" for number in range(9)))
    assert len(asked) == MOST_QUESTIONS
    assert asked[-1] == "Who is number 8?"


def test_long_texts_are_read_in_no_time() -> None:
    assert len(questions_of("Really so? " * 50_000)) == MOST_QUESTIONS


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What happened on 8 May 2023?", date(2023, 5, 8), date(2023, 5, 8)),
        ("2023年5月8日发生了什么？", date(2023, 5, 8), date(2023, 5, 8)),
        ("What did she do in May 2023?", date(2023, 5, 1), date(2023, 5, 31)),
        ("What did I say yesterday?", date(2024, 6, 14), date(2024, 6, 14)),
        ("昨天我说了什么？", date(2024, 6, 14), date(2024, 6, 14)),
        ("between 2 May 2023 and 5 May 2023", date(2023, 5, 2), date(2023, 5, 5)),
        ("从2023年5月2日到2023年5月8日我们聊了什么？", date(2023, 5, 2), date(2023, 5, 8)),
        ("from May 2 to May 5, 2023", date(2023, 5, 2), date(2023, 5, 5)),
        ("from 2 May 2023 to 5 May", date(2023, 5, 2), date(2023, 5, 5)),
        ("between Dec 28 and Jan 3, 2023", date(2022, 12, 28), date(2023, 1, 3)),
    ],
)
def test_a_question_names_its_days(text: str, start: date, end: date) -> None:
    assert periods_of(text, TODAY) == (Period(start, end),)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("What did we discuss on July 3rd?", date(2021, 7, 3), date(2021, 7, 4)),
        ("7月3日我们聊了什么？", date(2021, 7, 3), date(2021, 7, 4)),
        ("What did we discuss between May 2nd and May 20th?", date(2022, 5, 11), date(2022, 5, 21)),
        ("5月2日到5月20日我们聊了什么？", date(2022, 5, 11), date(2022, 5, 21)),
        ("between November 3 and February 2", date(2020, 1, 1), date(2020, 3, 1)),
    ],
)
def test_days_without_a_year_are_meant_in_any_year(text: str, inside: date, outside: date) -> None:
    (period,) = periods_of(text, TODAY)
    assert period.recurring
    assert period.covers(inside)
    assert not period.covers(outside)


def test_two_days_are_no_range_unless_they_are_said_as_one() -> None:
    assert len(periods_of("Was it on 2 May 2023 or on 5 May 2023?", TODAY)) == 2
    assert len(periods_of("What is new on 2 May 2023 and on 5 May 2023?", TODAY)) == 2


def test_a_question_without_a_date_names_no_days() -> None:
    assert periods_of("Where does she live? 她住在哪里？", TODAY) == ()


def test_a_period_holds_both_of_its_ends() -> None:
    period = Period(date(2023, 5, 2), date(2023, 5, 5))
    assert [day for day in range(1, 8) if period.covers(date(2023, 5, day))] == [2, 3, 4, 5]


def test_periods_never_raise() -> None:
    chance = random.Random(5)
    words = [
        "from",
        "to",
        "between",
        "and",
        "May 2",
        "Feb 29",
        "0001-01-01",
        "9999-12-31",
        "2023",
        "到",
        "5月2日",
        "去年",
    ]
    for _ in range(500):
        for period in periods_of(" ".join(chance.choices(words, k=6)), TODAY):
            period.covers(TODAY)
