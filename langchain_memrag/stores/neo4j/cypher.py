"""Every query of the graph on Neo4j.

The graph is `(record)-[:MENTIONS]->(entity)-[:KNOWS]->(entity)`, where `KNOWS` stands for any type of the
closed vocabulary. A relationship cannot be pointed at, so each relation has a node too, the statement, of the
same `id`: `(record)-[:SUPPORTS]->(statement)`. An entity that only a relation names, and that no record
mentions, has 0 mentions and is never shown.

What is put together here are constants of our own; whatever a user says is a parameter.
"""

from __future__ import annotations

from typing import Final, get_args

from langchain_memrag.records import RelationType
from langchain_memrag.stores.spreading import DIGITS, MOST_HOPS

__all__ = [
    "ADD_ENTITIES",
    "ADD_MENTIONS",
    "ADD_RECORDS",
    "ADOPT",
    "COUNTS",
    "COUNT_OF",
    "ENTITIES",
    "ERASE",
    "LOCK",
    "MEMORY",
    "NEIGHBOURS",
    "SCHEMA",
    "SWEEP_ENTITIES",
    "TAKE_MENTIONS",
    "TAKE_SUPPORT",
    "VERSION",
    "WAIT_FOR_SCHEMA",
    "add_relations",
    "expand",
]

# `{ns}` is the namespace, put in by the graph; the braces of Cypher are doubled.

_TYPES: Final = "|".join(get_args(RelationType))

VERSION: Final = (
    "CALL dbms.components() YIELD name, versions WHERE name = 'Neo4j Kernel' RETURN versions[0] AS version"
)

SCHEMA: Final = (
    "CREATE CONSTRAINT {ns}_entity IF NOT EXISTS FOR (n:{ns}Entity) REQUIRE (n.space, n.key) IS UNIQUE",
    "CREATE CONSTRAINT {ns}_record IF NOT EXISTS FOR (n:{ns}Record) REQUIRE (n.space, n.id) IS UNIQUE",
    "CREATE CONSTRAINT {ns}_statement IF NOT EXISTS FOR (n:{ns}Statement) REQUIRE (n.space, n.id) IS UNIQUE",
    "CREATE CONSTRAINT {ns}_memory IF NOT EXISTS FOR (n:{ns}Memory) REQUIRE n.one IS UNIQUE",
    "CREATE CONSTRAINT {ns}_space IF NOT EXISTS FOR (n:{ns}Space) REQUIRE n.space IS UNIQUE",
)

WAIT_FOR_SCHEMA: Final = "CALL db.awaitIndexes(60)"

MEMORY: Final = "MATCH (m:{ns}Memory) RETURN m.id AS id"

# The constraint on `one` keeps it single.
ADOPT: Final = "MERGE (m:{ns}Memory {{one: true}}) ON CREATE SET m.id = $memory RETURN m.id AS id"

# Writers of one space go one after the other: nothing is counted wrong, and nobody waits in a circle.
LOCK: Final = (
    "MERGE (s:{ns}Space {{space: $space}}) SET s.writes = coalesce(s.writes, 0) + 1"
    " RETURN EXISTS {{ MATCH (:{ns}Memory) }} AS known"
)

ENTITIES: Final = (
    "UNWIND $keys AS key MATCH (e:{ns}Entity {{space: $space, key: key}}) WHERE e.mentions > 0"
    " RETURN e.key AS key, e.name AS name, e.type AS type, e.aliases AS aliases, e.mentions AS mentions"
)

ADD_RECORDS: Final = (
    "UNWIND $rows AS row MERGE (r:{ns}Record {{space: $space, id: row.id}}) SET r.expires_at = row.expires_at"
)

ADD_ENTITIES: Final = (
    "UNWIND $rows AS row MERGE (e:{ns}Entity {{space: $space, key: row.key}})"
    " SET e.name = row.name, e.type = row.type, e.aliases = row.aliases, e.mentions = row.mentions"
)

ADD_MENTIONS: Final = (
    "UNWIND $rows AS row"
    " MATCH (r:{ns}Record {{space: $space, id: row.record}})"
    " MATCH (e:{ns}Entity {{space: $space, key: row.key}})"
    " CREATE (r)-[:MENTIONS {{record: row.record, expires_at: r.expires_at}}]->(e)"
)


def add_relations(kind: RelationType) -> str:
    """Add relations of one type, or more support for them."""
    if kind not in get_args(RelationType):
        raise ValueError("not a relation type")
    return (
        "UNWIND $rows AS row"
        " MERGE (a:{ns}Entity {{space: $space, key: row.source}})"
        "  ON CREATE SET a.mentions = 0, a.type = 'other', a.aliases = []"
        " MERGE (b:{ns}Entity {{space: $space, key: row.target}})"
        "  ON CREATE SET b.mentions = 0, b.type = 'other', b.aliases = []"
        " MERGE (s:{ns}Statement {{space: $space, id: row.id}})"
        "  ON CREATE SET s.source = row.source, s.target = row.target"
        f" MERGE (a)-[e:{kind} {{{{id: row.id}}}}]->(b)"
        " SET e.predicate = row.predicate, e.weight = coalesce(e.weight, 0) + size(row.records),"
        "  e.valid_from = coalesce(row.valid_from, e.valid_from),"
        "  e.valid_to = coalesce(row.valid_to, e.valid_to)"
        " WITH row, s UNWIND row.records AS record"
        " MATCH (r:{ns}Record {{space: $space, id: record}}) CREATE (r)-[:SUPPORTS]->(s)"
    )


# Those that nothing mentions any more forget their name, even where a relation still holds them.
TAKE_MENTIONS: Final = (
    "UNWIND $records AS record MATCH (:{ns}Record {{space: $space, id: record}})-[m:MENTIONS]->(e)"
    " WITH e, collect(m) AS gone ORDER BY e.key"
    " FOREACH (m IN gone | DELETE m)"
    " SET e.mentions = e.mentions - size(gone)"
    " FOREACH (_ IN CASE WHEN e.mentions <= 0 THEN [1] ELSE [] END |"
    "  SET e.mentions = 0, e.name = null, e.type = 'other', e.aliases = [])"
    " RETURN e.key AS key, size(gone) AS lost, e.mentions AS left"
)

TAKE_SUPPORT: Final = (
    "UNWIND $records AS record MATCH (:{ns}Record {{space: $space, id: record}})-[x:SUPPORTS]->(s)"
    " WITH s, collect(x) AS gone ORDER BY s.id"
    " FOREACH (x IN gone | DELETE x)"
    " WITH s, s.source AS source, s.target AS target, size(gone) AS lost"
    " MATCH (a:{ns}Entity {{space: $space, key: source}})"
    " MATCH (b:{ns}Entity {{space: $space, key: target}})"
    f" MATCH (a)-[e:{_TYPES}]->(b) WHERE e.id = s.id"
    " WITH s, e, source, target, e.weight - lost AS left"
    " SET e.weight = left"
    " FOREACH (_ IN CASE WHEN left <= 0 THEN [1] ELSE [] END | DELETE e, s)"
    " RETURN source, target, left"
)

SWEEP_ENTITIES: Final = (
    "MATCH (r:{ns}Record {{space: $space}}) WHERE r.id IN $records AND NOT EXISTS {{ (r)--() }} DELETE r"
    " WITH count(*) AS _ UNWIND $keys AS key MATCH (e:{ns}Entity {{space: $space, key: key}})"
    " WHERE e.mentions <= 0 AND NOT EXISTS {{ (e)--() }} DELETE e"
)

NEIGHBOURS: Final = (
    "MATCH (:{ns}Entity {{space: $space, key: $key}})"
    f"-[e:{_TYPES}]-(:{{ns}}Entity) WITH DISTINCT e, startNode(e).key AS source, endNode(e).key AS target"
    " ORDER BY e.weight DESC, source, target, type(e), e.predicate LIMIT $limit"
    " MATCH (s:{ns}Statement {{space: $space, id: e.id}})"
    " CALL (s) {{ MATCH (s)<-[:SUPPORTS]-(r) WITH r ORDER BY r.id DESC LIMIT 100"
    "  RETURN collect(r.id) AS records }}"
    " RETURN source, target, type(e) AS type, e.predicate AS predicate, e.weight AS weight, records,"
    "  e.valid_from AS valid_from, e.valid_to AS valid_to"
    " ORDER BY weight DESC, source, target, type, predicate"
)

# The relations that are walked, not their statements: what is missing must be missed.
COUNTS: Final = (
    "RETURN COUNT {{ MATCH (e:{ns}Entity {{space: $space}}) WHERE e.mentions > 0 }} AS entities,"
    f" COUNT {{{{ MATCH (:{{ns}}Entity {{{{space: $space}}}})-[:{_TYPES}]->() }}}} AS relations"
)

COUNT_OF: Final = (
    "UNWIND $records AS record MATCH (:{ns}Record {{space: $space, id: record}})-[x:MENTIONS|SUPPORTS]->()"
    " RETURN count(x) AS n"
)

ERASE: Final = (
    "MATCH (n:{ns}Record {{space: $space}}) WITH n LIMIT $most DETACH DELETE n RETURN count(*) AS n",
    f"MATCH (:{{ns}}Entity {{{{space: $space}}}})-[e:{_TYPES}]->(:{{ns}}Entity)"
    " WITH e LIMIT $most DELETE e RETURN count(*) AS n",
    "MATCH (n:{ns}Statement {{space: $space}}) WITH n LIMIT $most DETACH DELETE n RETURN count(*) AS n",
    "MATCH (n:{ns}Entity {{space: $space}}) WITH n, n.mentions > 0 AS shown LIMIT $most"
    " DETACH DELETE n RETURN count(*) AS n, sum(CASE WHEN shown THEN 1 ELSE 0 END) AS shown",
)

# Rounded like the scores in Python, so that what is equal there is equal here.
_RARITY: Final = (
    f"round(1.0 / (1.0 + log(CASE WHEN {{node}}.mentions > 1 THEN {{node}}.mentions ELSE 1 END)), {DIGITS})"
)

_SEEDS: Final = (
    "UNWIND $spaces AS space UNWIND $seeds AS key"
    " MATCH (s:{ns}Entity {{space: space, key: key}}) WHERE s.mentions > 0 WITH s ORDER BY s.space, s.key"
    f" WITH collect({{{{node: s, score: {_RARITY.format(node='s')}, path: [s.name]}}}}) AS reached"
    " WITH reached, reached AS frontier"
)

# Among equals the first of the frontier wins, as in Python.
_HOP: Final = (
    " CALL (reached, frontier) {{"
    "  WITH frontier, [one IN reached | one.node] AS known"
    "  UNWIND range(0, size(frontier) - 1) AS position"
    "  WITH known, position, frontier[position] AS one, frontier[position].node AS start"
    f"  CALL (start) {{{{ MATCH (start)-[e:{_TYPES}]-(n:{{ns}}Entity)"
    "   RETURN n, e.weight AS weight ORDER BY weight DESC, n.key LIMIT $fanout }}"
    "  WITH position, one, n, weight WHERE n.mentions > 0 AND NOT n IN known"
    "  WITH n, position, round(one.score * $decay * (toFloat(weight) / (weight + 1))"
    f"   * ({_RARITY.format(node='n')}), {DIGITS}) AS score, one.path + [n.name] AS path"
    "  ORDER BY score DESC, position"
    "  WITH n, head(collect({{score: score, path: path}})) AS best"
    "  ORDER BY best.score DESC, n.key LIMIT 4 * $fanout"
    "  RETURN collect({{node: n, score: best.score, path: best.path}}) AS fresh }}"
    " WITH reached + fresh AS reached, fresh AS frontier"
)

_FINDS: Final = (
    " UNWIND reached AS one WITH one, one.node AS node"
    " CALL (node) {{ MATCH (node)<-[m:MENTIONS]-() WHERE m.expires_at IS NULL OR m.expires_at > $now"
    "  WITH m.record AS record ORDER BY record DESC LIMIT $limit RETURN collect(record) AS records }}"
    " RETURN node.space AS space, node.key AS key, one.score AS score, one.path AS path, records"
)


def expand(hops: int) -> str:
    """The whole walk, as one query: seeds, as many steps as asked, and the records at their ends."""
    return _SEEDS + _HOP * max(0, min(hops, MOST_HOPS)) + _FINDS
