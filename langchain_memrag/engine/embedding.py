"""Any LangChain embeddings as vectors that an index can trust: checked, unit length, recognised again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrag.engine.local import LOCAL_EMBEDDER, LocalEmbeddings, is_installed
from langchain_memrag.errors import ConfigurationError, MissingDependencyError
from langchain_memrag.stores.base import Vector

__all__ = ["DEFAULT", "PROBES", "Default", "Embedder", "Fingerprint", "choose_embedder", "same_embedder"]

Default = Literal["default"]
DEFAULT: Final[Default] = "default"
"""Take the embedder that the folder was made with, else the local one if it is installed, else none."""

PROBES: Final = (
    "The quick brown fox jumps over the lazy dog.",
    "她昨天在北京大学图书馆借了一本书。",
    "Meeting with Dr. Chen moved to 3 pm on Friday, room 42.",
)
"""Texts by which an embedder is recognised."""

SAME_COSINE: Final = 0.999
"""Hosted models return slightly different floats for one text; another model is far below this."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What an index remembers of its embedder.

    Attributes:
        name: Provider and model.
        width: Length of its vectors.
        probes: The vectors of `PROBES`, of shape `(3, width)`.
    """

    name: str
    width: int
    probes: tuple[tuple[float, ...], ...]


def same_embedder(left: Fingerprint, right: Fingerprint) -> bool:
    """Whether two fingerprints are of one embedder: name, width, and cosine of every probe."""
    if left.name != right.name or left.width != right.width:
        return False
    cosines = np.einsum("ij,ij->i", np.asarray(left.probes), np.asarray(right.probes))
    return bool((cosines >= SAME_COSINE).all())


class Embedder:
    """LangChain embeddings with what they return checked.

    Args:
        embeddings: The model.
        name: What to call it in the index; derived from class and model where it is `None`.
    """

    def __init__(self, embeddings: Embeddings, name: str | None = None) -> None:
        self._embeddings = embeddings
        self.name = name or _name_of(embeddings)

    def documents(self, texts: Sequence[str]) -> list[Vector]:
        """Embed passages; unit length, in the order given.

        Raises:
            ConfigurationError: The model returned a wrong count or width, or a vector of nothing.
        """
        return self._checked(self._embeddings.embed_documents(list(texts)), len(texts))

    async def adocuments(self, texts: Sequence[str]) -> list[Vector]:
        """Async twin of `documents`; the model's own async half is awaited."""
        return self._checked(await self._embeddings.aembed_documents(list(texts)), len(texts))

    def query(self, text: str) -> Vector:
        """Embed a question; unit length.

        Raises:
            ConfigurationError: The model returned a vector of nothing.
        """
        return self._checked([self._embeddings.embed_query(text)], 1)[0]

    async def aquery(self, text: str) -> Vector:
        """Async twin of `query`."""
        return self._checked([await self._embeddings.aembed_query(text)], 1)[0]

    def fingerprint(self) -> Fingerprint:
        """Embed the probe texts.

        Raises:
            ConfigurationError: As for `documents`.
        """
        return self._fingerprint(self.documents(PROBES))

    async def afingerprint(self) -> Fingerprint:
        """Async twin of `fingerprint`."""
        return self._fingerprint(await self.adocuments(PROBES))

    def _fingerprint(self, vectors: Sequence[Vector]) -> Fingerprint:
        return Fingerprint(
            name=self.name,
            width=len(vectors[0]),
            probes=tuple(tuple(float(x) for x in vector) for vector in vectors),
        )

    def _checked(self, rows: Sequence[Sequence[float]], wanted: int) -> list[Vector]:
        if len(rows) != wanted:
            raise ConfigurationError(
                f"embedder {self.name} returned {len(rows)} vectors for {wanted} texts; "
                f"it must return one a text"
            )
        widths = {len(row) for row in rows}
        if len(widths) > 1 or 0 in widths:
            raise ConfigurationError(
                f"embedder {self.name} returned vectors of widths {sorted(widths)} in one call"
            )
        if not rows:
            return []
        matrix = np.asarray(rows, dtype=np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(matrix).all() or not (lengths > 0).all():
            raise ConfigurationError(f"embedder {self.name} returned a zero vector or one that is not finite")
        return list(matrix / lengths)


def _name_of(embeddings: Embeddings) -> str:
    if isinstance(embeddings, LocalEmbeddings):
        return LOCAL_EMBEDDER
    kind = type(embeddings)
    for field in ("model", "model_name", "model_id", "deployment", "repo_id"):
        model = getattr(embeddings, field, None)
        if isinstance(model, str) and model:
            return f"{kind.__name__}:{model}"
    return f"{kind.__module__}.{kind.__name__}"


def choose_embedder(wanted: Embeddings | str | Default | None, registered: str | None) -> Embedder | None:
    """The embedder for a memory that may have one already.

    Args:
        wanted: Embeddings, an `init_embeddings` string such as `openai:text-embedding-3-small`,
            `DEFAULT`, or `None` for no embedder.
        registered: The name in the index, where there is one.

    Raises:
        ConfigurationError: What is wanted is not what the index was made with.
        MissingDependencyError: An `init_embeddings` string without the `langchain` extra, or an index
            made with the local embedder where that is not installed.
    """
    if wanted is None:
        return None
    if wanted == DEFAULT:
        return _default_embedder(registered)
    embedder = _from_string(wanted) if isinstance(wanted, str) else Embedder(wanted)
    if registered is not None and embedder.name != registered:
        raise ConfigurationError(
            f"this memory was indexed with the embedder {registered}, not with {embedder.name}: "
            f"open it with {registered}, or move it with `memrag reembed`"
        )
    return embedder


def _default_embedder(registered: str | None) -> Embedder | None:
    if registered is None:
        return Embedder(LocalEmbeddings()) if is_installed() else None
    if registered != LOCAL_EMBEDDER:
        raise ConfigurationError(
            f"this memory was indexed with the embedder {registered}: pass it as `embeddings=`, "
            f"or pass `embeddings=None` to search by words alone"
        )
    return Embedder(LocalEmbeddings())


def _from_string(spec: str) -> Embedder:
    if spec in {LOCAL_EMBEDDER, "local"}:
        return Embedder(LocalEmbeddings())
    try:
        from langchain.embeddings import init_embeddings
    except ImportError as error:
        raise MissingDependencyError(f"The embedder {spec!r}", "langchain") from error
    try:
        made = init_embeddings(spec)
    except (ValueError, ImportError) as error:
        raise ConfigurationError(
            f"cannot make the embedder {spec!r}: "
            "write it as provider:model and install the provider's package"
        ) from error
    if not isinstance(made, Embeddings):
        raise ConfigurationError(f"{spec!r} does not name an embedding model")
    return Embedder(made, name=spec)
