"""Recalling: a question becomes signals, the arms find records, the recipe ranks them, and each says why.

    intent -> statistics -> arms in parallel, each under its budget -> episodes from Postgres -> fuse
           -> recency -> diversity -> pack -> Recall

A language model is never called. An arm that is down or late is named in `degraded`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from langchain_memrag.engine.flow import Flow, Question, R
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.ranked import rank
from langchain_memrag.engine.threads import Threads
from langchain_memrag.errors import ConfigurationError, StoreError
from langchain_memrag.ranking import Recipe, idf
from langchain_memrag.records import Arm, Degradation, Episode, Intent, Recall, RecallOptions, Scope
from langchain_memrag.stores.base import (
    Clock,
    DenseSignal,
    GraphFind,
    GraphStore,
    LexicalSignal,
    RawHit,
    SearchFilter,
    Signal,
)
from langchain_memrag.stores.postgres.entries import Statistics
from langchain_memrag.stores.postgres.records import RecordStore
from langchain_memrag.text import guess_intent, is_blank, name_key, normalise, query_terms, term_hash

__all__ = ["Recaller", "intent_of"]

logger = logging.getLogger(__name__)

QUERY_LIMIT: Final = 4000
"""Characters of a question that are looked at; nobody asks more, but an agent may paste a page."""

TERM_LIMIT: Final = 48
"""Query terms at most, the rarest first."""


def intent_of(text: str) -> Intent:
    """What a question asks for, by the rules."""
    guess = guess_intent(text)
    return Intent(
        category=guess.category,
        entities=guess.entities,
        needs_tools=guess.needs_tools,
        confidence=guess.confidence,
        origin="rules",
    )


@dataclass(slots=True)
class _Stopwatch:
    """Milliseconds by step, of one recall."""

    laps: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.laps[step] = round((now - self.last) * 1000, 3)
        self.last = now

    def total(self) -> Mapping[str, float]:
        return {**self.laps, "total": round((time.perf_counter() - self.started) * 1000, 3)}


@dataclass(frozen=True, slots=True)
class _Found:
    """What the arms brought back."""

    signals: Mapping[str, Sequence[RawHit]]
    graph: Sequence[GraphFind]
    degraded: tuple[Degradation, ...]


class Recaller:
    """Answers what a user's memory knows about a question.

    Args:
        records: The system of record, from which all text comes.
        graph: Entities and relations.
        indexing: The search index with its embedder.
        recipe: How signals become one ranking.
        threads: Where the arms run; never the pool that callers wait in.
        clock: Says what has expired and how old a memory is.
    """

    def __init__(
        self,
        records: RecordStore,
        graph: GraphStore,
        indexing: Indexing,
        recipe: Recipe,
        threads: Threads,
        clock: Clock,
    ) -> None:
        self._records = records
        self._graph = graph
        self._indexing = indexing
        self._recipe = recipe
        self._threads = threads
        self._clock = clock

    def recall(self, query: str, scope: Scope, options: RecallOptions) -> Flow[Recall]:
        """Find what answers a question.

        Raises:
            ConfigurationError: The question is blank, or the embedder is not that of the index.
            StoreUnavailableError: Postgres, which holds the text, cannot be reached.
        """
        text = normalise(query)
        if is_blank(text):
            raise ConfigurationError("the question is blank; there is nothing to recall by")
        watch = _Stopwatch()
        asked = text[:QUERY_LIMIT]
        intent = options.intent or intent_of(asked)
        now = self._clock()
        space = self._records.space_of(scope.user_id)
        if space is None:
            return Recall(query=text, scope=scope, intent=intent, timings=watch.total())
        yield from self._indexing.ready()
        where = _filter(space, options, now)
        watch.lap("prepare")
        found = yield from self._run_arms(asked, intent, where, options.timeout, watch)
        known = self._episodes(found, where)
        watch.lap("read")
        hits, tokens = rank(
            _candidates(found, known, _left_out(text, options)), self._recipe, options, intent, now
        )
        working = self._working(space, scope, options, now)
        watch.lap("rank")
        return Recall(
            query=text,
            scope=scope,
            intent=intent,
            hits=hits,
            working=working,
            degraded=found.degraded,
            timings=watch.total(),
            tokens=tokens,
        )

    def _working(
        self, space: int, scope: Scope, options: RecallOptions, now: datetime
    ) -> tuple[Episode, ...]:
        if not options.working or scope.session_id is None:
            return ()
        return self._records.last(space, scope.session_id, options.working, now)

    def _run_arms(
        self, text: str, intent: Intent, where: SearchFilter, timeout: float, watch: _Stopwatch
    ) -> Flow[_Found]:
        words = [term_hash(term) for term in query_terms(text)]
        statistics = self._records.statistics(where.spaces, self._recipe.lexical_views, set(words))
        watch.lap("statistics")
        search = self._indexing.search
        lexical = _lexical_signals(words, statistics, self._recipe)
        # Words and graph are looked up while the model embeds the question.
        pending: list[tuple[Arm, Future[list[list[RawHit]]], Sequence[Signal]]] = []
        if lexical:
            pending.append(
                ("lexical", self._threads.submit(search.search, lexical, where, timeout=timeout), lexical)
            )
        seeds = [name_key(name) for name in intent.entities]
        graph = (
            self._threads.submit(
                self._graph.expand,
                where,
                seeds,
                hops=self._recipe.hops(intent.category),
                limit=self._recipe.depth,
                timeout=timeout,
            )
            if seeds
            else None
        )
        degraded: list[Degradation] = []
        if self._indexing.embeds:
            reply = yield Question(text)
            watch.lap("embed")
            if reply.vectors:
                dense = [
                    DenseSignal(f"dense:{view}", (view,), self._recipe.depth, reply.vectors[0])
                    for view in self._recipe.dense_views
                ]
                pending.append(
                    ("dense", self._threads.submit(search.search, dense, where, timeout=timeout), dense)
                )
            else:
                degraded.append(Degradation(arm="dense", reason=f"the embedder failed ({reply.failure})"))
        else:
            degraded.append(Degradation(arm="dense", reason="no embedder is set up"))
        signals: dict[str, Sequence[RawHit]] = {}
        for arm, future, asked in pending:
            for signal, hits in zip(asked, _settle(future, arm, degraded) or [], strict=False):
                signals[signal.name] = hits
        finds = (_settle(graph, "graph", degraded) or []) if graph else []
        watch.lap("arms")
        return _Found(signals, finds, tuple(degraded))

    def _episodes(self, found: _Found, where: SearchFilter) -> Mapping[UUID, Episode]:
        ids = dict.fromkeys(hit.record for hits in found.signals.values() for hit in hits)
        ids.update(dict.fromkeys(find.record for find in found.graph))
        known = self._records.episodes(where.spaces, list(ids), where.now)
        return {episode.id: episode for episode in known if _allowed(episode, where)}


def _filter(space: int, options: RecallOptions, now: datetime) -> SearchFilter:
    narrowed = options.where
    return SearchFilter(
        spaces=(space,),
        now=now,
        session=narrowed.session_id,
        agent=narrowed.agent_id,
        roles=narrowed.roles,
        since=narrowed.since,
        until=narrowed.until,
    )


def _allowed(episode: Episode, where: SearchFilter) -> bool:
    """What the graph, which knows nothing of sessions and roles, may have let through."""
    return (
        (where.session is None or episode.scope.session_id == where.session)
        and (where.agent is None or episode.scope.agent_id == where.agent)
        and (where.roles is None or episode.role in where.roles)
        and (where.since is None or episode.occurred_at >= where.since)
        and (where.until is None or episode.occurred_at < where.until)
    )


def _lexical_signals(words: Sequence[int], statistics: Statistics, recipe: Recipe) -> list[LexicalSignal]:
    signals = []
    for view in recipe.lexical_views:
        total = statistics.entries.get(view, 0)
        frequencies = statistics.frequencies.get(view, {})
        weights = {
            word: idf(frequencies[word], total) * words.count(word)
            for word in set(words)
            if frequencies.get(word)
        }
        rarest = sorted(weights, key=lambda word: (-weights[word], word))[:TERM_LIMIT]
        if rarest:
            signals.append(
                LexicalSignal(
                    f"lexical:{view}", (view,), recipe.depth, {word: weights[word] for word in rarest}
                )
            )
    return signals


def _settle(future: Future[R], arm: Arm, degraded: list[Degradation]) -> R | None:
    try:
        return future.result()
    except StoreError as error:
        logger.warning("the %s arm failed: %s", arm, type(error).__name__)
        degraded.append(Degradation(arm=arm, reason=f"{error.engine}: {type(error).__name__}"))
        return None
