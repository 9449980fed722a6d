"""Every cache keeps the contract."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from langchain_memrag.errors import StoreError
from langchain_memrag.stores.cache import Cache, CacheKey, ProcessCache
from langchain_memrag.stores.redis import RedisCache, RedisOptions
from langchain_memrag.testing.contracts import CacheContract


class TestCache(CacheContract):
    @pytest.fixture(params=["process", "redis"])
    def cache(self, request: pytest.FixtureRequest) -> Iterator[Cache]:
        if request.param == "process":
            yield ProcessCache()
            return
        cache = RedisCache(request.getfixturevalue("redis_url"))
        cache.adopt(uuid4())
        yield cache
        cache.close()


KEY = CacheKey(1, "recall", b"q")


@pytest.fixture
def redis(redis_url: str) -> Iterator[RedisCache]:
    cache = RedisCache(redis_url, RedisOptions(most_values=5))
    cache.adopt(uuid4())
    yield cache
    cache.close()


def test_two_memories_on_one_server_never_meet(redis_url: str, redis: RedisCache) -> None:
    other = RedisCache(redis_url)
    other.adopt(uuid4())
    redis.put(KEY, b"mine", stamp=1, seconds=60)
    assert other.get(KEY) is None
    assert other.forget(1, None) == 0
    assert redis.get(KEY) == b"mine"
    other.close()


def test_a_cache_that_was_not_told_whose_it_is_keeps_nothing(redis_url: str) -> None:
    cache = RedisCache(redis_url)
    with pytest.raises(StoreError, match="which memory"):
        cache.put(KEY, b"v", stamp=1, seconds=60)
    cache.close()


def test_forgetting_leaves_no_value_on_the_server(redis: RedisCache) -> None:
    for number in range(3):
        redis.put(CacheKey(7, "recall", str(number).encode()), b"needle-7", stamp=1, seconds=60)
        redis.put(CacheKey(8, "recall", str(number).encode()), b"needle-8", stamp=1, seconds=60)
    redis.forget(7, 2)
    client = redis._client
    values = [value for key in client.scan_iter("*:values") for value in client.hgetall(key).values()]
    assert b"needle-7" not in values
    assert values.count(b"needle-8") == 3


def test_the_newest_values_of_a_space_are_kept(redis: RedisCache) -> None:
    for number in range(9):
        redis.put(CacheKey(1, "recall", str(number).encode()), b"v", stamp=1, seconds=60 + number)
    assert redis.count(1) == 5
    assert [n for n in range(9) if redis.get(CacheKey(1, "recall", str(n).encode()))] == [4, 5, 6, 7, 8]


def test_a_half_that_was_evicted_alone_does_no_harm(redis: RedisCache) -> None:
    redis.put(KEY, b"old", stamp=1, seconds=60)
    values, until, _ = redis._keys(1)
    redis._client.delete(until)
    assert redis.get(KEY) is None
    redis.put(CacheKey(1, "recall", b"other"), b"new", stamp=1, seconds=60)
    assert redis._client.hlen(values) == redis._client.zcard(until) == 1


def test_everything_on_the_server_ends_by_itself(redis: RedisCache) -> None:
    redis.put(KEY, b"v", stamp=1, seconds=60)
    redis.forget(2, None)
    own = [key for space in (1, 2) for key in redis._keys(space) if redis._client.exists(key)]
    assert len(own) == 3
    assert all(redis._client.ttl(key) > 0 for key in own)


def test_the_process_cache_is_bounded_and_drops_what_was_used_longest_ago() -> None:
    cache = ProcessCache(100)
    keys = [CacheKey(1, "recall", bytes([n])) for n in range(4)]
    for key in keys[:3]:
        cache.put(key, b"x" * 33, stamp=1, seconds=60)
    assert cache.get(keys[0])
    cache.put(keys[3], b"x" * 33, stamp=1, seconds=60)
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True]
    assert not cache.put(keys[1], b"x" * 101, stamp=1, seconds=60)


def test_a_forgetting_beats_whoever_writes_at_the_same_time(redis: RedisCache) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            redis.put(KEY, b"stale", stamp=1, seconds=60)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    redis.forget(1, 2)
    seen = [redis.get(KEY) for _ in range(200)]
    stop.set()
    for writer in writers:
        writer.join()
    assert set(seen) == {None}
