"""The cognitive graph and its nodes, loaded when they are named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_memrag.graphs.cognitive import create_memory_graph
    from langchain_memrag.graphs.extractive import Evidence, Extract, extract_answer
    from langchain_memrag.graphs.nodes import (
        classify_intent_node,
        learn_node,
        needs_tools,
        respond_node,
        retrieve_node,
    )
    from langchain_memrag.graphs.state import (
        IntentState,
        MemoryContext,
        MemoryGraphInput,
        MemoryGraphState,
        RecalledTurn,
    )

__all__ = [
    "Evidence",
    "Extract",
    "IntentState",
    "MemoryContext",
    "MemoryGraphInput",
    "MemoryGraphState",
    "RecalledTurn",
    "classify_intent_node",
    "create_memory_graph",
    "extract_answer",
    "learn_node",
    "needs_tools",
    "respond_node",
    "retrieve_node",
]

_MODULES = {
    "Evidence": "extractive",
    "Extract": "extractive",
    "IntentState": "state",
    "MemoryContext": "state",
    "MemoryGraphInput": "state",
    "MemoryGraphState": "state",
    "RecalledTurn": "state",
    "classify_intent_node": "nodes",
    "create_memory_graph": "cognitive",
    "extract_answer": "extractive",
    "learn_node": "nodes",
    "needs_tools": "nodes",
    "respond_node": "nodes",
    "retrieve_node": "nodes",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
