"""An engine dies in the middle of a thousand writes, stays away for a while, and comes back."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Episode, Scope

from .faulty import SOAK, Breakable, EngineName, converge, eventually, in_full, said_by, space_of

USERS = ("ann", "bob", "安娜", "quiet")
WRITERS = 4
TEXTS = 1_000 if SOAK else 400
AT_ONCE = 2 if SOAK else 5
CALLS = TEXTS // AT_ONCE // WRITERS

PEOPLE = ("Zaphod Beeblebrox", "Arthur Dent", "王芳", "李明", "Tricia McMillan")
PLACES = ("Geneva", "北京大学", "Lisbon", "上海", "Edinburgh")

CASES = [
    pytest.param("redis", True, id="redis"),
    pytest.param("neo4j", False, id="neo4j", marks=in_full),
    pytest.param("neo4j", True, id="neo4j-wiped"),
    pytest.param("qdrant", False, id="qdrant", marks=in_full),
    pytest.param("qdrant", True, id="qdrant-emptied"),
]


def text(number: int) -> str:
    """One of a thousand, each with a word that no other has."""
    who, where = PEOPLE[number % 5], PLACES[number * 3 % 5]
    if number % 2:
        return f"我在{where}见了{who}，暗号是 mark{number:04d}。"
    return f"I met {who} in {where}, and the password was mark{number:04d}."


def question(number: int) -> str:
    return f"暗号 mark{number:04d} 是谁的？" if number % 2 else f"Whose password was mark{number:04d}?"


@dataclass
class Story:
    """What was acknowledged, and what went wrong."""

    memory: MemRAG
    told: dict[str, dict[UUID, int]] = field(default_factory=lambda: {user: {} for user in USERS})
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    back: threading.Event = field(default_factory=threading.Event)
    """Set when the engine is back: the last of the writes wait for it."""

    def write(self, writer: int) -> None:
        for call in range(CALLS):
            if call == CALLS * 4 // 5:
                assert self.back.wait(120)
            first = (writer * CALLS + call) * AT_ONCE
            numbers = range(first, first + AT_ONCE)
            user = USERS[call % 3]
            receipt = self.memory.remember(
                [text(number) for number in numbers], Scope(user, session_id=f"s{call % 4}")
            )
            assert receipt.stored == AT_ONCE
            assert receipt.pending == 0
            with self.lock:
                self.calls += 1
                self.told[user].update(zip(receipt.ids, numbers, strict=True))

    def ask(self, ended: threading.Event) -> int:
        """Ask for what was acknowledged, over and over; gives how often."""
        chance, asked = random.Random(7), 0
        while not ended.is_set():
            with self.lock:
                known = [(user, number) for user, own in self.told.items() for number in own.values()]
            user, number = chance.choice(known)
            assert text(number) in said_by(self.memory.recall(question(number), Scope(user))), number
            asked += 1
        return asked

    def wait_for(self, calls: int) -> None:
        eventually(f"{calls} calls returned", lambda: self.calls >= calls)

    def everything(self, user: str) -> list[Episode]:
        found: list[Episode] = []
        page = self.memory.history(Scope(user), limit=1000)
        found += page.episodes
        while page.cursor is not None:
            page = self.memory.history(Scope(user), limit=1000, cursor=page.cursor)
            found += page.episodes
        return found


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(("name", "empty"), CASES)
def test_killed_in_the_middle_of_a_thousand_writes(
    open_memory: Callable[..., MemRAG],
    breakable: Breakable,
    postgres_url: str,
    schema: str,
    name: EngineName,
    empty: bool,
) -> None:
    story = Story(open_memory(**breakable.named))
    quiet = story.memory.remember(text(9_000), Scope("quiet"))
    story.told["quiet"][quiet.ids[0]] = 9_000
    ended = threading.Event()
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        writers = [pool.submit(story.write, writer) for writer in range(WRITERS)]
        reader = pool.submit(story.ask, ended)
        try:
            story.wait_for(CALLS)
            breakable.kill(name)
            story.wait_for(WRITERS * CALLS // 2)
            away_while_asked(story.memory, name)
            story.wait_for(WRITERS * (CALLS * 4 // 5))
            breakable.revive(name, empty=empty)
        finally:
            story.back.set()
            for writer in writers:
                writer.exception(120)
            ended.set()
        for writer in writers:
            writer.result()
        assert reader.result() > 10
    converge(story.memory)
    nothing_lost_or_doubled(story)
    used_again(story.memory, breakable, name)
    for user in USERS:
        space, stats = space_of(postgres_url, schema, Scope(user)), story.memory.stats(Scope(user))
        assert breakable.records_in("qdrant", space) == stats.entries
        assert breakable.graph.counts(space) == (stats.entities, stats.relations)
        assert breakable.records_in("neo4j", space) > stats.episodes


def away_while_asked(memory: MemRAG, name: EngineName) -> None:
    """What a recall says of the engine, of users who wrote without it and of one who did not."""
    for user in ("quiet", "ann"):
        number = 9_000
        for _ in range(2):
            found = memory.recall("Did Zaphod Beeblebrox go to Geneva? mark9000", Scope(user))
            assert found.hits
        if name == "redis" and user == "ann":
            continue  # nothing is looked up of a space that is just being written
        reasons = [one.reason for one in found.degraded]
        assert any(reason.startswith(name) for reason in reasons), (user, reasons)
        assert user != "quiet" or text(number) in said_by(found)


def nothing_lost_or_doubled(story: Story) -> None:
    for user in USERS:
        stored = story.everything(user)
        assert {one.id for one in stored} == set(story.told[user])
        assert len(stored) == len(story.told[user])
        assert sorted(one.content for one in stored) == sorted(
            text(number) for number in story.told[user].values()
        )
        for ident in list(story.told[user])[::40]:
            number = story.told[user][ident]
            found = story.memory.recall(question(number), Scope(user), timeout=30)
            assert [hit.id for hit in found.hits].count(ident) == 1
            assert not found.degraded


def used_again(memory: MemRAG, engines: Breakable, name: EngineName) -> None:
    before = engines.asked(name)
    asked = "Was Arthur Dent in Lisbon, said ann?"
    found, again = (memory.recall(asked, Scope("ann"), timeout=30) for _ in range(2))
    assert not found.degraded
    assert engines.asked(name) > before
    assert again.cached
