"""Drafts of turns, with what a test does not care about filled in."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from langchain_core.utils.uuid import uuid7

from langchain_memrag.stores.base import Draft

SAID = datetime(2026, 3, 1, 12, tzinfo=UTC)


def draft(content: str, **fields: object) -> Draft:
    """A user's turn."""
    defaults: dict[str, object] = {
        "id": UUID(str(uuid7())),
        "role": "user",
        "content": content,
        "speaker": None,
        "occurred_at": SAID,
        "utc_offset": 0,
        "source": "user",
        "key": None,
        "expires_at": None,
        "metadata": "{}",
    }
    return Draft(**{**defaults, **fields})
