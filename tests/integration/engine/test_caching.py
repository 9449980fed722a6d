"""What is kept of a recall, in the process: the same promises as on Redis."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import RecallFilter, Scope
from langchain_memrag.stores.cache import ProcessCache
from langchain_memrag.testing.embeddings import WordHashEmbeddings
from tests.conftest import HandClock

ANN = Scope("ann", session_id="s1")


class Counting(WordHashEmbeddings):
    """Counts the questions that it embeds, and can be made to fail."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.questions = 0
        self.down = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return WordHashEmbeddings(64).embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        if self.down:
            raise ConnectionError
        self.questions += 1
        return super().embed_query(text)


def test_a_kept_recall_embeds_nothing_and_equals_the_first(open_memory: Callable[..., MemRAG]) -> None:
    model = Counting(64)
    memory = open_memory(embeddings=model)
    memory.remember(["I live in Zurich. 🍵", "我喜欢在苏黎世喝茶。"], ANN, metadata={"a": [1, "ü"]})
    first = memory.recall("苏黎世 Zurich", ANN, working=2, timeout=2)
    asked = model.questions
    second = memory.recall("苏黎世 Zurich", ANN, working=2, timeout=3)
    assert second.cached
    assert model.questions == asked
    assert second.model_copy(update={"cached": False, "timings": first.timings}) == first
    assert set(second.timings) == {"total"}


def test_nothing_is_kept_where_it_is_not_wanted(open_memory: Callable[..., MemRAG]) -> None:
    memory = open_memory(cache="none")
    memory.remember("Bread.", ANN)
    assert not any(memory.recall("bread", ANN).cached for _ in range(3))


@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.remember("More bread.", ANN),
        lambda memory: memory.remember("More bread.", ANN, defer=True),
        lambda memory: memory.remember("More bread.", Scope("ann", session_id="other")),
        lambda memory: memory.forget(ANN, ids=[memory.history(ANN).episodes[0].id]),
    ],
)
def test_any_write_makes_it_unreachable(memory: MemRAG, write: Callable[[MemRAG], object]) -> None:
    memory.remember(["Bread.", "Butter."], ANN)
    memory.recall("bread", ANN)
    write(memory)
    assert not memory.recall("bread", ANN).cached


def test_what_another_user_writes_changes_nothing(memory: MemRAG) -> None:
    memory.remember("Bread.", ANN)
    memory.recall("bread", ANN)
    memory.remember("Bread.", Scope("anne"))
    assert memory.recall("bread", ANN).cached
    assert not memory.recall("bread", Scope("anne")).cached


def test_nothing_is_kept_while_something_is_pending(memory: MemRAG) -> None:
    memory.remember("Bread.", ANN, defer=True)
    assert not any(memory.recall("bread", ANN).cached for _ in range(2))
    assert memory.flush(ANN) == 0
    assert [memory.recall("bread", ANN).cached for _ in range(2)] == [False, True]


def test_a_degraded_recall_is_not_kept(open_memory: Callable[..., MemRAG]) -> None:
    model = Counting(64)
    memory = open_memory(embeddings=model)
    memory.remember("Bread.", ANN)
    model.down = True
    assert memory.recall("bread", ANN).degraded
    model.down = False
    found = memory.recall("bread", ANN)
    assert not found.cached
    assert not found.degraded


def test_the_vector_of_a_question_outlives_the_recall(open_memory: Callable[..., MemRAG]) -> None:
    model = Counting(64)
    memory = open_memory(embeddings=model)
    memory.remember("Bread.", ANN)
    memory.recall("bread and butter", ANN)
    asked = model.questions
    memory.remember("Butter.", ANN)
    assert not memory.recall("bread and butter", ANN).cached
    assert model.questions == asked
    # A user's questions are his own, the cached ones too.
    memory.remember("Butter.", Scope("bob"))
    memory.recall("bread and butter", Scope("bob"))
    assert model.questions == asked + 1


def test_another_day_is_another_question(memory: MemRAG, clock: HandClock) -> None:
    memory.remember("Bread yesterday.", ANN)
    memory.recall("What was said yesterday?", ANN)
    clock.forward(timedelta(days=1))
    assert not memory.recall("What was said yesterday?", ANN).cached


def test_options_sessions_and_recipes_are_apart(memory: MemRAG, open_memory: Callable[..., MemRAG]) -> None:
    memory.remember("Bread.", ANN)
    memory.recall("bread", ANN, working=1)
    assert memory.recall("bread", ANN, working=1).cached
    assert not memory.recall("bread", Scope("ann", session_id="s2"), working=1).cached
    assert not memory.recall("bread", ANN, working=1, in_prompt=("Bread.",)).cached
    assert not memory.recall("bread", ANN, working=1, where=RecallFilter(roles=("tool",))).cached


def test_forgetting_erases_the_values(open_memory: Callable[..., MemRAG]) -> None:
    memory = open_memory()
    receipt = memory.remember(["The needle is in the hay.", "Bread."], ANN)
    memory.recall("needle", ANN)
    cache = memory._engine.beside.cache
    assert isinstance(cache, ProcessCache)
    assert len(cache._kept) == 2
    assert memory.forget(ANN, ids=receipt.ids[:1]).clean
    assert not cache._kept
    memory.recall("bread", ANN)
    assert memory.forget(Scope("ann"), everything=True).clean
    assert not cache._kept


def test_a_value_that_cannot_be_read_is_passed_over(open_memory: Callable[..., MemRAG]) -> None:
    memory = open_memory()
    memory.remember("Bread.", ANN)
    first = memory.recall("bread", ANN)
    cache = memory._engine.beside.cache
    assert isinstance(cache, ProcessCache)
    for key in list(cache._kept):
        if key.kind == "recall":
            cache.put(key, b"rubbish", stamp=10**6, seconds=60)
    again = memory.recall("bread", ANN)
    assert not again.cached
    assert again.hits == first.hits


async def test_the_async_half_is_kept_likewise(memory: MemRAG) -> None:
    await memory.aremember("Bread.", ANN)
    assert [(await memory.arecall("bread", ANN)).cached for _ in range(2)] == [False, True]
    assert memory.recall("bread", ANN).cached
