from __future__ import annotations

import pytest

from langchain_memrag.text import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("Where is Ann?", "en"),
        ("你好", "zh"),
        ("我用 PostgreSQL 和 Kubernetes 部署", "zh"),
        ("He said 你好 to everyone at the party last night", "en"),
        ("臺灣大學的校園很美", "zh"),
        ("東京は日本の首都です", "en"),
        ("한국어를 배워요", "en"),
        ("12345 😀", "en"),
    ],
)
def test_by_the_share_of_chinese(text: str, language: str) -> None:
    assert language_of(text) == language
