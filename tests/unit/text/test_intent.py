from __future__ import annotations

import random

import pytest

from langchain_memrag.text import guess_intent


@pytest.mark.parametrize(
    ("text", "category", "needs_tools"),
    [
        ("When is Ann's birthday?", "factual", False),
        ("Who gave me the scarf?", "factual", False),
        ("How are Ann and Boris connected?", "relational", False),
        ("Who does Marcus work for?", "relational", False),
        ("Who introduced me to Beth?", "relational", False),
        ("Why did I quit?", "semantic", False),
        ("Summarise our last conversation.", "semantic", False),
        ("I love hiking.", "semantic", False),
        ("", "semantic", False),
        ("What's the weather in Paris right now?", "factual", True),
        ("What is 23*47?", "factual", True),
        ("Search the web for cheap flights", "semantic", True),
        ("I searched the web yesterday.", "semantic", False),
        ("The party is on 2024-04-11, where is it?", "factual", False),
        ("谁送了我围巾？", "factual", False),
        ("小王什么时候去的北京？", "factual", False),
        ("谁认识谁？", "relational", False),
        ("小王和老李是什么关系？", "relational", False),
        ("我喜欢吃什么？", "semantic", False),
        ("我为什么辞职？", "semantic", False),
        ("现在几点了？", "factual", True),
        ("算一下23乘以47", "factual", True),
        ("帮我查一下去上海的票", "semantic", True),
        ("那个时间是2024-04-11 9:00的活动在哪里？", "factual", False),
    ],
)
def test_guesses(text: str, category: str, needs_tools: bool) -> None:
    guess = guess_intent(text)
    assert (guess.category, guess.needs_tools) == (category, needs_tools)
    assert 0 <= guess.confidence <= 1


def test_the_last_question_of_a_long_message_decides() -> None:
    assert guess_intent("I feel great today. Why not? Anyway: when is Ann's birthday?").category == "factual"
    assert guess_intent("今天真开心，我喜欢晴天。其实我想问，小王的生日是哪天？").category == "factual"
    assert guess_intent("Thanks, Dr. Patel helped. What did Dr. Patel prescribe?").category == "factual"


def test_a_clear_wording_is_surer_than_none() -> None:
    assert guess_intent("When did we meet?").confidence > guess_intent("Blue.").confidence
    assert guess_intent("几点开会？").confidence > guess_intent("蓝色。").confidence


def test_names_come_along() -> None:
    assert guess_intent("How do Ann and 小王 know each other?").entities == ("Ann", "小王")
    assert guess_intent("how do i know marcus").entities == ("marcus",)
    assert guess_intent("will it rain").entities == ()


def test_never_raises() -> None:
    rng = random.Random(9)
    for _ in range(2000):
        guess_intent("".join(chr(rng.randint(0, 0x10FFFF)) for _ in range(rng.randint(0, 20))))
    guess_intent("who is the " * 50_000)
