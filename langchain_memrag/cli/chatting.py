"""`memrag chat`: a conversation with the cognitive graph, line by line, streamed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter

from langchain_memrag.cli.output import note, say
from langchain_memrag.cli.running import Exit
from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import MemRAGError
from langchain_memrag.graphs import (
    MemoryContext,
    MemoryGraphInput,
    MemoryGraphState,
    RecalledTurn,
    create_memory_graph,
)
from langchain_memrag.records import Episode, Scope
from langchain_memrag.settings import read_settings

__all__ = ["Conversation", "Graph", "Reply", "chat_with"]

Graph = CompiledStateGraph[MemoryGraphState, MemoryContext, MemoryGraphInput, MemoryGraphState]

_HELP: Final = "/why shows what the last answer was made from, /quit or Ctrl-D ends."
_KEPT: Final = 40
"""Turns of a session that a new process goes on from; memory has the rest."""
_RECALLED: Final = TypeAdapter(list[RecalledTurn])


@dataclass
class Reply:
    """What came back for one message, filled while it streams.

    Attributes:
        text: The answer so far.
        recalled: What memory gave for it.
        memory_error: What went wrong with memory; empty when nothing did.
    """

    text: str = ""
    recalled: list[RecalledTurn] = field(default_factory=list)
    memory_error: str = ""


def chat_with(
    memrag: MemRAG, *, user: str, session: str | None, model: str | None, fast_model: str | None
) -> Exit:
    """Answer every line of the standard input until it ends.

    Args:
        memrag: The memory.
        user: Who talks.
        session: The conversation to go on with; a new one where it is `None`.
        model: Answers; memory alone does where neither this nor the settings name one.
        fast_model: Decides what is asked; the rules do without it.
    """
    settings = read_settings()
    scope = Scope(user, session or str(uuid7()))
    graph = create_memory_graph(memrag, model or settings.model, fast_model or settings.fast_model)
    modelled = bool(model or settings.model)
    so_far = _so_far(memrag, scope) if session and modelled else []
    talk = Conversation(graph, scope, so_far, keep=modelled)
    interactive = sys.stdin.isatty()
    if interactive:
        note(f"{scope.user_id}, session {scope.session_id}. {_HELP}")
    for line in _lines(interactive=interactive):
        if line in {"/quit", "/exit"}:
            break
        if line == "/why":
            _say_why(talk.last)
        elif not _answer(talk, line) and not interactive:
            return Exit.MODEL_FAILED
    return Exit.DONE


class Conversation:
    """A session with the graph, line by line.

    What was said is kept here and in memory, not in a checkpoint: those are known by the thread alone,
    and two users may give their sessions the same name.

    Args:
        graph: Made without a checkpointer.
        scope: Who talks, and in which session.
        messages: What was said in it before.
        keep: Show the graph the whole conversation. A model needs it; without one, what was said a minute
            ago is recalled like everything else, which it is not while it stands in the prompt.
    """

    def __init__(
        self, graph: Graph, scope: Scope, messages: Sequence[AnyMessage] = (), *, keep: bool = False
    ) -> None:
        self.last = Reply()
        self._graph = graph
        self._messages = list(messages)
        self._keep = keep
        self._config: RunnableConfig = {
            "configurable": {"thread_id": scope.session_id, "user_id": scope.user_id}
        }

    def say(self, text: str) -> Iterator[str]:
        """Send one message; give the answer in pieces as they come, and keep it as `last`."""
        reply = self.last = Reply()
        before = self._messages if self._keep else []
        start = MemoryGraphInput(messages=[*before, HumanMessage(text, id=str(uuid7()))])
        for part in self._graph.stream(start, self._config, stream_mode=["messages", "values"]):
            if not isinstance(part, tuple) or len(part) != 2:
                continue
            mode, content = part
            if mode == "messages":
                message, about = content
                if isinstance(message, AIMessage) and about.get("langgraph_node") == "respond":
                    reply.text += message.text
                    yield message.text
            else:
                reply.recalled = _RECALLED.validate_python(content.get("recalled", []))
                reply.memory_error = content.get("memory_error", "")
                self._messages = content["messages"]
        answer = self._messages[-1]
        if isinstance(answer, AIMessage) and not reply.text:  # a node that does not stream
            reply.text = answer.text
            yield answer.text


def _so_far(memrag: MemRAG, scope: Scope) -> list[AnyMessage]:
    """The last turns of a session that is gone on with."""
    latest = memrag.history(scope, limit=_KEPT, newest_first=True).episodes
    return [_message(episode) for episode in reversed(latest) if episode.role in ("user", "assistant")]


def _message(episode: Episode) -> AnyMessage:
    identifier = episode.key or str(episode.id)
    if episode.role == "user":
        return HumanMessage(episode.content, id=identifier)
    return AIMessage(episode.content, id=identifier, response_metadata=dict(episode.metadata))


def _lines(*, interactive: bool) -> Iterator[str]:
    while True:
        try:
            line = input("> ") if interactive else sys.stdin.readline()
        except EOFError:
            return
        if not interactive and not line:
            return
        if line.strip():
            yield line.strip()


def _answer(talk: Conversation, line: str) -> bool:
    """Print the answer while it comes; whether there was one."""
    try:
        for piece in talk.say(line):
            say(piece, end="")
        say()
    except MemRAGError:
        raise
    except Exception as error:  # noqa: BLE001 - every provider has errors of its own; one must not end a chat
        say()
        note(f"the model failed ({type(error).__name__}); what you said is stored", style="bold red")
        return False
    if talk.last.memory_error:
        note(f"memory: {talk.last.memory_error}", style="yellow")
    return True


def _say_why(reply: Reply) -> None:
    if not reply.recalled:
        note("nothing was recalled for it")
    for turn in reply.recalled:
        signals = ", ".join(f"{name} {score:.3f}" for name, score in turn["signals"].items())
        note(f"{turn['said_at'] or ''} {turn['speaker'] or turn['role']}: {turn['text']}  ({signals})")
