"""A part of a shared Neo4j for one test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString, cast

import neo4j

from langchain_memrag.stores.neo4j.address import parse_address

__all__ = ["driver_of", "own_namespace"]


def driver_of(url: str) -> neo4j.Driver:
    """The driver itself, to look and to break things behind the product's back."""
    address = parse_address(url)
    auth = None if address.user is None else (address.user, address.password)
    return neo4j.GraphDatabase.driver(address.label, auth=auth, notifications_min_severity="OFF")


@contextmanager
def own_namespace(url: str) -> Iterator[str]:
    """The URL with a namespace that nobody has; all that is made in it is dropped."""
    namespace = f"T{uuid.uuid4().hex[:12]}"
    yield f"{url}?namespace={namespace}"
    with driver_of(url) as driver, driver.session(database=parse_address(url).database) as session:
        for label in ("Record", "Entity", "Statement", "Space", "Memory"):
            query = (
                f"MATCH (n:{namespace}{label}) CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS OF 5000 ROWS"
            )
            session.run(cast("LiteralString", query)).consume()
        names = session.run("SHOW CONSTRAINTS YIELD name RETURN name").value()
        for name in names:
            if name.startswith(f"{namespace}_"):
                session.run(cast("LiteralString", f"DROP CONSTRAINT {name}")).consume()
