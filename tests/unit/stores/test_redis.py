"""The URLs and the errors of Redis."""

from __future__ import annotations

import inspect
import traceback

import pytest
from redis import exceptions

from langchain_memrag.errors import ConfigurationError, StoreError, StoreUnavailableError
from langchain_memrag.stores.redis import RedisCache, RedisOptions
from langchain_memrag.stores.redis.address import label_of
from langchain_memrag.stores.redis.faults import faults_mapped, translate

SECRET = "hunter2-geheim"


@pytest.mark.parametrize(
    ("url", "label"),
    [
        (f"redis://:{SECRET}@localhost", "redis://localhost:6379/0"),
        (f"rediss://ann:{SECRET}@cache.example.com:7000/3", "rediss://cache.example.com:7000/3"),
        (f"redis://:{SECRET}@[::1]:7000", "redis://[::1]:7000/0"),
        (f"unix://:{SECRET}@/run/redis.sock?db=1", "unix:///run/redis.sock"),
    ],
)
def test_a_url_without_its_credentials(url: str, label: str) -> None:
    assert label_of(url) == label
    cache = RedisCache(url)
    assert cache.label == label
    assert SECRET not in repr(cache)
    cache.close()


@pytest.mark.parametrize(
    "url",
    [
        f"http://:{SECRET}@localhost",
        f"redis://:{SECRET}@",
        f"redis://:{SECRET}@host:port",
        f"redis://:{SECRET}@host/zero",
        f"unix://:{SECRET}@",
        f"redis://:{SECRET}@[::1",
        "",
    ],
)
def test_a_url_that_will_not_do_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        RedisCache(url)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "wrong",
    [
        {"prefix": ""},
        {"prefix": "a b"},
        {"prefix": "{x}"},
        {"timeout": 0},
        {"pool_size": 0},
        {"most_values": 0},
    ],
)
def test_options_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        RedisOptions(**wrong)  # type: ignore[arg-type]


ALL = sorted(
    {
        kind
        for _, kind in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(kind, exceptions.RedisError | exceptions.RedisClusterException)
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", ALL)
def test_every_error_of_the_client_becomes_one_of_ours_without_its_text(kind: type[Exception]) -> None:
    try:
        error = (
            kind("0 127.0.0.1:1 " + SECRET) if kind.__name__ in {"AskError", "MovedError"} else kind(SECRET)
        )
    except (TypeError, ValueError):
        error = kind.__new__(kind)

    def fail() -> None:
        raise error

    with pytest.raises(StoreError) as caught:
        faults_mapped("read the cache", fail)
    assert caught.value.engine == "redis"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (exceptions.ConnectionError("x"), True),
        (exceptions.TimeoutError("x"), True),
        (exceptions.BusyLoadingError("x"), True),
        (exceptions.ResponseError("MISCONF Redis is configured to save RDB snapshots"), True),
        (exceptions.ResponseError("OOM command not allowed"), True),
        (exceptions.ReadOnlyError("x"), True),
        (exceptions.AuthenticationError("x"), False),
        (exceptions.NoPermissionError("x"), False),
        (exceptions.ResponseError("WRONGTYPE"), False),
    ],
)
def test_what_passes_and_what_needs_a_person(error: exceptions.RedisError, passing: bool) -> None:
    assert isinstance(translate(error, "read the cache"), StoreUnavailableError) is passing


def test_a_refused_login_names_the_remedy() -> None:
    assert "password" in str(translate(exceptions.AuthenticationError("x"), "read the cache"))
