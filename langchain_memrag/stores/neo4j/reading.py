"""Rows of the server as records."""

from __future__ import annotations

from datetime import datetime
from typing import cast
from uuid import UUID

from neo4j.time import DateTime

from langchain_memrag.records import Entity, Relation
from langchain_memrag.stores.neo4j.connection import Row
from langchain_memrag.stores.spreading import Reached

__all__ = ["entity_of", "reached_of", "relation_of"]


def entity_of(row: Row) -> Entity:
    """An entity."""
    return Entity.model_validate({**row, "aliases": tuple(cast("list[str]", row["aliases"]))})


def reached_of(row: Row) -> Reached:
    """An entity that a walk came to."""
    path = tuple(cast("list[str]", row["path"]))
    return Reached(cast("int", row["space"]), cast("str", row["key"]), cast("float", row["score"]), path)


def relation_of(row: Row) -> Relation:
    """A relation, with the newest records that support it."""
    return Relation.model_validate(
        {
            **row,
            "records": tuple(UUID(one) for one in cast("list[str]", row["records"])),
            "valid_from": _time(row["valid_from"]),
            "valid_to": _time(row["valid_to"]),
        }
    )


def _time(value: object) -> datetime | None:
    return value.to_native() if isinstance(value, DateTime) else None
