"""Entries as Qdrant's points, filters as its conditions, and its answers as hits.

Names of payload fields and the namespace of ids are stored; they never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast
from uuid import UUID, uuid5

import numpy as np
from qdrant_client import models

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.base import IndexEntry, RawHit, SearchFilter, Vector, View

__all__ = [
    "DENSE",
    "SHOWN",
    "TERMS",
    "check_vector",
    "from_sources",
    "hit_of",
    "in_space",
    "permitted",
    "point_id",
    "point_of",
    "ranked",
    "sparse",
]

DENSE: Final = "dense"
TERMS: Final = "terms"
SHOWN: Final = ["record", "view", "part"]
"""What of a payload a hit needs."""

_NAMESPACE: Final = UUID("6f1c2b6e-5f0b-5b8e-9a43-3d6f0a1e7c52")


def point_id(space: int, record: UUID, view: View, part: int) -> str:
    """The id of an entry's point, the same whenever and wherever it is written."""
    return str(uuid5(_NAMESPACE, f"{space}/{record}/{view}/{part}"))


def point_of(entry: IndexEntry, *, dense: bool) -> models.PointStruct:
    """An entry as it is stored.

    Args:
        entry: What to store.
        dense: Whether the collection takes vectors.
    """
    vectors: dict[str, list[float] | models.SparseVector] = {}
    if dense and entry.vector is not None:
        vectors[DENSE] = entry.vector.tolist()
    if entry.terms:
        vectors[TERMS] = sparse(entry.terms)
    payload: dict[str, object] = {
        "space": str(entry.space),
        "record": str(entry.record),
        "layer": entry.layer,
        "view": entry.view,
        "part": entry.part,
        "sources": [str(source) for source in entry.sources],
        "session": entry.session,
        "agent": entry.agent,
        "role": entry.role,
        "occurred_at": _stored(entry.occurred_at),
        "expires_at": None if entry.expires_at is None else _stored(entry.expires_at),
    }
    return models.PointStruct(
        id=point_id(entry.space, entry.record, entry.view, entry.part),
        vector=cast("models.VectorStruct", vectors),
        payload={name: value for name, value in payload.items() if value is not None},
    )


def sparse(weights: Mapping[int, float]) -> models.SparseVector:
    """Weighted terms as a sparse vector: hashes are signed, Qdrant's dimensions are not."""
    return models.SparseVector(
        indices=[term & 0xFFFFFFFF for term in weights], values=[float(weight) for weight in weights.values()]
    )


def _stored(moment: datetime) -> str:
    """A time with its microseconds, which Qdrant keeps, and always in the same form."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def check_vector(vector: Vector, width: int) -> None:
    """See that a vector can stand in a collection.

    Raises:
        ConfigurationError: It has another width, or components that are no numbers.
    """
    if vector.shape != (width,):
        raise ConfigurationError(
            f"a vector of {'x'.join(map(str, vector.shape))} dimensions does not fit an index of {width}: "
            "use the embedder the index was made with, or run `memrag reembed`"
        )
    if not np.isfinite(vector).all():
        raise ConfigurationError("the embedder returned a vector with components that are not finite")


def in_space(space: int) -> models.Filter:
    """All entries of a space."""
    return models.Filter(must=[_is("space", str(space))])


def from_sources(space: int, records: Iterable[UUID]) -> models.Filter:
    """The entries of a space that hold words of some records."""
    return models.Filter(
        must=[_is("space", str(space)), _any("sources", [str(record) for record in records])]
    )


def permitted(where: SearchFilter, space: int, views: Sequence[View]) -> models.Filter:
    """What one signal may return of one space."""
    must: list[models.Condition] = [_is("space", str(space)), _any("view", list(views))]
    if where.session is not None:
        must.append(_is("session", where.session))
    if where.agent is not None:
        must.append(_is("agent", where.agent))
    if where.roles is not None:
        must.append(_any("role", list(where.roles)))
    if where.since is not None or where.until is not None:
        said = models.DatetimeRange(gte=_utc(where.since), lt=_utc(where.until))
        must.append(models.FieldCondition(key="occurred_at", range=said))
    # An entry that never expires has no such field, and what a range does not meet is not left out.
    expired = models.FieldCondition(key="expires_at", range=models.DatetimeRange(lte=_utc(where.now)))
    return models.Filter(must=must, must_not=[expired])


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


def _is(name: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=name, match=models.MatchValue(value=value))


def _any(name: str, values: Sequence[str]) -> models.FieldCondition:
    return models.FieldCondition(key=name, match=models.MatchAny(any=list(values)))


def hit_of(space: int, point: models.ScoredPoint) -> RawHit:
    """A point that was found in a space."""
    payload = point.payload or {}
    return RawHit(
        space,
        UUID(str(payload["record"])),
        cast("View", payload["view"]),
        int(cast("int", payload["part"])),
        point.score,
    )


def ranked(hits: Iterable[RawHit], depth: int) -> list[RawHit]:
    """The best hits: ids grow with time, so of two equal ones the newer comes first."""
    order = sorted(hits, key=lambda hit: (-hit.score, -hit.record.int, hit.part, hit.view, hit.space))
    return order[:depth]
