"""Which messages of a conversation are new, and what of them is remembered."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_memrag.memory.turns import (
    ANSWERED_BY,
    MEMORY,
    START,
    asked,
    in_prompt,
    latest,
    mark_of,
    turn_of,
    turns_of,
    unremembered,
)

CALL = AIMessage("Let me look.", id="a-call", tool_calls=[{"name": "f", "args": {}, "id": "1"}])


def conversation() -> list[AnyMessage]:
    return [
        HumanMessage("Hello", id="h1"),
        AIMessage("Hi.", id="a1"),
        HumanMessage("I live in Lisbon.", id="h2"),
        HumanMessage("Where do I live?", id="h3"),
    ]


def ids(messages: list[AnyMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_without_a_mark_only_what_is_said_just_now_is_new() -> None:
    assert ids(list(unremembered(conversation(), None))) == ["h2", "h3"]
    answered = [
        *conversation(),
        CALL,
        ToolMessage("x", tool_call_id="1", id="t1"),
        AIMessage("Lisbon", id="a2"),
    ]
    assert ids(list(unremembered(answered, None))) == ["h2", "h3", "a-call", "t1", "a2"]


def test_with_a_mark_all_after_it_is_new_so_that_a_failed_turn_is_made_up_for() -> None:
    assert ids(list(unremembered(conversation(), "h1"))) == ["a1", "h2", "h3"]
    assert ids(list(unremembered(conversation(), START))) == ["h1", "a1", "h2", "h3"]
    assert list(unremembered(conversation(), "h3")) == []


def test_a_mark_that_was_summarised_away_is_as_none() -> None:
    assert ids(list(unremembered(conversation(), "gone"))) == ["h2", "h3"]


def test_of_somebody_elses_run_nothing_is_new_but_what_was_said_since() -> None:
    messages = conversation()
    assert ids(list(latest(messages, None))) == ["h2", "h3"]
    assert ids(list(latest(messages, "a1"))) == ["h2", "h3"]
    assert ids(list(latest(messages, "h2"))) == ["h3"]
    assert ids(list(latest(messages, "h3"))) == []
    assert ids(list(latest([*messages, AIMessage("好", id="a2")], "h2"))) == []
    assert ids(list(latest(messages, "gone"))) == ["h2", "h3"]
    assert list(latest([], "h1")) == []


def test_the_mark_leaves_what_is_still_to_do() -> None:
    messages = conversation()
    for mark in (START, "h1", "a1", "h2", "h3"):
        assert mark_of(messages, unremembered(messages, mark)) == mark
    assert mark_of([], []) == START


def test_the_question_is_what_stands_after_the_last_answer() -> None:
    assert ids(list(asked(conversation()))) == ["h2", "h3"]
    assert asked([*conversation(), AIMessage("Lisbon")]) == []
    assert asked([]) == []


def test_tool_noise_is_remembered_on_request_alone() -> None:
    messages: list[AnyMessage] = [
        SystemMessage("Be kind."),
        HumanMessage("Look it up", id="h1"),
        CALL,
        ToolMessage("42", tool_call_id="1", id="t1"),
        AIMessage("It is 42.", id="a2"),
    ]
    assert [turn.role for turn in turns_of(messages, None)] == ["user", "assistant"]
    noisy = turns_of(messages, None, tools=True)
    assert [turn.role for turn in noisy] == ["user", "assistant", "tool", "assistant"]
    assert noisy[2].source == "tool"


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("  \n\u200b"),
        HumanMessage([{"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}]),
        HumanMessage("Summary of before", additional_kwargs={"lc_source": "summarization"}),
        SystemMessage("You are kind."),
        AIMessage(""),
    ],
)
def test_what_is_not_a_turn(message: AnyMessage) -> None:
    assert turn_of(message, None) is None


def test_the_text_of_a_message_of_several_parts_is_kept() -> None:
    parts = [
        {"type": "text", "text": "这是我的猫"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    ]
    turn = turn_of(HumanMessage(parts), None)
    assert turn is not None
    assert turn.content == "这是我的猫"


def test_a_name_is_the_speaker() -> None:
    turn = turn_of(HumanMessage("hi", name="Ann"), None)
    assert turn is not None
    assert turn.speaker == "Ann"


def key_of(message_id: str | None, session: str | None) -> str | None:
    turn = turn_of(HumanMessage("hi", id=message_id), session)
    assert turn is not None
    return turn.key


def test_ids_are_keys_and_short_ones_are_unique_in_their_session_alone() -> None:
    unique = "0190a1c2-7b3e-7000-8000-000000000001"
    assert key_of(unique, "t1") == key_of(unique, "t2") == unique
    assert key_of("1", "t1") != key_of("1", "t2")
    assert key_of("1", "t1") == key_of("1", "t1")
    assert key_of(None, "t1") is None
    assert len(key_of("x" * 2000, "t1") or "") <= 512


def test_an_answer_that_quotes_memory_says_so() -> None:
    turn = turn_of(AIMessage("On 3 May you said ...", response_metadata={ANSWERED_BY: MEMORY}), None)
    assert turn is not None
    assert turn.metadata == {ANSWERED_BY: MEMORY}


def test_the_prompt_is_every_turn_it_shows_newest_first() -> None:
    assert in_prompt([SystemMessage("Be kind."), *conversation(), HumanMessage("Hello")]) == (
        "Hello",
        "Where do I live?",
        "I live in Lisbon.",
        "Hi.",
    )
