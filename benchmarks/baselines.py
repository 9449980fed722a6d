"""What a memory must beat: BM25, one dense model, and the two together.

All three index the same line a passage, `(date) speaker: text`, inside one user's passages, and rank all of
them; ties keep the order of the corpus. `convex` adds both scores, each scaled to 0..1 a question.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

import bm25s
import numpy as np
from embedding_cache import CachedEmbeddings
from numpy.typing import NDArray
from retrieval_sets import Question, RetrievalSet

__all__ = ["BASELINES", "Rankings", "rank_baselines"]

BASELINES = ("bm25", "dense", "convex")

Rankings = dict[str, list[str]]
"""Passage ids by question id, best first."""

Matrix = NDArray[np.float32]

_PASSAGE_LIMIT = 6000
"""Characters given to the model, which reads far fewer."""

_NO_WORD = "\x01"
_WORD_CHARACTER = re.compile(r"\w")


def rank_baselines(data: RetrievalSet, embeddings: CachedEmbeddings) -> dict[str, Rankings]:
    """Rank every question of a set by each baseline."""
    lines = [passage.dated_line[:_PASSAGE_LIMIT] for passage in data.passages]
    vectors = dict(
        zip((passage.number for passage in data.passages), embeddings.embed_documents(lines), strict=True)
    )
    asked: dict[str, list[Question]] = {}
    for question in data.questions:
        asked.setdefault(question.scope, []).append(question)
    words = _Words(chinese=data.is_chinese)
    found: dict[str, Rankings] = {name: {} for name in BASELINES}
    for scope, questions in asked.items():
        passages = data.by_scope.get(scope, ())
        if not passages:
            continue
        texts = [question.text for question in questions]
        lexical = words.scores([passage.dated_line for passage in passages], texts)
        dense = _matrix(embeddings.embed_queries(texts)) @ _matrix([vectors[p.number] for p in passages]).T
        ids = [passage.id for passage in passages]
        for name, scores in (
            ("bm25", lexical),
            ("dense", dense),
            ("convex", _scaled(lexical) + _scaled(dense)),
        ):
            found[name].update(_ranked(questions, scores, ids))
    return found


def _matrix(rows: Sequence[Sequence[float]]) -> Matrix:
    return np.asarray(rows, dtype=np.float32)


def _scaled(scores: Matrix) -> Matrix:
    low = scores.min(axis=1, keepdims=True)
    scaled: Matrix = (scores - low) / np.maximum(scores.max(axis=1, keepdims=True) - low, 1e-9)
    return scaled


def _ranked(questions: Sequence[Question], scores: Matrix, ids: Sequence[str]) -> Mapping[str, list[str]]:
    order = np.argsort(-scores, axis=1, kind="stable")
    return {question.id: [ids[place] for place in order[row]] for row, question in enumerate(questions)}


class _Words:
    """BM25 (k1 1.5, b 0.75): English without stop words and stemmed, Chinese by words and their parts."""

    def __init__(self, *, chinese: bool) -> None:
        self._chinese = chinese
        if chinese:
            import jieba

            jieba.setLogLevel(logging.WARNING)
            self._cut = jieba.cut_for_search
        else:
            import Stemmer  # type: ignore[import-not-found]

            self._stem = Stemmer.Stemmer("english")

    def scores(self, lines: Sequence[str], questions: Sequence[str]) -> Matrix:
        """One row a question, one column a line."""
        index = bm25s.BM25(k1=1.5, b=0.75)
        index.index([words or [_NO_WORD] for words in self._split(lines)], show_progress=False)
        found = np.zeros((len(questions), len(lines)), dtype=np.float32)
        for row, words in enumerate(self._split(questions)):
            if words:
                found[row] = index.get_scores(words)
        return found

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        if self._chinese:
            return [[w.lower() for w in self._cut(text) if _WORD_CHARACTER.search(w)] for text in texts]
        split: list[list[str]] = bm25s.tokenize(
            list(texts), stopwords="en", stemmer=self._stem, return_ids=False, show_progress=False
        )
        return split
