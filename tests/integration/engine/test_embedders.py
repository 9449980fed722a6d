"""The embedder of an index is recognised, and another one refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings

ANN = Scope("ann", "s1")
Open = Callable[..., MemRAG]


class Mirrored(WordHashEmbeddings):
    """Of the same name and width, with other vectors."""

    model = "m"

    def __init__(self, sign: float) -> None:
        super().__init__(64)
        self.sign = sign

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [
            [x * (self.sign if i else 1) for i, x in enumerate(row)] for row in super().embed_documents(texts)
        ]


def test_another_width_names_both_and_the_remedy(open_memory: Open) -> None:
    open_memory(embeddings=WordHashEmbeddings(64)).remember("first", ANN)
    other = open_memory(embeddings=WordHashEmbeddings(96))
    for use in (lambda: other.remember("second", ANN), lambda: other.recall("first", ANN)):
        with pytest.raises(ConfigurationError, match=r"64 dimensions.*96 dimensions.*memrag reembed"):
            use()
    assert [episode.content for episode in other.history(ANN).episodes] == ["first"]


def test_another_model_is_refused_when_it_is_opened(open_memory: Open) -> None:
    open_memory(embeddings=WordHashEmbeddings(64)).remember("first", ANN)
    with pytest.raises(ConfigurationError, match="memrag reembed"):
        open_memory(embeddings=Mirrored(1))


def test_other_vectors_under_the_same_name_are_refused(open_memory: Open) -> None:
    open_memory(embeddings=Mirrored(1)).remember("first", ANN)
    open_memory(embeddings=Mirrored(1)).remember("second", ANN)
    with pytest.raises(ConfigurationError, match="other vectors"):
        open_memory(embeddings=Mirrored(-1)).remember("third", ANN)


def test_a_wrong_count_is_refused_before_anything_is_written(open_memory: Open) -> None:
    class Short(WordHashEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts[:-1])

    memory = open_memory(embeddings=Short(64))
    with pytest.raises(ConfigurationError, match="2 vectors for 3 texts"):
        memory.remember("first", ANN)
    assert memory.stats(ANN).episodes == 0


def test_without_its_embedder_a_memory_still_answers_and_waits_for_it(open_memory: Open) -> None:
    open_memory(embeddings=WordHashEmbeddings(64)).remember("The lamp is green.", ANN)
    bare = open_memory(embeddings=None)
    assert bare.remember("The lamp is broken.", ANN).pending == 1
    assert len(bare.recall("lamp", ANN).hits) == 2
    assert open_memory(embeddings=WordHashEmbeddings(64)).flush() == 0
    assert bare.stats(ANN).pending == 0


def test_one_embedding_a_turn_and_one_a_question(open_memory: Open) -> None:
    class Counting(WordHashEmbeddings):
        documents = 0
        queries = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.documents += len(texts)
            return [super(Counting, self).embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            self.queries += 1
            return super().embed_query(text)

    model = Counting(64)
    memory = open_memory(embeddings=model)
    memory.remember("warm up", ANN)
    model.documents = model.queries = 0
    memory.remember([("user", f"line {i}") for i in range(10)], ANN)
    memory.recall("line", ANN)
    memory.flush()
    assert (model.documents, model.queries) == (10, 1)


def test_an_arm_that_is_late_is_named_and_the_rest_answers(
    memory: MemRAG, postgres_url: str, schema: str
) -> None:
    memory.remember("The tower of Babel fell.", ANN)
    with psycopg.connect(postgres_url) as other:
        other.execute(f'LOCK TABLE "{schema}".posting IN ACCESS EXCLUSIVE MODE')
        found = memory.recall("tower of Babel", ANN, timeout=0.3)
        assert [gone.arm for gone in found.degraded] == ["lexical"]
        assert found.hits[0].text == "The tower of Babel fell."
    assert not memory.recall("tower of Babel", ANN).degraded
