"""URLs of Qdrant: what they mean, and that no key is ever shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores.qdrant import QdrantOptions, QdrantServer
from langchain_memrag.stores.qdrant.address import QdrantAddress, parse_address
from langchain_memrag.stores.qdrant.server import open_client

SECRET = "s3cr3t/@+key"
ESCAPED = "s3cr3t%2F%40+key"


def address_of(url: str) -> QdrantAddress:
    return parse_address(url, QdrantOptions())[0]


@pytest.mark.parametrize(
    ("url", "label", "web"),
    [
        ("qdrant://host", "qdrant://host:6333", "http://host:6333"),
        ("qdrant://host:7000/", "qdrant://host:7000", "http://host:7000"),
        ("qdrant+s://host.example/behind", "qdrant+s://host.example:6333/behind", "https://host.example:6333/behind"),
        ("http://127.0.0.1:6333", "http://127.0.0.1:6333", "http://127.0.0.1:6333"),
        ("https://[::1]:6333", "https://[::1]:6333", "https://[::1]:6333"),
        (f"qdrant+s://{ESCAPED}@host", "qdrant+s://host:6333", "https://host:6333"),
    ],
)  # fmt: skip
def test_servers(url: str, label: str, web: str) -> None:
    address = address_of(url)
    assert (address.label, address.url, address.local) == (label, web, False)


@pytest.mark.parametrize("url", [f"qdrant://{ESCAPED}@host", f"qdrant://:{ESCAPED}@host"])
def test_the_key_stands_before_the_host_and_is_never_shown(url: str) -> None:
    address = address_of(url)
    assert address.key == SECRET
    server = QdrantServer(url)
    for shown in (repr(address), str(address), address.label, repr(server), server.label):
        assert "s3cr3t" not in shown


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("qdrant:///var/lib/memory", "/var/lib/memory"),
        ("qdrant:some/folder", str(Path.cwd() / "some/folder")),
        ("qdrant:///a%20b/%E8%AE%B0%E5%BF%86", "/a b/记忆"),
        (":memory:", None),
        ("qdrant://:memory:", None),
        ("qdrant::memory:", None),
    ],
)
def test_local_modes(url: str, folder: str | None) -> None:
    address = address_of(url)
    assert address.local
    assert address.folder == folder
    assert address_of(address.label) == address


@pytest.mark.parametrize(
    "url",
    [
        f"redis://{ESCAPED}@host",
        f"qdrant://{ESCAPED}%E5%AF%86%E9%92%A5@host",
        f"qdrant://{ESCAPED}%0Ax@host",
        f"{ESCAPED}@host:6333",
        f"qdrant://{ESCAPED}@host:port",
        f"qdrant://{ESCAPED}@",
        f"qdrant://user:{ESCAPED}@host",
        f"qdrant://host#{SECRET}",
        f"qdrant+s:{ESCAPED}",
        f"qdrant://host?prefix=a&key={SECRET}",
        f"qdrant://host?{SECRET}",
        f"qdrant://host?timeout={SECRET}",
        f"qdrant://host?grpc={SECRET}",
        f"qdrant://host?prefix={SECRET}",
        "qdrant:",
        "",
    ],
)
def test_what_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_address(url, QdrantOptions())
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) > 20


def test_the_query_says_what_differs_from_the_options() -> None:
    given = QdrantOptions(prefix="mine", shards=3)
    _, options = parse_address("qdrant://host?prefix=other&timeout=2.5&grpc=true", given)
    assert options == dataclasses.replace(given, prefix="other", timeout=2.5, prefer_grpc=True)
    assert parse_address("qdrant://host", given)[1] == given
    assert parse_address(":memory:?prefix=other", given)[1].prefix == "other"


@pytest.mark.parametrize(
    "wrong",
    [
        {"prefix": ""},
        {"prefix": "1a"},
        {"prefix": "a-b"},
        {"prefix": "记忆"},
        {"prefix": "a" * 80},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"grpc_port": 0},
        {"shards": 0},
        {"replicas": -1},
        {"batch": 0},
        {"quantisation": "product"},
    ],
)
def test_options_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        QdrantOptions(**wrong)  # type: ignore[arg-type]


def test_options_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        QdrantOptions().batch = 3  # type: ignore[misc]


def test_nothing_connects_before_the_first_use() -> None:
    def connect(address: QdrantAddress, options: QdrantOptions) -> QdrantClient:
        raise AssertionError("connected")

    server = QdrantServer("qdrant://host", connect=connect)
    server.index(1, 8)
    server.close()


def test_a_key_over_plain_http_gives_no_warning_and_reaches_the_client() -> None:
    client = open_client(address_of(f"qdrant://{ESCAPED}@host:7000"), QdrantOptions(timeout=2.5))
    assert client.init_options["headers"] == {"api-key": SECRET}
    assert client.init_options["timeout"] == 3
    assert client.init_options["check_compatibility"] is False
    client.close()


@pytest.mark.parametrize(("embedder", "width"), [(1, None), (None, 8), (1, 0), (1, 70_000)])
def test_an_embedder_and_its_width_go_together(embedder: int | None, width: int | None) -> None:
    with pytest.raises(ConfigurationError):
        QdrantServer(":memory:").index(embedder, width)
