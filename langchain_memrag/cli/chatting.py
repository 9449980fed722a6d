"""`memrag chat`: a conversation with the cognitive graph, line by line, streamed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
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
from langchain_memrag.records import Scope
from langchain_memrag.settings import read_settings

__all__ = ["Graph", "Reply", "chat_with", "stream_reply"]

Graph = CompiledStateGraph[MemoryGraphState, MemoryContext, MemoryGraphInput, MemoryGraphState]

_HELP: Final = "/why shows what the last answer was made from, /quit or Ctrl-D ends."
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
    graph = create_memory_graph(
        memrag, model or settings.model, fast_model or settings.fast_model, checkpointer=memrag.checkpointer()
    )
    config = _thread(graph, scope)
    interactive = sys.stdin.isatty()
    if interactive:
        note(f"{scope.user_id}, session {scope.session_id}. {_HELP}")
    last = Reply()
    for line in _lines(interactive=interactive):
        if line in {"/quit", "/exit"}:
            break
        if line == "/why":
            _say_why(last)
            continue
        last = Reply()
        if not _answer(graph, line, config, last) and not interactive:
            return Exit.MODEL_FAILED
    return Exit.DONE


def stream_reply(graph: Graph, text: str, config: RunnableConfig, reply: Reply) -> Iterator[str]:
    """Send one message; give the answer in pieces as they come, and fill in the reply."""
    start = MemoryGraphInput(messages=[HumanMessage(text)])
    for part in graph.stream(start, config, stream_mode=["messages", "values"]):
        if not isinstance(part, tuple) or len(part) != 2:
            continue
        mode, content = part
        if mode == "messages":
            message, about = content
            if isinstance(message, AIMessage | AIMessageChunk) and about.get("langgraph_node") == "respond":
                reply.text += message.text
                yield message.text
        elif mode == "values":
            reply.recalled = _RECALLED.validate_python(content.get("recalled", []))
            reply.memory_error = content.get("memory_error", "")
            answer = content.get("answer", "")
            if answer and not reply.text:  # a node that does not stream
                reply.text = answer
                yield answer


def _thread(graph: Graph, scope: Scope) -> RunnableConfig:
    """The thread of a session. Two users may name a session alike: each has a thread of his own."""

    def config(thread: str) -> RunnableConfig:
        return {"configurable": {"thread_id": thread, "user_id": scope.user_id}}

    mine = config(str(scope.session_id))
    owner = graph.get_state(mine).values.get("user_id")
    if owner in (None, scope.user_id):
        return mine
    return config(f"{scope.session_id}@{scope.user_id}")


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


def _answer(graph: Graph, line: str, config: RunnableConfig, reply: Reply) -> bool:
    """Print the answer while it comes; whether there was one."""
    try:
        for piece in stream_reply(graph, line, config, reply):
            say(piece, end="")
        say()
    except MemRAGError:
        raise
    except Exception as error:  # noqa: BLE001 - every provider has errors of its own, and one must not end a chat
        say()
        note(f"the model failed ({type(error).__name__}); what you said is stored", style="bold red")
        return False
    if reply.memory_error:
        note(f"memory: {reply.memory_error}", style="yellow")
    return True


def _say_why(reply: Reply) -> None:
    if not reply.recalled:
        note("nothing was recalled for it")
    for turn in reply.recalled:
        signals = ", ".join(f"{name} {score:.3f}" for name, score in turn["signals"].items())
        note(f"{turn['said_at'] or ''} {turn['speaker'] or turn['role']}: {turn['text']}  ({signals})")
