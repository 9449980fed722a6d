"""Erasing a user's checkpoints, when that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langchain_memrag.stores.postgres.database import Database

__all__ = ["CheckpointEraser"]

# A thread id is global, a session id belongs to a user: a thread that another user's episodes name as
# well is not this user's alone, and is left.
_OURS = (
    " thread_id = ANY(%(threads)s) AND NOT EXISTS (SELECT FROM {schema}.episode e"
    " WHERE e.session = thread_id AND e.space <> %(space)s)"
)


class CheckpointEraser:
    """Counts and erases checkpoints by thread.

    Args:
        database: Where LangGraph's saver keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, space: int, threads: Sequence[str]) -> int:
        """How many checkpoints these threads of one user have."""
        with self._database.connection("count checkpoints") as connection:
            row = connection.execute(
                self._database.statement("SELECT count(*) FROM {schema}.checkpoints WHERE" + _OURS),
                {"threads": list(threads), "space": space},
            ).fetchone()
        return cast("tuple[int]", row)[0]

    def erase(self, space: int, threads: Sequence[str]) -> int:
        """Erase them; returns how many checkpoints went."""
        values = {"threads": list(threads), "space": space}
        with self._database.transaction("forget checkpoints") as work:
            for statement in (
                self._database.statement("DELETE FROM {schema}.checkpoint_writes WHERE" + _OURS),
                self._database.statement("DELETE FROM {schema}.checkpoint_blobs WHERE" + _OURS),
            ):
                work.connection.execute(statement, values)
            gone = work.connection.execute(
                self._database.statement("DELETE FROM {schema}.checkpoints WHERE" + _OURS), values
            )
            return gone.rowcount
