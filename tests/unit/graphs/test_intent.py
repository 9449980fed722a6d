"""Intent by a fast model: structured output, one repair, then the rules."""

from __future__ import annotations

import logging

import pytest
from langchain_core.language_models import FakeListChatModel

from langchain_memrag.graphs.intent import IntentReply, adecide, decide
from langchain_memrag.graphs.models import chat_model
from langchain_memrag.records import Intent
from langchain_memrag.testing.chat import ScriptedChatModel

RULES = Intent(category="factual", entities=("Ann",), confidence=0.5, origin="rules")
REPLY = {"category": "relational", "entities": ["Emma", "小雨"], "needs_tools": True, "confidence": 0.9}
JSON = '{"category": "relational", "entities": ["Emma", "小雨"], "needs_tools": true, "confidence": 0.9}'
MODELS = Intent(
    category="relational", entities=("Emma", "小雨"), needs_tools=True, confidence=0.9, origin="model"
)


async def both(*script: object) -> tuple[Intent, ScriptedChatModel]:
    model, twin = ScriptedChatModel(script=script), ScriptedChatModel(script=script)
    decided = decide(model, "How are they related?", RULES)
    assert decided == await adecide(twin, "How are they related?", RULES)
    assert [call.messages for call in model.calls] == [call.messages for call in twin.calls]
    return decided, model


async def test_structured_output_is_taken() -> None:
    decided, model = await both(REPLY)
    assert decided == MODELS
    assert len(model.calls) == 1
    assert model.calls[0].structured


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"Sure, here it is:\n```json\n{JSON}\n```\nAnything else?",
        JSON.replace('"Emma"', '"Emma"').replace(", ", ",\n  "),
        f'{{"thinking": "a {{ brace"}} {JSON}',
    ],
)
async def test_json_inside_prose_is_read_without_a_repair(text: str) -> None:
    decided, model = await both(text)
    assert decided == MODELS
    assert len(model.calls) == 1


@pytest.mark.parametrize("text", ["I think it is relational.", JSON[:40], "", '{"category": "gossip"}'])
async def test_unusable_output_is_repaired_once(text: str) -> None:
    decided, model = await both(text, REPLY)
    assert decided == MODELS
    assert len(model.calls) == 2
    assert "category, entities, needs_tools, confidence" in model.calls[1].messages[-1].text


async def test_after_one_repair_the_rules_decide(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        decided, model = await both("no", "no again", REPLY)
    assert decided == RULES
    assert len(model.calls) == 2
    assert "no again" not in caplog.text


@pytest.mark.parametrize("error", [ConnectionError("secret host"), TimeoutError(), RuntimeError()])
async def test_a_model_that_is_away_is_not_asked_again(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    decided, model = await both(error, REPLY)
    assert decided == RULES
    assert len(model.calls) == 1
    assert "secret" not in caplog.text


async def test_a_client_that_fails_to_parse_is_worth_one_repair() -> None:
    decided, model = await both(ValueError("cannot parse"), REPLY)
    assert decided == MODELS
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    ("fields", "entities", "confidence"),
    [
        ({"entities": None}, (), 0.9),
        ({"entities": "Emma"}, ("Emma",), 0.9),
        ({"entities": [{"name": "x"}, "Emma", "", None, "Emma"]}, ("Emma",), 0.9),
        ({"confidence": 90}, ("Emma", "小雨"), 1.0),
        ({"confidence": -1}, ("Emma", "小雨"), 0.0),
        ({"category": " Relational "}, ("Emma", "小雨"), 0.9),
        ({"extra": 1}, ("Emma", "小雨"), 0.9),
    ],
)
async def test_odd_fields_are_coerced_or_skipped(
    fields: dict[str, object], entities: tuple[str, ...], confidence: float
) -> None:
    decided, _ = await both({**REPLY, **fields})
    assert decided.origin == "model"
    assert (decided.entities, decided.confidence) == (entities, confidence)


def test_a_model_without_structured_output_is_asked_in_words() -> None:
    model = FakeListChatModel(responses=["Well...", JSON])
    assert decide(model, "How?", RULES) == MODELS


def test_the_message_goes_out_as_it_was_said() -> None:
    model = ScriptedChatModel(script=[REPLY])
    decide(model, "小雨和我是什么关系？", RULES)
    system, question = model.calls[0].messages
    assert "记忆" in system.text
    assert question.text == "小雨和我是什么关系？"


def test_temperature_is_set_where_the_model_takes_one() -> None:
    model = ScriptedChatModel(script=[REPLY])
    decide(chat_model(model, 0.1), "How?", RULES)
    assert model.calls[0].temperature == 0.1
    assert model.temperature is None


def test_a_temperature_set_by_its_owner_stays() -> None:
    assert chat_model(ScriptedChatModel(temperature=0.9), 0.1).temperature == 0.9  # type: ignore[attr-defined]
    assert chat_model(ScriptedChatModel(temperature=0.0), 0.1).temperature == 0.0  # type: ignore[attr-defined]


def test_a_model_that_takes_no_temperature_is_left_alone() -> None:
    plain = FakeListChatModel(responses=["x"])
    assert chat_model(plain, 0.1) is plain
    reasoning = ScriptedChatModel(profile={"temperature": False})
    assert chat_model(reasoning, 0.1) is reasoning


def test_the_schema_says_what_it_wants() -> None:
    assert set(IntentReply.model_json_schema()["required"]) == {
        "category",
        "entities",
        "needs_tools",
        "confidence",
    }
