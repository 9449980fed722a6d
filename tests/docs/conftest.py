"""Where documented examples run: in an empty folder, with a scripted model in place of a hosted one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from langchain_memrag import MemRAG
from langchain_memrag.testing.chat import ScriptedChatModel

REPOSITORY = Path(__file__).parents[2]


def answer(messages: list[BaseMessage]) -> str:
    """What the stand-in says: what it was shown from memory, and nothing else."""
    shown = "\n".join(message.text for message in messages if "<memory>" in message.text)
    return f"What I remember: {shown}" if shown else "I remember nothing."


@pytest.fixture
def hosted_model(monkeypatch: pytest.MonkeyPatch) -> ScriptedChatModel:
    """Stands in for every model that an example names."""
    model = ScriptedChatModel(otherwise=answer)

    def init_chat_model(name: str, **options: object) -> ScriptedChatModel:
        assert name.startswith("openai:")
        return model

    monkeypatch.setattr("langchain.chat_models.init_chat_model", init_chat_model)
    monkeypatch.setattr("langchain.agents.factory.init_chat_model", init_chat_model)
    return model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of an example; `MemRAG.open()` makes `.memrag` in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[MemRAG]]:
    """What an example opened and left open; closed after it."""
    found: list[MemRAG] = []
    init = MemRAG.__init__

    def noting(self: MemRAG, *arguments: object, **options: object) -> None:
        init(self, *arguments, **options)
        found.append(self)

    monkeypatch.setattr(MemRAG, "__init__", noting)
    yield found
    for memrag in found:
        memrag.close()
