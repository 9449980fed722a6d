"""What it costs to remember: beside embedding alone, at two sizes, and beside LangGraph's own store.

    python benchmarks/writing.py [--turns 1000] [--stored 100000] [--json FILE]

* `local`: short turns remembered in one call, against embedding the same indexed texts alone.
* `batches`: with an embedder that costs nothing, turns a second, with nothing stored and with much.
* `single`, `store`: the same embedder, one turn a call and in batches, in turns with `PostgresStore` of
  LangGraph with a vector index on the same server; one by one with nothing stored, and with much.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from uuid import uuid4

from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from made_up import FreeEmbeddings, conversation
from servers import Throwaway, connect, settle, throwaway
from tables import print_table, write_json

from langchain_memrag import Scope, Turn
from langchain_memrag.engine.local import LocalEmbeddings, is_installed

BATCH = 1000
ROUNDS = 5
_SLICE = 16


class _Beside(Embeddings):
    """Embeds what is asked, and each batch once more for comparison, so that both see the same machine."""

    model = "beside"

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self.texts = 0
        self.within = 0.0
        self.alone = 0.0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        # In the embedder's own small batches, so that the work is the same as in one go.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found: list[list[float]] = [[]] * len(texts)
        for start in range(0, len(order), _SLICE):
            part = order[start : start + _SLICE]
            first, vectors = self._timed([texts[i] for i in part])
            second, _ = self._timed([texts[i] for i in part])
            # The second of two may find warmer caches: each comes first as often as the other.
            swapped = start // _SLICE % 2
            self.within += second if swapped else first
            self.alone += first if swapped else second
            for position, vector in zip(part, vectors, strict=True):
                found[position] = vector
        self.texts += len(texts)
        return found

    def embed_query(self, text: str) -> list[float]:
        return self._embeddings.embed_query(text)

    def _timed(self, texts: list[str]) -> tuple[float, list[list[float]]]:
        begun = time.perf_counter()
        vectors = self._embeddings.embed_documents(texts)
        return time.perf_counter() - begun, vectors


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    options = _options(arguments)
    logging.getLogger("langchain_memrag").setLevel(logging.ERROR)
    found: dict[str, Mapping[str, object]] = {}
    if is_installed():
        found["local"] = _beside_embedding(options.turns)
    with throwaway(FreeEmbeddings()) as store:
        found["batches"] = _batches(store, options.stored, options.batch)
    with throwaway(FreeEmbeddings()) as store:
        found.update(_beside_langgraph(store, options))
    if options.json is not None:
        write_json(options.json, found)
    rows = [[part, name, str(value)] for part, values in found.items() for name, value in values.items()]
    print_table("Writing", ["part", "measure", "value"], rows)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=1000, help="turns of one call, really embedded")
    parser.add_argument("--stored", type=int, default=100_000, help="turns stored before the second round")
    parser.add_argument("--batch", type=int, default=BATCH, help="turns a batch")
    parser.add_argument("--singles", type=int, default=400, help="turns remembered one by one")
    parser.add_argument(
        "--between", type=int, default=10_000, help="turns in batches before the last of these"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    return parser.parse_args(arguments)


def _beside_embedding(turns: int) -> Mapping[str, object]:
    """One call, against embedding alone what it embeds."""
    said = list(conversation("short", turns))
    with throwaway(beside := _Beside(LocalEmbeddings())) as store:
        store.memory.remember("Begin.", Scope("first"))
        beside.texts, beside.within, beside.alone = 0, 0.0, 0.0
        begun = time.perf_counter()
        store.memory.remember(said, Scope("short", session_id="one"))
        remembering = time.perf_counter() - begun - beside.alone
    return {
        "turns": turns,
        "indexed_texts": beside.texts,
        "remember_s": round(remembering, 2),
        "embedding_within_s": round(beside.within, 2),
        "embedding_alone_s": round(beside.alone, 2),
        "ratio": round(remembering / beside.alone, 3),
    }


def _batches(store: Throwaway, stored: int, batch: int) -> Mapping[str, object]:
    """Turns a second with nothing stored, and with much: for the user who has it, and for a new one."""
    store.memory.remember("Begin.", Scope("first"))
    much = conversation("much", stored + ROUNDS * batch)
    empty = _batch_rate(store, "new", conversation("new", ROUNDS * batch), batch)
    filling = _batch_rate(store, "much", islice(much, stored), batch)
    settle(store)
    return {
        "batch": batch,
        "stored": stored,
        "per_s_with_none": round(empty),
        "per_s_filling": round(filling),
        "per_s_with_stored": round(_batch_rate(store, "much", much, batch)),
        "per_s_other_user": round(_batch_rate(store, "other", conversation("other", ROUNDS * batch), batch)),
    }


def _batch_rate(store: Throwaway, user: str, turns: Iterator[Turn], batch: int) -> float:
    count, seconds = 0, 0.0
    while part := list(islice(turns, batch)):
        begun = time.perf_counter()
        store.memory.remember(part, Scope(user, session_id=f"round-{count}"))
        seconds += time.perf_counter() - begun
        count += len(part)
    return count / seconds


def _beside_langgraph(store: Throwaway, options: argparse.Namespace) -> dict[str, Mapping[str, object]]:
    """One by one with nothing stored, in batches, one by one with much; in turns with LangGraph's store."""
    free = FreeEmbeddings()
    with connect(store) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    index = {"dims": free.width, "embed": free, "fields": ["text"]}
    with PostgresStore.from_conn_string(store.url, index=index) as langgraph:  # type: ignore[arg-type]
        langgraph.setup()
        store.memory.remember("Begin.", Scope("first"))
        turns = conversation("both", 2 * options.singles + options.between)
        found = {"single": _in_turns(store, langgraph, islice(turns, options.singles), 1)}
        found["store"] = _in_turns(store, langgraph, islice(turns, options.between), options.batch)
        with connect(store) as connection:
            connection.execute("VACUUM (ANALYZE)")
        found[f"single, {options.between} stored"] = _in_turns(store, langgraph, turns, 1)
    return found


def _in_turns(
    store: Throwaway, langgraph: PostgresStore, turns: Iterator[Turn], batch: int
) -> Mapping[str, object]:
    ours, theirs, count = [], [], 0
    session = 0
    while part := list(islice(turns, batch)):
        session = session if count % 20 else session + 1
        puts = [PutOp(("both",), str(uuid4()), {"text": turn.content, "role": turn.role}) for turn in part]
        begun = time.perf_counter()
        store.memory.remember(part, Scope("both", session_id=f"{batch}-{session}"))
        between = time.perf_counter()
        langgraph.batch(puts)
        theirs.append(time.perf_counter() - between)
        ours.append(between - begun)
        count += len(part)
    return {
        "calls": len(ours),
        "turns_a_call": batch,
        "memrag_per_s": round(count / sum(ours), 1),
        "langgraph_per_s": round(count / sum(theirs), 1),
        "ratio": round(sum(ours) / sum(theirs), 3),
    }


if __name__ == "__main__":
    sys.exit(main())
