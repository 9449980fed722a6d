"""How names become numbers: views, roles and layers as small integers, ids of sessions as hashes.

The numbers are stored; they are never reused or reordered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from langchain_memrag.records import Layer, Role
from langchain_memrag.stores.base import View

__all__ = ["LAYERS", "NEVER", "ROLES", "VIEWS", "VIEW_NAMES", "microseconds", "moment_literal", "short_hash"]

VIEWS: Mapping[View, int] = MappingProxyType({"turn": 1, "pair": 2, "fact": 3, "procedure": 4, "chunk": 5})
VIEW_NAMES: Mapping[int, View] = MappingProxyType({number: view for view, number in VIEWS.items()})
ROLES: Mapping[Role, int] = MappingProxyType({"user": 1, "assistant": 2, "tool": 3, "system": 4})
LAYERS: Mapping[Layer, int] = MappingProxyType({"episode": 1, "fact": 2, "procedure": 3, "chunk": 4})

NEVER = 2**63 - 1
"""`infinity` as Postgres stores it."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def short_hash(identifier: str | None) -> int:
    """A signed 64-bit number for a session or an agent; 0 for none.

    It is compared inside one space only, where a clash of two ids is out of reach.
    """
    if identifier is None:
        return 0
    digest = hashlib.blake2b(identifier.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


def microseconds(moment: datetime | None) -> int:
    """A time as Postgres stores it: microseconds since 2000; `None` is infinity."""
    return NEVER if moment is None else (moment - _EPOCH) // _MICROSECOND


def moment_literal(stored: int) -> str:
    """What `microseconds` gave, as Postgres reads it."""
    return "infinity" if stored == NEVER else (_EPOCH + stored * _MICROSECOND).isoformat()
