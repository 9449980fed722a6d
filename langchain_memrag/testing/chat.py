"""A chat model that says what its script says: streaming, tool calls, structured output and errors."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from typing_extensions import override

__all__ = ["Call", "Reply", "ScriptedChatModel"]

Reply = (
    str | AIMessage | BaseModel | dict[str, object] | BaseException | Callable[[list[BaseMessage]], object]
)
"""What the model does when it is called: say a text, return a message (with tool calls, say), fill in the
schema that was asked for, raise, or whatever of these a function of the messages returns."""

# A word with the space after it, or one character of a script without spaces.
_PIECE = re.compile(r"[^\W\u3400-\u9fff]+\s*|[\s\S]")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that a scripted model received.

    Attributes:
        messages: What it was sent.
        temperature: The temperature it ran at, if one was set.
        tools: Names of the tools that were bound.
        structured: Whether a schema had to be filled in.
    """

    messages: tuple[BaseMessage, ...]
    temperature: float | None
    tools: tuple[str, ...]
    structured: bool


@dataclass(slots=True)
class _Tape:
    """Where the script is; shared by every copy and binding of the model."""

    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class ScriptedChatModel(BaseChatModel):
    """Says the lines of a script, one a call, and writes down what it was sent.

    Args:
        script: The replies, in order.
        otherwise: The reply once the script is at its end; without it, that is an error.
        temperature: As real chat models have it.

    Example:
        >>> model = ScriptedChatModel(script=["Hello Ann."])
        >>> model.invoke("Hi").text
        'Hello Ann.'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: Sequence[object] = ()
    otherwise: object = None
    temperature: float | None = None
    model_name: str = Field(default="scripted", alias="model")
    _tape: _Tape = PrivateAttr(default_factory=_Tape)

    @property
    def calls(self) -> list[Call]:
        """The calls so far, oldest first."""
        with self._tape.lock:
            return list(self._tape.calls)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, object] | type | Callable[..., object] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: object,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; a reply may call them, or fill in the schema that is forced by `tool_choice`."""
        formatted = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=formatted, tool_choice=tool_choice, **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs))])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs))])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._next(messages, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._next(messages, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _next(self, messages: list[BaseMessage], kwargs: Mapping[str, object]) -> AIMessage:
        tools = _tool_names(kwargs.get("tools"))
        structured = len(tools) == 1 and kwargs.get("tool_choice") == "any"
        temperature = kwargs.get("temperature", self.temperature)
        call = Call(
            messages=tuple(messages),
            temperature=float(temperature) if isinstance(temperature, int | float) else None,
            tools=() if structured else tools,
            structured=structured,
        )
        with self._tape.lock:
            position = len(self._tape.calls)
            self._tape.calls.append(call)
        reply = self.script[position] if position < len(self.script) else self.otherwise
        if callable(reply) and not isinstance(reply, BaseModel | type):
            reply = reply(messages)
        if reply is None:
            raise LookupError(f"the script has no reply for call {position + 1}")
        return _message(reply, tools[0] if structured and tools else None, position)


def _tool_names(tools: object) -> tuple[str, ...]:
    return tuple(tool["function"]["name"] for tool in tools) if isinstance(tools, list) else ()


def _message(reply: object, schema: str | None, position: int) -> AIMessage:
    if isinstance(reply, BaseException):
        raise reply
    if isinstance(reply, AIMessage):
        return reply.model_copy()
    if isinstance(reply, str):
        return AIMessage(reply)
    fields = reply.model_dump(mode="json") if isinstance(reply, BaseModel) else reply
    if not isinstance(fields, dict):
        raise TypeError(f"a scripted model cannot say a {type(reply).__name__}")
    if schema is None:
        raise TypeError(f"call {position + 1} did not ask for structured output, but the script holds fields")
    return AIMessage("", tool_calls=[{"name": schema, "args": fields, "id": f"call-{position + 1}"}])


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    for piece in _PIECE.findall(message.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece, id=message.id))
    calls = message.model_dump(include={"tool_calls"})["tool_calls"]
    if calls:
        parts = [
            tool_call_chunk(
                name=call["name"],
                args=json.dumps(call["args"], ensure_ascii=False),
                id=call["id"],
                index=index,
            )
            for index, call in enumerate(calls)
        ]
        yield ChatGenerationChunk(message=AIMessageChunk(content="", id=message.id, tool_call_chunks=parts))
    yield ChatGenerationChunk(message=AIMessageChunk(content="", id=message.id, chunk_position="last"))
