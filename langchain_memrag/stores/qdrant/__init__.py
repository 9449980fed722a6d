"""The search index on Qdrant, a server or the client's local mode: the extra `qdrant`."""

from __future__ import annotations

from langchain_memrag.errors import MissingDependencyError

try:
    import qdrant_client as _driver  # noqa: F401 - tells now, and by its extra, what is missing
except ImportError as error:
    raise MissingDependencyError("a search index on Qdrant", "qdrant") from error

from langchain_memrag.stores.qdrant.address import QdrantOptions
from langchain_memrag.stores.qdrant.index import QdrantIndex
from langchain_memrag.stores.qdrant.server import QdrantServer

__all__ = ["QdrantIndex", "QdrantOptions", "QdrantServer"]
