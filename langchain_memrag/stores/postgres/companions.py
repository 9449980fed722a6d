"""The tables of LangGraph's saver and of procrastinate, installed beside ours in the same schema.

Both libraries name their tables without a schema, so they are only ever used on sessions whose
`search_path` starts with ours. Both keep a list of numbered steps; what a newer release of a library
adds to its list is applied when a database is next migrated.
"""

from __future__ import annotations

import re
from importlib import resources

from langgraph.checkpoint.postgres.base import BasePostgresSaver
from procrastinate.schema import SchemaManager
from psycopg import Connection

from langchain_memrag.stores.postgres.pools import Row

__all__ = ["CHECKPOINTS", "JOBS", "install_checkpoints", "install_jobs", "newest_versions"]

CHECKPOINTS = "checkpoints"
JOBS = "jobs"

_VERSION = re.compile(r"\d\d\.\d\d\.\d\d_\d\d_[a-z0-9_]+")


def newest_versions() -> dict[str, str]:
    """The last step of each library as installed, by component."""
    return {
        CHECKPOINTS: f"{len(BasePostgresSaver.MIGRATIONS) - 1:04}",
        JOBS: max(_job_steps(), default="00.00.00_00_none"),
    }


def install_checkpoints(connection: Connection[Row], installed: str | None) -> None:
    """Bring the saver's tables up to the installed library, inside the caller's transaction.

    An index built `CONCURRENTLY` cannot be part of a transaction, is left invalid when the process
    dies, and waits for every older snapshot; the plain kind has none of these troubles.
    """
    done = -1 if installed is None else int(installed)
    for number, step in enumerate(BasePostgresSaver.MIGRATIONS):
        if number <= done:
            continue
        plain = step.replace(" CONCURRENTLY ", " ")
        connection.execute(plain)
        connection.execute(
            "INSERT INTO checkpoint_migrations (v) VALUES (%s) ON CONFLICT DO NOTHING", (number,)
        )


def install_jobs(connection: Connection[Row], installed: str | None) -> None:
    """Bring procrastinate's tables up to the installed library, inside the caller's transaction."""
    if installed is None:
        connection.execute(SchemaManager.get_schema())
        return
    for name, step in sorted(_job_steps().items()):
        if name > installed:
            connection.execute(step)


def _job_steps() -> dict[str, str]:
    folder = resources.files("procrastinate.sql") / "migrations"
    files = {
        entry.name.removesuffix(".sql"): entry for entry in folder.iterdir() if entry.name.endswith(".sql")
    }
    return {
        name: entry.read_text(encoding="utf-8") for name, entry in files.items() if _VERSION.fullmatch(name)
    }
