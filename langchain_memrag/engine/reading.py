"""Reading back what was said: by id, in order, and how much of it there is."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from langchain_memrag.engine.indexing import Indexing
from langchain_memrag.errors import ConfigurationError, NotFoundError
from langchain_memrag.records import Episode, EpisodePage, Scope, SpaceStats
from langchain_memrag.stores.base import Clock, GraphStore
from langchain_memrag.stores.postgres.episodes import EpisodeReader
from langchain_memrag.stores.postgres.records import RecordStore

__all__ = ["Reading"]

PAGE_LIMIT = 1000


class Reading:
    """Reads episodes of one user at a time.

    Args:
        records: Finds the user.
        episodes: Reads what was said.
        graph: Counted by `stats`.
        indexing: Counted by `stats`.
        clock: Says what has expired.
    """

    def __init__(
        self,
        records: RecordStore,
        episodes: EpisodeReader,
        graph: GraphStore,
        indexing: Indexing,
        clock: Clock,
    ) -> None:
        self._records = records
        self._episodes = episodes
        self._graph = graph
        self._indexing = indexing
        self._clock = clock

    def get(self, ids: Sequence[UUID], scope: Scope) -> list[Episode]:
        """Episodes by id, in the order asked.

        Raises:
            NotFoundError: One is not in this user's memory, or has expired.
        """
        space = self._records.space_of(scope.user_id)
        found = [] if space is None else self._episodes.episodes((space,), ids, self._clock())
        known = {episode.id: episode for episode in found}
        missing = [str(one) for one in ids if one not in known]
        if missing:
            raise NotFoundError(f"no episode {', '.join(missing[:5])} in this user's memory")
        return [known[one] for one in ids]

    def history(self, scope: Scope, limit: int, cursor: str | None, *, newest_first: bool) -> EpisodePage:
        """A page of what was said, in order of time.

        Raises:
            ConfigurationError: A limit out of range, or a cursor that no page gave.
        """
        if not 1 <= limit <= PAGE_LIMIT:
            raise ConfigurationError(f"limit must be 1 to {PAGE_LIMIT}, not {limit}")
        space = self._records.space_of(scope.user_id)
        if space is None:
            return EpisodePage(episodes=())
        return self._episodes.history(
            space,
            self._clock(),
            session=scope.session_id,
            limit=limit,
            cursor=cursor,
            newest_first=newest_first,
        )

    def stats(self, scope: Scope) -> SpaceStats:
        """The size of a user's memory; all zero for one who has none."""
        space = self._records.space_of(scope.user_id)
        if space is None:
            return SpaceStats()
        entities, relations = self._graph.counts(space)
        return self._episodes.stats(space, self._clock()).model_copy(
            update={
                "entries": self._indexing.search.count(space),
                "entities": entities,
                "relations": relations,
            }
        )
