"""The demo, as `make demo` runs it: three sessions, three processes, answered from memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_memrag import MemRAG, Scope
from langchain_memrag.cli.stories import Asked, load_story

COMMAND = [sys.executable, "-m", "langchain_memrag.cli", "demo"]


def environment(tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMRAG_")}
    return {**clean, "TMPDIR": str(tmp_path), "COLUMNS": "100"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_story_ends_by_answering_from_memory_and_showing_why(language: str, tmp_path: Path):
    story = load_story(language)
    asked = [turn for session in story.sessions for turn in session.turns if isinstance(turn, Asked)]
    place = tmp_path / "memory of a demo"
    done = subprocess.run(
        [*COMMAND, "--language", language, "--data", str(place), "--json"],
        env=environment(tmp_path),
        check=False,
        capture_output=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    report = json.loads(done.stdout.decode("utf-8"))
    assert report["as_told"]
    sessions = report["sessions"]
    assert len(sessions) == 3
    assert len({session["process"] for session in sessions} | {os.getpid()}) == 4, "a process each"
    answers = [answer for session in sessions for answer in session["answers"]]
    assert [answer["question"] for answer in answers] == [turn.ask for turn in asked]
    for answer, turn in zip(answers, asked, strict=True):
        for word in turn.expect:
            assert word in answer["answer"]
        if not turn.unknown:
            assert "dense" in answer["explanation"]
            assert "lexical" in answer["explanation"]
    assert sum(turn.unknown for turn in asked) == 1, "one thing was never told"

    with MemRAG.open(place, background=False) as memrag:
        assert memrag.doctor().users == 1
        assert memrag.stats(Scope(story.user)).episodes == 0, "a kept story has a user of its own"


def test_without_a_place_nothing_is_left(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [*COMMAND, "--language", "en"],
        env=environment(tmp_path),
        cwd=work,
        check=False,
        capture_output=True,
        timeout=280,
    )
    shown = done.stdout.decode("utf-8")
    assert done.returncode == 0, shown + done.stderr.decode()
    assert "Session 3 of 3" in shown
    assert "Casa Verde" in shown
    assert list(work.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("memrag-demo")] == []


def test_a_story_that_does_not_end_as_told_is_code_1(tmp_path: Path):

    script = json.loads((Path("examples/stories") / "en.json").read_text(encoding="utf-8"))
    script["sessions"] = script["sessions"][1:2]
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(script), encoding="utf-8")
    about = {**environment(tmp_path), "MEMRAG_LOCATION": str(tmp_path / "data"), "MEMRAG_EMBEDDINGS": "none"}
    command = [*COMMAND[:-1], "demo-session", str(file), "1", "--user", "ann"]
    done = subprocess.run(command, env=about, check=False, capture_output=True, timeout=280)
    assert done.returncode == 1, done.stdout.decode() + done.stderr.decode()
