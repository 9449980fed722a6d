from __future__ import annotations

import random

import pytest

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.text import content_hash, is_blank, name_key, normalise, split_parts


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("a\u0000b", "ab"),
        ("\ud83d", ""),
        ("x\ud800y\udfffz", "xyz"),
        ("\ud83d\ude00", "😀"),  # a pair is the character it stands for
        ("  你好 \n", "你好"),
        ("tab\there\r\nnext", "tab\there\r\nnext"),
        ("bell\u0007\u001b[0m\u007f", "bell[0m"),
        ("cafe\u0301", "caf\u00e9"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"),
        ("\u202bשלום\u202c", "\u202bשלום\u202c"),
        ("ＧＰＴ，全角", "ＧＰＴ，全角"),  # width is what was said: only keys and terms fold it
    ],
)
def test_cleans_without_changing_what_is_said(said: str, stored: str) -> None:
    assert normalise(said) == stored
    assert normalise(stored) == stored


@pytest.mark.parametrize(
    "text", ["", "   ", "\n\t", "\u200b", "\ufeff\u200d", "\u3000", "\u0000", "\ud800", "\ufe0f", "\u3164"]
)
def test_nothing_to_see_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "。", "!", "😀", "你", "\u200b.\u200b", "0", "\u0e33", "❤\ufe0f"])
def test_anything_to_see_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_the_hash_is_of_the_normalised_text() -> None:
    assert content_hash("cafe\u0301 \u0000") == content_hash("café")
    assert content_hash("北京大学") != content_hash("清华大学")
    assert len(content_hash("")) == 64


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann  Lee", "ann lee"),
        ("“Ann Lee”", "ANN LEE."),
        ("ＡＢＣ公司", "abc公司"),
        ("《三体》", "三体"),
        ("「千与千寻」", "千与千寻"),
        ("(Acme)", "acme"),
        ("Stra\u00dfe", "STRASSE"),
        ("❤\ufe0f", "❤"),
    ],
)
def test_one_name_one_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other) != ""


@pytest.mark.parametrize(
    "names",
    [
        ["北京大学", "清华大学", "北京", "大学"],
        ["C", "C++", "C#", "F#"],
        ["NET", ".NET"],
        ["😀", "😃", "👨\u200d👩\u200d👧", "👨"],
        ["臺灣", "台灣"],  # scripts are kept as they are
        ["@ann", "ann"],
        ["...", "???", "“”"],
        ["Мария", "Maria"],
    ],
)
def test_different_names_different_keys(names: list[str]) -> None:
    keys = {name_key(name) for name in names}
    assert len(keys) == len(names)
    assert "" not in keys


def test_keys_are_stable_under_themselves() -> None:
    rng = random.Random(3)
    for _ in range(3000):
        name = "".join(chr(rng.randint(1, 0x2FFF)) for _ in range(rng.randint(1, 8)))
        assert name_key(name_key(name)) == name_key(name), ascii(name)
        assert normalise(normalise(name)) == normalise(name), ascii(name)


class TestParts:
    def test_a_short_text_is_one_part(self) -> None:
        assert split_parts("你好。Hello.") == ["你好。Hello."]
        assert split_parts("") == split_parts(" \n ") == []

    @pytest.mark.parametrize("limit", [1, 7, 100, 1600])
    @pytest.mark.parametrize(
        "text",
        ["The cat sat. " * 400, "今天天气很好。我们去公园！" * 300, "x" * 5000, "多" * 5000, "a\n\nb " * 900],
    )
    def test_parts_are_the_text_in_order(self, text: str, limit: int) -> None:
        parts = split_parts(text, limit)
        assert all(0 < len(part) <= limit for part in parts)
        assert "".join("".join(parts).split()) == "".join(text.split())

    def test_cuts_fall_where_the_text_pauses(self) -> None:
        paragraphs = split_parts(("word " * 30 + "\n\n") * 10, 200)
        assert all(part.endswith("\n\n") for part in paragraphs)
        chinese = split_parts("今天天气很好。" * 100, 50)
        assert all(part.endswith("。") for part in chinese)
        english = split_parts("It rained all day. " * 100, 64)
        assert all(part.rstrip().endswith(".") for part in english)
        words = split_parts("word " * 100, 23)
        assert all(part.strip("word ") == "" and not part.startswith("ord") for part in words)

    @pytest.mark.parametrize(
        "unit", ["👨\u200d👩\u200d👧\u200d👦", "e\u0301", "👍🏽", "❤\ufe0f", "🇨🇳", "\ud83d\ude00"]
    )
    def test_a_visible_character_is_not_cut(self, unit: str) -> None:
        for limit in range(len(unit), len(unit) + 6):
            parts = split_parts(unit * 40, limit)
            assert "".join(parts) == unit * 40
            assert all(len(part) % len(unit) == 0 for part in parts)

    def test_a_limit_below_one_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="limit"):
            split_parts("abc", 0)

    def test_a_megabyte_is_covered(self) -> None:
        text = "A line of a log file, number 12345.\n" * 28_000
        parts = split_parts(text)
        assert "".join(parts) == text
        assert max(map(len, parts)) <= 1600
