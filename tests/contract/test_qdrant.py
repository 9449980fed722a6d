"""What the Qdrant engine does beyond the contract; the local mode stands for a server where that is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from langchain_memrag.errors import ConfigurationError, StoreUnavailableError
from langchain_memrag.stores.base import DenseSignal, LexicalSignal, SearchFilter, Signal
from langchain_memrag.stores.qdrant import QdrantIndex, QdrantOptions, QdrantServer
from langchain_memrag.stores.qdrant.layout import FIELDS
from langchain_memrag.stores.qdrant.points import point_id
from langchain_memrag.testing.contracts.search import CHA, NOW, TEA, make_entry, unit

SPACE = 7
ALL = SearchFilter(spaces=(SPACE,), now=NOW)


def dense(depth: int = 10) -> Signal:
    return DenseSignal("dense", ("turn",), depth, unit(1))


def lexical(terms: dict[int, float], depth: int = 10) -> Signal:
    return LexicalSignal("words", ("turn",), depth, terms)


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    server = QdrantServer(":memory:")
    yield server
    server.close()


@pytest.fixture
def index(server: QdrantServer) -> QdrantIndex:
    return server.index(1, 8)


class Recorder(QdrantClient):
    """Notes what a server would be asked, and does what of it the local mode can."""

    def __init__(self) -> None:
        super().__init__(location=":memory:")
        self.created: list[dict[str, Any]] = []
        self.indexed: dict[tuple[str, str], Any] = {}
        self.asked: list[Sequence[models.QueryRequest]] = []
        self.timeouts: list[int | None] = []
        self.written: list[int] = []
        self.status = models.UpdateStatus.COMPLETED

    def create_collection(self, collection_name: str, **options: Any) -> bool:  # type: ignore[override]
        self.created.append({"name": collection_name, **options})
        return super().create_collection(collection_name, **options)

    def create_payload_index(self, collection_name: str, field_name: str, **options: Any) -> Any:  # type: ignore[override]
        self.indexed[collection_name, field_name] = options["field_schema"]

    def query_batch_points(self, collection_name: str, requests: Any, **options: Any) -> Any:  # type: ignore[override]
        if not self.collection_exists(collection_name):
            raise UnexpectedResponse(404, "Not Found", b"", httpx.Headers())
        self.asked.append(requests)
        self.timeouts.append(options["timeout"])
        # The local mode warns that these mean nothing to it.
        plain = [request.model_copy(update={"params": None}) for request in requests]
        return super().query_batch_points(collection_name, plain)

    def upsert(self, collection_name: str, points: Any, **options: Any) -> models.UpdateResult:  # type: ignore[override]
        self.written.append(len(points))
        super().upsert(collection_name, points, **options)
        return models.UpdateResult(operation_id=1, status=self.status)


def recorded(**options: Any) -> tuple[QdrantServer, Recorder]:
    client = Recorder()
    return QdrantServer("qdrant://host", QdrantOptions(**options), connect=lambda *_: client), client


# Whose it is


def test_an_empty_server_is_adopted_once_and_known_from_then_on(server: QdrantServer) -> None:
    memory = uuid4()
    assert server.knows(memory) is False
    assert server.knows(memory) is False
    server.adopt(memory)
    server.adopt(memory)
    assert server.knows(memory) is True
    server.index(1, 8).upsert([make_entry(SPACE, terms={TEA: 1.0})])
    assert server.knows(memory) is True


def test_another_memory_is_refused_with_the_remedy(server: QdrantServer) -> None:
    mine, theirs = uuid4(), uuid4()
    server.adopt(mine)
    for refused in (server.knows, server.adopt):
        with pytest.raises(ConfigurationError, match="prefix"):
            refused(theirs)
    assert server.knows(mine) is True


def test_entries_that_nobody_signed_for_are_not_adopted(server: QdrantServer, index: QdrantIndex) -> None:
    index.upsert([make_entry(SPACE, terms={TEA: 1.0})])
    with pytest.raises(ConfigurationError, match="prefix"):
        server.adopt(uuid4())


def test_of_two_memories_that_come_at_once_one_stays_at_most() -> None:
    class Hasty(Recorder):
        """Somebody else signs between our look and our signature."""

        def upsert(self, collection_name: str, points: Any, **options: Any) -> models.UpdateResult:
            rival = models.PointStruct(id=str(theirs), vector={}, payload={})
            super().upsert(collection_name, [rival], **options)
            return super().upsert(collection_name, points, **options)

    mine, theirs = uuid4(), uuid4()
    client = Hasty()
    server = QdrantServer("qdrant://host", connect=lambda *_: client)
    with pytest.raises(ConfigurationError, match="prefix"):
        server.adopt(mine)
    assert server.knows(theirs) is True


def test_memories_with_prefixes_of_their_own_share_a_server() -> None:
    client = QdrantClient(":memory:")
    servers = [
        QdrantServer(":memory:", QdrantOptions(prefix=prefix), connect=lambda *_: client)
        for prefix in ("memrag", "memrag_2", "other")
    ]
    for number, server in enumerate(servers):
        server.adopt(uuid4())
        server.index(2, 8).upsert([make_entry(SPACE, terms={TEA: 1.0}) for _ in range(number + 1)])
    assert [server.collections() for server in servers] == [["memrag_2"], ["memrag_2_2"], ["other_2"]]
    assert servers[0].index(2, 8).clear(SPACE) == 1
    assert [server.index(2, 8).count(SPACE) for server in servers] == [0, 2, 3]


def test_a_server_that_lost_everything_asks_to_be_filled_again() -> None:
    server, client = recorded()
    memory = uuid4()
    server.adopt(memory)
    index = server.index(1, 8)
    index.upsert([make_entry(SPACE, terms={TEA: 1.0})])
    for each in client.get_collections().collections:
        client.delete_collection(each.name)
    with pytest.raises(StoreUnavailableError, match="lost its data"):
        index.search([lexical({TEA: 1.0})], ALL)
    assert server.knows(memory) is False
    server.adopt(memory)
    index.upsert([make_entry(SPACE, terms={TEA: 1.0})])
    assert index.count(SPACE) == 1


def test_a_collection_that_is_gone_is_made_again(server: QdrantServer, index: QdrantIndex) -> None:
    index.upsert([make_entry(SPACE, terms={TEA: 1.0})])
    assert server.drop(1) is True
    assert server.drop(1) is False
    assert index.search([lexical({TEA: 1.0})], ALL) == [[]]
    index.upsert([make_entry(SPACE, terms={TEA: 1.0})])
    assert index.count(SPACE) == 1


# Folders


def test_a_folder_keeps_what_was_written(tmp_path: Path) -> None:
    url = f"qdrant://{tmp_path}/index"
    memory, entry = uuid4(), make_entry(SPACE, vector=unit(1), terms={CHA: 2.0}, session="会话")
    first = QdrantServer(url)
    first.adopt(memory)
    first.index(1, 8).upsert([entry])
    first.close()
    second = QdrantServer(url)
    assert second.knows(memory) is True
    where = replace(ALL, session="会话")
    for hits in second.index(1, 8).search([dense(), lexical({CHA: 1.0})], where):
        assert [hit.record for hit in hits] == [entry.record]
    assert "local" in second.version()
    second.close()


def test_a_folder_takes_one_opener_and_says_so(tmp_path: Path) -> None:
    url = f"qdrant://{tmp_path}/index"
    first = QdrantServer(url)
    first.index(1, 8).upsert([make_entry(SPACE, terms={TEA: 1.0})])
    second = QdrantServer(url)
    with pytest.raises(StoreUnavailableError, match="open already"):
        second.index(1, 8).count(SPACE)
    program = (
        "import sys\n"
        "from langchain_memrag.errors import StoreUnavailableError\n"
        "from langchain_memrag.stores.qdrant import QdrantServer\n"
        "try:\n"
        "    QdrantServer(sys.argv[1]).index(1, 8).count(7)\n"
        "except StoreUnavailableError as error:\n"
        "    sys.exit(f'refused: {error}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, url], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "refused: qdrant: open:" in done.stderr
    assert "another process" in done.stderr
    assert first.index(1, 8).count(SPACE) == 1
    first.close()
    assert second.index(1, 8).count(SPACE) == 1
    second.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_the_folder_to_its_parent(tmp_path: Path) -> None:
    program = (
        "import gc, os, sys\n"
        "from langchain_memrag.errors import StoreUnavailableError\n"
        "from langchain_memrag.stores.qdrant import QdrantServer, server as qdrant\n"
        "def refused(server):\n"
        "    try:\n"
        "        server.index(1, 8).count(7)\n"
        "    except StoreUnavailableError as error:\n"
        "        return 'open already' in str(error)\n"
        "    return False\n"
        "server = QdrantServer(sys.argv[1])\n"
        "server.index(1, 8).count(7)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    right = refused(server)\n"
        "    qdrant._abandoned.clear()\n"
        "    gc.collect()\n"
        "    sys.exit(0 if right else 3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert server.index(1, 8).count(7) == 0\n"
        "assert refused(QdrantServer(sys.argv[1]))\n"
    )
    url = f"qdrant://{tmp_path}/index"
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


# Points


def test_ids_of_points_are_what_they_were() -> None:
    record = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
    assert point_id(7, record, "turn", 0) == "50f4e2aa-bc03-53e2-9d02-e1c1e26e8005"
    others = {
        point_id(8, record, "turn", 0),
        point_id(7, UUID(int=1), "turn", 0),
        point_id(7, record, "pair", 0),
        point_id(7, record, "turn", 1),
    }
    assert len(others | {point_id(7, record, "turn", 0)}) == 5


def test_signed_hashes_of_terms_stay_apart(index: QdrantIndex) -> None:
    hashes = [-(2**31), -1, 0, 1, 2**31 - 1]
    entries = [make_entry(SPACE, terms={term: 1.0}) for term in hashes]
    index.upsert(entries)
    for term, entry in zip(hashes, entries, strict=True):
        (hits,) = index.search([lexical({term: 2.0})], ALL)
        assert [(hit.record, hit.score) for hit in hits] == [(entry.record, 2.0)]


def test_words_alone_need_no_embedder(server: QdrantServer) -> None:
    index = server.index(None, None)
    entry = make_entry(SPACE, vector=unit(1), terms={TEA: 1.0})
    index.upsert([entry])
    words, vectors = index.search([lexical({TEA: 1.0}), dense()], ALL)
    assert [hit.record for hit in words] == [entry.record]
    assert vectors == []
    assert server.collections() == ["memrag_words"]


def test_an_entry_with_neither_vector_nor_words_is_counted(index: QdrantIndex) -> None:
    entry = make_entry(SPACE)
    index.upsert([entry])
    assert index.count_of(SPACE, [entry.record]) == 1
    assert index.search([dense(), lexical({TEA: 1.0})], ALL) == [[], []]


def test_a_collection_of_another_width_is_refused(server: QdrantServer, index: QdrantIndex) -> None:
    index.upsert([make_entry(SPACE, vector=unit(1))])
    with pytest.raises(ConfigurationError, match=r"8 .*12.*prefix"):
        server.index(1, 12).upsert([make_entry(SPACE, vector=unit(1, width=12))])


# Removing


def test_what_is_removed_leaves_the_collections_of_retired_embedders(server: QdrantServer) -> None:
    old, new, words = server.index(1, 8), server.index(2, 12), server.index(None, None)
    entries = [make_entry(SPACE, vector=unit(1), terms={TEA: 1.0}) for _ in range(3)]
    old.upsert(entries)
    words.upsert(entries)
    new.upsert([replace(entry, vector=unit(1, width=12)) for entry in entries[:2]])
    assert new.count_of(SPACE, [entries[0].record]) == 3
    assert new.remove(SPACE, [entries[0].record]) == 3
    assert new.count_of(SPACE, [entries[0].record]) == 0
    assert [index.count(SPACE) for index in (old, new, words)] == [2, 1, 2]
    assert new.clear(SPACE) == 5
    assert [index.count(SPACE) for index in (old, new, words)] == [0, 0, 0]


def test_an_entry_of_many_sources_is_counted_once(index: QdrantIndex) -> None:
    records = [make_entry(SPACE).record for _ in range(1500)]
    both = make_entry(SPACE, record=records[0], sources=(records[0], records[-1]), terms={TEA: 1.0})
    index.upsert([both, make_entry(SPACE, terms={TEA: 1.0})])
    assert index.count_of(SPACE, records) == 1
    assert index.remove(SPACE, records) == 1
    assert index.count(SPACE) == 1


# Many at once


def test_twenty_writers_at_once_make_one_collection(server: QdrantServer) -> None:
    def write(number: int) -> None:
        # Each an index of its own, as in processes that start together.
        server.index(1, 8).upsert([make_entry(SPACE, vector=unit(1), terms={number: 1.0})])

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(write, range(20)))
    assert server.index(1, 8).count(SPACE) == 20


def test_in_local_mode_callers_take_turns() -> None:
    class Alone(QdrantClient):
        """Says when somebody comes in while another is here."""

        inside = 0
        crowd = 0

        def count(self, collection_name: str, **options: Any) -> models.CountResult:  # type: ignore[override]
            self.inside += 1
            time.sleep(0.002)
            self.crowd = max(self.crowd, self.inside)
            self.inside -= 1
            return models.CountResult(count=0)

    client = Alone(":memory:")
    server = QdrantServer(":memory:", connect=lambda *_: client)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: server.index(1, 8).count(SPACE), range(24)))
    assert client.crowd == 1
    server.close()


def test_who_comes_second_finds_the_collection_made() -> None:
    class Late(Recorder):
        """Somebody else makes the collection between our look and our request."""

        def create_collection(self, collection_name: str, **options: Any) -> bool:
            super().create_collection(collection_name, **options)
            return super().create_collection(collection_name, **options)

    client = Late()
    index = QdrantServer("qdrant://host", connect=lambda *_: client).index(1, 8)
    index.upsert([make_entry(SPACE, vector=unit(1))])
    assert index.count(SPACE) == 1
    assert len(client.created) == 2


# What a server is asked


def test_a_new_collection_is_laid_out_by_tenant() -> None:
    server, client = recorded()
    server.index(3, 8).upsert([make_entry(SPACE, vector=unit(1))])
    (made,) = client.created
    assert made["name"] == "memrag_3"
    assert (made["hnsw_config"].m, made["hnsw_config"].payload_m) == (0, 16)
    vector = made["vectors_config"]["dense"]
    assert (vector.size, vector.distance, vector.quantization_config) == (8, models.Distance.DOT, None)
    assert made["sparse_vectors_config"]["terms"].modifier is None
    assert (made["shard_number"], made["replication_factor"]) == (None, None)
    assert {field for _, field in client.indexed} == FIELDS.keys()
    assert client.indexed["memrag_3", "space"].is_tenant is True
    assert {schema.type.value for schema in client.indexed.values()} == {"keyword", "uuid", "datetime"}


@pytest.mark.parametrize(
    ("quantisation", "cls"),
    [("scalar", models.ScalarQuantization), ("binary", models.BinaryQuantization)],
)
def test_options_reach_the_collection(quantisation: str, cls: type) -> None:
    server, client = recorded(
        prefix="mine", shards=3, replicas=2, on_disk=True, quantisation=quantisation, batch=2
    )
    index = server.index(1, 8)
    index.upsert([make_entry(SPACE, vector=unit(1), terms={TEA: 1.0}) for _ in range(5)])
    (made,) = client.created
    assert (made["name"], made["shard_number"], made["replication_factor"]) == ("mine_1", 3, 2)
    assert isinstance(made["vectors_config"]["dense"].quantization_config, cls)
    assert made["vectors_config"]["dense"].on_disk
    assert made["hnsw_config"].on_disk
    assert made["sparse_vectors_config"]["terms"].index.on_disk
    assert client.written == [2, 2, 1]
    index.search([dense(), lexical({TEA: 1.0})], ALL)
    (requests,) = client.asked
    assert requests[0].params is not None
    assert requests[0].params.quantization.rescore is True
    assert requests[1].params is None


def test_all_signals_of_all_spaces_go_in_one_request() -> None:
    server, client = recorded()
    index = server.index(1, 8)
    mine, shared = (make_entry(space, vector=unit(1, space), terms={TEA: space}) for space in (SPACE, 9))
    index.upsert([mine, shared])
    where = replace(ALL, spaces=(SPACE, 9, SPACE))
    vectors, words = index.search([dense(), lexical({TEA: 1.0})], where, timeout=0.2)
    assert [hit.record for hit in vectors] == [mine.record, shared.record]
    assert [(hit.space, hit.score) for hit in words] == [(9, 9.0), (SPACE, 7.0)]
    (requests,) = client.asked
    # A space has a graph of its own, so each request is about one space.
    assert [(request.using, request.filter.must[0].match.value) for request in requests] == [
        ("dense", "7"), ("dense", "9"), ("terms", "7"), ("terms", "9"),
    ]  # fmt: skip
    assert client.timeouts == [1]


def test_nothing_is_asked_where_nothing_can_be_found() -> None:
    server, client = recorded()
    index = server.index(1, 8)
    index.upsert([make_entry(SPACE, vector=unit(1))])
    assert index.search([lexical({})], ALL) == [[]]
    assert index.search([dense()], replace(ALL, roles=())) == [[]]
    assert index.search([], ALL) == []
    assert client.asked == []


def test_the_newest_of_very_many_equals_come_first() -> None:
    server, client = recorded()
    index = server.index(1, 8)
    twins = [make_entry(SPACE, vector=unit(1), terms={TEA: 1.0}) for _ in range(300)]
    index.upsert(twins[150:] + twins[:150])
    newest = [entry.record for entry in reversed(twins)][:5]
    for hits in index.search([dense(5), lexical({TEA: 1.0}, 5)], ALL):
        assert [hit.record for hit in hits] == newest
    assert [len(requests) for requests in client.asked] == [2, 2]


def test_a_write_that_did_not_take_effect_is_no_success() -> None:
    server, client = recorded()
    client.status = models.UpdateStatus.ACKNOWLEDGED
    with pytest.raises(StoreUnavailableError, match="did not take effect"):
        server.index(1, 8).upsert([make_entry(SPACE, vector=unit(1))])
