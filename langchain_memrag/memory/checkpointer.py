"""The saver that `MemRAG.checkpointer()` gives; it stands in the engine, which makes it."""

from __future__ import annotations

from langchain_memrag.engine.checkpointer import MemRAGSaver

__all__ = ["MemRAGSaver"]
