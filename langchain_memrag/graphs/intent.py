"""What a question asks for, decided by a fast model: structured output, one repair, then the rules."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Generator, Sequence

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from langchain_memrag.graphs.models import ChatModel
from langchain_memrag.prompts import intent_repair, intent_system
from langchain_memrag.records import Category, Intent
from langchain_memrag.text import is_blank, language_of

__all__ = ["IntentReply", "adecide", "decide"]

logger = logging.getLogger(__name__)

# A message of a page is no more telling than its first lines.
_LONGEST = 2000
_OBJECT = re.compile(r"\{")


class IntentReply(BaseModel):
    """What the user's message asks of memory."""

    model_config = ConfigDict(extra="ignore")

    category: Category
    entities: list[str]
    needs_tools: bool
    confidence: float

    @field_validator("category", mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("entities", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        # Models send null, single strings and objects here; one that is no name is skipped.
        items = value if isinstance(value, list) else [] if value is None else [value]
        return [item.strip() for item in items if isinstance(item, str) and not is_blank(item)]

    @field_validator("confidence", mode="after")
    @classmethod
    def _share(cls, value: float) -> float:
        return min(1.0, max(0.0, value)) if value == value else 0.0  # noqa: PLR0124 - NaN


_Dialogue = Generator[Sequence[AnyMessage], object, Intent]


def decide(model: ChatModel, text: str, rules: Intent, config: RunnableConfig | None = None) -> Intent:
    """Ask a model what a message asks for; the rules' opinion where it cannot say.

    Args:
        model: The fast model.
        text: The message.
        rules: What the rules say.
        config: Of the run; its callbacks see the call, its token stream does not.
    """
    ask, quiet = _asker(model), _quiet(config)
    dialogue = _dialogue(text, rules)
    messages = next(dialogue)
    while True:
        try:
            reply: object = ask.invoke(list(messages), quiet)
        except Exception as error:  # noqa: BLE001 - without its opinion the rules decide
            reply = error
        try:
            messages = dialogue.send(reply)
        except StopIteration as done:
            return _intent(done)


async def adecide(model: ChatModel, text: str, rules: Intent, config: RunnableConfig | None = None) -> Intent:
    """Async twin of `decide`."""
    ask, quiet = _asker(model), _quiet(config)
    dialogue = _dialogue(text, rules)
    messages = next(dialogue)
    while True:
        try:
            reply: object = await ask.ainvoke(list(messages), quiet)
        except Exception as error:  # noqa: BLE001 - without its opinion the rules decide
            reply = error
        try:
            messages = dialogue.send(reply)
        except StopIteration as done:
            return _intent(done)


def _intent(done: StopIteration) -> Intent:
    intent = done.value
    assert isinstance(intent, Intent)
    return intent


def _dialogue(text: str, rules: Intent) -> _Dialogue:
    """Yields what to send, is sent what came back, returns the decision: the same for both halves."""
    language = language_of(text)
    messages: list[AnyMessage] = [SystemMessage(intent_system(language)), HumanMessage(text[:_LONGEST])]
    reply = yield messages
    found = _read(reply)
    if found is None and not _is_outage(reply):
        said = _raw_text(reply)
        repair = HumanMessage(intent_repair(language, ", ".join(IntentReply.model_fields)))
        reply = yield [*messages, *([AIMessage(said)] if said else []), repair]
        found = _read(reply)
    if found is None:
        logger.warning("the fast model could not classify a question (%s); the rules did", _kind(reply))
        return rules
    return Intent(
        category=found.category,
        entities=tuple(dict.fromkeys(found.entities)),
        needs_tools=found.needs_tools,
        confidence=found.confidence,
        origin="model",
    )


def _asker(model: ChatModel) -> Runnable[LanguageModelInput, object]:
    """The model asked for the schema, or for plain text where it knows no structured output."""
    try:
        return model.with_structured_output(IntentReply, include_raw=True)
    except (NotImplementedError, AttributeError):
        return model


def _quiet(config: RunnableConfig | None) -> RunnableConfig:
    return merge_configs(config, {"tags": [TAG_NOSTREAM]})


def _read(reply: object) -> IntentReply | None:
    if isinstance(reply, IntentReply):
        return reply
    if isinstance(reply, dict):
        parsed = reply.get("parsed")
        if parsed is not None:
            return _read(parsed) or _validated(parsed)
        return _from_text(_raw_text(reply))
    return _from_text(_raw_text(reply))


def _raw_text(reply: object) -> str:
    raw = reply.get("raw") if isinstance(reply, dict) else reply
    return str(raw.text) if isinstance(raw, BaseMessage) else ""


def _from_text(text: str) -> IntentReply | None:
    """An object inside prose or a fence, with raw line ends in its strings; `None` if it is cut off."""
    decoder = json.JSONDecoder(strict=False)
    for start in _OBJECT.finditer(text):
        try:
            value, _ = decoder.raw_decode(text, start.start())
        except ValueError:
            continue
        found = _validated(value)
        if found is not None:
            return found
    return None


def _validated(value: object) -> IntentReply | None:
    try:
        return IntentReply.model_validate(value)
    except ValidationError:
        return None


def _is_outage(reply: object) -> bool:
    # Clients that parse in the call raise a ValueError for output that does not fit: worth one repair.
    return isinstance(reply, Exception) and not isinstance(reply, ValueError)


def _kind(reply: object) -> str:
    return type(reply).__name__ if isinstance(reply, Exception) else "unusable output"
