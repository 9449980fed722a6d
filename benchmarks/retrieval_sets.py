"""Retrieval sets on disk: one folder a set, with `corpus.jsonl.gz` and `queries.jsonl.gz`.

A line of the corpus has `id`, `scope` (one user) and `text`; `session`, `order`, `speaker`, `role`, `time`
(as written by people), `caption` (of a picture) and `title` (of a passage) where they apply. A query has
`id`, `scope`, `question` and `evidence` (corpus ids); `groups` where any id of a group counts for the group.
The files may also be unpacked (`.jsonl`).
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from langchain_memrag.text import language_of

__all__ = ["Passage", "Question", "RetrievalSet", "find_sets", "load_set"]


@dataclass(frozen=True, slots=True)
class Passage:
    """One entry of a corpus.

    Attributes:
        number: Its place in the file.
        said: Its text with title and caption, as both the baselines and the product get it.
        time: As it was written; may be empty.
    """

    number: int
    id: str
    scope: str
    session: str
    speaker: str
    role: str
    time: object
    said: str

    @property
    def dated_line(self) -> str:
        """What the baselines index: date and speaker in front of the text."""
        line = f"{self.speaker}: {self.said}" if self.speaker else self.said
        return f"({self.time}) {line}" if self.time else line


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and which passages answer it."""

    id: str
    scope: str
    text: str
    evidence: frozenset[str]
    groups: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class RetrievalSet:
    """One set: what was said, by user, and what is asked."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @cached_property
    def by_scope(self) -> Mapping[str, Sequence[Passage]]:
        """Each user's passages, in the order of the file."""
        found: dict[str, list[Passage]] = defaultdict(list)
        for passage in self.passages:
            found[passage.scope].append(passage)
        return found

    @cached_property
    def is_chinese(self) -> bool:
        """Whether most of its passages are Chinese, whatever it is called."""
        languages = Counter(language_of(passage.said) for passage in self.passages)
        return languages["zh"] > languages["en"]


def find_sets(folder: Path) -> list[str]:
    """The names of the sets in a folder."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_dir() and _file(path, "corpus") is not None and _file(path, "queries") is not None
    )


def load_set(folder: Path, name: str) -> RetrievalSet:
    """Read one set; queries without evidence are passed over.

    Raises:
        FileNotFoundError: The folder has no such set.
    """
    corpus, queries = _file(folder / name, "corpus"), _file(folder / name, "queries")
    if corpus is None or queries is None:
        raise FileNotFoundError(f"{folder / name} has no corpus.jsonl.gz and queries.jsonl.gz")
    passages = [_passage(line, number) for number, line in enumerate(_lines(corpus))]
    questions = [_question(line, number) for number, line in enumerate(_lines(queries))]
    return RetrievalSet(
        name,
        tuple(passage for passage in passages if passage.said.strip()),
        tuple(question for question in questions if question.evidence and question.text.strip()),
    )


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl"):
        if path.is_file():
            return path
    return None


def _lines(path: Path) -> Iterator[Mapping[str, object]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    for line in text.split("\n"):
        if line.strip():
            yield json.loads(line)


def _text(line: Mapping[str, object], name: str) -> str:
    value = line.get(name)
    return "" if value is None else str(value)


def _passage(line: Mapping[str, object], number: int) -> Passage:
    said = _text(line, "text")
    if caption := _text(line, "caption"):
        said = f"{said} [shared a photo: {caption}]"
    if title := _text(line, "title"):
        said = f"{title}\n{said}"
    return Passage(
        number=number,
        id=_text(line, "id") or str(number),
        scope=_text(line, "scope") or "all",
        session=_text(line, "session"),
        speaker=_text(line, "speaker"),
        role=_text(line, "role"),
        time=line.get("time"),
        said=said,
    )


def _ids(value: object) -> frozenset[str]:
    return frozenset(str(item) for item in value) if isinstance(value, list) else frozenset()


def _question(line: Mapping[str, object], number: int) -> Question:
    groups = line.get("groups")
    return Question(
        id=_text(line, "id") or str(number),
        scope=_text(line, "scope") or "all",
        text=_text(line, "question"),
        evidence=_ids(line.get("evidence")),
        groups=tuple(_ids(group) for group in groups) if isinstance(groups, list) else (),
    )
