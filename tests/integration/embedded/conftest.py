from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from langchain_memrag.stores.embedded import EmbeddedPostgres

from .processes import stop_leftovers

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was opened and closed: copied, it spares a test the making of its own."""
    folder = tmp_path_factory.mktemp("made") / "memrag"
    EmbeddedPostgres.open(folder).close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A data folder with data in it, and no server."""
    copy = tmp_path / "memrag"
    shutil.copytree(made, copy)
    return copy


@pytest.fixture
def short() -> Iterator[Path]:
    """An empty folder with a path so short that a socket fits in almost any folder below."""
    folder = Path(tempfile.mkdtemp(prefix="m", dir="/tmp"))
    yield folder
    left = stop_leftovers(folder)
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture(autouse=True)
def _nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    assert stop_leftovers(tmp_path.resolve()) == []
