"""The contract of `Cache`."""

# ruff: noqa: D102 - a test's name says what it tests

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from langchain_memrag.stores.cache import BIGGEST_VALUE, Cache, CacheKey

__all__ = ["CacheContract"]

_SPACES = count(1)


def _key(space: int, name: str = "q", kind: str = "recall") -> CacheKey:
    return CacheKey(space, kind, name.encode())  # type: ignore[arg-type]


class CacheContract:
    """Derive from it, and override the fixture `cache`."""

    @pytest.fixture
    def cache(self) -> Cache:
        """An empty cache."""
        raise NotImplementedError

    @pytest.fixture
    def space(self) -> int:
        """A space without values."""
        return next(_SPACES)

    @pytest.mark.parametrize("value", [b"", b"\x00\xff\r\n", "记得 🍵".encode(), b"x" * BIGGEST_VALUE])
    def test_a_value_comes_back_as_it_was(self, cache: Cache, space: int, value: bytes) -> None:
        assert cache.get(_key(space)) is None
        assert cache.put(_key(space), value, stamp=1, seconds=60)
        assert cache.get(_key(space)) == value
        assert cache.count(space) == 1

    def test_a_value_is_replaced(self, cache: Cache, space: int) -> None:
        cache.put(_key(space), b"old", stamp=1, seconds=60)
        cache.put(_key(space), b"new", stamp=1, seconds=60)
        assert (cache.get(_key(space)), cache.count(space)) == (b"new", 1)

    def test_what_is_too_big_is_not_kept(self, cache: Cache, space: int) -> None:
        assert not cache.put(_key(space), b"x" * (BIGGEST_VALUE + 1), stamp=1, seconds=60)
        assert (cache.get(_key(space)), cache.count(space)) == (None, 0)

    def test_spaces_kinds_and_keys_are_apart(self, cache: Cache, space: int) -> None:
        other = next(_SPACES)
        keys = [
            _key(space), _key(other), _key(space, kind="embedding"), _key(space, "q2"), _key(space, "*"),
            _key(space, "q?"), _key(space, "问"), _key(int(f"{space}1")),
        ]  # fmt: skip
        for number, key in enumerate(keys):
            cache.put(key, str(number).encode(), stamp=1, seconds=60)
        assert [cache.get(key) for key in keys] == [str(number).encode() for number in range(len(keys))]
        assert cache.forget(space, 1) == 6
        assert [cache.get(key) for key in keys if key.space == space] == [None] * 6
        assert cache.get(_key(other)) == b"1"
        assert cache.get(_key(int(f"{space}1"))) == b"7"

    def test_a_value_lasts_for_its_time(self, cache: Cache, space: int) -> None:
        cache.put(_key(space), b"short", stamp=1, seconds=0.05)
        cache.put(_key(space, "long"), b"long", stamp=1, seconds=60)
        time.sleep(0.1)
        assert cache.get(_key(space)) is None
        assert cache.get(_key(space, "long")) == b"long"
        assert cache.count(space) == 1
        assert cache.forget(space, 1) == 1

    def test_forgetting_erases_and_refuses_what_is_older(self, cache: Cache, space: int) -> None:
        cache.put(_key(space), b"secret", stamp=4, seconds=60)
        assert cache.forget(space, 5) == 1
        assert (cache.get(_key(space)), cache.count(space)) == (None, 0)
        # Whoever computed it before may only now be done.
        assert not cache.put(_key(space), b"secret", stamp=4, seconds=60)
        assert cache.get(_key(space)) is None
        assert cache.put(_key(space), b"clean", stamp=5, seconds=60)
        assert cache.get(_key(space)) == b"clean"

    def test_a_space_that_is_gone_takes_nothing(self, cache: Cache, space: int) -> None:
        cache.put(_key(space), b"secret", stamp=4, seconds=60)
        assert cache.forget(space, None) == 1
        assert not cache.put(_key(space), b"secret", stamp=10**12, seconds=60)
        assert (cache.get(_key(space)), cache.count(space)) == (None, 0)

    def test_forgetting_nothing(self, cache: Cache, space: int) -> None:
        assert cache.forget(space, 1) == 0

    def test_many_values_of_one_space_are_bounded(self, cache: Cache, space: int) -> None:
        big = b"x" * (BIGGEST_VALUE // 2)
        for number in range(300):
            assert cache.put(_key(space, str(number)), big, stamp=1, seconds=60)
        assert cache.get(_key(space, "299")) == big
        assert cache.get(_key(space, "0")) is None
        assert 1 <= cache.count(space) < 300

    def test_many_callers_at_once(self, cache: Cache, space: int) -> None:
        def use(number: int) -> bytes | None:
            cache.put(_key(space, str(number % 7)), b"v", stamp=1, seconds=60)
            if number % 5 == 0:
                cache.forget(space, 1)
            return cache.get(_key(space, str(number % 7)))

        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(use, range(200))) <= {b"v", None}
        assert cache.count(space) <= 7
