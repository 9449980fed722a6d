"""Everything that the stores hold of one user, in a form that two users with the same history share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString, cast
from uuid import UUID

import psycopg
from psycopg.sql import SQL, Identifier

from langchain_memrag.stores.neo4j.address import parse_address
from langchain_memrag.stores.qdrant import QdrantServer
from tests.integration.services.namespaces import driver_of

__all__ = ["cypher", "in_neo4j", "in_postgres", "in_qdrant", "space_of", "sql"]

Contents = Mapping[str, Any]


def sql(url: str, schema: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement behind the product's back."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL("SET search_path TO {}, public").format(Identifier(schema)))
        cursor = connection.execute(cast("LiteralString", statement), values)
        return cursor.fetchall() if cursor.description else []


def cypher(graph_url: str, statement: str, **values: object) -> list[dict[str, Any]]:
    """Run a statement behind the product's back; `NS` stands for the namespace."""
    address = parse_address(graph_url)
    namespace = graph_url.split("namespace=")[1]
    text = statement.replace(":NS", f":{namespace}").replace("'NS'", f"'{namespace}'")
    with driver_of(graph_url) as driver, driver.session(database=address.database) as session:
        return session.run(cast("LiteralString", text), values).data()


def space_of(url: str, schema: str, user: str) -> int:
    ((space,),) = sql(url, schema, "SELECT id FROM space WHERE key = %s", user)
    return int(space)


def _names(url: str, schema: str, space: int) -> dict[UUID, str]:
    rows = sql(url, schema, "SELECT id, seq, content FROM episode WHERE space = %s", space)
    return {ident: f"{seq} {content}" for ident, seq, content in rows}


def in_postgres(url: str, schema: str, user: str) -> Contents:
    space = space_of(url, schema, user)
    names = _names(url, schema, space)

    def rows(statement: str) -> list[tuple[Any, ...]]:
        found = sql(url, schema, statement.replace("%(space)s", str(space)))
        return sorted(
            tuple(str(names.get(one, "?") if isinstance(one, UUID) else one) for one in row) for row in found
        )

    tables = [
        name
        for (name,) in sql(
            url,
            schema,
            "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
            " AND relname ~ '^vector_[0-9]+$' ORDER BY relname",
            schema,
        )
    ]
    of_entry = "SELECT e.record, e.view, e.part"
    return {
        "episodes": sorted(names.values()),
        "entries": rows(
            of_entry + ", e.terms::text, e.expires_at::text FROM entry e WHERE space = %(space)s"
        ),
        "sources": rows(
            of_entry
            + ", s.source FROM entry_source s LEFT JOIN entry e ON e.space = s.space AND e.id = s.entry"
            " WHERE s.space = %(space)s"
        ),
        "postings": rows(
            of_entry
            + ", p.term, p.weight FROM posting p LEFT JOIN entry e ON e.space = p.space AND e.id = p.entry"
            " WHERE p.space = %(space)s"
        ),
        **{
            table: rows(
                of_entry + f", v.embedding::text FROM {table} v LEFT JOIN entry e ON e.space = v.space"
                " AND e.id = v.entry WHERE v.space = %(space)s"
            )
            for table in tables
        },
        "terms": rows("SELECT view, term, df FROM term_stat WHERE space = %(space)s AND df > 0"),
        "views": rows("SELECT view, entries FROM view_stat WHERE space = %(space)s"),
        "entities": rows(
            "SELECT key, name, type, mentions, aliases::text FROM entity WHERE space = %(space)s"
        ),
        "mentions": rows("SELECT record, key FROM mention WHERE space = %(space)s"),
        "relations": rows(
            "SELECT r.source, r.target, r.type, r.predicate, r.weight, s.record FROM relation r"
            " LEFT JOIN relation_source s ON s.relation = r.id WHERE r.space = %(space)s"
        ),
        "pending": rows("SELECT work, record FROM pending WHERE space = %(space)s"),
    }


def in_neo4j(graph_url: str, url: str, schema: str, user: str) -> Contents:
    space = space_of(url, schema, user)
    names = {str(ident): name for ident, name in _names(url, schema, space).items()}

    def rows(statement: str) -> list[tuple[Any, ...]]:
        return sorted(
            tuple(str(names.get(str(value), value)) for value in row.values())
            for row in cypher(graph_url, statement, space=space)
        )

    return {
        "records": rows("MATCH (r:NSRecord {space: $space}) RETURN r.id AS id"),
        "entities": rows(
            "MATCH (e:NSEntity {space: $space}) RETURN e.key AS key, e.name AS name, e.type AS type,"
            " e.mentions AS mentions, toString(size(e.aliases)) AS aliases"
        ),
        "mentions": rows(
            "MATCH (r:NSRecord {space: $space})-[:MENTIONS]->(e) RETURN r.id AS id, e.key AS key"
        ),
        "relations": rows(
            "MATCH (a:NSEntity {space: $space})-[e]->(b:NSEntity) "
            " RETURN a.key AS a, type(e) AS kind, b.key AS b, e.weight AS weight"
        ),
        "support": rows(
            "MATCH (r:NSRecord {space: $space})-[:SUPPORTS]->(s)"
            " RETURN r.id AS id, s.source AS a, s.target AS b"
        ),
        "statements": rows("MATCH (s:NSStatement {space: $space}) RETURN s.source AS a, s.target AS b"),
    }


def in_qdrant(server: QdrantServer, url: str, schema: str, user: str) -> Contents:
    from qdrant_client import models

    space = space_of(url, schema, user)
    names = {str(ident): name for ident, name in _names(url, schema, space).items()}
    where = models.Filter(
        must=[models.FieldCondition(key="space", match=models.MatchValue(value=str(space)))]
    )
    found: dict[str, Any] = {}
    for collection in server.collections():
        points, _ = server.call(
            "look",
            lambda client, name=collection: client.scroll(
                name, where, limit=10_000, with_payload=True, with_vectors=True
            ),
        )
        found[collection] = sorted(
            (
                names.get(str(point.payload["record"]), "?"),
                str(point.payload["view"]),
                str(point.payload["part"]),
            )
            for point in points
            if point.payload is not None
        )
    return found
