"""The product as a retrieval system: what was said goes in by `remember`, rankings come out of `recall`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from baselines import Rankings
from retrieval_sets import Passage, RetrievalSet
from spoken_time import read_time

from langchain_memrag import MemRAG, Scope, Turn

__all__ = ["Filled", "fill", "rank"]

DEPTH: Final = 100
"""How many hits are asked for."""

_BATCH: Final = 1000
_KEY_LIMIT: Final = 512
_REPORT_SECONDS: Final = 15.0
_ASSISTANTS: Final = frozenset(
    {"assistant", "ai", "bot", "chatbot", "agent", "助手", "助理", "机器人", "智能助手"}
)


@dataclass(slots=True)
class Filled:
    """A set as it stands in memory.

    Attributes:
        data: The set.
        passage_of: Which passage an episode is.
        seconds: What filling took, embedding included.
        undated: Passages with a time that could not be read.
    """

    data: RetrievalSet
    passage_of: dict[UUID, str] = field(default_factory=dict)
    seconds: float = 0.0
    undated: int = 0

    def user(self, scope: str) -> str:
        """The user who stands for a scope; sets never share one."""
        return f"{self.data.name}/{scope}"


def fill(memory: MemRAG, data: RetrievalSet) -> Filled:
    """Remember all that was said, user by user, in its order.

    Raises:
        RuntimeError: Some of it could not be indexed.
    """
    filled = Filled(data)
    started = reported = time.monotonic()
    for scope, passages in data.by_scope.items():
        times = _times(passages)
        filled.undated += sum(bool(passage.time) and read_time(passage.time) is None for passage in passages)
        for start, end in _stretches(passages):
            turns = [_turn(passages[i], times[i]) for i in range(start, end)]
            whose = Scope(filled.user(scope), session_id=passages[start].session.strip() or None)
            # Indexed in batches below: a set of passages has a session for each.
            receipt = memory.remember(turns, whose, defer=True)
            filled.passage_of.update(
                zip(receipt.ids, (passage.id for passage in passages[start:end]), strict=True)
            )
        if left := memory.flush(Scope(filled.user(scope))):
            raise RuntimeError(f"{left} turns of {data.name}/{scope} could not be indexed")
        if (now := time.monotonic()) - reported > _REPORT_SECONDS:
            reported = now
            done = len(filled.passage_of)
            print(f"  remembered {done}/{len(data.passages)}", file=sys.stderr, flush=True)
    filled.seconds = time.monotonic() - started
    return filled


def rank(memory: MemRAG, filled: Filled) -> tuple[Rankings, int]:
    """Recall every question of a set.

    Returns:
        The rankings, and how many recalls an arm was missing from.
    """
    rankings: Rankings = {}
    degraded = 0
    for question in filled.data.questions:
        recall = memory.recall(question.text, Scope(filled.user(question.scope)), k=DEPTH, token_budget=0)
        degraded += bool(recall.degraded)
        found = (
            filled.passage_of.get(record)
            for hit in recall.hits
            for record in ((hit.id,) if hit.id in filled.passage_of else hit.sources)
        )
        rankings[question.id] = list(dict.fromkeys(passage for passage in found if passage is not None))
    return rankings, degraded


def _turn(passage: Passage, said_at: datetime | None) -> Turn:
    return Turn(
        content=passage.said,
        role=_role(passage),
        speaker=passage.speaker.strip() or None,
        occurred_at=said_at,
        key=passage.id if len(passage.id) <= _KEY_LIMIT else None,
    )


def _role(passage: Passage) -> Literal["user", "assistant"]:
    return "assistant" if (passage.role or passage.speaker).strip().lower() in _ASSISTANTS else "user"


def _times(passages: Sequence[Passage]) -> list[datetime | None]:
    """When each was said: as written, else with the one before it in its session, else unknown."""
    last: dict[str, datetime | None] = {}
    times = []
    for passage in passages:
        last[passage.session] = read_time(passage.time) or last.get(passage.session)
        times.append(last[passage.session])
    return times


def _stretches(passages: Sequence[Passage]) -> Iterator[tuple[int, int]]:
    """Turns that follow each other in one session: what one call can remember in order."""
    start = 0
    for i in range(1, len(passages) + 1):
        if i == len(passages) or passages[i].session != passages[start].session or i - start == _BATCH:
            yield start, i
            start = i
