"""Every error of the driver has a place in our tree, and none brings a stored word or a password along."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import psycopg
import psycopg_pool
import pytest

from langchain_memrag.errors import ConfigurationError, SchemaError, StoreError, StoreUnavailableError
from langchain_memrag.stores.postgres.address import parse_address, valid_schema
from langchain_memrag.stores.postgres.faults import faults_mapped, translate

SECRET = "my PIN is 4711, 密码是四七一一"


def subclasses(cls: type[psycopg.Error]) -> Iterator[type[psycopg.Error]]:
    yield cls
    for child in cls.__subclasses__():
        yield from subclasses(child)


ALL = sorted(set(subclasses(psycopg.Error)), key=lambda cls: cls.__name__)


def test_the_list_of_errors_is_not_empty() -> None:
    assert {psycopg_pool.PoolTimeout, psycopg.errors.UniqueViolation, psycopg.InterfaceError} <= set(ALL)
    assert len(ALL) > 200


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_driver_error_is_mapped(cls: type[psycopg.Error]) -> None:
    with pytest.raises(StoreError) as caught, faults_mapped("remember"):
        raise cls(f"Key (content)=({SECRET}) is bad")
    error = caught.value
    assert error.engine == "postgres"
    assert error.operation == "remember"
    assert isinstance(error.__cause__, cls)
    worth_retrying = issubclass(cls, psycopg.OperationalError | psycopg.InterfaceError)
    if worth_retrying:
        assert isinstance(error, StoreUnavailableError)
    assert SECRET not in str(error)
    if cls.sqlstate is not None or not worth_retrying:
        assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("cls", "expected", "advice"),
    [
        (psycopg.errors.UndefinedTable, SchemaError, "memrag migrate"),
        (psycopg.errors.UndefinedColumn, SchemaError, "memrag migrate"),
        (psycopg.errors.InvalidSchemaName, SchemaError, "memrag migrate"),
        (psycopg.errors.ReadOnlySqlTransaction, StoreUnavailableError, "primary"),
        (psycopg.errors.DiskFull, StoreUnavailableError, "free some space"),
        (psycopg.errors.TooManyConnections, StoreUnavailableError, "max_connections"),
        (psycopg_pool.PoolTimeout, StoreUnavailableError, "pool_size"),
        (psycopg_pool.PoolClosed, StoreUnavailableError, "open it again"),
        (psycopg.errors.UniqueViolation, StoreError, "23505"),
    ],
)
def test_what_matters_says_what_to_do(
    cls: type[psycopg.Error], expected: type[StoreError], advice: str
) -> None:
    error = translate(cls("x"), "recall")
    assert type(error) is expected
    assert advice in str(error)


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), faults_mapped("remember"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgres",
        "mysql://ann:s3cret@h/db",
        "sqlite:///s3cret.db",
        "postgresql+psycopg://ann:s3cret@h/db",
        "postgresql://ann:s3cret@h:port/db",
        "postgresql://ann:s3c/ret@h/db",
        "postgresql://ann:12/s3cret@h/db",
        "postgresql://ann:s3c@ret@h/db",
        "postgresql://ann:s3c%ret@h/db",
        "postgresql://ann:s3cret@h/db?nonsense=s3cret",
        "postgresql://[::1/db?password=s3cret",
        "postgresql://ann:s3c\x00ret@h/db",
    ],
)
def test_a_malformed_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError, match="postgresql://") as caught:
        parse_address(url)
    shown = "".join(traceback.format_exception_only(caught.value))
    assert "s3c" not in shown
    assert "ret" not in shown
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("postgresql://ann:s3cret@db.example:6543/memory", "db.example:6543/memory"),
        ("postgres://ann:s3cret@10.0.0.7/memory", "10.0.0.7/memory"),
        ("postgresql://ann:%40%2F%3A@h/%E8%AE%B0%E5%BF%86", "h/记忆"),
        ("postgresql://ann:s3cret@[::1]:5432/memory", "::1:5432/memory"),
        ("postgresql:///memory?host=/run/pg", "a local socket/memory"),
        ("postgresql://a,b:5433/memory", "a,b:,5433/memory"),
    ],
)
def test_a_label_names_the_place_and_no_credentials(url: str, label: str) -> None:
    address = parse_address(url)
    assert address.label == label
    assert "s3cret" not in repr(address)


def test_what_the_url_says_wins_over_our_defaults() -> None:
    conninfo = parse_address("postgresql://h/d?connect_timeout=3&application_name=mine").conninfo
    assert "connect_timeout=3" in conninfo
    assert "application_name=mine" in conninfo


def test_a_search_path_is_quoted_and_keeps_other_options() -> None:
    address = parse_address("postgresql://h/d?options=-c%20work_mem%3D8MB")
    conninfo = psycopg.conninfo.conninfo_to_dict(address.with_search_path("memrag", 'odd "name\\'))
    assert conninfo["options"] == '-c work_mem=8MB -c search_path="memrag","odd\\ ""name\\\\"'


@pytest.mark.parametrize("name", ["memrag", "_x", "a1_b", "a" * 63])
def test_plain_schema_names(name: str) -> None:
    assert valid_schema(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "Memrag", "1a", "a-b", 'a"b', "a;drop", "a.b", "a" * 64, "pg_mine", "记忆", "a\n"]
)
def test_other_schema_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="schema"):
        valid_schema(name)
