"""The cache on Redis: all values of a space in one hash, so that forgetting them is one command.

Redis 6.2 or newer. Beside the hash stands a sorted set that says until when each value lasts; both have
one hash tag, so that they live on one node of a cluster. Scripts make each step whole.
"""

from __future__ import annotations

from typing import Final, cast
from uuid import UUID

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from langchain_memrag.errors import ConfigurationError, StoreError
from langchain_memrag.stores.cache import BIGGEST_VALUE, CacheKey, Stamp
from langchain_memrag.stores.redis.address import RedisOptions, label_of
from langchain_memrag.stores.redis.faults import ENGINE, faults_mapped
from langchain_memrag.stores.server import CacheServer

__all__ = ["RedisCache"]

_FORGOTTEN_FOR: Final = 3_600
"""Seconds for which a space remembers that it forgot: longer than anybody computes one value."""

_NOW: Final = (
    "local clock = redis.call('TIME')"
    " local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000) "
)

_GET: Final = (
    _NOW + "local last = redis.call('ZSCORE', KEYS[2], ARGV[1])"
    " if not last or tonumber(last) <= now then return false end"
    " return redis.call('HGET', KEYS[1], ARGV[1])"
)

_PUT: Final = (
    _NOW + "local forgotten = redis.call('GET', KEYS[3])"
    " if forgotten and (forgotten == 'all' or tonumber(ARGV[3]) < tonumber(forgotten)) then return 0 end"
    " local function drop(fields) if #fields > 0 then"
    "  redis.call('HDEL', KEYS[1], unpack(fields)) redis.call('ZREM', KEYS[2], unpack(fields)) end end"
    " drop(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1000))"
    # Either of the two may have been evicted alone: then both begin anew.
    " if redis.call('HLEN', KEYS[1]) ~= redis.call('ZCARD', KEYS[2]) then"
    "  redis.call('UNLINK', KEYS[1], KEYS[2]) end"
    " local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[5]) + 1"
    " if over > 0 then drop(redis.call('ZRANGE', KEYS[2], 0, over - 1)) end"
    " redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])"
    " redis.call('ZADD', KEYS[2], now + tonumber(ARGV[4]), ARGV[1])"
    " for number = 1, 2 do"
    "  if redis.call('PTTL', KEYS[number]) < tonumber(ARGV[4]) then"
    "   redis.call('PEXPIRE', KEYS[number], ARGV[4]) end end"
    " return 1"
)

_FORGET: Final = (
    _NOW + "local gone = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')"
    " redis.call('UNLINK', KEYS[1], KEYS[2])"
    " redis.call('SET', KEYS[3], ARGV[1], 'EX', ARGV[2])"
    " return gone"
)

_COUNT: Final = _NOW + (
    "return math.min(redis.call('HLEN', KEYS[1]), redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf'))"
)


class RedisCache(CacheServer):
    """Keeps values on a Redis server, for all processes of a memory.

    Nothing is connected before the first use. It serves one memory, which it is told of by `adopt`.

    Args:
        url: `redis://:password@host:port/0`, `rediss://` for TLS, or `unix://`.
        options: How it is used.

    Raises:
        ConfigurationError: The URL cannot be read.
    """

    engine = ENGINE

    def __init__(self, url: str, options: RedisOptions | None = None) -> None:
        self._options = options or RedisOptions()
        self._label = label_of(url)
        try:
            self._client = redis.Redis.from_url(
                url,
                socket_timeout=self._options.timeout,
                socket_connect_timeout=self._options.connect_timeout,
                max_connections=self._options.pool_size,
                # Once, at once: a connection that a restarted server dropped is made anew.
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError:
            raise ConfigurationError("the URL of Redis cannot be read") from None
        self._get = self._client.register_script(_GET)
        self._put = self._client.register_script(_PUT)
        self._forget = self._client.register_script(_FORGET)
        self._count = self._client.register_script(_COUNT)
        self._memory: UUID | None = None

    def __repr__(self) -> str:
        return f"RedisCache({self._label!r})"

    @property
    def label(self) -> str:
        """Where it is, without credentials."""
        return self._label

    def knows(self, memory: UUID) -> bool:
        """See `Server.knows`. A cache has nothing to be filled with, and keys say whose they are."""
        self._memory = memory
        return True

    def adopt(self, memory: UUID) -> None:
        """See `Server.adopt`."""
        self._memory = memory

    def version(self) -> str:
        """See `Server.version`."""
        info = faults_mapped("look for the server", lambda: self._client.info("server"))
        return str(cast("dict[str, object]", info)["redis_version"])

    def close(self) -> None:
        """See `Server.close`."""
        self._client.close()

    def get(self, key: CacheKey) -> bytes | None:
        """See `Cache.get`."""
        keys = self._keys(key.space)[:2]
        found = faults_mapped("read the cache", lambda: self._get(keys=keys, args=[_field(key)]))
        return cast("bytes | None", found)

    def put(self, key: CacheKey, value: bytes, *, stamp: Stamp, seconds: float) -> bool:
        """See `Cache.put`."""
        if len(value) > BIGGEST_VALUE:
            return False
        keys, lasting = self._keys(key.space), max(1, int(seconds * 1000))
        said: list[bytes | str | int | float] = [
            _field(key),
            value,
            stamp,
            lasting,
            self._options.most_values,
        ]
        return bool(faults_mapped("write the cache", lambda: self._put(keys=keys, args=said)))

    def forget(self, space: int, stamp: Stamp | None) -> int:
        """See `Cache.forget`."""
        keys, said = self._keys(space), ["all" if stamp is None else str(stamp), str(_FORGOTTEN_FOR)]
        gone = faults_mapped("clear the cache", lambda: self._forget(keys=keys, args=said))
        return int(cast("int", gone))

    def count(self, space: int) -> int:
        """See `Cache.count`."""
        keys = self._keys(space)[:2]
        return int(cast("int", faults_mapped("count the cache", lambda: self._count(keys=keys, args=[]))))

    def _keys(self, space: int) -> list[str]:
        if self._memory is None:
            raise StoreError("it has not been told which memory it serves", engine=ENGINE, operation="cache")
        own = f"{self._options.prefix}:{{{self._memory.hex}:{int(space)}}}"
        return [f"{own}:values", f"{own}:until", f"{own}:forgotten"]


def _field(key: CacheKey) -> bytes:
    return key.kind.encode() + b":" + key.digest
