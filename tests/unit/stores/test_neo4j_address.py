"""A URL says where Neo4j is, who asks and whose part of it is meant; a refusal repeats nothing of it."""

from __future__ import annotations

import traceback

import pytest

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.neo4j import Neo4jGraph, Neo4jOptions
from langchain_memrag.stores.neo4j.address import parse_address


@pytest.mark.parametrize(
    ("url", "label", "user", "password", "database", "namespace"),
    [
        ("neo4j://h", "neo4j://h:7687", None, "", None, None),
        ("bolt://ann:s3cret@h:7000/mem", "bolt://h:7000", "ann", "s3cret", "mem", None),
        ("neo4j+s://a%40b:p%2F%3A%40@h.example", "neo4j+s://h.example:7687", "a@b", "p/:@", None, None),
        ("bolt+ssc://[::1]:7688/?namespace=Shop_2", "bolt+ssc://[::1]:7688", None, "", None, "Shop_2"),
        ("neo4j://李:密码@h/%E5%9B%BE", "neo4j://h:7687", "李", "密码", "图", None),
    ],
)
def test_a_url_is_taken_apart(
    url: str, label: str, user: str | None, password: str, database: str | None, namespace: str | None
) -> None:
    address = parse_address(url)
    assert (address.label, address.user, address.password) == (label, user, password)
    assert (address.database, address.namespace) == (database, namespace)
    assert not password or password not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "neo4j",
        "http://ann:s3cret@h",
        "neo4j://",
        "neo4j://ann:s3cret@",
        "neo4j://ann:s3cret@h:port",
        "neo4j://ann:s3cret@[::1",
        "neo4j://ann:s3c#ret@h",
        "neo4j://ann:s3c?ret@h",
        "neo4j://ann:s3cret@h?policy=s3cret",
        "neo4j://ann:s3cret@h?namespace=A&namespace=B",
        "neo4j://ann:s3cret@h?namespace=A&pool_size=s3cret",
        "neo4j://ann:s3cret@h?namespace=",
        "neo4j://ann:s3cret@h?namespace=s3cret-ret",
        "neo4j://ann:s3cret@h?namespace=1s3cret",
        "neo4j://ann:s3cret@h?namespace=s3cret%60)%20DETACH",
        "neo4j://ann:s3cret@h?namespace=图s3cret",
    ],
)
def test_a_malformed_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_address(url)
    shown = "".join(traceback.format_exception_only(caught.value))
    assert "Neo4j" in shown
    assert "s3c" not in shown
    assert "ret" not in shown
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"namespace": ""},
        {"namespace": "a b"},
        {"namespace": "A" * 60},
        {"pool_size": 0},
        {"timeout": 0},
        {"connect_timeout": -1},
        {"retry_time": -1},
    ],
)
def test_options_that_cannot_work(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Neo4jOptions(**wrong)  # type: ignore[arg-type]


def test_a_graph_opens_without_a_server_and_shows_no_password() -> None:
    with Neo4jGraph("bolt://ann:s3cret@127.0.0.1:1/mem?namespace=Shop") as graph:
        assert graph.label == "bolt://127.0.0.1:1"
        assert graph._connection.namespace == "Shop"
        assert repr(graph) == "Neo4jGraph('bolt://127.0.0.1:1')"
        assert "s3cret" not in repr(graph._connection)


def test_what_code_says_wins_over_the_url() -> None:
    with Neo4jGraph("bolt://h?namespace=Shop", Neo4jOptions(namespace="Other")) as graph:
        assert graph._connection.namespace == "Other"
    with Neo4jGraph("bolt://h") as graph:
        assert graph._connection.namespace == "MemRAG"
