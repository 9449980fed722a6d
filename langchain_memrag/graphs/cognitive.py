"""The cognitive graph: `classify_intent -> retrieve -> respond <-> tools -> learn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.graphs.models import ChatModel
from langchain_memrag.graphs.nodes import (
    classify_intent_node,
    learn_node,
    needs_tools,
    respond_node,
    retrieve_node,
    tool_node,
)
from langchain_memrag.graphs.state import MemoryContext, MemoryGraphInput, MemoryGraphState

__all__ = ["create_memory_graph"]


def create_memory_graph(
    memrag: MemRAG,
    model: ChatModel | str | None = None,
    fast_model: ChatModel | str | None = None,
    tools: Sequence[BaseTool | Callable[..., object]] = (),
    checkpointer: BaseCheckpointSaver[str] | None = None,
    *,
    system_prompt: str | None = None,
    k: int = 10,
    token_budget: int = 2000,
) -> CompiledStateGraph[MemoryGraphState, MemoryContext, MemoryGraphInput, MemoryGraphState]:
    """An agent that remembers each of its users, as a compiled LangGraph.

    The user is the one of the run: the server's authenticated identity, `user_id` of the context, or
    `user_id` in the config's `configurable`. Without any model the whole loop runs offline: the rules
    classify, and the answer quotes what was recalled.

    Args:
        memrag: The memory.
        model: Answers, at temperature 0.5: a chat model, or a name such as `openai:gpt-5-mini`.
        fast_model: Decides what a question asks for, at temperature 0.1; the rules do without it.
        tools: What the model may call.
        checkpointer: Keeps conversations; `memrag.checkpointer()`, say. None on LangGraph's server, which
            brings its own.
        system_prompt: The model's instructions; ours in the question's language by default.
        k: How many remembered turns at most.
        token_budget: How many tokens they may take in the prompt; 0 means no limit.

    Raises:
        ConfigurationError: Tools without a model, an option out of range, or a model's name that is not
            known.

    Example:
        >>> graph = create_memory_graph(memrag)
        >>> ann = {"configurable": {"user_id": "ann"}}
        >>> said = graph.invoke({"messages": [("user", "I live in Lisbon.")]}, ann)
        >>> graph.invoke({"messages": [("user", "Where do I live?")]}, ann)["answer"]
        'On ... you said: “I live in Lisbon.”'
    """
    graph = StateGraph(MemoryGraphState, context_schema=MemoryContext, input_schema=MemoryGraphInput)
    graph.add_node("classify_intent", classify_intent_node(memrag, fast_model))
    recall = retrieve_node(memrag, k=k, token_budget=token_budget, shown=model is not None)
    graph.add_node("retrieve", recall)
    graph.add_node("respond", respond_node(model, tools, system_prompt=system_prompt))
    graph.add_node("learn", learn_node(memrag))
    graph.add_edge(START, "classify_intent")
    graph.add_edge("classify_intent", "retrieve")
    graph.add_edge("retrieve", "respond")
    if tools:
        graph.add_node("tools", tool_node(tools))
        graph.add_conditional_edges("respond", needs_tools, ["tools", "learn"])
        graph.add_edge("tools", "respond")
    else:
        graph.add_edge("respond", "learn")
    graph.add_edge("learn", END)
    return graph.compile(checkpointer=checkpointer, name="memory")
