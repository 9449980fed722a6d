"""The demo's script: what is said and asked, session by session. Data, read from a JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.records import Role

__all__ = ["Asked", "Session", "Story", "Told", "load_story"]


class _Script(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Told(_Script):
    """A turn that is only remembered."""

    role: Role
    content: str


class Asked(_Script):
    """A question to the cognitive graph.

    Attributes:
        ask: The question.
        expect: What must stand in the answer, each of them.
        unknown: Whether nobody ever told, so that the right answer is that it is not known.
    """

    ask: str
    expect: Annotated[tuple[str, ...], Field(min_length=1)]
    unknown: bool = False


class Session(_Script):
    """One conversation, at a time of its own."""

    id: str
    starts: AwareDatetime
    scene: str
    turns: tuple[Told | Asked, ...]


class Story(_Script):
    """A story told over several sessions."""

    language: Literal["en", "zh"]
    title: str
    user: str
    speaker: str
    sessions: tuple[Session, ...]


def load_story(name: str) -> Story:
    """The story of a language, or the one in a file.

    Raises:
        ConfigurationError: There is none, or it is not understood.
    """
    path = Path(name) if name.endswith(".json") else _folder() / f"{name}.json"
    try:
        return TypeAdapter(Story).validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"no story {path.name!r}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"the story {path.name!r} is not understood: {where}: {first['msg']}"
        ) from None


def _folder() -> Path:
    """Beside this module in an installed package, else in the repository's examples."""
    packaged = Path(__file__).with_name("stories")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "examples" / "stories"
