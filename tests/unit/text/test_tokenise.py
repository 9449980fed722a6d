from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_memrag.text import is_blank, normalise, query_terms, term_hash, terms


def finds(query: str, document: str) -> bool:
    """Whether every term of a query is in a document."""
    return set(query_terms(query)) <= set(terms(document))


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("adoption agency", "She called two adoption agencies."),
        ("Who is running?", "He runs and ran, she was running"),
        ("gpt-5-mini", "We switched to GPT-5-mini today"),
        ("gpt", "We switched to GPT-5-mini today"),
        ("192.168.0.1", "ping 192.168.0.1 again"),
        ("168", "ping 192.168.0.1 again"),
        ("user_42", "ban user_42!"),
        ("user 42", "ban user_42!"),
        ("C++", "I write C++."),
        ("C#", "I write C#, mostly"),
        ("node.js", "Node.js is fine"),
        ("foo@bar.com", "write to foo@bar.com."),
        ("bar.com", "see https://bar.com/a/b?x=1."),
        ("https://bar.com/a/b?x=1", "see https://bar.com/a/b?x=1."),
        ("#123", "closes #123"),
        ("123", "closes #123"),
        ("v1.2.3", "released v1.2.3"),
        ("1.2.3", "released v1.2.3"),
        ("1000000", "it cost 1,000,000 dollars"),
        ("usa", "the U.S.A. team"),
        ("phone", "my iPhone broke"),
        ("cafe muller", "Café Müller"),
        ("Ann", "Ann’s bike"),
        ("小明", "小明的妈妈来了"),
        ("小明", "王小明喜欢喝茶"),
        ("北京", "我在北京大学读书"),
        ("北京大学", "我在北京大学读书"),
        ("臺灣大學", "臺灣大學的校園很美"),
        ("喝茶", "我喜欢喝茶"),
        ("ＧＰＴ－４", "gpt-4"),
        ("普洱茶 gpt-5-mini", "用gpt-5-mini写普洱茶的介绍"),
        ("カタカナ", "ひらがなとカタカナ"),
        ("한국어", "한국어를 배워요"),
        ("สวัสดี", "สวัสดีครับ"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("👨\u200d👩\u200d👧", "us 👨\u200d👩\u200d👧!"),
        ("👍", "👍🏽"),
        ("❤", "❤\ufe0f"),
        ("مرحبا", "مَرْحَبًا بك"),
    ],
)
def test_what_is_asked_for_is_found(query: str, document: str) -> None:
    assert finds(query, document), (query_terms(query), terms(document))


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("C++", "vitamin C"),
        ("C#", "C++"),
        ("清华大学", "北京大学"),
        ("node.js", "a node and some js"),
        ("192.168.0.1", "192.168.0.11"),
    ],
)
def test_what_differs_is_not_found(query: str, document: str) -> None:
    assert not finds(query, document)


def test_repeats_are_kept() -> None:
    assert terms("dog dog cat").count("dog") == 2
    assert terms("茶叶和茶叶").count("茶叶") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("To be or not to be", ["to", "be", "or", "not", "to", "be"]),
        ("The Who", ["who"]),
        ("的了是", ["的", "了", "是"]),
        ("!!!", ["!", "!", "!"]),
        ("…?", [".", ".", ".", "?"]),
    ],
)
def test_a_text_of_stop_words_or_symbols_keeps_them(text: str, expected: list[str]) -> None:
    assert terms(text) == query_terms(text) == expected


def test_question_words_leave_the_query_only() -> None:
    assert query_terms("Who did Ann meet?") == ["ann", "meet"]
    assert "who" in terms("Who did Ann meet?")
    assert query_terms("小王什么时候去的北京？") == ["小王", "去", "北京"]
    assert query_terms("谁？什么？") == terms("谁？什么？")


def test_nothing_visible_has_no_terms() -> None:
    assert terms("") == terms(" \n\u200b") == query_terms("") == []


def test_every_visible_text_has_terms() -> None:
    rng = random.Random(11)
    ranges = [
        (0x20, 0x7E),
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0x3040, 0x30FF),
        (0xAC00, 0xD7A3),
        (0x1F300, 0x1FAFF),
        (0, 0x10FFFF),
    ]
    for _ in range(4000):
        text = "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 12)))
        for variant in (text, normalise(text)):
            found = terms(variant)
            assert all(found)
            if not is_blank(variant):
                assert found, ascii(variant)
                assert query_terms(variant), ascii(variant)


@pytest.mark.parametrize("first", [0x4E00, 0x3400, 0x20000, 0x3041, 0x30A1, 0xAC00])
def test_every_cjk_character_is_a_term(first: int) -> None:
    for code in range(first, first + 80):
        assert terms(chr(code)), hex(code)


def test_hashes_fit_a_signed_column_and_are_the_same_elsewhere() -> None:
    words = ["北京", "gpt-5-mini", "run", "😀", ""]
    hashes = [term_hash(word) for word in words]
    assert all(-(2**31) <= value < 2**31 for value in hashes)
    assert len(set(hashes)) == len(words)
    # A stored index is read by later processes and versions: this value may never change.
    assert term_hash("北京") == 44715474
    code = f"from langchain_memrag.text import term_hash; print([term_hash(w) for w in {words!r}])"
    other = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == str(hashes)


def test_threads_do_not_mix_up_stems() -> None:
    words = [
        f"{root}{ending}"
        for root in ("walk", "jump", "paint", "cook", "learn")
        for ending in ("ing", "ed", "s", "er")
    ]
    texts = [f"{word}{suffix}" for word in words for suffix in ("", "ness", "ly")] * 20
    expected = [terms(text) for text in texts]
    from langchain_memrag.text import tokenise

    tokenise._short_token.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(terms, texts)) == expected


@pytest.mark.parametrize(
    "text",
    ["x" * 300_000, "多" * 100_000, "a-" * 100_000, "http://" * 30_000, "1,000," * 40_000, "@" * 200_000],
)
def test_noise_is_no_trap(text: str) -> None:
    assert terms(text)
