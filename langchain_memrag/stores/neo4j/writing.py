"""What one transaction does to the graph of one space."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import cast
from uuid import UUID

import neo4j

from langchain_memrag.records import Entity, RelationType
from langchain_memrag.stores.base import GraphBatch, MentionedEntity, RelatedPair
from langchain_memrag.stores.neo4j import cypher
from langchain_memrag.stores.neo4j.connection import Row
from langchain_memrag.stores.neo4j.reading import entity_of

__all__ = ["SpaceWriting", "ids"]


class SpaceWriting:
    """What one transaction does to one space, which it locks: writers of a space go one by one.

    Args:
        tx: The transaction.
        text: Puts the namespace into a statement.
        space: Whose graph it is.

    Attributes:
        known: Whether the data here were adopted by a memory.
    """

    def __init__(self, tx: neo4j.ManagedTransaction, text: Callable[[str], str], space: int) -> None:
        self._tx = tx
        self._text = text
        self._space = space
        (row,) = self.rows(cypher.LOCK)
        self.known = cast("bool", row["known"])

    def rows(self, statement: str, **values: object) -> list[Row]:
        """Run a statement on the space."""
        values["space"] = self._space
        result = self._tx.run(self._text(statement), values)
        return cast("list[Row]", result.data())

    def take_back(self, records: Sequence[UUID]) -> int:
        """Undo what records said; gives how many mentions, entities and relations went."""
        taken = ids(records)
        mentions = self.rows(cypher.TAKE_MENTIONS, records=taken)
        support = self.rows(cypher.TAKE_SUPPORT, records=taken)
        unsupported = [row for row in support if cast("int", row["left"]) <= 0]
        lonely = [row for row in mentions if cast("int", row["left"]) <= 0]
        touched = {cast("str", row["key"]) for row in lonely}
        touched |= {cast("str", row[end]) for row in unsupported for end in ("source", "target")}
        self.rows(cypher.SWEEP_ENTITIES, records=taken, keys=sorted(touched))
        return sum(cast("int", row["lost"]) for row in mentions) + len(lonely) + len(unsupported)

    def add(self, batch: GraphBatch) -> None:
        """Add what a batch says; whatever its records said before must be gone."""
        spoken = {one.record for one in batch.mentions} | {one.record for one in batch.relations}
        expiry = {source.record: source.expires_at for source in batch.sources}
        if not spoken:
            return
        self.rows(
            cypher.ADD_RECORDS,
            rows=[{"id": str(one), "expires_at": expiry.get(one)} for one in sorted(spoken)],
        )
        self._add_mentions(batch.mentions)
        self._add_relations(batch.relations)

    def _add_mentions(self, mentions: Sequence[MentionedEntity]) -> None:
        by_key: dict[str, dict[UUID, list[MentionedEntity]]] = {}
        for one in mentions:
            by_key.setdefault(one.key, {}).setdefault(one.record, []).append(one)
        if not by_key:
            return
        keys = sorted(by_key)
        known = {cast("str", row["key"]): entity_of(row) for row in self.rows(cypher.ENTITIES, keys=keys)}
        merged = [
            _merged(known.get(key), [one for said in by_key[key].values() for one in said], len(by_key[key]))
            for key in keys
        ]
        self.rows(
            cypher.ADD_ENTITIES,
            rows=[
                {
                    "key": one.key,
                    "name": one.name,
                    "type": one.type,
                    "aliases": list(one.aliases),
                    "mentions": one.mentions,
                }
                for one in merged
            ],
        )
        self.rows(
            cypher.ADD_MENTIONS,
            rows=[{"record": str(record), "key": key} for key in keys for record in sorted(by_key[key])],
        )

    def _add_relations(self, relations: Sequence[RelatedPair]) -> None:
        support: dict[tuple[RelationType, str, str, str], dict[UUID, RelatedPair]] = {}
        for one in relations:
            edge = (one.type, one.source, one.target, one.predicate)
            support.setdefault(edge, {})[one.record] = one
        by_type: dict[RelationType, list[dict[str, object]]] = {}
        for edge in sorted(support):
            kind, source, target, predicate = edge
            sample = next(iter(support[edge].values()))
            by_type.setdefault(kind, []).append(
                {
                    "id": _statement_id(*edge),
                    "source": source,
                    "target": target,
                    "predicate": predicate,
                    "valid_from": sample.valid_from,
                    "valid_to": sample.valid_to,
                    "records": ids(list(support[edge])),
                }
            )
        for kind, rows in by_type.items():
            self.rows(cypher.add_relations(kind), rows=rows)


def _merged(known: Entity | None, said: Sequence[MentionedEntity], records: int) -> Entity:
    """An entity after some records mentioned it: its name stays, its type only gets better."""
    names = list(dict.fromkeys(one.name for one in said))
    kind = next((one.type for one in said if one.type != "other"), "other")
    if known is None:
        return Entity(key=said[0].key, name=names[0], type=kind, aliases=tuple(names[1:]), mentions=records)
    aliases = set(known.aliases) | set(names)
    return Entity(
        key=known.key,
        name=known.name,
        type=kind if known.type == "other" else known.type,
        aliases=tuple(sorted(aliases - {known.name})),
        mentions=known.mentions + records,
    )


def ids(records: Sequence[UUID]) -> list[str]:
    """Record ids as the graph keeps them, each once, in one order for all writers."""
    return sorted({str(record) for record in records})


def _statement_id(kind: str, source: str, target: str, predicate: str) -> str:
    """The same for the same relation, and short where a predicate is long."""
    said = json.dumps([kind, source, target, predicate], ensure_ascii=False)
    return hashlib.sha256(said.encode()).hexdigest()
