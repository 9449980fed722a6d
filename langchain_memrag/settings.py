"""What the environment says: the `MEMRAG_*` variables.

Only the programs read it, that is the command line and the servers. The library itself is configured
by arguments and never looks at the environment.
"""

from __future__ import annotations

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from langchain_memrag.errors import ConfigurationError

__all__ = ["Settings", "read_settings"]


class Settings(BaseSettings):
    """The `MEMRAG_*` variables; every one is optional, and an option of the command line wins.

    Attributes:
        location: `MEMRAG_LOCATION`: a data folder or a `postgresql://` URL; else `./.memrag`.
        search: `MEMRAG_SEARCH`: a `qdrant://` URL; else Postgres searches.
        graph: `MEMRAG_GRAPH`: a `neo4j://` URL; else Postgres keeps the graph.
        cache: `MEMRAG_CACHE`: `process`, `none` or a `redis://` URL.
        direct_url: `MEMRAG_DIRECT_URL`: a URL past the connection pooler, where there is one.
        db_schema: `MEMRAG_SCHEMA`: the schema of the database that holds the tables.
        pool_size: `MEMRAG_POOL_SIZE`: how many connections at most.
        embeddings: `MEMRAG_EMBEDDINGS`: an `init_embeddings` string, or `none` for no embedder;
            else the local embedder if it is installed.
        model: `MEMRAG_MODEL`: the answering model, as `init_chat_model` names it; else no model.
        fast_model: `MEMRAG_FAST_MODEL`: the model for intents; else that of `model`.
    """

    model_config = SettingsConfigDict(
        env_prefix="MEMRAG_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    # Secret, since a URL may carry a password: it is shown in no message and no repr.
    location: SecretStr | None = None
    search: SecretStr | None = None
    graph: SecretStr | None = None
    cache: SecretStr = SecretStr("process")
    direct_url: SecretStr | None = None
    db_schema: str = Field(default="memrag", validation_alias="MEMRAG_SCHEMA")
    pool_size: int = Field(default=8, ge=1, le=1000)
    embeddings: str | None = None
    model: str | None = None
    fast_model: str | None = None


def read_settings() -> Settings:
    """Read the environment.

    Raises:
        ConfigurationError: A variable holds something else than it may; names the variable, not its value.
    """
    try:
        return Settings()
    except ValidationError as error:
        wrong = "; ".join(
            f"{_variable(problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        raise ConfigurationError(f"the environment is not understood: {wrong}") from None


def _variable(location: tuple[int | str, ...]) -> str:
    name = str(location[0]).upper() if location else ""
    return name if name.startswith("MEMRAG_") else f"MEMRAG_{name}"
