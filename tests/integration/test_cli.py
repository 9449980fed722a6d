"""The command line on a real database: what it prints, what it stores, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from typer.testing import CliRunner, Result

from langchain_memrag import MemRAG, Scope
from langchain_memrag.cli.app import app
from langchain_memrag.engine.capture import Capture
from langchain_memrag.errors import StoreUnavailableError

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def memory_schema(postgres_url: str) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


@pytest.fixture
def user() -> str:
    """Somebody whom no other test knows, with a name that needs UTF-8."""
    return f"小林-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def run(
    postgres_url: str, memory_schema: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Run]:
    """Runs one command as a shell would, on a database of this module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMRAG_LOCATION", postgres_url)
    monkeypatch.setenv("MEMRAG_SCHEMA", memory_schema)
    monkeypatch.setenv("MEMRAG_EMBEDDINGS", "none")
    monkeypatch.setenv("COLUMNS", "80")

    def run_command(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    yield run_command
    assert not (tmp_path / ".memrag").exists(), "a folder was made although a server was named"


@pytest.fixture
def memory(postgres_url: str, memory_schema: str, run: Run) -> Iterator[MemRAG]:
    with MemRAG.open(postgres_url, schema=memory_schema, embeddings=None, background=False) as memrag:
        yield memrag


def contents(memory: MemRAG, user: str, session: str | None = None) -> list[str]:
    return [episode.content for episode in memory.history(Scope(user, session), limit=1000).episodes]


def jsonl(path: Path, *lines: dict[str, object] | str) -> Path:
    rows = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


# remember, recall, stats


@pytest.mark.parametrize(
    ("said", "question"),
    [("I moved to Lisbon in May.", "Lisbon"), ("我五月搬到了里斯本。", "里斯本")],
)
def test_what_is_remembered_is_recalled(run: Run, user: str, said: str, question: str):
    stored = run("remember", said, "--user", user, "--session", "s1", "--json")
    assert stored.exit_code == 0
    assert json.loads(stored.stdout)["stored"] == 1
    assert "\\u" not in stored.stdout

    found = run("recall", question, "--user", user, "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["hits"][0]["text"] == said
    assert said in found.stdout, "text is printed as it was said"
    assert said in run("recall", question, "--user", user).stdout


def test_recall_explains(run: Run, user: str):
    run("remember", "Mia is allergic to peanuts.", "--user", user)
    shown = run("recall", "What is Mia allergic to?", "--user", user, "--explain").stdout
    identifier = json.loads(run("recall", "Mia", "--user", user, "--json").stdout)["hits"][0]["id"]
    assert "lexical" in shown
    assert identifier in shown


def test_nothing_found_is_not_an_error(run: Run, user: str):
    for question, words in [("Where do I live?", "Nothing was found"), ("我住在哪里？", "没有找到")]:
        found = run("recall", question, "--user", user)
        assert found.exit_code == 0
        assert words in found.stdout


def test_users_and_sessions_are_kept_apart(run: Run, user: str):
    run("remember", "The code is 1234.", "--user", user, "--session", "a")
    run("remember", "The code is 5678.", "--user", user, "--session", "b")
    other = run("recall", "code", "--user", user + "x", "--json")
    assert json.loads(other.stdout)["hits"] == []
    only_b = json.loads(run("recall", "code", "--user", user, "--session", "b", "--json").stdout)["hits"]
    assert [hit["text"] for hit in only_b] == ["The code is 5678."]


def test_remember_takes_turns_time_role_and_key(run: Run, user: str, memory: MemRAG):
    once = ["remember", "Yes.", "--user", user, "--role", "assistant", "--speaker", "Bot", "--key", "k1"]
    once += ["--occurred-at", "2026-03-02T09:00:00+08:00"]
    assert run(*once).exit_code == 0
    again = json.loads(run(*once, "--json").stdout)
    assert (again["stored"], again["duplicates"]) == (0, 1)
    (episode,) = memory.history(Scope(user)).episodes
    assert (episode.role, episode.speaker) == ("assistant", "Bot")
    assert episode.occurred_at.isoformat() == "2026-03-02T01:00:00+00:00"

    run("remember", "one", "-", "--user", user, stdin="二\n")
    assert contents(memory, user)[-2:] == ["one", "二"]


def test_stats_count(run: Run, user: str):
    run("remember", "one", "two", "--user", user)
    counted = json.loads(run("stats", "--user", user, "--json").stdout)
    assert (counted["episodes"], counted["pending"]) == (2, 0)
    assert "2" in run("stats", "--user", user).stdout


def test_what_was_said_cannot_touch_the_terminal(run: Run, user: str):
    run("remember", "Lisbon \x9b31m [bold red]is[/] \u202edetsuh", "--user", user)
    for more in ([], ["--explain"]):
        shown = run("recall", "Lisbon", "--user", user, *more).stdout
        assert "[bold red]is[/]" in shown, "no markup is obeyed"
        assert not {"\x1b", "\x9b", "\u202e"} & set(shown)


# mistakes


@pytest.mark.parametrize(
    "arguments",
    [
        ["remember", "hello"],
        ["recall", "hello"],
        ["stats"],
        ["chat"],
        ["recall", "hello", "--user", "  "],
        ["remember", "   ", "--user", "ann"],
        ["remember", "hello", "--user", "ann", "--occurred-at", "2026-03-02T09:00:00"],
        ["remember", "hello", "--user", "ann", "--occurred-at", "yesterday"],
        ["remember", "hello", "--user", "ann", "--role", "boss"],
        ["recall", "hello", "--user", "ann", "-k", "0"],
        ["recall", "  ", "--user", "ann"],
        ["import", "missing.jsonl"],
        ["import", "."],
        ["stats", "--user", "ann", "--data", "  "],
        ["stats", "--user", "ann", "--data", "mysql://localhost/x"],
        ["nonsense"],
        ["demo", "--language", "fr"],
    ],
)
def test_a_mistake_is_one_sentence_and_code_2(run: Run, arguments: list[str]):
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    assert done.stderr.strip()
    assert done.stdout == ""


def test_a_wrong_setting_is_named_without_its_value(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEMRAG_POOL_SIZE", "hunter2")
    done = run("doctor")
    assert done.exit_code == 2
    assert "MEMRAG_POOL_SIZE" in done.stderr
    assert "hunter2" not in done.output


def test_a_database_that_is_away_is_code_3_and_no_password(run: Run):
    done = run("stats", "--user", "ann", "--data", "postgresql://ann:hunter2@127.0.0.1:1/nowhere")
    assert done.exit_code == 3
    assert "hunter2" not in done.output
    assert "Traceback" not in done.output


def test_migrate_says_where_the_schema_stands(run: Run) -> None:
    version = json.loads(run("doctor", "--json").stdout)["schema_version"]
    done = run("migrate")
    assert done.exit_code == 0
    assert f"version {version}" in done.stdout
    assert json.loads(run("migrate", "--json").stdout)["schema_version"] == version


def test_doctor_reports(run: Run, user: str):
    run("remember", "hello", "--user", user)
    done = run("doctor", "--json")
    health = json.loads(done.stdout)
    assert done.exit_code == (1 if health["problems"] else 0)
    assert health["episodes"] >= 1
    assert health["postgres"]
    assert run("doctor").exit_code == done.exit_code


# import


def test_import_keeps_the_good_lines_and_numbers_the_bad(run: Run, user: str, memory: MemRAG, tmp_path: Path):
    file = jsonl(
        tmp_path / "chat.jsonl",
        {"user_id": user, "session_id": "s1", "content": "你好，我叫小林。", "speaker": "小林"},
        "not json: my secret is 42",
        {"user_id": user, "session_id": "s1", "content": "Hi!", "role": "assistant", "id": 7},
        {"content": "nobody's", "metadata": {"user_id": user}},
        "",
        {"user_id": user, "content": "third", "occurred_at": "2025-07-25T02:00:00+00:00"},
        {"user_id": user, "content": "  "},
    )
    done = run("import", str(file))
    assert done.exit_code == 1
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["line 2", "line 4", "line 7"]
    assert "secret" not in done.output
    assert "stored 3 lines" in done.stdout
    assert sorted(contents(memory, user)) == sorted(["third", "你好，我叫小林。", "Hi!"])
    assert contents(memory, user, "s1") == ["你好，我叫小林。", "Hi!"]
    assert contents(memory, user)[0] == "third", "it was said first"


def test_the_same_import_twice_stores_nothing_twice(run: Run, user: str, memory: MemRAG, tmp_path: Path):
    yes = {"user_id": user, "session_id": "s", "content": "yes"}
    lines = [yes, yes, {**yes, "content": "有", "id": "a"}]
    file = jsonl(tmp_path / "chat.jsonl", *lines)
    first, second = (json.loads(run("import", str(file), "--json").stdout) for _ in range(2))
    assert (first["stored"], first["duplicates"]) == (3, 0)
    assert (second["stored"], second["duplicates"]) == (0, 3)
    assert contents(memory, user) == ["yes", "yes", "有"]

    grown = jsonl(file, *lines, {**yes, "content": "new"})
    assert json.loads(run("import", str(grown), "--json").stdout)["stored"] == 1


def test_an_import_that_was_cut_off_goes_on(
    run: Run, user: str, memory: MemRAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = jsonl(tmp_path / "long.jsonl", *({"user_id": user, "content": f"turn {n}"} for n in range(50)))
    remember = Capture.remember
    calls = []

    def failing(self, turns, scope, *, defer=False):
        calls.append(len(turns))
        if len(calls) == 3:
            raise StoreUnavailableError("gone", engine="postgres", operation="remember")
        return remember(self, turns, scope, defer=defer)

    monkeypatch.setattr(Capture, "remember", failing)
    done = run("import", str(file), "--batch", "10")
    assert done.exit_code == 3
    assert len(contents(memory, user)) == 20
    monkeypatch.setattr(Capture, "remember", remember)
    report = json.loads(run("import", str(file), "--batch", "10", "--json").stdout)
    assert (report["stored"], report["duplicates"], report["bad"]) == (30, 20, 0)
    assert contents(memory, user) == [f"turn {n}" for n in range(50)]


def test_import_mixes_users_in_batches(run: Run, user: str, memory: MemRAG, tmp_path: Path):
    users = [f"{user}-{n % 3}" for n in range(60)]
    file = jsonl(
        tmp_path / "mixed.jsonl", *({"user_id": u, "content": f"turn {n}"} for n, u in enumerate(users))
    )
    report = json.loads(run("import", str(file), "--batch", "8", "--json").stdout)
    assert (report["stored"], report["users"]) == (60, 3)
    for n in range(3):
        assert contents(memory, f"{user}-{n}") == [f"turn {m}" for m in range(60) if m % 3 == n]


def test_import_reads_the_standard_input(run: Run, user: str, memory: MemRAG):
    line = json.dumps({"user_id": user, "content": "从管道来"}, ensure_ascii=False)
    assert run("import", "-", stdin=line.encode()).exit_code == 0
    assert contents(memory, user) == ["从管道来"]


# chat


@pytest.mark.parametrize(
    ("told", "question", "expected"),
    [
        ("My sister Mia is allergic to peanuts.", "What is Mia allergic to?", "peanuts"),
        ("我妈妈对花粉过敏。", "我妈妈对什么过敏？", "花粉"),
    ],
)
def test_chat_remembers_over_processes_and_sessions(
    run: Run, user: str, memory: MemRAG, told: str, question: str, expected: str
):
    assert run("chat", "--user", user, "--session", "one", stdin=told + "\n").exit_code == 0
    asked = run("chat", "--user", user, "--session", "two", stdin=f"{question}\n/why\n")
    assert asked.exit_code == 0
    assert expected in asked.stdout
    assert expected in asked.stderr, "why"
    assert contents(memory, user, "one")[0] == told
    assert contents(memory, user, "two")[0] == question


@pytest.mark.parametrize(
    ("told", "question", "expected"),
    [("I live in Lisbon.", "Where do I live?", "Lisbon"), ("我住在杭州。", "我住在哪里？", "杭州")],
)
def test_chat_answers_from_what_was_said_a_moment_ago(
    run: Run, user: str, told: str, question: str, expected: str
):
    done = run("chat", "--user", user, stdin=f"{told}\n{question}\n")
    assert expected in done.stdout.splitlines()[-1]


def test_chat_goes_on_with_a_session_and_stores_nothing_twice(
    run: Run, user: str, memory: MemRAG, monkeypatch: pytest.MonkeyPatch
):
    from langchain_memrag.testing.chat import ScriptedChatModel

    model = ScriptedChatModel(script=["Hello Ann.", "You said hi."])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: model)
    for said in ("Hi!", "What did I say?"):
        run("chat", "--user", user, "--session", "s", "--model", "openai:gpt-5-mini", stdin=said + "\n")
    assert [message.text for message in model.calls[1].messages[-3:]] == [
        "Hi!",
        "Hello Ann.",
        "What did I say?",
    ]
    assert contents(memory, user) == ["Hi!", "Hello Ann.", "What did I say?", "You said hi."]


def test_two_users_with_sessions_of_one_name_share_nothing(run: Run, user: str):
    run("chat", "--user", user, "--session", "main", stdin="The code word is swordfish.\n")
    for _ in range(2):
        other = run("chat", "--user", user + "x", "--session", "main", stdin="What is the code word?\n")
        assert other.exit_code == 0
        assert "swordfish" not in other.output


def test_chat_with_a_model_that_fails_keeps_what_was_said(
    run: Run, user: str, memory: MemRAG, monkeypatch: pytest.MonkeyPatch
):
    from langchain_memrag.testing.chat import ScriptedChatModel

    model = ScriptedChatModel(script=["Hello Ann.", RuntimeError("rate limit")])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: model)
    done = run("chat", "--user", user, "--model", "openai:gpt-5-mini", stdin="Hi\nI moved to Lisbon.\n")
    assert done.exit_code == 4
    assert "Hello Ann." in done.stdout
    assert "Traceback" not in done.output
    assert "I moved to Lisbon." in contents(memory, user)


def test_chat_with_a_model_that_does_not_exist_is_a_mistake(run: Run, user: str):
    done = run("chat", "--user", user, "--model", "nowhere:nothing", stdin="Hi\n")
    assert done.exit_code == 2
    assert "Traceback" not in done.output


# as a program


def test_the_program_speaks_utf8_in_any_locale_and_ends_with_a_code(
    run: Run, user: str, postgres_url: str, memory_schema: str, tmp_path: Path
):
    import os

    said = "我住在杭州 🌸"
    about = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "langchain_memrag.cli"]
    done = subprocess.run(
        [*command, "remember", said, "--user", user], env=about, check=False, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    done = subprocess.run(
        [*command, "recall", "杭州", "--user", user, "--json"],
        env=about,
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert json.loads(done.stdout.decode("utf-8"))["hits"][0]["text"] == said
    done = subprocess.run([*command, "stats"], env=about, check=False, capture_output=True, timeout=120)
    assert done.returncode == 2
