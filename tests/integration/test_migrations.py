"""A schema is made once, whoever opens it, and a server that will not do is refused with the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import BasePostgresSaver
from procrastinate import App, SyncPsycopgConnector

from langchain_memrag.errors import ConfigurationError, SchemaError, StoreError, StoreUnavailableError
from langchain_memrag.stores.postgres import companions, migrate
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.migrate import Migration, migrations

from .conftest import Guarded
from .servers import start_server

Opener = Callable[..., Database]

# Forked before anything is connected, so that ten processes cost one import.
OPEN_TEN_TIMES = """
import os, sys
from langchain_memrag.stores.postgres.database import Database

def open_and_close():
    database = Database(sys.argv[1])
    database.open()
    with database.connection("test") as connection:
        connection.execute(database.statement("SELECT count(*) FROM {schema}.episode"))
    database.close()

gate, opened = os.pipe()
children = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        os.close(opened)
        os.read(gate, 1)
        open_and_close()
        os._exit(0)
    children.append(child)
os.close(opened)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def described(url: str, schema: str) -> list[tuple[object, ...]]:
    """All columns and indexes of a schema."""
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = %s ORDER BY 1, 2",
            (schema,),
        ).fetchall()
        indexes = connection.execute(
            "SELECT tablename, indexname, replace(indexdef, %s, '') FROM pg_indexes WHERE schemaname = %s"
            " ORDER BY 1, 2",
            (schema, schema),
        ).fetchall()
    return [*columns, *indexes]


@pytest.fixture
def fresh_database(guarded: Guarded) -> Iterator[Callable[..., str]]:
    """Creates databases without any extension; gives the URL."""
    made: list[str] = []

    def create(options: str = "", **login: str) -> str:
        name = f"d_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(guarded.url(), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name} {options}")
        made.append(name)
        return guarded.url(database=name, **login)

    yield create
    with psycopg.connect(guarded.url(), autocommit=True) as admin:
        for name in made:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def role(guarded: Guarded) -> Iterator[str]:
    """A role that may log in and nothing else; its password is `x`."""
    name = f"r_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(guarded.url(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    return name


def test_steps_are_numbered_without_gaps_and_named_once() -> None:
    steps = migrations()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert len({step.name for step in steps}) == len(steps)
    assert all(step.sql.strip() for step in steps)


def test_opening_again_changes_nothing(open_database: Opener, postgres_url: str, schema: str) -> None:
    open_database().open()
    before = described(postgres_url, schema)
    again = open_database()
    again.open()
    again.open()
    assert described(postgres_url, schema) == before
    assert again.schema_version == migrations()[-1].number


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_ten_processes_open_an_empty_database_at_once(fresh_database: Callable[..., str]) -> None:
    url = fresh_database()
    done = subprocess.run(
        [sys.executable, "-c", OPEN_TEN_TIMES, url], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    with psycopg.connect(url) as connection:
        count = connection.execute("SELECT count(*) FROM memrag.migration").fetchone()
        invalid = connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone()
        locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert count == (len(migrations()),)
    assert invalid == (0,)
    assert locks == (0,)


def test_a_failing_step_leaves_nothing_of_itself(
    open_database: Opener, postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = migrations()
    broken = Migration(steps[-1].number + 1, "broken", "CREATE TABLE {schema}.half (a int); SELECT 1 / 0;")
    monkeypatch.setattr("langchain_memrag.stores.postgres.database.migrations", lambda: [*steps, broken])
    with pytest.raises(StoreError):
        open_database().open()
    assert "half" not in {row[0] for row in described(postgres_url, schema)}
    monkeypatch.undo()
    open_database().open()


def test_steps_added_by_a_later_version_are_applied(
    open_database: Opener, postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_database().open()
    steps = migrations()
    later = Migration(steps[-1].number + 1, "later", "CREATE TABLE {schema}.later (a int);")
    monkeypatch.setattr("langchain_memrag.stores.postgres.database.migrations", lambda: [*steps, later])
    open_database().open()
    assert "later" in {row[0] for row in described(postgres_url, schema)}
    monkeypatch.undo()
    with pytest.raises(SchemaError, match="upgrade langchain-memrag"):
        open_database().open()


def test_a_step_that_was_changed_after_the_fact_is_refused(
    open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_database().open()
    first, *rest = migrations()
    changed = Migration(first.number, first.name, first.sql + "\n-- changed")
    monkeypatch.setattr("langchain_memrag.stores.postgres.database.migrations", lambda: [changed, *rest])
    with pytest.raises(SchemaError, match=f"{first.number:04}"):
        open_database().open()


def test_line_endings_do_not_change_a_step() -> None:
    step = migrations()[0]
    assert Migration(1, "x", step.sql.replace("\n", "\r\n")).checksum == step.checksum


def test_who_waits_for_the_lock_too_long_says_so(
    open_database: Opener, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_PATIENCE", 0.2)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (migrate._LOCK,))
        with pytest.raises(StoreUnavailableError, match="pg_locks"):
            open_database().open()
    open_database().open()


def test_the_saver_finds_its_tables_ready(database: Database) -> None:
    saver = PostgresSaver(database.session_pool)
    saver.setup()  # LangGraph's own: must find nothing to do
    with database.session_pool.connection() as connection:
        newest = connection.execute("SELECT max(v), count(*) FROM checkpoint_migrations").fetchone()
        schemas = connection.execute(
            "SELECT DISTINCT schemaname FROM pg_tables"
            " WHERE tablename LIKE 'checkpoint%%' AND schemaname = %s",
            (database.schema,),
        ).fetchall()
    assert newest == (len(BasePostgresSaver.MIGRATIONS) - 1, len(BasePostgresSaver.MIGRATIONS))
    assert schemas == [(database.schema,)]


def test_a_saver_that_grew_is_brought_up_to_date(
    open_database: Opener, postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = list(BasePostgresSaver.MIGRATIONS)
    monkeypatch.setattr(BasePostgresSaver, "MIGRATIONS", known[:7])
    open_database().open()
    monkeypatch.setattr(BasePostgresSaver, "MIGRATIONS", known)
    open_database().open()
    stepwise = described(postgres_url, schema)
    other = open_database(schema=f"{schema}_b")
    other.open()
    try:
        assert stepwise == described(postgres_url, other.schema)
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {other.schema} CASCADE")


def test_jobs_that_grew_are_brought_up_to_date(
    open_database: Opener, postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_database().open()
    steps = companions._job_steps()
    later = {**steps, "99.00.00_01_pre_later": "CREATE TABLE procrastinate_later (a int);"}
    monkeypatch.setattr(companions, "_job_steps", lambda: later)
    open_database().open()
    assert "procrastinate_later" in {row[0] for row in described(postgres_url, schema)}
    monkeypatch.undo()
    open_database().open()  # an older library goes on working with it


def test_procrastinate_works_on_its_tables(database: Database) -> None:
    app = App(connector=SyncPsycopgConnector(conninfo=database.session_conninfo))

    @app.task(name="noted")
    def noted(word: str) -> None: ...

    with app.open():
        noted.defer(word="记住")
    with database.session_pool.connection() as connection:
        assert connection.execute("SELECT args FROM procrastinate_jobs").fetchall() == [({"word": "记住"},)]


def test_two_schemas_of_one_database_do_not_meet(
    open_database: Opener, schema: str, postgres_url: str
) -> None:
    first, second = open_database(), open_database(schema=f"{schema}_b")
    for database in (first, second):
        database.open()
    with first.connection("test") as connection:
        query = "INSERT INTO {schema}.space (kind, key) VALUES ('user', 'ann')"
        connection.execute(first.statement(query))
    with second.connection("test") as connection:
        query = "SELECT count(*) FROM {schema}.space"
        assert connection.execute(second.statement(query)).fetchone() == (0,)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {second.schema} CASCADE")


def test_an_owner_of_a_schema_needs_no_other_right(
    fresh_database: Callable[..., str], guarded: Guarded, role: str
) -> None:
    url = fresh_database()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
        admin.execute(f"CREATE SCHEMA memrag AUTHORIZATION {role}")
    database = Database(url.replace(f"postgres:{guarded.password}", f"{role}:x"))
    database.open()
    database.close()


def test_a_role_that_may_not_create_a_schema_is_told_what_to_grant(
    fresh_database: Callable[..., str], guarded: Guarded, role: str
) -> None:
    url = fresh_database()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
    with pytest.raises(ConfigurationError, match="GRANT CREATE ON DATABASE"):
        Database(url.replace(f"postgres:{guarded.password}", f"{role}:x")).open()


def test_a_role_that_may_not_create_the_extension_is_told_who_may(
    fresh_database: Callable[..., str], guarded: Guarded, role: str
) -> None:
    url = fresh_database().replace(f"postgres:{guarded.password}", f"{role}:x")
    with pytest.raises(ConfigurationError, match="superuser"):
        Database(url).open()


def test_an_extension_in_a_schema_of_its_own_works_when_it_is_on_the_path(
    fresh_database: Callable[..., str],
) -> None:
    url = fresh_database()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute('CREATE SCHEMA "extra things"')
        admin.execute('CREATE EXTENSION vector WITH SCHEMA "extra things"')
    with pytest.raises(ConfigurationError, match="search_path"):
        Database(url).open()
    name = url.rsplit("/", 1)[1]
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE {name} SET search_path = public, "extra things"')
    database = Database(url)
    database.open()
    with database.session_pool.connection() as connection:
        assert connection.execute("SHOW search_path").fetchone() == ('"memrag","extra things"',)
    database.close()


def test_a_database_that_is_not_utf8_is_refused(fresh_database: Callable[..., str]) -> None:
    url = fresh_database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ConfigurationError, match="ENCODING 'UTF8'"):
        Database(url).open()


def test_a_server_that_takes_no_writes_is_named(fresh_database: Callable[..., str]) -> None:
    url = fresh_database()
    name = url.rsplit("/", 1)[1]
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailableError, match="primary"):
        Database(url).open()


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ((14, "UTF8", "0.8.0", "0.8.0"), "15 or newer"),
        ((18, "UTF8", "0.7.4", "0.8.0"), "ALTER EXTENSION vector UPDATE"),
        ((18, "UTF8", None, None), "pgvector"),
    ],
)
def test_a_server_that_is_too_old_is_refused(
    open_database: Opener, monkeypatch: pytest.MonkeyPatch, facts: tuple[object, ...], advice: str
) -> None:
    literals = ", ".join("NULL" if fact is None else f"'{fact}'" for fact in facts)
    monkeypatch.setattr("langchain_memrag.stores.postgres.checks._FACTS", f"SELECT {literals}")
    with pytest.raises(ConfigurationError, match=advice):
        open_database().open()


@pytest.mark.slow
def test_a_real_server_without_pgvector_is_refused(tmp_path: Path) -> None:
    postgres = shutil.which("postgres")
    binaries = Path(postgres).resolve().parent if postgres else None
    if binaries is None or not (binaries / "initdb").exists():
        pytest.skip("no PostgreSQL on PATH beside that of the wheel")
    if list(binaries.parent.glob("share/**/vector.control")) or list(
        Path("/usr/share/postgresql").glob("*/extension/vector.control")
    ):
        pytest.skip("the PostgreSQL on PATH has pgvector")
    with (
        start_server(tmp_path, password="x", binaries=binaries) as server,
        pytest.raises(ConfigurationError, match="has no pgvector; install the extension"),
    ):
        Database(f"postgresql://postgres:x@127.0.0.1:{server.port}/postgres").open()
