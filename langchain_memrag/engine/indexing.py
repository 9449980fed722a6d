"""The search index together with the embedder it was made for: recognised once, then fixed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from langchain_memrag.engine.embedding import Embedder, Fingerprint, same_embedder
from langchain_memrag.engine.flow import Flow, Recognition
from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.postgres.embedders import EmbedderRegistry, RegisteredEmbedder
from langchain_memrag.stores.postgres.search import PostgresSearch

__all__ = ["Indexing"]


class Indexing:
    """Decides once whether the embedder at hand is that of the index.

    The first write of a new memory registers its embedder; going from none to one marks all that is
    stored to be indexed again. Until the model has answered once, nothing is decided and nothing lost.

    Args:
        registry: What the database remembers of its embedders.
        open_search: Makes the search index for a registered embedder, or for words alone.
        embedder: What this process embeds with, if anything.
    """

    def __init__(
        self,
        registry: EmbedderRegistry,
        open_search: Callable[[RegisteredEmbedder | None], PostgresSearch],
        embedder: Embedder | None,
    ) -> None:
        self._registry = registry
        self._open_search = open_search
        self._embedder = embedder
        self._lock = threading.Lock()
        self._registered: RegisteredEmbedder | None = None
        self._search: PostgresSearch | None = None
        self._recognised = False

    @property
    def embeds(self) -> bool:
        """Whether the embedder was recognised, so that its vectors may be used."""
        return self._recognised

    @property
    def registered(self) -> RegisteredEmbedder | None:
        """The embedder that the index was made with, if there is one."""
        return self._registered

    @property
    def embedder_id(self) -> int | None:
        """The number of the embedder that this process knows the memory by."""
        _ = self.search
        return self._registered.id if self._registered else None

    @property
    def name(self) -> str:
        """What the vectors of this process are made with; empty where it makes none."""
        return f"{self._registered.id}:{self._registered.name}" if self.embeds and self._registered else ""

    @property
    def wants_vectors(self) -> bool:
        """Whether an entry without a vector is unfinished."""
        return self._registered is not None or self._embedder is not None

    @property
    def search(self) -> PostgresSearch:
        """The index as it can be used now."""
        with self._lock:
            if self._search is None:
                self._registered = self._registry.active()
                self._search = self._open_search(self._registered)
            return self._search

    def ready(self) -> Flow[PostgresSearch]:
        """Recognise the embedder, if that was not done yet.

        Raises:
            ConfigurationError: It is another one than the index was made with, or what it returns
                can never be used.
        """
        if self._embedder is None or self._recognised:
            return self.search
        reply = yield Recognition()
        if reply.refusal is not None:
            raise reply.refusal
        if reply.fingerprint is not None:
            self._settle(reply.fingerprint)
        return self.search

    def _settle(self, seen: Fingerprint) -> None:
        with self._lock:
            if self._recognised:
                return
            known = self._registry.active() or self._registry.register(seen.name, seen.width, seen.probes)
            stored = Fingerprint(known.name, known.width, known.probes)
            if not same_embedder(stored, seen):
                raise ConfigurationError(_mismatch(stored, seen))
            self._registered = known
            self._search = self._open_search(known)
            self._recognised = True


def _mismatch(stored: Fingerprint, seen: Fingerprint) -> str:
    remedy = "use the one it was made with, or move it with `memrag reembed`"
    if stored.name == seen.name and stored.width == seen.width:
        return f"the embedder {seen.name} gives other vectors than when this memory was indexed: {remedy}"
    return (
        f"this memory was indexed with {stored.name} ({stored.width} dimensions), "
        f"not with {seen.name} ({seen.width} dimensions): {remedy}"
    )
