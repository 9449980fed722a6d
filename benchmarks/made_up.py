"""Made-up memories of any size: words drawn as in real text, vectors near those of real sentences."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_memrag import Turn

__all__ = ["FreeEmbeddings", "NoisyEmbeddings", "conversation", "questions", "sentences"]

_WIDTH: Final = 384
_TURNS_A_SESSION: Final = 20

_LISTS: Final[dict[str, dict[str, list[str]]]] = json.loads(
    Path(__file__).with_name("words.json").read_text(encoding="utf-8")
)


class _Words:
    """One language's words, the n-th about n times rarer than the first (Zipf)."""

    def __init__(self, vocabulary: Sequence[str], names: Sequence[str], gap: str, end: str) -> None:
        self._vocabulary = vocabulary
        self._names = names
        self._gap = gap
        self._end = end
        weights = 1 / (np.arange(len(vocabulary)) + 2.7)
        self._sums = np.cumsum(weights / weights.sum())

    def text(self, random: np.random.Generator) -> str:
        """A turn: mostly short, sometimes long, now and then about somebody."""
        length = int(np.clip(random.lognormal(2.6, 0.7), 3, 120))
        places = np.searchsorted(self._sums, random.random(length)).clip(max=len(self._vocabulary) - 1)
        words = [self._vocabulary[place] for place in places]
        if random.random() < 0.3:
            words[length // 2] = self._names[int(len(self._names) * random.random() ** 2)]
        return self._gap.join(words) + self._end


def _words(language: str, size: int, gap: str, end: str) -> _Words:
    lists = _LISTS[language]
    known = dict.fromkeys([*lists["common"], *(word for topic in lists["topics"] for word in topic.split())])
    rare = ("".join(parts) for n in (2, 3) for parts in itertools.product(lists["syllables"], repeat=n))
    known.update(dict.fromkeys(itertools.islice(rare, size)))
    return _Words(list(known), [*lists["people"], *lists["places"]], gap, end)


_ENGLISH: Final = _words("en", 12_000, " ", ".")
_CHINESE: Final = _words("zh", 2_200, "", "。")


def conversation(user: str, turns: int) -> Iterator[Turn]:
    """A user's turns, the same every time; every other one the assistant's, half of them Chinese."""
    random = np.random.default_rng(zlib.crc32(user.encode()))
    said_at = datetime(2024, 1, 1, 8, tzinfo=UTC)
    for number in range(turns):
        said_at += timedelta(minutes=1 if number % _TURNS_A_SESSION else 300)
        language = _CHINESE if number // _TURNS_A_SESSION % 2 else _ENGLISH
        yield Turn(
            content=language.text(random),
            role="assistant" if number % 2 else "user",
            occurred_at=said_at,
        )


def sentences(count: int) -> list[str]:
    """Plausible sentences in both languages, in turn."""
    return _filled(count, "said", seed=1)


def questions(count: int) -> list[str]:
    """Plausible questions in both languages, about what `sentences` are about."""
    return _filled(count, "asked", seed=2)


def _filled(count: int, kind: str, *, seed: int) -> list[str]:
    random = Random(seed)
    found = []
    for number in range(count):
        lists = _LISTS["zh" if number % 2 else "en"]
        pattern = random.choice(lists[kind])
        person, topic, place = (random.choice(lists[part]) for part in ("people", "topics", "places"))
        found.append(pattern.format(person=person, topic=topic, place=place))
    return found


class NoisyEmbeddings(Embeddings):
    """Questions are really embedded; passages get the vector of a real sentence plus noise, at no cost.

    Args:
        embeddings: The embedder of questions and of the real sentences.
        bases: How many real sentences.
        noise: Length of the noise; the vectors have length one.
    """

    model = "noisy"

    def __init__(self, embeddings: Embeddings, *, bases: int = 400, noise: float = 0.4) -> None:
        self._embeddings = embeddings
        self._bases = np.asarray(embeddings.embed_documents(sentences(bases)), dtype=np.float32)
        width = self._bases.shape[1]
        rows = np.random.default_rng(3).standard_normal((8192, width), dtype=np.float32)
        self._noise = rows * (noise / np.linalg.norm(rows, axis=1, keepdims=True))

    def embed_query(self, text: str) -> list[float]:
        """The question's own vector."""
        return self._embeddings.embed_query(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector a text, the same every time."""
        rows: list[list[float]] = self.matrix(texts).tolist()
        return rows

    def matrix(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed_documents`, one row a text."""
        hashes = np.asarray([zlib.crc32(text.encode()) for text in texts], dtype=np.int64)
        rows = self._bases[hashes % len(self._bases)] + self._noise[hashes // 7 % len(self._noise)]
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


class FreeEmbeddings(Embeddings):
    """An embedder that costs nothing: one of a few thousand vectors that are made already."""

    model = "free"

    def __init__(self, width: int = _WIDTH) -> None:
        rows = np.random.default_rng(4).standard_normal((4096, width), dtype=np.float32)
        self.width = width
        self._rows: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()

    def embed_query(self, text: str) -> list[float]:
        """A vector, the same every time."""
        return self._rows[zlib.crc32(text.encode()) % len(self._rows)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector a text."""
        return [self.embed_query(text) for text in texts]
