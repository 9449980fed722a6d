"""What a user's memory knows, as LangChain documents."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, Unpack

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field, JsonValue, SkipValidation
from typing_extensions import override

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.memory.identity import resolve_scope
from langchain_memrag.records import Hit, RecallFields, RecallFilter, Scope

__all__ = ["DocumentMetadata", "MemoryRetriever", "SignalMetadata"]


class SignalMetadata(TypedDict):
    """How one signal saw a document; see `SignalScore`."""

    name: str
    score: float
    rank: int
    share: float
    detail: str


class DocumentMetadata(TypedDict, total=False):
    """What a document of `MemoryRetriever` says about itself; all of it JSON.

    Attributes:
        id: The record's id.
        layer: The layer of memory it belongs to.
        score: Comparable inside one recall only.
        signals: Why it was found.
        sources: Ids of the turns it comes from.
        occurred_at: When it was said, ISO 8601, by the speaker's clock.
        role: Whose message it was.
        speaker: A name, where there is one.
        session_id: The conversation it was said in.
        source: Where the text comes from.
        metadata: What the user had kept beside it.
    """

    id: str
    layer: str
    score: float
    signals: list[SignalMetadata]
    sources: list[str]
    occurred_at: str
    role: str
    speaker: str | None
    session_id: str | None
    source: str
    metadata: dict[str, JsonValue]


class MemoryRetriever(BaseRetriever):
    """Recalls one user's memory. Works in chains, sync and async, and never calls a language model.

    Args:
        memrag: The memory.
        scope: Whose memory; `None` means the user of the run, as in
            `retriever.invoke("...", {"configurable": {"user_id": "ann"}})`.
        k: How many documents at most; also a keyword of `invoke`.
        token_budget: How many tokens they may take in a prompt; 0 means no limit.
        where: Narrows what may be found.

    Example:
        >>> retriever = MemoryRetriever(memrag=memrag, scope=Scope("ann"), k=3)
        >>> documents = retriever.invoke("Where does she live?")
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memrag: Annotated[MemRAG, SkipValidation] = Field(exclude=True, repr=False)
    scope: Scope | None = None
    k: Annotated[int, Field(ge=1, le=1000)] = 10
    token_budget: Annotated[int, Field(ge=0)] = 0
    where: RecallFilter = RecallFilter()

    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Recall; `k`, `token_budget`, `where` and the other keywords of `MemRAG.recall` may be given.

        Raises:
            ScopeError: No scope was given and the run has no user, or two that differ.
        """
        return super().invoke(input, config, **{**kwargs, "scope": self._scope(config)})

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async twin of `invoke`."""
        return await super().ainvoke(input, config, **{**kwargs, "scope": self._scope(config)})

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        scope: Scope | None = None,
        **options: Unpack[RecallFields],
    ) -> list[Document]:
        recall = self.memrag.recall(query, scope or self._scope(None), **self._options(options))
        return [_document(hit) for hit in recall.hits]

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        scope: Scope | None = None,
        **options: Unpack[RecallFields],
    ) -> list[Document]:
        recall = await self.memrag.arecall(query, scope or self._scope(None), **self._options(options))
        return [_document(hit) for hit in recall.hits]

    def _scope(self, config: RunnableConfig | None) -> Scope:
        return self.scope or resolve_scope(config)

    def _options(self, given: RecallFields) -> RecallFields:
        return {**RecallFields(k=self.k, token_budget=self.token_budget, where=self.where), **given}


def _document(hit: Hit) -> Document:
    metadata: DocumentMetadata = {
        "id": str(hit.id),
        "layer": hit.layer,
        "score": hit.score,
        "signals": [
            {"name": one.name, "score": one.score, "rank": one.rank, "share": one.share, "detail": one.detail}
            for one in hit.signals
        ],
        "sources": [str(source) for source in hit.sources],
    }
    if hit.episode:
        metadata["occurred_at"] = hit.episode.said_at.isoformat()
        metadata["role"] = hit.episode.role
        metadata["speaker"] = hit.episode.speaker
        metadata["session_id"] = hit.episode.scope.session_id
        metadata["source"] = hit.episode.source
        metadata["metadata"] = dict(hit.episode.metadata)
    return Document(page_content=hit.text, id=str(hit.id), metadata=dict(metadata))
