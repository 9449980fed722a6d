"""Recalling: a question becomes signals, the arms find records, the recipe ranks them, and each says why.

    cache? -> intent -> statistics -> arms in parallel, each under its budget -> episodes from Postgres
           -> fuse -> recency -> diversity -> pack -> Recall

A language model is never called. An arm that is down or late is named in `degraded`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID

from langchain_memrag.engine.caching import RecallCache
from langchain_memrag.engine.flow import Flow, Question, R
from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.engine.ranked import Candidates, hits_of, neighbours_wanted, rank
from langchain_memrag.engine.searching import Answer, Behind, Searching
from langchain_memrag.engine.threads import Threads
from langchain_memrag.engine.when import DayRange, named_days, within
from langchain_memrag.errors import ConfigurationError, StoreError, StoreTimeoutError, StoreUnavailableError
from langchain_memrag.ranking import Recipe, idf
from langchain_memrag.records import Arm, Degradation, Episode, Intent, Recall, RecallOptions, Scope
from langchain_memrag.stores.base import (
    Clock,
    DenseSignal,
    GraphFind,
    LexicalSignal,
    RawHit,
    SearchFilter,
    Signal,
    View,
)
from langchain_memrag.stores.postgres.entries import Statistics, StatisticsReader
from langchain_memrag.stores.postgres.episodes import EpisodeReader, Glimpse
from langchain_memrag.stores.postgres.records import RecordStore, SpaceState
from langchain_memrag.text import guess_intent, is_blank, name_key, normalise, query_terms, term_hash
from langchain_memrag.text.questions import questions_of

__all__ = ["Recaller", "intent_of"]

logger = logging.getLogger(__name__)

VIEWS: Final[tuple[View, ...]] = get_args(View)

QUERY_LIMIT: Final = 4000
"""Characters of a question that are looked at; nobody asks more, but an agent may paste a page."""

GRAPH_LIMIT: Final = 15
"""Records from the graph: they add a little to what words and vectors find."""

GLIMPSE: Final = 2000
"""Characters of a text by which two are told to say the same."""

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
class _Moment:
    """When a recall is made, and how memory stands then.

    Attributes:
        degraded: What could not help so far; grows.
        lost: How Postgres went away under an arm; grows.
    """

    state: SpaceState
    now: datetime
    watch: _Stopwatch
    degraded: list[Degradation]
    lost: list[StoreUnavailableError] = field(default_factory=list)

    def settle(self, future: Future[Answer[R]], arm: Arm) -> R | None:
        """What an arm found, or why it did not."""
        try:
            answer = future.result()
        except StoreError as error:
            logger.warning("the %s arm failed: %s", arm, type(error).__name__)
            self.degraded.append(Degradation(arm=arm, reason=f"{error.engine}: {type(error).__name__}"))
            if isinstance(error, StoreUnavailableError) and not isinstance(error, StoreTimeoutError):
                self.lost.append(error)
            return None
        if answer.missing:
            self.degraded.append(Degradation(arm=arm, reason=answer.missing))
        return answer.found


@dataclass(frozen=True, slots=True)
class _Found:
    """What the arms brought back.

    Attributes:
        signals: Signal name to hits, for the whole message and then for each single question of it.
    """

    signals: Sequence[Mapping[str, Sequence[RawHit]]]
    graph: Sequence[GraphFind]
    days: tuple[DayRange, ...]
    on_days: Sequence[RawHit]
    degraded: tuple[Degradation, ...]


@dataclass(frozen=True, slots=True)
class _Running:
    """An arm on its way.

    Attributes:
        signals: What it searches by, each with the number of the question that it is from.
    """

    name: Arm
    signals: Sequence[tuple[int, Signal]]
    future: Future[Answer[list[list[RawHit]]]]


class Recaller:
    """Answers what a user's memory knows about a question.

    Args:
        records: Finds the user's space.
        episodes: The system of record, from which all text comes.
        statistics: How common words are in a space.
        searching: The search index and the graph.
        indexing: Knows the embedder.
        cache: What was found before.
        recipe: How signals become one ranking.
        threads: Where the arms run; never the pool that callers wait in.
        clock: Says what has expired and how old a memory is.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one parameter a part, each made by the assembly
        self,
        records: RecordStore,
        episodes: EpisodeReader,
        statistics: StatisticsReader,
        searching: Searching,
        indexing: Indexing,
        cache: RecallCache,
        recipe: Recipe,
        threads: Threads,
        clock: Clock,
    ) -> None:
        self._records = records
        self._episodes = episodes
        self._statistics = statistics
        self._searching = searching
        self._indexing = indexing
        self._cache = cache
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
        now = self._clock()
        state = self._records.state_of(scope.user_id)
        if state is None:
            intent = options.intent or intent_of(asked)
            return Recall(query=text, scope=scope, intent=intent, timings=watch.total())
        yield from self._indexing.ready()
        key = self._cache.key(state, text, scope, options, now, self._indexing.name)
        degraded: list[Degradation] = []
        if state.embedder != self._indexing.embedder_id:
            # Vectors that were made since are not this process's; what engines hold of it is out of date.
            state = replace(state, behind=state.behind | {"search"})
            reason = "the memory has moved to another embedder; open it anew with that one"
            degraded.append(Degradation(arm="dense", reason=reason))
            key = None
        if key is not None:
            known, away = self._cache.find(key, scope, now)
            if known is not None:
                return known.model_copy(update={"timings": watch.total()})
            degraded += [away] if away else []
        found = yield from self._look(text, asked, scope, options, _Moment(state, now, watch, degraded))
        if key is not None and not found.degraded:
            self._cache.keep(key, state, found)
        return found

    def _look(
        self, text: str, asked: str, scope: Scope, options: RecallOptions, moment: _Moment
    ) -> Flow[Recall]:
        now, watch = moment.now, moment.watch
        intent = options.intent or intent_of(asked)
        where = _filter(moment.state.id, options, now)
        watch.lap("prepare")
        found = yield from self._run_arms(asked, intent, where, options, moment)
        candidates = self._candidates(found, where, _LeftOut.of(text, options))
        if moment.lost and not candidates.glimpses:
            # Nothing was found because nothing could be looked at: that is not the answer "nothing is known".
            raise moment.lost[0]
        watch.lap("read")
        ranked = rank(candidates, self._recipe, now, options.k)
        watch.lap("rank")
        full = self._episodes.episodes(where.spaces, [one.id for one in ranked], now)
        hits, tokens = hits_of(ranked, {episode.id: episode for episode in full}, candidates, options)
        working = self._working(moment.state.id, scope, options, now)
        watch.lap("show")
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
        return self._episodes.last(space, scope.session_id, options.working, now)

    def _run_arms(
        self, text: str, intent: Intent, where: SearchFilter, options: RecallOptions, moment: _Moment
    ) -> Flow[_Found]:
        asked = (text, *questions_of(text)) if self._recipe.single_questions else (text,)
        depth, timeout = max(self._recipe.depth, options.k), options.timeout
        watch, degraded = moment.watch, moment.degraded
        lexical, days, dated = self._by_words(asked, where, depth)
        watch.lap("statistics")
        # Words and graph are looked up while the model embeds the questions.
        behind = moment.state.behind
        arms = [self._search("lexical", lexical, where, timeout, behind)] if lexical else []
        graph = self._walk(intent, where, timeout, behind)
        dense: list[tuple[int, Signal]] = []
        if self._indexing.embeds:
            dense = yield from self._by_meaning(asked, depth, moment)
            watch.lap("embed")
            if dense:
                arms.append(self._search("dense", dense, where, timeout, behind))
        else:
            degraded.append(Degradation(arm="dense", reason="no embedder is set up"))
        whole = [one for one in dense or lexical if one[0] == 0]
        on_days = [self._search("time", whole, one, timeout, behind) for one in dated if whole]
        signals: list[dict[str, Sequence[RawHit]]] = [{} for _ in asked]
        for arm in arms:
            lists = moment.settle(arm.future, arm.name) or []
            for (number, signal), hits in zip(arm.signals, lists, strict=bool(lists)):
                signals[number][signal.name] = hits
        there = [moment.settle(arm.future, arm.name) for arm in on_days]
        finds = moment.settle(graph, "graph") if graph else None
        watch.lap("arms")
        return _Found(
            signals,
            finds or [],
            days,
            [hit for lists in there if lists for hits in lists for hit in hits],
            tuple(dict.fromkeys(degraded)),
        )

    def _by_meaning(
        self, asked: Sequence[str], depth: int, moment: _Moment
    ) -> Flow[list[tuple[int, Signal]]]:
        """Dense signals of the questions; none where the embedder failed."""
        dense: list[tuple[int, Signal]] = []
        name = self._indexing.name
        for number, question in enumerate(asked):
            vector = self._cache.vector(moment.state.id, name, question)
            if vector is None:
                reply = yield Question(question)
                if not reply.vectors:
                    reason = f"the embedder failed ({reply.failure})"
                    moment.degraded.append(Degradation(arm="dense", reason=reason))
                    break
                vector = reply.vectors[0]
                self._cache.keep_vector(moment.state, name, question, vector)
            dense.extend(
                (number, DenseSignal(f"dense:{view}", (view,), depth, vector))
                for view in _views(self._recipe, "dense")
            )
        return dense

    def _by_words(
        self, asked: Sequence[str], where: SearchFilter, depth: int
    ) -> tuple[list[tuple[int, Signal]], tuple[DayRange, ...], list[SearchFilter]]:
        """What can be read off the words of the questions: lexical signals, and the days that are named."""
        words = [[term_hash(term) for term in query_terms(one)] for one in asked]
        views = _views(self._recipe, "lexical")
        statistics = self._statistics.statistics(where.spaces, views, {one for own in words for one in own})
        lexical: list[tuple[int, Signal]] = [
            (number, signal)
            for number, own in enumerate(words)
            for signal in _lexical_signals(own, statistics, self._recipe, depth)
        ]
        days = named_days(asked[0], where.now.date()) if self._recipe.named_day else ()
        return lexical, days, self._dated(where, days)

    def _search(
        self,
        name: Arm,
        signals: Sequence[tuple[int, Signal]],
        where: SearchFilter,
        timeout: float,
        behind: Behind,
    ) -> _Running:
        plain = [signal for _, signal in signals]
        future = self._threads.submit(self._searching.search, plain, where, timeout, behind)
        return _Running(name, signals, future)

    def _walk(
        self, intent: Intent, where: SearchFilter, timeout: float, behind: Behind
    ) -> Future[Answer[list[GraphFind]]] | None:
        seeds = [name_key(name) for name in intent.entities]
        if not seeds or not self._recipe.weights.get("graph"):
            return None
        recipe = self._recipe
        hops = recipe.relational_hops if intent.category == "relational" else recipe.graph_hops
        return self._threads.submit(
            self._searching.expand, where, seeds, timeout, behind, hops=hops, limit=GRAPH_LIMIT
        )

    def _dated(self, where: SearchFilter, days: tuple[DayRange, ...]) -> list[SearchFilter]:
        if not days:
            return []
        bounds = self._episodes.bounds(where.spaces)
        return within(where, days, *bounds) if bounds else []

    def _candidates(self, found: _Found, where: SearchFilter, left_out: _LeftOut) -> Candidates:
        asked = [
            {name: [(hit.record.int, hit.score) for hit in hits] for name, hits in signals.items()}
            for signals in found.signals
        ]
        asked[0]["graph"] = [(find.record.int, find.score) for find in found.graph]
        details = {("graph", find.record.int): " > ".join(find.path) for find in found.graph}
        ids = dict.fromkeys(ident for signals in asked for hits in signals.values() for ident, _ in hits)
        ids.update(dict.fromkeys(hit.record.int for hit in found.on_days))
        first = Candidates(asked, details, self._glimpses(list(ids), where, left_out), found.days)
        beside = self._glimpses(neighbours_wanted(first, self._recipe), where, left_out)
        return replace(first, glimpses={**first.glimpses, **beside})

    def _glimpses(self, ids: Sequence[int], where: SearchFilter, left_out: _LeftOut) -> dict[int, Glimpse]:
        span = max(len(self._recipe.before), len(self._recipe.after))
        wanted = [UUID(int=ident) for ident in ids]
        found = self._episodes.glimpses(where.spaces, wanted, where.now, span=span, clip=GLIMPSE)
        return {one.id.int: one for one in found if _allowed(one, where) and not left_out.covers(one)}


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """What must not come back: the question itself, and what the prompt holds already."""

    ids: frozenset[UUID]
    texts: frozenset[str]

    @classmethod
    def of(cls, query: str, options: RecallOptions) -> _LeftOut:
        texts = [query, *(one for one in options.in_prompt if isinstance(one, str))]
        return cls(
            frozenset(one for one in options.in_prompt if isinstance(one, UUID)),
            frozenset(_folded(normalise(text)) for text in texts),
        )

    def covers(self, glimpse: Glimpse) -> bool:
        return glimpse.id in self.ids or _folded(glimpse.text) in self.texts


def _folded(text: str) -> str:
    return " ".join(text[:GLIMPSE].casefold().split())


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


def _allowed(glimpse: Glimpse, where: SearchFilter) -> bool:
    """What the graph, which knows nothing of sessions and roles, may have let through."""
    return (
        (where.session is None or glimpse.session == where.session)
        and (where.agent is None or glimpse.agent == where.agent)
        and (where.roles is None or glimpse.role in where.roles)
        and (where.since is None or glimpse.occurred_at >= where.since)
        and (where.until is None or glimpse.occurred_at < where.until)
    )


def _views(recipe: Recipe, arm: Literal["dense", "lexical"]) -> tuple[View, ...]:
    return tuple(view for view in VIEWS if recipe.weights.get(f"{arm}:{view}"))


def _lexical_signals(
    words: Sequence[int], statistics: Statistics, recipe: Recipe, depth: int
) -> list[LexicalSignal]:
    signals = []
    for view in _views(recipe, "lexical"):
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
                LexicalSignal(f"lexical:{view}", (view,), depth, {word: weights[word] for word in rarest})
            )
    return signals
