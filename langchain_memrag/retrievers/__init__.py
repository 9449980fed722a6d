"""Memory as LangChain retrievers, loaded when they are named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_memrag.retrievers.memory import MemoryRetriever

__all__ = ["MemoryRetriever"]

_MODULES = {"MemoryRetriever": "memory"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
