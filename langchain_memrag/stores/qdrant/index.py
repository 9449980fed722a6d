"""The search index on Qdrant: one collection per embedder, a dense and a sparse vector a point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final
from uuid import UUID

from qdrant_client import QdrantClient, models

from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.stores.base import (
    DenseSignal,
    IndexEntry,
    LexicalSignal,
    RawHit,
    SearchFilter,
    SearchIndex,
    Signal,
    Transaction,
)
from langchain_memrag.stores.qdrant.faults import ENGINE
from langchain_memrag.stores.qdrant.layout import prepare_collection
from langchain_memrag.stores.qdrant.points import (
    DENSE,
    SHOWN,
    TERMS,
    check_vector,
    from_sources,
    hit_of,
    in_space,
    permitted,
    point_of,
    ranked,
    sparse,
)
from langchain_memrag.stores.qdrant.server import QdrantServer, collection_name

__all__ = ["QdrantIndex"]

_MORE: Final = 64
"""Asked for beyond the depth, since Qdrant cuts among equals as it likes."""
_WIDER: Final = 16
"""How many times as many are asked for, once, where even that cut among equals."""
_EFFORT: Final = 128
"""Candidates that a graph search keeps at least."""
_NUMBERS: Final = 600_000
"""Vector components in one request at most; a server takes 32 MB, and each is 20 bytes long."""
_RECORDS: Final = 1_000
"""Records named in one condition at most."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """One signal in one space: a space has a graph of its own, which only its own question walks."""

    signal: int
    space: int
    depth: int
    request: models.QueryRequest

    @property
    def limit(self) -> int:
        return self.request.limit or 0

    def wider(self) -> _Ask:
        return _Ask(
            self.signal,
            self.space,
            self.depth,
            self.request.model_copy(update={"limit": self.limit * _WIDER}),
        )


class QdrantIndex(SearchIndex):
    """The entries of one memory, with the vectors of one embedder.

    What is removed leaves the collections of retired embedders too, so `remove`, `clear` and `count_of`
    reckon with all of them. `count` is about this embedder's alone, which is what has to be complete.

    Args:
        server: Where they are.
        embedder: Names the collection; `None` for words alone.
        width: Dimensions of its vectors; `None` exactly where there is no embedder.
    """

    engine: ClassVar[str] = ENGINE
    transactional: ClassVar[bool] = False

    def __init__(self, server: QdrantServer, embedder: int | None, width: int | None) -> None:
        if (embedder is None) != (width is None):
            raise ConfigurationError("an embedder and the width of its vectors go together")
        if width is not None and not 1 <= width <= 65_536:
            raise ConfigurationError(f"vectors may have 1 to 65,536 dimensions in Qdrant, not {width:,}")
        self._server = server
        self._width = width
        self._ready = False
        self.collection = collection_name(server.options, embedder)

    def upsert(self, entries: Sequence[IndexEntry], *, within: Transaction | None = None) -> None:  # noqa: ARG002
        """See `SearchIndex.upsert`."""
        if self._width is not None:
            for entry in entries:
                if entry.vector is not None:
                    check_vector(entry.vector, self._width)
        points = {str(point.id): point for point in self._points(entries)}
        for batch in self._batches(list(points.values())):
            self._write(batch)

    def _points(self, entries: Sequence[IndexEntry]) -> Iterator[models.PointStruct]:
        return (point_of(entry, dense=self._width is not None) for entry in entries)

    def _batches(self, points: Sequence[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
        size = max(1, min(self._server.options.batch, _NUMBERS // (self._width or 1)))
        return (list(points[start : start + size]) for start in range(0, len(points), size))

    def _write(self, points: list[models.PointStruct]) -> None:
        operation = "write entries"

        def write(client: QdrantClient) -> models.UpdateResult:
            return client.upsert(self.collection, points, wait=True)

        self._prepare()
        done = self._server.call_on(self.collection, operation, write)
        if done is None:
            # Somebody dropped it, or the server lost it: what is missing is filled in from the record.
            self._ready = False
            self._prepare()
            done = self._server.call_on(self.collection, operation, write)
        _see_done(done, operation)

    def _prepare(self) -> None:
        if self._ready:
            return
        server = self._server
        server.call(
            "prepare a collection",
            lambda client: prepare_collection(
                client,
                self.collection,
                width=self._width,
                options=server.options,
                indexes=not server.address.local,
            ),
        )
        self._ready = True

    def search(
        self, signals: Sequence[Signal], where: SearchFilter, *, timeout: float | None = None
    ) -> list[list[RawHit]]:
        """See `SearchIndex.search`. Qdrant counts its time in whole seconds, so one is the least."""
        asks: list[_Ask] = []
        for number, signal in enumerate(signals):
            asks += self._asks(number, signal, where)
        found: dict[int, list[RawHit]] = {number: [] for number in range(len(signals))}
        for ask, hits in self._answers(asks, timeout).items():
            found[asks[ask].signal] += hits
        return [
            ranked(
                (hit for hit in found[number] if isinstance(signal, DenseSignal) or hit.score > 0),
                signal.depth,
            )
            for number, signal in enumerate(signals)
        ]

    def _asks(self, number: int, signal: Signal, where: SearchFilter) -> list[_Ask]:
        """The questions that answer a signal; none where nothing can be found."""
        query: list[float] | models.SparseVector
        if isinstance(signal, DenseSignal):
            if self._width is None:
                return []
            check_vector(signal.vector, self._width)
            query = signal.vector.tolist()
        else:
            query = sparse({term: weight for term, weight in signal.terms.items() if weight})
            if not query.indices:
                return []
        if signal.depth < 1 or not signal.views or where.roles == ():
            return []
        limit = signal.depth + _MORE
        return [
            _Ask(
                number,
                space,
                signal.depth,
                models.QueryRequest(
                    query=query,
                    using=TERMS if isinstance(signal, LexicalSignal) else DENSE,
                    filter=permitted(where, space, signal.views),
                    params=self._params(limit) if isinstance(signal, DenseSignal) else None,
                    limit=limit,
                    with_payload=SHOWN,
                ),
            )
            for space in dict.fromkeys(where.spaces)
        ]

    def _params(self, limit: int) -> models.SearchParams | None:
        if self._server.address.local:
            return None
        quantised = self._server.options.quantisation != "none"
        return models.SearchParams(
            hnsw_ef=max(_EFFORT, 2 * limit),
            quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0)
            if quantised
            else None,
        )

    def _answers(self, asks: Sequence[_Ask], timeout: float | None) -> Mapping[int, list[RawHit]]:
        """What was found for each question, by its place."""
        answers = dict(enumerate(self._query(asks, timeout)))
        cut = [place for place, points in answers.items() if _cut_among_equals(asks[place], points)]
        answers |= dict(zip(cut, self._query([asks[place].wider() for place in cut], timeout), strict=False))
        return {
            place: [hit_of(asks[place].space, point) for point in points] for place, points in answers.items()
        }

    def _query(self, asks: Sequence[_Ask], timeout: float | None) -> list[list[models.ScoredPoint]]:
        """One round trip; nothing where there is no collection yet."""
        if not asks:
            return []
        seconds = None if timeout is None else max(1, math.ceil(timeout))
        found = self._server.call_on(
            self.collection,
            "search",
            lambda client: client.query_batch_points(
                self.collection, [ask.request for ask in asks], timeout=seconds
            ),
        )
        return [response.points for response in found or ()]

    def remove(self, space: int, records: Sequence[UUID], *, within: Transaction | None = None) -> int:  # noqa: ARG002
        """See `SearchIndex.remove`."""
        if not records:
            return 0
        return sum(
            self._delete(name, from_sources(space, some), "remove entries")
            for name in self._server.collections()
            for some in _chunks(records)
        )

    def clear(self, space: int, *, within: Transaction | None = None) -> int:  # noqa: ARG002
        """See `SearchIndex.clear`."""
        return sum(
            self._delete(name, in_space(space), "clear a space") for name in self._server.collections()
        )

    def _delete(self, name: str, which: models.Filter, operation: str) -> int:
        count = self._count(name, which)
        # Deleted even where none was counted: a write may have come in between.
        done = self._server.call_on(
            name,
            operation,
            lambda client: client.delete(name, models.FilterSelector(filter=which), wait=True),
        )
        if done is not None:
            _see_done(done, operation)
        return count

    def count(self, space: int) -> int:
        """See `SearchIndex.count`."""
        return self._count(self.collection, in_space(space))

    def count_of(self, space: int, records: Sequence[UUID]) -> int:
        """See `SearchIndex.count_of`."""
        if not records:
            return 0
        names = self._server.collections()
        if len(records) <= _RECORDS:
            return sum(self._count(name, from_sources(space, records)) for name in names)
        # An entry may have sources in two pieces of the list.
        return sum(
            len({each for some in _chunks(records) for each in self._ids(name, from_sources(space, some))})
            for name in names
        )

    def _count(self, name: str, which: models.Filter) -> int:
        found = self._server.call_on(
            name, "count entries", lambda client: client.count(name, count_filter=which, exact=True)
        )
        return 0 if found is None else found.count

    def _ids(self, name: str, which: models.Filter) -> Iterator[str]:
        offset: models.ExtendedPointId | None = None
        while True:
            page = self._server.call_on(
                name,
                "count entries",
                lambda client, start=offset: client.scroll(  # type: ignore[misc]
                    name, scroll_filter=which, limit=_RECORDS, offset=start, with_payload=False
                ),
            )
            if page is None:
                return
            points, offset = page
            yield from (str(point.id) for point in points)
            if offset is None:
                return


def _chunks(records: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    return (records[start : start + _RECORDS] for start in range(0, len(records), _RECORDS))


def _cut_among_equals(ask: _Ask, points: Sequence[models.ScoredPoint]) -> bool:
    """Whether what was left out may be as good as the last that is wanted."""
    return len(points) >= ask.limit and points[ask.depth - 1].score <= points[-1].score


def _see_done(result: models.UpdateResult | None, operation: str) -> None:
    """See that a write took effect: a server may let its caller go before."""
    if result is None or result.status != models.UpdateStatus.COMPLETED:
        raise StoreUnavailableError(
            "the write did not take effect in time; try again", engine=ENGINE, operation=operation
        )
