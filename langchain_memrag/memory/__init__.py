"""Memory in the shapes of LangChain and LangGraph: thin doors to `MemRAG`, loaded when they are named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_memrag.memory.checkpointer import MemRAGSaver
    from langchain_memrag.memory.classic import MemRAGMemory
    from langchain_memrag.memory.identity import resolve_scope, resolve_user
    from langchain_memrag.memory.middleware import MemoryMiddleware

__all__ = ["MemRAGMemory", "MemRAGSaver", "MemoryMiddleware", "resolve_scope", "resolve_user"]

_MODULES = {
    "MemRAGMemory": "classic",
    "MemRAGSaver": "checkpointer",
    "MemoryMiddleware": "middleware",
    "resolve_scope": "identity",
    "resolve_user": "identity",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
