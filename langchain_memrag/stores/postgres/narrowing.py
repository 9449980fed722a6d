"""What a search may return, as conditions on the columns that entries and their vectors share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString

from langchain_memrag.stores.base import SearchFilter, View
from langchain_memrag.stores.postgres.codes import ROLES, VIEWS, short_hash
from langchain_memrag.stores.postgres.database import Database

__all__ = ["FEW_PERMITTED", "UNEXPIRED", "Permitted", "conditions", "parameters", "permitted_query"]

FEW_PERMITTED: Final = 1_000
"""Entries that are rather looked up one by one than found among all."""

UNEXPIRED: Final = " AND expires_at > %(now)s"

Permitted = Sequence[tuple[int, int]]
"""Entries, by space and number."""


def conditions(where: SearchFilter) -> LiteralString:
    """The narrowing conditions that were asked for, each with a leading `AND`; none for most searches."""
    clauses: list[LiteralString] = []
    if where.session is not None:
        # Never 0, which stands for none: said again for the sake of the partial index.
        clauses.append(" AND session = %(session)s AND session <> 0")
    if where.agent is not None:
        clauses.append(" AND agent = %(agent)s")
    if where.roles is not None:
        clauses.append(" AND role = ANY(%(roles)s)")
    if where.since is not None:
        clauses.append(" AND occurred_at >= %(since)s")
    if where.until is not None:
        clauses.append(" AND occurred_at < %(until)s")
    return "".join(clauses)


def parameters(where: SearchFilter, views: Sequence[View], depth: int) -> Mapping[str, object]:
    """The values of all conditions, by name."""
    return {
        "spaces": list(where.spaces),
        "views": [VIEWS[view] for view in views],
        "now": where.now,
        "depth": depth,
        "session": short_hash(where.session),
        "agent": short_hash(where.agent),
        "roles": [ROLES[role] for role in where.roles or ()],
        "since": where.since,
        "until": where.until,
    }


def permitted_query(database: Database, where: SearchFilter) -> tuple[bytes, Mapping[str, object]]:
    """The statement that reads which entries a narrowed search may return: one more than a few at most."""
    return database.statement(
        "SELECT space, id FROM {schema}.entry WHERE space = ANY(%(spaces)s)"
        + conditions(where)
        + " LIMIT %(few)s"
    ), {**parameters(where, (), 0), "few": FEW_PERMITTED + 1}
