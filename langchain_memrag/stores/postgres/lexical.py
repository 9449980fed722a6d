"""Words in Postgres: postings, read index-only, and no more of them than can change the answer.

A word that stands in half of a user's turns costs the most to read and tells the least. So the rare
words of a question are scored first; the others are only looked up for entries that they could lift
into the answer. A bound proves that nothing was missed, or the whole question is scored again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

import numpy as np
from psycopg import Connection

from langchain_memrag.stores.base import IndexEntry, LexicalSignal, SearchFilter
from langchain_memrag.stores.postgres.codes import VIEWS
from langchain_memrag.stores.postgres.columns import ColumnWriter
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.narrowing import Permitted, conditions, parameters
from langchain_memrag.stores.postgres.pools import Row

__all__ = ["Facts", "LexicalPlan", "Postings", "Spread", "TermSpread"]

_FEW: Final = 3_000
"""Postings that are not worth a second thought."""

_TYPICAL: Final = 0.6
"""What part of its peak a word weighs in a middling entry; a guess that costs time alone if it is wrong."""


@dataclass(frozen=True, slots=True)
class TermSpread:
    """In how many entries a term stands, and what it weighs there at most."""

    count: int
    peak: float


Spread = Mapping[int, TermSpread]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is read before a question is scored, to score it in the cheapest way.

    Attributes:
        spread: How common its terms are; a term that no entry holds is missing.
        expired: Whether any entry has expired, so that it must be looked out for.
        permitted: The entries (space and number) that a narrowed search may return, if they are few.
    """

    spread: Spread
    expired: bool
    permitted: Permitted | None = None


@dataclass(frozen=True, slots=True)
class LexicalPlan:
    """A statement that answers a signal, and its parameters.

    Attributes:
        bound: The answer is complete if the score in its last column reaches this.
    """

    query: bytes
    values: Mapping[str, object]
    bound: float | None = None


class Postings:
    """Which entries hold which terms, and how much that says about them.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer = ColumnWriter(
            database,
            "posting",
            {"space": "bigint", "term": "integer", "entry": "integer", "weight": "real", "view": "smallint"},
        )

    def write(
        self, connection: Connection[Row], space: int, entries: Sequence[IndexEntry], ids: Sequence[int]
    ) -> None:
        """Insert the postings of entries."""
        counts = [len(entry.terms) for entry in entries]
        if not sum(counts):
            return
        self._writer.write(
            connection,
            {
                "space": np.full(sum(counts), space, np.int64),
                "term": np.fromiter((term for entry in entries for term in entry.terms), np.int32),
                "entry": np.repeat(np.array(ids, np.int32), counts),
                "weight": np.fromiter(
                    (weight for entry in entries for weight in entry.terms.values()), np.float32
                ),
                "view": np.repeat(np.array([VIEWS[entry.view] for entry in entries], np.int16), counts),
            },
        )

    def spread_query(self, signal: LexicalSignal, where: SearchFilter) -> tuple[bytes, Mapping[str, object]]:
        """The statement that reads how common the terms of a signal are."""
        return self._database.statement(
            "SELECT term, sum(df)::bigint, max(peak) FROM {schema}.term_stat WHERE space = ANY(%(spaces)s)"
            " AND view = ANY(%(views)s) AND term = ANY(%(terms)s) AND df > 0 GROUP BY term"
        ), {**parameters(where, signal.views, signal.depth), "terms": list(signal.terms)}

    def plan(self, signal: LexicalSignal, where: SearchFilter, facts: Facts) -> LexicalPlan | None:
        """How a signal is answered fastest; `None` where nothing can answer it.

        Args:
            signal: What to look for.
            where: What may be returned.
            facts: What was read beforehand.
        """
        known = {term: weight for term, weight in signal.terms.items() if term in facts.spread}
        if not known:
            return None
        values = dict(parameters(where, signal.views, signal.depth))
        total = sum(facts.spread[term].count for term in known)
        few = facts.permitted
        if few is not None and len(few) * len(known) * 2 < total + _FEW:
            return self._among(known, values, few, facts)
        common = _common_terms(known, facts.spread, signal.depth, total)
        if not common:
            return self.full(signal, where, facts)
        # The postings hold single precision: leave room for its rounding.
        bound = sum(known[term] * facts.spread[term].peak for term in common) * (1 + 1e-5)
        values |= _terms({term: weight for term, weight in known.items() if term not in common})
        values |= _terms({term: known[term] for term in common}, "other_")
        values["bound"] = bound
        permitted = _LOOKED_UP + conditions(where) + ")" if where.narrows else ""
        statement = "WITH " + _SCORED + _kept("summed", permitted, facts) + _LIFTED
        return LexicalPlan(self._database.statement(statement), values, bound)

    def full(self, signal: LexicalSignal, where: SearchFilter, facts: Facts) -> LexicalPlan:
        """Read all postings of all terms."""
        values = {**parameters(where, signal.views, signal.depth), **_terms(signal.terms)}
        permitted = _PERMITTED + conditions(where) + ")" if where.narrows else ""
        source: LiteralString = _JOINED if where.narrows else "summed"
        return LexicalPlan(
            self._database.statement("WITH " + _SCORED + permitted + _kept(source, "", facts) + _ALL), values
        )

    def _among(
        self,
        terms: Mapping[int, float],
        values: dict[str, object],
        permitted: Permitted,
        facts: Facts,
    ) -> LexicalPlan:
        """Look up a few entries instead of reading what all entries hold."""
        values |= _terms(terms)
        values["in_spaces"] = [space for space, _ in permitted]
        values["ids"] = [number for _, number in permitted]
        return LexicalPlan(
            self._database.statement("WITH " + _AMONG + _kept("summed", "", facts) + _ALL), values
        )


def _terms(terms: Mapping[int, float], prefix: str = "") -> dict[str, object]:
    return {f"{prefix}terms": list(terms), f"{prefix}weights": list(terms.values())}


def _kept(source: LiteralString, permitted: LiteralString, facts: Facts) -> LiteralString:
    unexpired: LiteralString = _UNEXPIRED if facts.expired else ""
    return (
        ", kept AS MATERIALIZED (SELECT * FROM " + source + " WHERE score > 0" + unexpired + permitted + ")"
    )


def _common_terms(weights: Mapping[int, float], spread: Spread, depth: int, total: int) -> frozenset[int]:
    """The terms that are cheaper to look up for a few entries than to read in full."""
    if total < _FEW or any(weight <= 0 for weight in weights.values()):
        return frozenset()
    by_count = sorted(weights, key=lambda term: (spread[term].count, term))
    enough = _expected(sorted(weights, key=lambda term: -weights[term]), weights, spread, depth)
    common: list[int] = []
    most = 0.0
    for term in reversed(by_count[1:]):
        most += weights[term] * spread[term].peak
        if most > enough or spread[term].count * 2 < depth:
            break
        common.append(term)
    spared = sum(spread[term].count for term in common)
    return frozenset(common) if spared * 3 > total else frozenset()


def _expected(ranked: Iterable[int], weights: Mapping[int, float], spread: Spread, depth: int) -> float:
    """A guess at the score of the last entry of the answer."""
    found = 0
    for term in ranked:
        found += spread[term].count
        if found >= depth:
            return _TYPICAL * weights[term] * spread[term].peak
    return 0.0


# An entry has one view, so grouping by it splits nothing.
_SCORED: Final = (
    "summed AS MATERIALIZED (SELECT p.space, p.view, p.entry, sum(p.weight * q.weight) AS score"
    " FROM unnest(%(terms)s::integer[], %(weights)s::float8[]) q (term, weight)"
    " CROSS JOIN LATERAL (SELECT space, view, entry, weight FROM {schema}.posting"
    "  WHERE space = ANY(%(spaces)s) AND view = ANY(%(views)s) AND term = q.term OFFSET 0) p"
    " GROUP BY p.space, p.view, p.entry)"
)

_AMONG: Final = (
    "summed AS MATERIALIZED (SELECT p.space, p.view, p.entry, sum(p.weight * q.weight) AS score"
    " FROM unnest(%(in_spaces)s::bigint[], %(ids)s::integer[]) a (space, id)"
    " CROSS JOIN unnest(%(terms)s::integer[], %(weights)s::float8[]) q (term, weight)"
    " CROSS JOIN LATERAL (SELECT space, view, entry, weight FROM {schema}.posting"
    "  WHERE space = a.space AND view = ANY(%(views)s) AND term = q.term AND entry = a.id OFFSET 0) p"
    " GROUP BY p.space, p.view, p.entry)"
)

_PERMITTED: Final = (
    ", permitted AS MATERIALIZED (SELECT space, id FROM {schema}.entry WHERE space = ANY(%(spaces)s)"
)

_JOINED: Final = "(SELECT s.* FROM summed s JOIN permitted a ON a.space = s.space AND a.id = s.entry) allowed"

_LOOKED_UP: Final = (
    " AND EXISTS (SELECT FROM {schema}.entry e WHERE e.space = summed.space AND e.id = summed.entry"
)

_UNEXPIRED: Final = (
    " AND (space, entry) NOT IN (SELECT space, id FROM {schema}.entry"
    "  WHERE space = ANY(%(spaces)s) AND expires_at < 'infinity' AND expires_at <= %(now)s)"
)

_ALL: Final = (
    " SELECT e.space, e.record, e.view, e.part, k.score, NULL::float8 FROM"
    " (SELECT * FROM kept ORDER BY score DESC, entry DESC LIMIT %(depth)s) k"
    " JOIN {schema}.entry e ON e.space = k.space AND e.id = k.entry"
)

_LIFTED: Final = (
    ", edge AS MATERIALIZED (SELECT coalesce((SELECT score FROM kept ORDER BY score DESC"
    "  OFFSET %(depth)s - 1 LIMIT 1), 0) AS score),"
    " lifted AS MATERIALIZED (SELECT k.space, k.entry, k.score + coalesce(more.score, 0) AS score"
    "  FROM (SELECT kept.* FROM kept, edge WHERE kept.score + %(bound)s >= edge.score) k"
    "  CROSS JOIN LATERAL (SELECT sum(p.weight * q.weight) AS score"
    "   FROM unnest(%(other_terms)s::integer[], %(other_weights)s::float8[]) q (term, weight)"
    "   CROSS JOIN LATERAL (SELECT weight FROM {schema}.posting WHERE space = k.space AND view = k.view"
    "    AND term = q.term AND entry = k.entry OFFSET 0) p) more)"
    " SELECT e.space, e.record, e.view, e.part, l.score, edge.score FROM edge,"
    " (SELECT * FROM lifted ORDER BY score DESC, entry DESC LIMIT %(depth)s) l"
    " JOIN {schema}.entry e ON e.space = l.space AND e.id = l.entry"
)
