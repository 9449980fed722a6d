"""Which of a run's messages are turns to remember, and under which keys. Pure.

A run's state holds the whole conversation. With a checkpointer its message ids are stable, and a mark says
how far it is remembered; without one the host sends the history anew each time, with new ids, so that only
what stands after the last answer can be called new.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_memrag.records import Metadata, Turn
from langchain_memrag.text import is_blank

__all__ = [
    "ANSWERED_BY",
    "MEMORY",
    "START",
    "answered_by_memory",
    "asked",
    "in_prompt",
    "last_of",
    "latest",
    "mark_of",
    "text_of",
    "turn_of",
    "turns_of",
    "unremembered",
]

ANSWERED_BY = "answered_by"
MEMORY = "memory"
"""In a message's `response_metadata`: no model made this answer, it quotes memory."""

START = ""
"""The mark of a conversation of which nothing is remembered yet."""

# Ids that libraries and providers make are unique everywhere; a host's `1`, `2`, `3` only in their thread.
_UNIQUE_LENGTH = 20
_LONGEST_KEY = 512
# Enough to leave out what the model sees anyway; a longer history is no reason to send a longer list.
_PROMPT_TURNS = 200


def text_of(message: BaseMessage) -> str:
    """The text of a message, whatever else it holds; empty where nothing would be seen of it."""
    text = str(message.text)
    return "" if is_blank(text) else text


def asked(messages: Sequence[AnyMessage]) -> list[HumanMessage]:
    """What the user says just now: his messages after the last answer."""
    found: list[HumanMessage] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        if not _is_machine_made(message):
            found.insert(0, message)
    return found


def unremembered(messages: Sequence[AnyMessage], mark: str | None) -> Sequence[AnyMessage]:
    """The messages after a mark; where there is none, or it is gone, what the user says just now and on.

    Args:
        messages: The conversation.
        mark: The id of the last message that is dealt with, or `START`.
    """
    if mark == START:
        return messages
    if mark is not None:
        for position in range(len(messages) - 1, -1, -1):
            if messages[position].id == mark:
                return messages[position + 1 :]
    return messages[_last_question(messages) :]


def latest(messages: Sequence[AnyMessage], seen: str | None) -> Sequence[AnyMessage]:
    """What the user says just now, where all up to a message was part of somebody else's run.

    Args:
        messages: The conversation.
        seen: The id of the last message that the other's run knew, where there is one.
    """
    start = len(messages)
    while start and isinstance(messages[start - 1], HumanMessage):
        if seen and messages[start - 1].id == seen:
            break
        start -= 1
    return messages[start:]


def last_of(messages: Sequence[AnyMessage]) -> str:
    """The id of the last message."""
    return mark_of(messages, ())


def mark_of(messages: Sequence[AnyMessage], remaining: Sequence[AnyMessage]) -> str:
    """The mark that leaves `remaining`, the end of the conversation, to be remembered."""
    done = len(messages) - len(remaining)
    return (messages[done - 1].id or START) if done else START


def turns_of(messages: Sequence[AnyMessage], session: str | None, *, tools: bool = False) -> list[Turn]:
    """What is worth remembering: what was asked and answered, and what tools said only on request."""
    return [turn for message in messages if (turn := turn_of(message, session, tools=tools))]


def turn_of(message: BaseMessage, session: str | None, *, tools: bool = False) -> Turn | None:
    """A message as a turn; `None` for one that is nothing to remember.

    Args:
        message: The message; its id becomes the key, so that storing it again is a no-op.
        session: Its conversation; makes the key of a short id, such as a counter.
        tools: Whether tool results, and what the assistant says while it calls tools, count too.
    """
    text = text_of(message)
    if not text or _is_machine_made(message):
        return None
    said: dict[str, object]
    if isinstance(message, HumanMessage):
        said = {"role": "user", "speaker": message.name or None}
    elif isinstance(message, AIMessage) and (tools or not message.tool_calls):
        said = {"role": "assistant", "speaker": message.name or None}
    elif isinstance(message, ToolMessage) and tools:
        said = {"role": "tool", "source": "tool"}
    else:
        return None
    return Turn.model_validate(
        {**said, "content": text, "key": _key(message.id, session), "metadata": _origin(message)}
    )


def in_prompt(messages: Sequence[AnyMessage]) -> tuple[str, ...]:
    """The texts that a model is shown anyway, newest first; recall leaves them out."""
    spoken = (message for message in reversed(messages) if isinstance(message, HumanMessage | AIMessage))
    texts = (text for message in spoken if (text := text_of(message)))
    return tuple(dict.fromkeys(text for text, _ in zip(texts, range(_PROMPT_TURNS), strict=False)))


def _key(message_id: str | None, session: str | None) -> str | None:
    if not message_id:
        return None
    key = message_id if len(message_id) >= _UNIQUE_LENGTH or session is None else f"{session}/{message_id}"
    return key[-_LONGEST_KEY:]


def answered_by_memory(metadata: Metadata) -> bool:
    """Whether a turn only repeats what memory held; such a turn is no evidence of anything."""
    return metadata.get(ANSWERED_BY) == MEMORY


def _origin(message: BaseMessage) -> Metadata:
    return {ANSWERED_BY: MEMORY} if answered_by_memory(message.response_metadata) else {}


def _is_machine_made(message: BaseMessage) -> bool:
    # LangChain's summaries come as messages of the user, marked so; they are derived text.
    return bool(message.additional_kwargs.get("lc_source"))


def _last_question(messages: Sequence[AnyMessage]) -> int:
    """Where the user's last turn starts: the first of his messages that follow each other."""
    start = len(messages)
    while start and not _is_question(messages[start - 1]):
        start -= 1
    while start and _is_question(messages[start - 1]):
        start -= 1
    return start


def _is_question(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not _is_machine_made(message)
