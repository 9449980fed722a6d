"""What `remember` accepts, and what it refuses before anything is written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, ToolMessage

from langchain_memrag.engine.turns import drafts_of, turns_of
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Turn

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_text_is_one_turn_of_the_user() -> None:
    (turn,) = turns_of("I live in Lisbon", {})
    assert (turn.role, turn.content, turn.key) == ("user", "I live in Lisbon", None)


def test_a_pair_is_one_turn_and_a_list_of_pairs_several() -> None:
    assert [turn.role for turn in turns_of(("assistant", "Hello"), {})] == ["assistant"]
    assert [turn.role for turn in turns_of([("user", "a"), ("ai", "b"), ("system", "c")], {})] == [
        "user",
        "assistant",
        "system",
    ]


def test_two_plain_texts_in_a_tuple_are_two_turns() -> None:
    assert [turn.content for turn in turns_of(("你好", "再见"), {})] == ["你好", "再见"]


@pytest.mark.parametrize(
    ("message", "role", "key", "speaker"),
    [
        (HumanMessage("hi", id="m1", name="Ann"), "user", "m1", "Ann"),
        (AIMessage("hi", id="m2"), "assistant", "m2", None),
        (AIMessageChunk("hi", id="m3"), "assistant", "m3", None),
        (ToolMessage("42", tool_call_id="c", name="sum"), "tool", None, None),
        (ChatMessage("hi", role="user"), "user", None, None),
        (
            HumanMessage([{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": "x"}]),
            "user",
            None,
            None,
        ),
    ],
)
def test_a_message_brings_its_role_key_and_name(message, role, key, speaker) -> None:
    (turn,) = turns_of(message, {})
    assert (turn.role, turn.key, turn.speaker) == (role, key, speaker)


def test_a_turn_of_its_own_overrides_the_calls_fields() -> None:
    (first, second) = turns_of(
        [Turn(content="a", speaker="Bo"), Turn(content="b")], {"speaker": "Ann", "role": "user"}
    )
    assert (first.speaker, second.speaker) == ("Bo", "Ann")


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\u200b\u200d", "\x00", "\ud800", "　"])
def test_blank_is_refused_and_says_which(blank: str) -> None:
    with pytest.raises(ConfigurationError, match="turn 1 is blank"):
        turns_of(["fine", blank], {})


def test_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="empty"):
        turns_of([], {})


def test_text_is_cleaned_and_emoji_survive() -> None:
    (turn,) = turns_of("a\x00b \ud83d caf\u0065\u0301 👩‍👩‍👧", {})
    assert "\x00" not in turn.content
    assert "caf\u00e9 👩‍👩‍👧" in turn.content
    turn.content.encode("utf-8")


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"occurred_at": datetime(2026, 1, 1)}, "occurred_at"),
        ({"ttl": timedelta(0)}, "ttl"),
        ({"role": "boss"}, "role"),
        ({"nonsense": 1}, "nonsense"),
        ({"key": ""}, "key"),
        ({"metadata": {"x": object()}}, "metadata"),
    ],
)
def test_a_bad_field_is_named_and_the_text_is_not_repeated(fields, names: str) -> None:
    with pytest.raises(ConfigurationError, match=names) as caught:
        turns_of("my secret", fields)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("what", [7, [7], [None], [("boss", "x")], [["user"]], [("user", 3)]])
def test_other_things_are_refused(what) -> None:
    with pytest.raises((ConfigurationError, TypeError)):
        turns_of(what, {})


def test_one_key_for_many_turns_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="key"):
        turns_of(["a", "b"], {"key": "k"})


def test_the_time_is_utc_with_its_offset_beside_it() -> None:
    said = datetime(2025, 7, 25, 2, tzinfo=timezone(timedelta(hours=-7)))
    (draft,) = drafts_of(turns_of("x", {"occurred_at": said}), NOW)
    assert draft.occurred_at == datetime(2025, 7, 25, 9, tzinfo=UTC)
    assert draft.utc_offset == -7 * 3600


def test_a_time_outside_the_calendar_is_refused() -> None:
    edge = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=8)))
    with pytest.raises(ConfigurationError, match="occurred_at"):
        drafts_of(turns_of("x", {"occurred_at": edge}), NOW)


def test_ttl_counts_from_recording() -> None:
    said = datetime(2020, 1, 1, tzinfo=UTC)
    (draft,) = drafts_of(turns_of("x", {"occurred_at": said, "ttl": timedelta(days=1)}), NOW)
    assert draft.expires_at == NOW + timedelta(days=1)
    (forever,) = drafts_of(turns_of("x", {"ttl": timedelta(days=999_999_99)}), NOW)
    assert forever.expires_at is None


def test_metadata_is_stored_as_it_is_and_nul_is_cleaned() -> None:
    (draft,) = drafts_of(turns_of("x", {"metadata": {"城市": "北京", "n\x00": ["a\x00b", "\ud83d"]}}), NOW)
    assert "北京" in draft.metadata
    assert json.loads(draft.metadata) == {"城市": "北京", "n": ["ab", ""]}


def test_metadata_that_is_not_json_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="metadata"):
        drafts_of(turns_of("x", {"metadata": {"x": float("nan")}}), NOW)


def test_a_source_follows_the_role() -> None:
    turns = turns_of([("user", "a"), ("assistant", "b"), ("tool", "c"), ("system", "d")], {})
    assert [draft.source for draft in drafts_of(turns, NOW)] == ["user", "assistant", "tool", "document"]
