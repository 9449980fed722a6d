"""What is indexed of a record: renderings of it, never the text that is stored. Pure.

Without the speaker and the date in the text, LoCoMo falls from .52 to .42 NDCG@10; a turn seen together
with the one it answers is found by questions that neither of the two matches alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from langchain_memrag.prompts import format_date
from langchain_memrag.ranking import Recipe, impact
from langchain_memrag.records import Episode
from langchain_memrag.stores.base import (
    GraphBatch,
    GraphSource,
    IndexEntry,
    MentionedEntity,
    RelatedPair,
    Vector,
    View,
)
from langchain_memrag.text import find_entities, language_of, name_key, split_parts, term_hash, terms

__all__ = ["MAX_PARTS_AT_ONCE", "ViewText", "entry_of", "graph_of", "looks_back", "view_texts"]

PART_LIMIT: Final = 1600
"""Characters of a part; about what a small embedding model reads (512 tokens)."""

MAX_PARTS_AT_ONCE: Final = 32
"""A text of more parts is indexed in the background."""

CONTEXT_LIMIT: Final = 400
"""How many characters of the turn before are taken into a pair."""

RELATED_ENTITIES: Final = 6
"""Among how many entities of one part co-occurrence is recorded: pairs grow with the square."""


@dataclass(frozen=True, slots=True)
class ViewText:
    """One view of one part of an episode.

    Attributes:
        episode: The record that a hit collapses to.
        before: The turn that a pair begins with.
        text: What is embedded and tokenised.
        lexical: Whether its words go into the lexical index too.
    """

    episode: Episode
    before: Episode | None
    view: View
    part: int
    text: str
    lexical: bool


def view_texts(episode: Episode, before: Episode | None, recipe: Recipe) -> list[ViewText]:
    """All views of an episode: its turn, by parts, and the pair where it answers another speaker.

    Args:
        episode: What was said.
        before: The session's previous turn, where there is one that is still remembered.
        recipe: Names the views that its signals search.
    """
    parts = split_parts(episode.content, PART_LIMIT)
    found = [
        ViewText(episode, None, "turn", number, _render(episode, part), lexical=True)
        for number, part in enumerate(parts)
    ]
    if looks_back(recipe) and before is not None and before.speaker_or_role != episode.speaker_or_role:
        head = _said(before, before.content[-CONTEXT_LIMIT:])
        text = f"({_date(episode)}) {head}\n{_said(episode, parts[0])}"
        found.append(ViewText(episode, before, "pair", 0, text, lexical="lexical:pair" in recipe.weights))
    return found


def looks_back(recipe: Recipe) -> bool:
    """Whether a view of a turn holds words of the turn before it."""
    return "dense:pair" in recipe.weights or "lexical:pair" in recipe.weights


def _render(episode: Episode, text: str) -> str:
    return f"({_date(episode)}) {_said(episode, text)}"


def _said(episode: Episode, text: str) -> str:
    # A role is no name: every turn of a user would match the word.
    return f"{episode.speaker}: {text}" if episode.speaker else text


def _date(episode: Episode) -> str:
    return format_date(episode.said_at, language_of(episode.content))


def entry_of(view: ViewText, space: int, vector: Vector | None, recipe: Recipe) -> IndexEntry:
    """A view with its vector and the impact of each of its terms."""
    episode = view.episode
    impacts: dict[int, float] = {}
    if view.lexical:
        counted = Counter(terms(view.text))
        length = counted.total()
        impacts = {term_hash(term): impact(count, length, recipe) for term, count in counted.items()}
    return IndexEntry(
        space=space,
        record=episode.id,
        layer="episode",
        view=view.view,
        part=view.part,
        sources=(episode.id,) if view.before is None else (episode.id, view.before.id),
        session=episode.scope.session_id,
        agent=episode.scope.agent_id,
        role=episode.role,
        occurred_at=episode.occurred_at,
        expires_at=_earliest(episode.expires_at, view.before.expires_at if view.before else None),
        vector=vector,
        terms=impacts,
    )


def _earliest(left: datetime | None, right: datetime | None) -> datetime | None:
    return min((moment for moment in (left, right) if moment is not None), default=None)


def graph_of(episodes: Sequence[Episode]) -> GraphBatch:
    """The entities that episodes mention by the rules, and which of them stand together."""
    mentions: dict[tuple[object, str], MentionedEntity] = {}
    relations: dict[tuple[object, str, str], RelatedPair] = {}
    for episode in episodes:
        for part in split_parts(episode.content, PART_LIMIT):
            keys: list[str] = []
            for found in find_entities(part):
                key = name_key(found.name)
                mentions.setdefault(
                    (episode.id, key), MentionedEntity(episode.id, key, found.name, found.type)
                )
                keys.append(key)
            for pair in _together(keys):
                relations.setdefault((episode.id, *pair), RelatedPair(episode.id, *pair, "MENTIONED_WITH"))
    return GraphBatch(
        sources=tuple(GraphSource(episode.id, episode.expires_at) for episode in episodes),
        mentions=tuple(mentions.values()),
        relations=tuple(relations.values()),
    )


def _together(keys: Sequence[str]) -> list[tuple[str, str]]:
    near = sorted(set(keys[:RELATED_ENTITIES]))
    return [(left, right) for i, left in enumerate(near) for right in near[i + 1 :]]
