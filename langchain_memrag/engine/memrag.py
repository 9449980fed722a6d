"""The facade: one object behind every door."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack
from uuid import UUID

from langchain_core.embeddings import Embeddings
from pydantic import ValidationError

from langchain_memrag.engine.assembly import Engine, assemble
from langchain_memrag.engine.beside import open_servers
from langchain_memrag.engine.embedding import DEFAULT, Default
from langchain_memrag.engine.flow import Flow, R, adrive, drive
from langchain_memrag.engine.maintenance import Maintenance
from langchain_memrag.engine.recall import intent_of
from langchain_memrag.engine.turns import Rememberable, turns_of
from langchain_memrag.errors import ConfigurationError, ScopeError
from langchain_memrag.ranking import RECIPE, Recipe
from langchain_memrag.records import (
    Episode,
    EpisodePage,
    ErasureReport,
    Health,
    Intent,
    Recall,
    RecallFields,
    RecallOptions,
    Receipt,
    Scope,
    SpaceStats,
    TurnFields,
)
from langchain_memrag.stores.base import Clock
from langchain_memrag.stores.server import CacheServer, GraphServer, SearchServer

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["MemRAG", "utc_now"]


def utc_now() -> datetime:
    """The default clock."""
    return datetime.now(UTC)


class MemRAG:
    """Long-term memory for many users: remember, recall, forget.

    One object serves all users, threads and event loops of a process. It is made with `open`, connects
    to nothing else than Postgres, and is closed with `close` or a `with` block.

    Example:
        >>> from langchain_memrag import MemRAG, Scope
        >>> with MemRAG.open(folder) as memory:
        ...     receipt = memory.remember("I moved to Lisbon in May.", Scope("ann"))
        ...     memory.recall("Where does she live?", Scope("ann")).hits[0].text
        'I moved to Lisbon in May.'
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(  # noqa: PLR0913 - all but the first have defaults that fit
        cls,
        location: str | os.PathLike[str] | None = None,
        *,
        search: str | SearchServer | None = None,
        graph: str | GraphServer | None = None,
        cache: str | CacheServer = "process",
        embeddings: Embeddings | str | Default | None = DEFAULT,
        direct_url: str | None = None,
        schema: str = "memrag",
        pool_size: int = 8,
        background: bool = True,
        clock: Clock = utc_now,
        recipe: Recipe = RECIPE,
    ) -> Self:
        """Open a memory, making it if it is not there.

        Args:
            location: A data folder, which gets an embedded Postgres of its own, or a `postgresql://`
                URL; `./.memrag` by default.
            search: An engine for the search index: a `qdrant://` URL, or a `QdrantServer` made with
                options. Postgres keeps the index too, and answers when the engine cannot.
            graph: An engine for the graph: a `neo4j://` URL, or a `Neo4jGraph` made with options.
            cache: Where recalls are kept until something is written: `process`, `none`, a `redis://` URL, or
                a `RedisCache` made with options. A server that you made is yours to close.
            embeddings: LangChain embeddings, an `init_embeddings` string such as
                `openai:text-embedding-3-small`, or `None` to search by words and graph alone. By
                default the embedder the memory was made with if that is the local one; for a new
                memory the local one if it is installed.
            direct_url: A way past a connection pooler, for migrations, checkpoints and jobs.
            schema: The Postgres schema that holds everything.
            pool_size: Connections at most; 1 works.
            background: Heal, expire and index in a thread of this process, from the first write on.
            clock: Gives the time, aware.
            recipe: How what is found becomes one ranking; see `langchain_memrag.ranking`.

        Raises:
            ConfigurationError: The location, a URL, the server or the embedder will not do.
            StoreUnavailableError: The server cannot be reached.
            SchemaError: The data are of a newer version of this package.
        """
        place = location if location is not None else Path(".memrag")
        return cls(
            assemble(
                place,
                embeddings=embeddings,
                direct_url=direct_url,
                schema=schema,
                pool_size=pool_size,
                background=background,
                clock=clock,
                recipe=recipe,
                servers=open_servers(search, graph, cache),
            )
        )

    def close(self) -> None:
        """Stop the background and let all connections go; the last opener stops an embedded server."""
        self._engine.close()

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await self._engine.doors.run(self._engine.stop_background)
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"MemRAG({self._engine.label})"

    def remember(
        self,
        what: Rememberable | Sequence[Rememberable],
        scope: Scope,
        *,
        defer: bool = False,
        **fields: Unpack[TurnFields],
    ) -> Receipt:
        """Store what was said. What the receipt names is on disk and can be recalled.

        Args:
            what: A text, a LangChain message, a `Turn`, a `(role, text)` pair, or a list of these.
            scope: Whose it is, and in which session it was said.
            defer: Return once it is safe; index it in the background.
            **fields: `role`, `speaker`, `occurred_at`, `source`, `ttl`, `key`, `metadata` for all
                turns that do not say otherwise; see `Turn`.

        Raises:
            ConfigurationError: A blank turn, an unknown role, a naive time, or an embedder that is not
                the index's. Nothing was written.
            StoreError: The database refused or is away. Nothing was written.
        """
        receipt = self._drive(
            self._engine.capture.remember(turns_of(what, fields), _scope(scope), defer=defer)
        )
        self._engine.after_write(receipt, scope)
        return receipt

    async def aremember(
        self,
        what: Rememberable | Sequence[Rememberable],
        scope: Scope,
        *,
        defer: bool = False,
        **fields: Unpack[TurnFields],
    ) -> Receipt:
        """Async twin of `remember`."""
        receipt = await self._adrive(
            self._engine.capture.remember(turns_of(what, fields), _scope(scope), defer=defer)
        )
        self._engine.after_write(receipt, scope)
        return receipt

    def recall(self, query: str, scope: Scope, **options: Unpack[RecallFields]) -> Recall:
        """Find what this user's memory knows about a question. Never calls a language model.

        Args:
            query: The question, as it was asked.
            scope: Whose memory to read. The session is used for working memory alone; narrow with
                `where=RecallFilter(session_id=...)`.
            **options: See `RecallOptions`.

        Raises:
            ConfigurationError: A blank question, a bad option, or an embedder that is not the index's.
            StoreUnavailableError: Postgres cannot be reached.
        """
        return self._drive(self._engine.recaller.recall(query, _scope(scope), _options(options)))

    async def arecall(self, query: str, scope: Scope, **options: Unpack[RecallFields]) -> Recall:
        """Async twin of `recall`."""
        return await self._adrive(self._engine.recaller.recall(query, _scope(scope), _options(options)))

    def intent(self, text: str) -> Intent:
        """What a question asks for, by the rules, in English and Chinese."""
        return intent_of(text)

    def get(self, ids: Sequence[UUID], scope: Scope) -> list[Episode]:
        """Episodes by id, in the order asked.

        Raises:
            NotFoundError: One is not in this user's memory, or has expired.
        """
        return self._engine.read.get(ids, _scope(scope))

    async def aget(self, ids: Sequence[UUID], scope: Scope) -> list[Episode]:
        """Async twin of `get`."""
        return await self._engine.doors.run(self.get, ids, scope)

    def history(
        self, scope: Scope, *, limit: int = 50, cursor: str | None = None, newest_first: bool = False
    ) -> EpisodePage:
        """What was said, in order of time; a scope's session narrows it.

        Args:
            scope: Whose history.
            limit: Episodes a page; 1 to 1,000.
            cursor: From the page before.
            newest_first: Turn the order round.

        Raises:
            ConfigurationError: A limit out of range, or a cursor that no page gave.
        """
        return self._engine.read.history(_scope(scope), limit, cursor, newest_first=newest_first)

    async def ahistory(
        self, scope: Scope, *, limit: int = 50, cursor: str | None = None, newest_first: bool = False
    ) -> EpisodePage:
        """Async twin of `history`."""
        return await self._engine.doors.run(
            self.history, scope, limit=limit, cursor=cursor, newest_first=newest_first
        )

    def forget(
        self,
        scope: Scope,
        *,
        ids: Sequence[UUID] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        everything: bool = False,
        checkpoints: bool = False,
        dry_run: bool = False,
    ) -> ErasureReport:
        """Erase turns from every store, then look whether they are gone.

        What is given narrows together: ids, the scope's session, and `[since, until)`. A user's whole
        memory goes only with `everything=True`, which excludes the others.

        Args:
            scope: Whose memory; its session narrows.
            ids: Only these episodes.
            since: Only what was said at or after it; aware.
            until: Only what was said before it; aware.
            everything: All of the user.
            checkpoints: Also the checkpoints of the threads that the sessions name.
            dry_run: Only count.

        Raises:
            ConfigurationError: Nothing or contradictory things were asked.
        """
        what = self._engine.selection(
            _scope(scope), ids=ids, since=since, until=until, everything=everything, checkpoints=checkpoints
        )
        return self._engine.eraser.forget(what, dry_run=dry_run)

    async def aforget(
        self,
        scope: Scope,
        *,
        ids: Sequence[UUID] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        everything: bool = False,
        checkpoints: bool = False,
        dry_run: bool = False,
    ) -> ErasureReport:
        """Async twin of `forget`."""
        what = self._engine.selection(
            _scope(scope), ids=ids, since=since, until=until, everything=everything, checkpoints=checkpoints
        )
        return await self._engine.doors.run(self._engine.eraser.forget, what, dry_run=dry_run)

    def flush(self, scope: Scope | None = None) -> int:
        """Index now what is pending, for one user or for all.

        Returns:
            How many turns are still pending, because the embedder or a store is away.
        """
        return self._drive(self._engine.upkeep.heal(_scope(scope) if scope else None, wait=True))

    async def aflush(self, scope: Scope | None = None) -> int:
        """Async twin of `flush`."""
        return await self._adrive(self._engine.upkeep.heal(_scope(scope) if scope else None, wait=True))

    def sweep(self) -> None:
        """Do now what the background does once a minute: heal, erase the expired, index big memories."""
        self._engine.sweep(lambda: False)

    async def asweep(self) -> None:
        """Async twin of `sweep`."""
        await self._engine.doors.run(self.sweep)

    def stats(self, scope: Scope) -> SpaceStats:
        """The size of one user's memory; all zero for a user who has none."""
        return self._engine.read.stats(_scope(scope))

    async def astats(self, scope: Scope) -> SpaceStats:
        """Async twin of `stats`."""
        return await self._engine.doors.run(self.stats, scope)

    def doctor(self, *, every: bool = False) -> Health:
        """What is connected, versions, counts, how far engines are behind, and what is wrong; no credentials.

        Args:
            every: Compare all memories across the stores, not a hundred of them.
        """
        return self._engine.doctor(every=every)

    async def adoctor(self, *, every: bool = False) -> Health:
        """Async twin of `doctor`."""
        return await self._engine.doors.run(self.doctor, every=every)

    @property
    def maintenance(self) -> Maintenance:
        """What whoever runs the memory does with it: reindex, re-embed, repair, look at jobs, work."""
        return self._engine.maintenance

    def checkpointer(self) -> BaseCheckpointSaver[str]:
        """A LangGraph saver on the same database, for sync and async hosts alike."""
        return self._engine.checkpointer()

    def _drive(self, flow: Flow[R]) -> R:
        return drive(flow, self._engine.embedder)

    async def _adrive(self, flow: Flow[R]) -> R:
        return await adrive(flow, self._engine.embedder, self._engine.doors)


def _scope(scope: object) -> Scope:
    if not isinstance(scope, Scope):
        raise ScopeError(f"scope must be a Scope, such as Scope('ann'), not {type(scope).__name__}")
    return scope


def _options(options: RecallFields) -> RecallOptions:
    try:
        return RecallOptions.model_validate(options)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"recall: {where}: {first['msg']}") from None
