"""How a collection is laid out: one graph a space, and an index for every field that filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qdrant_client import QdrantClient, models

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.qdrant.address import QdrantOptions
from langchain_memrag.stores.qdrant.faults import DRIVER_ERRORS
from langchain_memrag.stores.qdrant.points import DENSE, TERMS

__all__ = ["FIELDS", "create_once", "prepare_collection"]

IndexParams = models.KeywordIndexParams | models.UuidIndexParams | models.DatetimeIndexParams

FIELDS: Final[Mapping[str, type[IndexParams]]] = {
    "space": models.KeywordIndexParams,
    "view": models.KeywordIndexParams,
    "sources": models.UuidIndexParams,
    "session": models.KeywordIndexParams,
    "agent": models.KeywordIndexParams,
    "role": models.KeywordIndexParams,
    "occurred_at": models.DatetimeIndexParams,
    "expires_at": models.DatetimeIndexParams,
}

_LINKS: Final = 16


def prepare_collection(
    client: QdrantClient, name: str, *, width: int | None, options: QdrantOptions, indexes: bool
) -> None:
    """Make a collection if it is missing, and what is missing of it: an earlier maker may have died.

    Args:
        client: To ask.
        name: The collection's.
        width: Dimensions of its vectors; `None` for words alone.
        options: For a new collection.
        indexes: Whether payload indexes mean anything to this client.

    Raises:
        ConfigurationError: It is there, for vectors of another width.
    """
    create_once(
        client,
        name,
        models.CreateCollection(
            vectors={} if width is None else {DENSE: _dense(width, options)},
            sparse_vectors={TERMS: models.SparseVectorParams(index=_sparse_index(options))},
            shard_number=options.shards,
            replication_factor=options.replicas,
            # No graph over all spaces: each space has its own, and a search asks for one at a time.
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=_LINKS, on_disk=options.on_disk),
        ),
    )
    found = client.get_collection(name)
    _check_width(name, found.config.params.vectors, width)
    if indexes:
        for field in FIELDS.keys() - (found.payload_schema or {}).keys():
            client.create_payload_index(name, field, field_schema=_index(field), wait=True)


def create_once(client: QdrantClient, name: str, wanted: models.CreateCollection) -> None:
    """Make a collection unless it is there; of many makers at once, one does and none fails."""
    if client.collection_exists(name):
        return
    try:
        client.create_collection(
            name,
            vectors_config=wanted.vectors,
            sparse_vectors_config=wanted.sparse_vectors,
            shard_number=wanted.shard_number,
            replication_factor=wanted.replication_factor,
            hnsw_config=wanted.hnsw_config,
        )
    except DRIVER_ERRORS:
        if not client.collection_exists(name):
            raise


def _dense(width: int, options: QdrantOptions) -> models.VectorParams:
    # Vectors are unit length, so that the inner product is the cosine and nothing is scaled again.
    return models.VectorParams(
        size=width,
        distance=models.Distance.DOT,
        on_disk=options.on_disk,
        quantization_config=_quantisation(options),
    )


def _quantisation(options: QdrantOptions) -> models.ScalarQuantization | models.BinaryQuantization | None:
    match options.quantisation:
        case "scalar":
            small = models.ScalarQuantizationConfig(
                type=models.ScalarType.INT8, quantile=0.99, always_ram=True
            )
            return models.ScalarQuantization(scalar=small)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
        case _:
            return None


def _sparse_index(options: QdrantOptions) -> models.SparseIndexParams:
    # No modifier: the weights of a question come with it, and are those of every other engine.
    return models.SparseIndexParams(on_disk=options.on_disk)


def _index(field: str) -> IndexParams:
    cls = FIELDS[field]
    schema: dict[str, object] = {"type": _TYPES[cls]}
    if field == "space":
        schema["is_tenant"] = True
    elif "enable_hnsw" in cls.model_fields:
        # Only spaces have a graph of their own; one for all that a role said would link the spaces.
        schema["enable_hnsw"] = False
    return cls.model_validate(schema)


_TYPES: Final[Mapping[type, str]] = {
    models.KeywordIndexParams: "keyword",
    models.UuidIndexParams: "uuid",
    models.DatetimeIndexParams: "datetime",
}


def _check_width(
    name: str, vectors: models.VectorParams | Mapping[str, models.VectorParams] | None, width: int | None
) -> None:
    named = vectors if isinstance(vectors, Mapping) else {}
    found = named[DENSE].size if DENSE in named else None
    if found != width:
        raise ConfigurationError(
            f"the collection {name} of Qdrant is for vectors of {found or 'no'} dimensions, "
            f"not of {width or 'no'}: set another prefix, or remove it and run `memrag reindex`"
        )
