"""Answers without a model: quotes with their dates, or that nothing is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from langchain_memrag.graphs.extractive import Evidence, extract_answer, is_question

MAY = datetime(2026, 5, 3, 9, tzinfo=UTC)


def said(text: str, **fields: object) -> Evidence:
    return Evidence(**{"id": text[:8], "text": text, "said_at": MAY, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "memory", "answer"),
    [
        ("Where do I live?", "I live in Lisbon.", "On 3 May 2026 you said: “I live in Lisbon.”"),
        ("我住在哪里？", "我住在杭州。", "2026年5月3日，你说：“我住在杭州。”"),
        (
            "What does my brother do?",
            "My brother is a nurse.",
            "On 3 May 2026 you said: “My brother is a nurse.”",
        ),
        ("我弟弟在哪个城市？", "我弟弟在成都当护士。", "2026年5月3日，你说：“我弟弟在成都当护士。”"),
    ],
)
def test_it_quotes_what_was_said_with_its_date(question: str, memory: str, answer: str) -> None:
    found = extract_answer(question, [said(memory)])
    assert found.text == answer
    assert found.sources == (memory[:8],)


@pytest.mark.parametrize(
    ("question", "memories", "unknown"),
    [
        ("What is my passport number?", ["I live in Lisbon.", "My dog is called Rex."], "don't know"),
        ("Who is the president of France?", ["I adopted a beagle."], "don't know"),
        ("我的护照号码是多少？", ["我住在杭州。", "我的狗叫豆豆。"], "不知道"),
        ("法国总统是谁？", ["我养了一只柯基。"], "不知道"),
        ("Where do I live?", [], "don't know"),
        ("我住在哪里？", [], "不知道"),
    ],
)
def test_it_says_that_it_does_not_know(question: str, memories: list[str], unknown: str) -> None:
    found = extract_answer(question, [said(memory) for memory in memories])
    assert unknown in found.text
    assert found.sources == ()


def test_a_dense_score_that_stands_out_finds_what_shares_no_word() -> None:
    hits = [
        said("I was born on the third of the fifth month.", signals={"dense:turn": 0.86}),
        said("The car broke down.", signals={"dense:turn": 0.76}),
        said("I drink oat milk.", signals={"dense:turn": 0.75}),
    ]
    assert extract_answer("When is my birthday?", hits).sources == (hits[0].id,)
    flat = [said(hit.text, signals={"dense:turn": 0.76}) for hit in hits]
    assert extract_answer("When is my birthday?", flat).sources == ()


def test_the_answer_is_in_the_language_of_the_question() -> None:
    assert extract_answer(
        "Which editor do I use, 用什么 editor?", [said("I use the editor vim.")]
    ).text.startswith("On 3")
    assert "你说" in extract_answer("我用哪个 editor？", [said("我用的 editor 是 vim。")]).text


def test_a_question_asked_before_is_no_answer() -> None:
    asked_before = [said("Where do I live?"), said("where do I live now?")]
    assert extract_answer("Where do I live?", asked_before).sources == ()
    assert extract_answer("我住在哪里？", [said("我住在哪里？")]).sources == ()
    with_answer = [*asked_before, said("I live in Lisbon.")]
    assert extract_answer("Where do I live?", with_answer).sources == ("I live i",)


def test_several_that_answer_are_all_quoted_and_weak_ones_are_not() -> None:
    hits = [
        said("Emma plays the cello.", id="1"),
        said("Emma plays the piano, too.", id="2"),
        said("We ate pizza.", id="3"),
    ]
    found = extract_answer("What does Emma play?", hits)
    assert found.sources == ("1", "2")
    assert found.text.count("\n") == 1


def test_at_most_three_are_quoted() -> None:
    hits = [said(f"Emma plays instrument {number}.", id=str(number)) for number in range(9)]
    assert len(extract_answer("What does Emma play?", hits).sources) == 3


def test_speakers_and_roles_are_named() -> None:
    assert "Melanie said:" in extract_answer("Who paints?", [said("I paint.", speaker="Melanie")]).text
    assert "I said:" in extract_answer("Who paints?", [said("You paint.", role="assistant")]).text
    assert (
        "A note said:"
        in extract_answer("Who paints?", [said("Ann paints.", role="document", said_at=None)]).text
    )
    assert "小雨说" in extract_answer("谁画画？", [said("我画画。", speaker="小雨")]).text


def test_a_long_text_is_cut_to_the_part_that_answers() -> None:
    filler = "We talked about many things that day. " * 40
    found = extract_answer("Where do I live?", [said(f"{filler}I live in Lisbon. {filler}")])
    assert "I live in Lisbon." in found.text
    assert len(found.text) < 400


@pytest.mark.parametrize(
    ("text", "answer"), [("I live in Lisbon.", "Noted."), ("我住在杭州。", "好的，记住了。")]
)
def test_a_statement_is_noted(text: str, answer: str) -> None:
    assert extract_answer(text, [said("I live in Oslo.")]).text == answer


def test_memory_that_is_away_is_no_ignorance() -> None:
    assert "cannot reach" in extract_answer("Where do I live?", [], reachable=False).text
    assert "无法访问" in extract_answer("我住在哪里？", [], reachable=False).text


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "where do i live",
        "What's my name",
        "Tell me about Emma",
        "Hi, do you remember my dog",
        "我住在哪里",
        "我的狗叫什么名字",
        "你记得我的生日吗",
        "谁送我的围巾？",
        "她几点到",
        "告诉我她的名字",
        "我住在哪裡",
    ],
)
def test_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Lisbon.",
        "My dog is called Rex",
        "我住在杭州。",
        "我的狗叫豆豆",
        "今天很累",
        "I know what I like.",
    ],
)
def test_statements(text: str) -> None:
    assert not is_question(text)
