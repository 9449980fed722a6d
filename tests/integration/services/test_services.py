"""The servers for tests do what tests rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import redis

from .fixtures import left_out
from .neo4j import Neo4jServer
from .redis import RedisServer


def client_of(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url, socket_timeout=1, socket_connect_timeout=1)


def test_redis_keeps_port_and_data_over_a_kill(new_redis: Callable[..., RedisServer]) -> None:
    server = new_redis(appendonly=True)
    port, pid = server.port, server.pid
    with client_of(server) as client:
        client.set("茶", "tea")
        server.kill()
        assert not psutil.pid_exists(pid)
        with pytest.raises(redis.ConnectionError):
            client.get("茶")
        server.start()
        assert server.port == port
        assert client.get("茶") == b"tea"


def test_redis_asks_for_its_password(new_redis: Callable[..., RedisServer]) -> None:
    server = new_redis()
    with redis.Redis(port=server.port) as client, pytest.raises(redis.AuthenticationError):
        client.get("x")


def test_a_paused_server_is_silent_and_can_be_stopped(new_redis: Callable[..., RedisServer]) -> None:
    server = new_redis()
    with client_of(server) as client:
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
    with client_of(server) as client:
        assert client.ping()
    server.pause()
    server.stop()
    with pytest.raises(AssertionError, match="does not run"):
        _ = server.pid


def test_a_shared_server_is_there(redis_url: str, neo4j_url: str) -> None:
    import neo4j

    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
    scheme, rest = neo4j_url.split("://")
    login, place = rest.rsplit("@", 1)
    user, password = login.split(":")
    with neo4j.GraphDatabase.driver(f"{scheme}://{place}", auth=(user, password)) as driver:
        driver.verify_connectivity()


SCRIPT = """
import sys, time
from pathlib import Path
from tests.integration.services.redis import RedisServer
server = RedisServer(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/usr/bin/setpriv").exists(), reason="this system has no setpriv")
def test_nothing_outlives_tests_that_are_killed(
    new_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "own")], stdout=subprocess.PIPE, cwd=root
    ) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert psutil.pid_exists(pid)
        os.kill(tests.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server lives on"
        time.sleep(0.05)


def test_one_line_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from . import fixtures

    monkeypatch.setattr(fixtures, "_MISSING", {"Neo4j": lambda: "no Java", "Redis": lambda: "no Redis"})
    monkeypatch.delenv("MEMRAG_TEST_NEO4J_URL", raising=False)
    monkeypatch.delenv("MEMRAG_TEST_REDIS_URL", raising=False)
    line = left_out()
    assert line is not None
    assert "Neo4j (no Java), Redis (no Redis)" in line
    assert "\n" not in line
    monkeypatch.setenv("MEMRAG_TEST_REDIS_URL", "redis://elsewhere")
    assert "Redis" not in (left_out() or "")


@pytest.mark.parametrize(
    ("required", "outcome"), [("1", pytest.fail.Exception), ("0", pytest.skip.Exception)]
)
def test_what_is_missing_fails_only_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    from . import fixtures

    monkeypatch.setattr(fixtures, "_MISSING", {"Neo4j": lambda: "there is no Java"})
    monkeypatch.setenv("MEMRAG_REQUIRE_SERVERS", required)
    with pytest.raises(outcome, match="there is no Java"):
        fixtures.need("Neo4j")


def test_neo4j_pauses_too(new_neo4j: Callable[[], Neo4jServer]) -> None:
    server = new_neo4j()
    server.pause()
    assert not server.answers()
    server.resume()
    assert server.answers()
