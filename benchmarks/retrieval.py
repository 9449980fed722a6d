"""Which remembered turns does a question bring back? The product beside BM25, a dense model and both.

    python benchmarks/retrieval.py DATA_FOLDER [--sets a,b] [--json FILE] [--quick]

Every set of the folder goes through `MemRAG` itself, one user a scope, by `remember` and `recall`; the
baselines rank the same texts with the same vectors in the same run. The lines `memrag-...` show what each
part of the ranking recipe adds: the same memory, recalled with one part taken out. See `retrieval_sets.py`
for the format.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ablations import ABLATIONS
from baselines import rank_baselines
from embedding_cache import CachedEmbeddings
from product import Filled, fill, rank
from retrieval_sets import RetrievalSet, find_sets, load_set
from scoring import Scores, score
from tables import print_table, write_json

from langchain_memrag import MemRAG
from langchain_memrag.engine.local import LocalEmbeddings

Results = dict[str, dict[str, Scores]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sets, print one table, write the JSON."""
    options = _options(arguments)
    logging.getLogger("langchain_memrag").setLevel(logging.ERROR)
    results: Results = {}
    with ExitStack() as stack:
        embeddings = CachedEmbeddings(LocalEmbeddings(), LocalEmbeddings.model, options.cache)
        stack.callback(embeddings.close)
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="memrag-bench-", ignore_cleanup_errors=True)
        )
        memory = stack.enter_context(
            MemRAG.open(folder, embeddings=embeddings, background=False, cache="none")
        )
        filled = []
        for name in options.sets or find_sets(options.data):
            data = load_set(options.data, name)
            results[name] = {
                system: score(data.questions, rankings)
                for system, rankings in rank_baselines(data, embeddings).items()
            }
            filled.append(_run_product(memory, data, results))
            _save(options.json, results)
        if options.search or options.graph:
            _run_engines(folder, embeddings, filled, results, options)
            _save(options.json, results)
        if options.ablate and not options.quick:
            _ablate(folder, embeddings, filled, results)
            _save(options.json, results)
    _print(results)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA_FOLDER", help="a folder with one folder a set")
    parser.add_argument("--sets", type=lambda names: names.split(","), help="only these, as in a,b")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the scores here")
    parser.add_argument(
        "--ablate", action=argparse.BooleanOptionalAction, default=True, help="take parts out"
    )
    parser.add_argument("--search", metavar="URL", help="ask Qdrant there, too")
    parser.add_argument("--graph", metavar="URL", help="ask Neo4j there, too")
    parser.add_argument("--quick", action="store_true", help="no ablations")
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        default=Path(tempfile.gettempdir()) / "memrag-bench-vectors",
        help="where vectors are kept between runs (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        parser.error(f"{options.data} is not a folder")
    known = find_sets(options.data)
    unknown = sorted(set(options.sets or ()) - set(known))
    if unknown or not known:
        parser.error(
            f"{options.data} has no set {', '.join(unknown) or 'at all'}; it has: {', '.join(known) or '-'}"
        )
    return options


def _run_product(memory: MemRAG, data: RetrievalSet, results: Results) -> Filled:
    filled = fill(memory, data)
    started = time.monotonic()
    rankings, degraded = rank(memory, filled)
    seconds = time.monotonic() - started
    results[data.name]["memrag"] = score(data.questions, rankings)
    notes = [
        f"{len(data.passages)} passages of {len(data.by_scope)} users in {filled.seconds:.0f} s",
        f"{len(data.questions)} questions in {seconds:.0f} s",
    ]
    if filled.undated:
        notes.append(f"{filled.undated} times that could not be read")
    if degraded:
        notes.append(f"{degraded} recalls degraded")
    print(f"{data.name}: {', '.join(notes)}", file=sys.stderr, flush=True)
    return filled


def _run_engines(
    folder: str,
    embeddings: CachedEmbeddings,
    filled: Sequence[Filled],
    results: Results,
    options: argparse.Namespace,
) -> None:
    """The same memory once more, with engines beside Postgres: they must find the same."""
    named = {role: url for role, url in (("search", options.search), ("graph", options.graph)) if url}
    with MemRAG.open(folder, embeddings=embeddings, background=False, cache="none", **named) as memory:
        if left := memory.flush():
            raise RuntimeError(f"{left} turns could not be copied")
        for one in filled:
            rankings, degraded = rank(memory, one)
            results[one.data.name][f"memrag+{'+'.join(named)}"] = score(one.data.questions, rankings)
            print(f"{one.data.name}: {degraded} recalls degraded", file=sys.stderr, flush=True)


def _ablate(folder: str, embeddings: CachedEmbeddings, filled: Sequence[Filled], results: Results) -> None:
    """The same memory once more, opened with a recipe that lacks one part."""
    for name, recipe in ABLATIONS.items():
        print(f"  recalling with {name}", file=sys.stderr, flush=True)
        with MemRAG.open(folder, embeddings=embeddings, background=False, recipe=recipe) as memory:
            for one in filled:
                rankings, _ = rank(memory, one)
                results[one.data.name][f"memrag-{name}"] = score(one.data.questions, rankings)


def _save(path: Path | None, results: Results) -> None:
    if path is not None:
        write_json(path, {"sets": results})


def _print(results: Mapping[str, Mapping[str, Scores]]) -> None:
    columns = ("ndcg@10", "recall@5", "recall@10")
    rows = []
    for name, systems in results.items():
        for system, scores in systems.items():
            values = [f"{scores[column]:.3f}" for column in columns]
            rows.append([name, str(scores["queries"]), system, *values])
    print_table("Retrieval, averaged over the questions of a set", ["set", "n", "system", *columns], rows)


if __name__ == "__main__":
    sys.exit(main())
