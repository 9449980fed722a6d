"""Whose memory it is."""

from __future__ import annotations

import unicodedata

from pydantic import BaseModel

from langchain_memrag.errors import ScopeError
from langchain_memrag.records.basics import LONGEST_IDENTIFIER, Record
from langchain_memrag.text import is_blank

__all__ = [
    "Scope",
]


def _clean_identifier(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ScopeError(f"{name} must be a string, not {type(value).__name__}")
    trimmed = value.strip()
    if is_blank(trimmed):
        raise ScopeError(f"{name} is blank; memory is never read or written without one")
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in trimmed):
        raise ScopeError(f"{name} holds a control character or a lone surrogate")
    if len(trimmed) > LONGEST_IDENTIFIER:
        raise ScopeError(f"{name} is longer than {LONGEST_IDENTIFIER} characters")
    return trimmed


class Scope(Record):
    """Whose memory it is, and where in it a turn belongs.

    The user decides the space: the unit of isolation. Session and agent are filters inside it.
    All are trimmed, compared exactly, and never defaulted.

    Args:
        user_id: The user; required.
        session_id: The conversation, where there is one.
        agent_id: The agent that took part, where several serve one user.

    Raises:
        ScopeError: The user is missing, blank or not a string, or a session or agent that is
            given is blank.

    Example:
        >>> Scope("  ann ").user_id
        'ann'
    """

    user_id: str
    session_id: str | None = None
    agent_id: str | None = None

    def __init__(self, user_id: str, session_id: str | None = None, agent_id: str | None = None) -> None:
        BaseModel.__init__(
            self,
            user_id=_clean_identifier("user_id", user_id),
            session_id=None if session_id is None else _clean_identifier("session_id", session_id),
            agent_id=None if agent_id is None else _clean_identifier("agent_id", agent_id),
        )
