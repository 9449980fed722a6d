"""A walk over the graph from some entities, bounded at every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from uuid import UUID

from psycopg import Connection

from langchain_memrag.stores.base import GraphFind, SearchFilter
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.pools import Row
from langchain_memrag.stores.spreading import MOST_HOPS, Reached, combined, passed_on, rarity

__all__ = ["GraphWalk"]


class GraphWalk:
    """Walks inside the spaces of one search.

    Args:
        database: Where the graph is.
        connection: Inside a transaction.
        where: Which spaces may be read, and what has expired.
    """

    def __init__(self, database: Database, connection: Connection[Row], where: SearchFilter) -> None:
        self._database = database
        self._connection = connection
        self._where = where

    def finds(self, seeds: Sequence[str], *, hops: int, fanout: int, limit: int) -> list[GraphFind]:
        """See `GraphStore.expand`."""
        reached = self._seeds(seeds)
        frontier = list(reached.values())
        for _ in range(min(hops, MOST_HOPS)):
            fresh = self._step(frontier, fanout)
            frontier = [one for one in fresh if (one.space, one.key) not in reached][: fanout * 4]
            reached.update({(one.space, one.key): one for one in frontier})
        return self._finds(list(reached.values()), limit)

    def _seeds(self, seeds: Sequence[str]) -> dict[tuple[int, str], Reached]:
        rows = self._connection.execute(
            self._database.statement(
                "SELECT space, key, name, mentions FROM {schema}.entity"
                " WHERE space = ANY(%s) AND key = ANY(%s) ORDER BY space, key"
            ),
            (list(self._where.spaces), list(seeds)),
        ).fetchall()
        return {
            (space, key): Reached(space, key, rarity(mentions), (name,))
            for space, key, name, mentions in cast("list[tuple[int, str, str, int]]", rows)
        }

    def _step(self, frontier: Sequence[Reached], fanout: int) -> list[Reached]:
        if not frontier:
            return []
        rows = self._connection.execute(
            self._database.statement(
                "SELECT f.position, n.key, e.name, e.mentions, n.weight"
                " FROM unnest(%(spaces)s::bigint[], %(keys)s::text[]) WITH ORDINALITY f (space, key, position)"
                " CROSS JOIN LATERAL (SELECT key, weight FROM ("
                "   (SELECT target AS key, weight FROM {schema}.relation r WHERE r.space = f.space"
                "     AND r.source = f.key ORDER BY weight DESC, target LIMIT %(fanout)s)"
                "   UNION ALL (SELECT source, weight FROM {schema}.relation r WHERE r.space = f.space"
                "     AND r.target = f.key ORDER BY weight DESC, source LIMIT %(fanout)s)) both_ways"
                "  ORDER BY weight DESC, key LIMIT %(fanout)s) n"
                " JOIN {schema}.entity e ON e.space = f.space AND e.key = n.key"
            ),
            {
                "spaces": [one.space for one in frontier],
                "keys": [one.key for one in frontier],
                "fanout": fanout,
            },
        ).fetchall()
        best: dict[tuple[int, str], Reached] = {}
        for position, key, name, mentions, weight in cast("list[tuple[int, str, str, int, int]]", rows):
            start = frontier[position - 1]
            score = passed_on(start.score, weight, mentions)
            known = best.get((start.space, key))
            if known is None or score > known.score:
                best[start.space, key] = Reached(start.space, key, score, (*start.path, name))
        return sorted(best.values(), key=lambda one: (-one.score, one.key))

    def _finds(self, reached: Sequence[Reached], limit: int) -> list[GraphFind]:
        rows = self._connection.execute(
            self._database.statement(
                "SELECT f.position, m.record FROM unnest(%(spaces)s::bigint[], %(keys)s::text[])"
                " WITH ORDINALITY f (space, key, position)"
                " CROSS JOIN LATERAL (SELECT record FROM {schema}.mention m WHERE m.space = f.space"
                "  AND m.key = f.key AND m.expires_at > %(now)s ORDER BY m.record DESC LIMIT %(limit)s) m"
            ),
            {
                "spaces": [one.space for one in reached],
                "keys": [one.key for one in reached],
                "now": self._where.now,
                "limit": limit,
            },
        ).fetchall()
        return combined(
            ((reached[position - 1], record) for position, record in cast("list[tuple[int, UUID]]", rows)),
            limit,
        )
