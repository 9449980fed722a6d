"""Embeddings that remember on disk what they embedded: the same text has the same vector in every run."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

__all__ = ["CachedEmbeddings"]

_STEP = 256
_REPORT_SECONDS = 15.0


class CachedEmbeddings(Embeddings):
    """Another embedder's vectors, each made once.

    Args:
        embeddings: The embedder.
        model: Its name; part of the key.
        folder: Where the vectors are kept; made if it is not there.
    """

    def __init__(self, embeddings: Embeddings, model: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.model = model
        self._embeddings = embeddings
        self._lock = threading.Lock()
        self._file = sqlite3.connect(folder / "vectors.sqlite", timeout=60, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = wal")
        self._file.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, value BLOB NOT NULL)")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Passages, in the order given."""
        return self._embed("passage", texts, self._embeddings.embed_documents)

    def embed_query(self, text: str) -> list[float]:
        """A question."""
        return self._embed(
            "query", [text], lambda missing: [self._embeddings.embed_query(q) for q in missing]
        )[0]

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Questions, in the order given."""
        return self._embed(
            "query", texts, lambda missing: [self._embeddings.embed_query(text) for text in missing]
        )

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._file.close()

    def _embed(
        self, kind: str, texts: Sequence[str], embed: Callable[[list[str]], list[list[float]]]
    ) -> list[list[float]]:
        keys = [self._key(kind, text) for text in texts]
        known: dict[bytes, list[float]] = {key: vector for key in set(keys) if (vector := self._read(key))}
        # Texts of like length stand together: a batch is padded to its longest.
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        missing = sorted(new.items(), key=lambda item: len(item[1]))
        started = reported = time.monotonic()
        for start in range(0, len(missing), _STEP):
            part = missing[start : start + _STEP]
            vectors = embed([text for _, text in part])
            self._write([key for key, _ in part], vectors)
            known.update(zip((key for key, _ in part), vectors, strict=True))
            if (now := time.monotonic()) - reported > _REPORT_SECONDS:
                reported = now
                done = start + len(part)
                print(f"  embedded {done}/{len(missing)}, {now - started:.0f} s", file=sys.stderr, flush=True)
        return [known[key] for key in keys]

    def _key(self, kind: str, text: str) -> bytes:
        return hashlib.sha256(f"{self.model}\0{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()

    def _read(self, key: bytes) -> list[float] | None:
        with self._lock:
            row = self._file.execute("SELECT value FROM vector WHERE key = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], dtype=np.float32).tolist()

    def _write(self, keys: Sequence[bytes], vectors: Sequence[Sequence[float]]) -> None:
        rows = [
            (key, np.asarray(vector, dtype=np.float32).tobytes())
            for key, vector in zip(keys, vectors, strict=True)
        ]
        with self._lock, self._file:
            self._file.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)
