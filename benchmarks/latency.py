"""How long a recall takes in a memory of a given size, beside the least that it could take.

    python benchmarks/latency.py [--sizes 1000,10000,100000] [--others 1000,100] [--json FILE]
    python benchmarks/latency.py --engines postgres,full --graph neo4j://... --cache redis://... [--search qdrant://...]

One user of each size stands in one store with the other users, whose turns arrived between his. Questions
are really embedded and never cached. The floor, measured in the same loop, is the embedding of the same
question plus the faster of an exact and an HNSW search in bare SQL over as many vectors of the same kind.
A second store with fewer others shows whether a user is slowed by strangers.

`full` is the same memory opened with engines beside Postgres; both answer every question, in turns. The
cached line is the same question asked again: kept in the process for `postgres`, on Redis for `full`.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from floor import FLOORS, Floor
from made_up import NoisyEmbeddings, conversation, questions
from servers import Throwaway, settle, throwaway
from tables import percentiles, print_table, write_json

from langchain_memrag import MemRAG, Scope, Turn
from langchain_memrag.engine.local import LocalEmbeddings

ENGINES = ("postgres", "full")
# What one call brings: a session of a stranger, a stretch of sessions of the user who is measured.
STRANGERS_CALL = 20
USERS_CALL = 200


@dataclass(slots=True)
class Timed:
    """What the loop saw of one user's recalls, in milliseconds."""

    recall: list[float] = field(default_factory=list)
    cached: list[float] = field(default_factory=list)
    floors: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in FLOORS})
    steps: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    degraded: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill, measure, print the tables, write the JSON."""
    options = _options(arguments)
    logging.getLogger("langchain_memrag").setLevel(logging.ERROR)
    embeddings = NoisyEmbeddings(LocalEmbeddings(), bases=options.sentences)
    asked = questions(options.warm_up + options.queries)
    rows: list[dict[str, object]] = []
    neighbours: list[dict[str, object]] = []
    with ExitStack() as stack:
        store = stack.enter_context(throwaway(embeddings))
        rates = _fill(store, options.sizes, options.others[0], options.per_other)
        floor = stack.enter_context(Floor(store, len(embeddings.embed_query("width"))))
        _fill_floor(floor, embeddings, options)
        handles = _handles(stack, store, embeddings, options)
        for size in options.sizes:
            copied = _copied(handles, size)
            measured = _measure(handles, floor, embeddings, size, asked, options.warm_up)
            for engine, timed in measured.items():
                rows.append(_row(size, engine, options.others[0], timed, rates[size]))
                if engine in copied:
                    rows[-1]["copied_per_s"] = copied[engine]
        if len(options.others) > 1:
            smallest = min(options.sizes)
            stores = {options.others[0]: store}
            for others in options.others[1:]:
                stores[others] = stack.enter_context(throwaway(embeddings))
                _fill(stores[others], [smallest], others, options.per_other)
            neighbours = _compare(stores, smallest, asked, options.warm_up)
    if options.json is not None:
        write_json(options.json, {"rows": rows, "neighbours": neighbours})
    _print(rows, neighbours)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=numbers, default=[1000, 10_000, 100_000], help="episodes of one user")
    parser.add_argument("--others", type=numbers, default=[1000, 100], help="other users, a store each")
    parser.add_argument("--per-other", type=int, default=100, help="episodes of each other user")
    parser.add_argument("--queries", type=int, default=200, help="questions a size")
    parser.add_argument("--warm-up", type=int, default=20, help="questions before them that do not count")
    parser.add_argument("--sentences", type=int, default=400, help="real sentences behind the vectors")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["postgres"])
    for role, engine in (("search", "Qdrant"), ("graph", "Neo4j"), ("cache", "Redis")):
        parser.add_argument(f"--{role}", metavar="URL", help=f"of {engine}, for `full`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the milliseconds here")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.engines) - set(ENGINES)):
        parser.error(f"unknown engine {', '.join(unknown)}; known: {', '.join(ENGINES)}")
    if "full" in options.engines and not (options.search or options.graph or options.cache):
        parser.error("full needs the URL of an engine: --search, --graph or --cache")
    return options


def _handles(
    stack: ExitStack, store: Throwaway, embeddings: NoisyEmbeddings, options: argparse.Namespace
) -> dict[str, MemRAG]:
    """The memory, opened once for each way to run it."""
    engines: dict[str, dict[str, str]] = {"postgres": {}}
    if "full" in options.engines:
        named = {"search": options.search, "graph": options.graph, "cache": options.cache}
        engines["full"] = {role: url for role, url in named.items() if url}
    return {
        name: stack.enter_context(
            MemRAG.open(store.folder, embeddings=embeddings, background=False, **urls)  # type: ignore[arg-type]
        )
        for name, urls in engines.items()
        if name in options.engines
    }


def _copied(handles: Mapping[str, MemRAG], size: int) -> dict[str, int]:
    """Bring one user to the engines; returns how many turns a second."""
    if "full" not in handles:
        return {}
    begun = time.monotonic()
    if left := handles["full"].flush(Scope(_user(size))):
        raise RuntimeError(f"{left} turns could not be copied")
    spent = time.monotonic() - begun
    _say(f"{size} turns copied in {spent:.0f} s")
    return {"full": round(size / spent)}


def _user(size: int) -> str:
    return f"user-{size}"


def _calls(user: str, turns: int, most: int) -> Iterator[tuple[Scope, list[Turn]]]:
    """A user's turns as they come in: one session a call, in order."""
    said = list(conversation(user, turns))
    for start in range(0, turns, most):
        yield Scope(user, session_id=f"session-{start}"), said[start : start + most]


def _fill(store: Throwaway, sizes: Sequence[int], others: int, per_other: int) -> dict[int, float]:
    """Bring in the turns of all users, interleaved; returns how many a second the sizes took."""
    started = time.monotonic()
    users = {_user(size): (size, USERS_CALL) for size in sizes}
    users.update({f"other-{number}": (per_other, STRANGERS_CALL) for number in range(others)})
    calls = {user: _calls(user, turns, most) for user, (turns, most) in users.items()}
    arrivals = [user for user, (turns, most) in users.items() for _ in range(0, turns, most)]
    Random(6).shuffle(arrivals)
    seconds: dict[str, float] = defaultdict(float)
    for number, user in enumerate(arrivals):
        scope, turns = next(calls[user])
        begun = time.perf_counter()
        store.memory.remember(turns, scope)
        seconds[user] += time.perf_counter() - begun
        if number % 1000 == 999:
            _say(f"{number + 1}/{len(arrivals)} calls, {time.monotonic() - started:.0f} s")
    settle(store)
    _say(f"filled and settled in {time.monotonic() - started:.0f} s")
    return {size: size / seconds[_user(size)] for size in sizes}


def _fill_floor(floor: Floor, embeddings: NoisyEmbeddings, options: argparse.Namespace) -> None:
    started = time.monotonic()
    users = {size: _user(size) for size in options.sizes}
    vectors = {
        size: embeddings.matrix([turn.content for turn in conversation(user, size)])
        for size, user in users.items()
    }
    for number in range(options.others[0]):
        said = conversation(f"other-{number}", options.per_other)
        vectors[-1 - number] = embeddings.matrix([turn.content for turn in said])
    floor.fill(vectors, graphs=options.sizes)
    _say(f"floor filled in {time.monotonic() - started:.0f} s")


def _measure(
    handles: Mapping[str, MemRAG],
    floor: Floor,
    embeddings: NoisyEmbeddings,
    size: int,
    asked: Sequence[str],
    warm_up: int,
) -> dict[str, Timed]:
    timed = {name: Timed() for name in handles}
    for number, question in enumerate(asked):
        keep = timed if number >= warm_up else {name: Timed() for name in handles}
        # Each goes first as often as the others, so that none finds the caches warmer.
        turns: list[str | None] = [*handles, None]
        for name in turns[number % len(turns) :] + turns[: number % len(turns)]:
            if name is not None:
                _time_recall(handles[name], size, question, keep[name])
                _time_cached(handles[name], size, question, keep[name])
            else:
                _time_floor(floor, embeddings, size, question, list(keep.values()))
    return timed


def _time_recall(memory: MemRAG, size: int, question: str, timed: Timed) -> None:
    begun = time.perf_counter()
    recall = memory.recall(question, Scope(_user(size)))
    spent = _milliseconds(begun)
    if recall.cached:
        return  # some questions come twice
    timed.recall.append(spent)
    timed.degraded += bool(recall.degraded)
    for step, lap in recall.timings.items():
        timed.steps[step].append(lap)


def _time_cached(memory: MemRAG, size: int, question: str, timed: Timed) -> None:
    begun = time.perf_counter()
    recall = memory.recall(question, Scope(_user(size)))
    if recall.cached:
        timed.cached.append(_milliseconds(begun))


def _time_floor(
    floor: Floor, embeddings: NoisyEmbeddings, size: int, question: str, measured: Sequence[Timed]
) -> None:
    begun = time.perf_counter()
    vector = embeddings.embed_query(question)
    embedding = _milliseconds(begun)
    for kind in FLOORS:
        begun = time.perf_counter()
        floor.nearest(kind, size, vector)
        spent = embedding + _milliseconds(begun)
        for timed in measured:
            timed.floors[kind].append(spent)


def _milliseconds(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def _compare(
    stores: Mapping[int, Throwaway], size: int, asked: Sequence[str], warm_up: int
) -> list[dict[str, object]]:
    """The same user with more and with fewer strangers, in turns."""
    timed = {others: Timed() for others in stores}
    for number, question in enumerate(asked):
        for others, store in stores.items():
            _time_recall(store.memory, size, question, timed[others] if number >= warm_up else Timed())
    return [
        {"size": size, "others": others, "recall": percentiles(one.recall), "degraded": one.degraded}
        for others, one in timed.items()
    ]


def _row(size: int, engine: str, others: int, timed: Timed, rate: float) -> dict[str, object]:
    fastest = min(timed.floors, key=lambda kind: median(timed.floors[kind]))
    recall, floor = percentiles(timed.recall), percentiles(timed.floors[fastest])
    return {
        "size": size,
        "engine": engine,
        "others": others,
        "recall": recall,
        "cached": percentiles(timed.cached) if timed.cached else None,
        "floor": floor,
        "floor_by": fastest,
        "ratio": round(recall["p50"] / floor["p50"], 2),
        "steps": {step: round(median(spent), 2) for step, spent in timed.steps.items()},
        "write_per_s": round(rate),
        "degraded": timed.degraded,
    }


def _print(rows: Sequence[Mapping[str, object]], neighbours: Sequence[Mapping[str, object]]) -> None:
    header = [
        "episodes",
        "engines",
        "recall p50",
        "p95",
        "p99",
        "cached p50",
        "p95",
        "floor p50",
        "by",
        "ratio",
    ]
    header += ["degraded", "written/s"]
    print_table(
        "Recall, milliseconds",
        header,
        [
            [str(row["size"]), str(row["engine"]), *_cells(row["recall"]),
             *(_cells(row["cached"])[:2] or ["-", "-"]), *_cells(row["floor"])[:1], str(row["floor_by"]),
             str(row["ratio"]), str(row["degraded"]), str(row["write_per_s"])]
            for row in rows
        ],
    )  # fmt: skip
    steps = list(dict.fromkeys(step for row in rows for step in _mapping(row["steps"])))
    print_table(
        "Where the time goes: median milliseconds a step",
        ["episodes", "engines", *steps],
        [
            [
                str(row["size"]),
                str(row["engine"]),
                *(str(_mapping(row["steps"]).get(step, "-")) for step in steps),
            ]
            for row in rows
        ],
    )
    if neighbours:
        print_table(
            f"A user of {neighbours[0]['size']} episodes among others, milliseconds",
            ["other users", "recall p50", "p95", "p99"],
            [[str(row["others"]), *_cells(row["recall"])] for row in neighbours],
        )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _cells(value: object) -> list[str]:
    return [str(number) for number in _mapping(value).values()]


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
