"""Embeddings that cost nothing: texts that share words are near, in English and in Chinese."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.text import terms

__all__ = ["WordHashEmbeddings"]

_AXES = 8


class WordHashEmbeddings(Embeddings):
    """A bag of words, each word hashed to a few signed axes; the same in every process.

    It knows no synonyms: what it finds is what shares words.

    Args:
        width: How wide the vectors are; at least 1.

    Raises:
        ConfigurationError: A width below 1.
    """

    def __init__(self, width: int = 384) -> None:
        if width < 1:
            raise ConfigurationError(f"an embedding is at least 1 wide, not {width}")
        self.width = width

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One unit-length vector a text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The unit-length vector of a text; of a text without a word, the first axis."""
        vector = np.zeros(self.width)
        for term in terms(text):
            axes, signs = _axes(term, self.width)
            np.add.at(vector, axes, signs)
        length = float(np.linalg.norm(vector))
        if not length:
            vector[0] = length = 1.0
        unit: list[float] = (vector / length).tolist()
        return unit

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """As `embed_documents`; it never waits for anything."""
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        """As `embed_query`; it never waits for anything."""
        return self.embed_query(text)


@lru_cache(maxsize=1 << 16)
def _axes(term: str, width: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4 * _AXES).digest()
    numbers = np.frombuffer(digest, dtype="<u4").astype(np.int64)
    return numbers // 2 % width, np.where(numbers % 2, 1.0, -1.0)
