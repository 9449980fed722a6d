from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest

from langchain_memrag.cli import importing
from langchain_memrag.cli.importing import BadLine, Batches, GoodLine, line_of, read_lines

SECRET = "my blood type is AB negative 我的血型"


def raw(**fields: object) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def good(line: GoodLine | BadLine) -> GoodLine:
    assert isinstance(line, GoodLine), line
    return line


def bad(line: GoodLine | BadLine) -> BadLine:
    assert isinstance(line, BadLine), line
    return line


def lines_of(data: bytes, source: str = "chat.jsonl") -> list[GoodLine | BadLine]:
    return list(read_lines(io.BytesIO(data), source))


def test_every_field_reaches_the_turn():
    line = good(
        line_of(
            raw(
                user_id=" 小林 ",
                session_id="s1",
                role="assistant",
                speaker="助手",
                content="你好，小林。",
                occurred_at="2026-03-02T09:00:00+08:00",
                id="m1",
                metadata={"channel": "web"},
            ),
            1,
            "f",
        )
    )
    assert (line.scope.user_id, line.scope.session_id) == ("小林", "s1")
    assert (line.turn.role, line.turn.speaker, line.turn.content) == ("assistant", "助手", "你好，小林。")
    assert line.turn.occurred_at == datetime(2026, 3, 2, 1, 0, tzinfo=UTC)
    assert line.turn.metadata == {"channel": "web"}


def test_user_and_content_are_enough_and_null_is_missing():
    line = good(line_of(b'{"user_id": "ann", "content": "Hi", "role": null, "metadata": null}', 1, "f"))
    assert (line.turn.role, line.turn.occurred_at, line.scope.session_id) == ("user", None, None)


def test_an_identity_in_the_metadata_is_only_data():
    line = good(line_of(raw(user_id="ann", content="Hi", metadata={"user_id": "victim"}), 1, "f"))
    assert line.scope.user_id == "ann"
    assert (
        bad(line_of(raw(content="Hi", metadata={"user_id": "victim"}), 1, "f")).reason == "user_id is missing"
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"content": SECRET}, "user_id is missing"),
        ({"user_id": "  ", "content": SECRET}, "user_id is blank"),
        ({"user_id": 7, "content": SECRET}, "user_id must be a string"),
        ({"user_id": "ann"}, "content is missing"),
        ({"user_id": "ann", "content": " \u200b"}, "content is blank"),
        ({"user_id": "ann", "content": [SECRET]}, "content must be a string"),
        ({"user_id": "ann", "content": SECRET, "role": SECRET}, "role must be"),
        ({"user_id": "ann", "content": SECRET, "occurred_at": SECRET}, "occurred_at is not"),
        ({"user_id": "ann", "content": SECRET, "occurred_at": "2026-03-02T09:00:00"}, "UTC offset"),
        (
            {"user_id": "ann", "content": SECRET, "occurred_at": "0001-01-01T00:00:00+14:00"},
            "occurred_at is not",
        ),
        ({"user_id": "ann", "content": SECRET, "metadata": [SECRET]}, "metadata must be an object"),
        ({"user_id": "ann", "content": SECRET, "id": {"a": SECRET}}, "id must be"),
        ({"user_id": "ann", "content": SECRET, "session_id": ""}, "session_id is blank"),
        ({"user_id": "ann", "content": SECRET, "occured_at": "2026-03-02"}, "not known"),
        ({"user_id": "ann", "content": SECRET, SECRET: 1}, "not known"),
    ],
)
def test_a_bad_line_says_why_and_repeats_no_text(fields: dict[str, object], reason: str):
    line = bad(line_of(raw(**fields), 12, "f"))
    assert reason in line.reason
    assert line.number == 12
    assert "blood" not in line.reason
    assert "血型" not in line.reason


@pytest.mark.parametrize(
    "line",
    [
        b'{"user_id": "ann", "content": "cut of',
        b"[]",
        b'"text"',
        b"null",
        b'{"user_id": "ann", "content": "\xff\xfe"}',
        b'{"user_id": "ann", "content": "x", "metadata": {"n": NaN}}',
        b'{"user_id": "ann", "content": "x", "metadata": {"n": ' + b"9" * 5000 + b"}}",
        b"[" * 100_000,
    ],
)
def test_what_is_not_a_json_object_in_utf8_is_a_bad_line(line: bytes):
    assert isinstance(line_of(line, 1, "f"), BadLine)


def test_lines_are_counted_as_an_editor_counts_them():
    data = (
        b"\xef\xbb\xbf"
        + raw(user_id="ann", content="1")
        + b"\r\n\r\n  \noops\n"
        + raw(user_id="ann", content="2")
    )
    found = lines_of(data)
    assert [(type(line).__name__, line.number) for line in found] == [
        ("GoodLine", 1),
        ("BadLine", 4),
        ("GoodLine", 5),
    ]


def test_an_endless_line_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importing, "MAX_LINE", 100)
    data = b"x" * 1000 + b"\n" + raw(user_id="ann", content="after") + b"\n"
    first, second = lines_of(data)
    assert bad(first).size == 1001
    assert (good(second).number, good(second).turn.content) == (2, "after")


def test_the_same_line_has_the_same_key_and_two_yes_have_two():
    yes = raw(user_id="ann", content="yes") + b"\n"
    first = [good(line).turn.key for line in lines_of(yes * 2)]
    again = [good(line).turn.key for line in lines_of(yes * 2)]
    assert first == again
    assert len(set(first)) == 2
    assert first[0] != good(lines_of(yes, "other.jsonl")[0]).turn.key


def test_an_id_decides_wherever_the_line_stands():
    moved = b"\n\n" + raw(user_id="ann", content="edited", id="m1")
    assert (
        good(lines_of(raw(user_id="ann", content="Hi", id="m1"))[0]).turn.key
        == good(lines_of(moved)[0]).turn.key
    )
    other = raw(user_id="ann", content="Hi", id="m1", session_id="elsewhere")
    assert good(lines_of(moved)[0]).turn.key != good(lines_of(other)[0]).turn.key
    assert good(line_of(raw(user_id="a", content="x", id=1), 1, "f")).turn.key == (
        good(line_of(raw(user_id="a", content="x", id="1"), 9, "f")).turn.key
    )


def test_an_id_never_meets_a_place():
    by_place = good(line_of(raw(user_id="a", content="x"), 1, "f")).turn.key
    by_id = good(line_of(raw(user_id="a", content="x", id="1"), 1, "f")).turn.key
    assert by_place != by_id


def test_batches_hold_one_user_and_session_in_order():
    batches = Batches(size=2)
    users = ["ann", "bob", "ann", "ann", "bob"]
    ready = []
    for number, user in enumerate(users, 1):
        ready += batches.add(good(line_of(raw(user_id=user, content=str(number)), number, "f")))
    ready += batches.rest()
    assert [(batch.scope.user_id, [line.number for line in batch.lines]) for batch in ready] == [
        ("ann", [1, 3]),
        ("bob", [2, 5]),
        ("ann", [4]),
    ]
    assert list(batches.rest()) == []


def test_a_million_users_do_not_wait_in_memory():
    batches = Batches(size=256, held=100_000)
    waiting = longest = 0
    for number in range(2_000):
        line = good(line_of(raw(user_id=f"user {number}", content="x" * 500), number, "f"))
        waiting += 1 - sum(len(batch.lines) for batch in batches.add(line))
        longest = max(longest, waiting)
    assert longest < 100
