"""Flows: one logic for threads and for loops, and a model's failure is only a reply."""

from __future__ import annotations

import contextvars

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langchain_memrag.engine.embedding import Embedder, choose_embedder, same_embedder
from langchain_memrag.engine.flow import Documents, Flow, Question, Recognition, Reply, adrive, drive
from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.testing.embeddings import WordHashEmbeddings


class Broken(Embeddings):
    model = "broken"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise ConnectionError("secret text of a user")

    def embed_query(self, text: str) -> list[float]:
        raise ConnectionError("secret text of a user")


class Fixed(Embeddings):
    model = "fixed"

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.rows

    def embed_query(self, text: str) -> list[float]:
        return self.rows[0]


def everything() -> Flow[list[Reply]]:
    found = []
    for wish in (Documents(("a", "b")), Question("c"), Recognition()):
        reply = yield wish
        found.append(reply)
    return found


async def test_both_hosts_give_the_same() -> None:
    embedder, threads = Embedder(WordHashEmbeddings(16)), Threads("t", 2)
    here, there = drive(everything(), embedder), await adrive(everything(), embedder, threads)
    threads.close()
    assert [len(reply.vectors) for reply in here] == [2, 1, 0]
    for left, right in zip(here, there, strict=True):
        assert np.allclose(left.vectors, right.vectors) if left.vectors else not right.vectors
    assert here[2].fingerprint == there[2].fingerprint


async def test_a_failing_model_is_a_reply_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    threads = Threads("t", 1)
    for replies in (
        drive(everything(), Embedder(Broken())),
        await adrive(everything(), Embedder(Broken()), threads),
    ):
        assert [reply.failure for reply in replies] == ["ConnectionError"] * 3
        assert all(not reply.vectors for reply in replies)
    threads.close()
    assert "secret" not in caplog.text


def test_no_model_is_a_reply_too() -> None:
    assert {reply.failure for reply in drive(everything(), None)} == {"no embedder"}


def test_a_flows_own_error_reaches_the_caller() -> None:
    def failing() -> Flow[None]:
        yield Question("x")
        raise KeyError("mine")

    with pytest.raises(KeyError):
        drive(failing(), None)


async def test_context_variables_reach_the_threads_and_stay_apart() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    threads = Threads("t", 1)
    variable.set("ann")
    assert await threads.run(variable.get) == "ann"
    await threads.run(variable.set, "bob")
    assert await threads.run(variable.get) == "ann"
    threads.close()
    with pytest.raises(RuntimeError):
        threads.submit(print)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[1.0, 0.0]], "1 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], "widths"),
        ([[], []], "widths"),
        ([[0.0, 0.0], [1.0, 0.0]], "zero vector"),
        ([[float("nan"), 0.0], [1.0, 0.0]], "finite"),
    ],
)
def test_unusable_vectors_are_refused(rows, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Embedder(Fixed(rows)).documents(["a", "b"])


def test_vectors_become_unit_length() -> None:
    (vector,) = Embedder(Fixed([[3.0, 4.0]])).documents(["a"])
    assert np.allclose(vector, [0.6, 0.8])


def test_an_embedder_is_recognised_by_name_width_and_probes() -> None:
    one = Embedder(WordHashEmbeddings(16)).fingerprint()
    assert same_embedder(one, Embedder(WordHashEmbeddings(16)).fingerprint())
    assert not same_embedder(one, Embedder(WordHashEmbeddings(17)).fingerprint())
    assert not same_embedder(one, Embedder(WordHashEmbeddings(16), name="other").fingerprint())


def test_choosing_names_both_sides_and_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r"fixed.*WordHash|WordHash.*fixed") as caught:
        choose_embedder(WordHashEmbeddings(8), "Fixed:fixed")
    assert "reembed" in str(caught.value)
    assert choose_embedder(None, "Fixed:fixed") is None
    with pytest.raises(ConfigurationError, match="Fixed:fixed"):
        choose_embedder("default", "Fixed:fixed")
    with pytest.raises(ConfigurationError, match="provider:model"):
        choose_embedder("nonsense:", None)
