"""Long-term memory for LangChain and LangGraph agents: episodic, semantic and procedural.

    from langchain_memrag import MemRAG, Scope

Importing this package opens nothing and imports no extra; names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_memrag.engine.memrag import MemRAG
    from langchain_memrag.errors import (
        ConfigurationError,
        ExtractionError,
        MemRAGError,
        MissingDependencyError,
        NotFoundError,
        SchemaError,
        ScopeError,
        StoreError,
        StoreTimeoutError,
        StoreUnavailableError,
    )
    from langchain_memrag.records import (
        Episode,
        ErasureReport,
        Hit,
        Intent,
        Recall,
        RecallFilter,
        Receipt,
        Scope,
        Turn,
    )

__all__ = [
    "ConfigurationError",
    "Episode",
    "ErasureReport",
    "ExtractionError",
    "Hit",
    "Intent",
    "MemRAG",
    "MemRAGError",
    "MissingDependencyError",
    "NotFoundError",
    "Recall",
    "RecallFilter",
    "Receipt",
    "SchemaError",
    "Scope",
    "ScopeError",
    "StoreError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "Turn",
]

_HOMES = {
    "langchain_memrag.engine.memrag": ("MemRAG",),
    "langchain_memrag.records": (
        "Episode",
        "ErasureReport",
        "Hit",
        "Intent",
        "Recall",
        "RecallFilter",
        "Receipt",
        "Scope",
        "Turn",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME_OF.get(name, "langchain_memrag.errors")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
