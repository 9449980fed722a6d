"""A process that moves a memory to another embedder, and is killed with -9 after its n-th SQL statement.

Usage: mover.py LOCATION SCHEMA KILL_AFTER [GRAPH]. Prints each text that it embeds; then `moved`. Where a
graph is named, it fills that instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from langchain_core.embeddings import Embeddings

sys.path.insert(0, str(Path(__file__).parents[3]))

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.testing.embeddings import WordHashEmbeddings


class Aim(Embeddings):
    """Another width; says what it embeds."""

    model = "aim"

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self._words = WordHashEmbeddings(96)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if "The quick brown fox" not in texts[0]:
            self.embedded += texts
            print(*(text.replace("\n", " ") for text in texts), sep="\n", flush=True)
        return self._words.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._words.embed_query(text)


def main() -> None:
    from tests.integration.engine.crash_writer import kill_after

    location, schema, statements, *graph = sys.argv[1:]
    memory = MemRAG.open(
        location,
        schema=schema,
        embeddings=None,
        background=False,
        cache="none",
        graph=graph[0] if graph else None,
    )
    kill_after(int(statements))
    if graph:
        memory.maintenance.reindex()
    else:
        memory.maintenance.reembed(Aim())
    print("moved", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
