from __future__ import annotations

import pytest

from langchain_memrag.text.questions import MOST_QUESTIONS, questions_of


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
