"""The cache on a Redis server: the extra `redis`."""

from __future__ import annotations

from langchain_memrag.errors import MissingDependencyError

try:
    import redis as _driver  # noqa: F401 - tells now, and by its extra, what is missing
except ImportError as error:
    raise MissingDependencyError("a cache on Redis", "redis") from error

from langchain_memrag.stores.redis.address import RedisOptions
from langchain_memrag.stores.redis.cache import RedisCache

__all__ = ["RedisCache", "RedisOptions"]
