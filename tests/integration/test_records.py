"""The system of record: what is acknowledged is there, in order, once, and only for whom it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from langchain_memrag.errors import ConfigurationError, StoreError
from langchain_memrag.records import LONGEST_IDENTIFIER, Episode, Scope
from langchain_memrag.stores.base import Stored
from langchain_memrag.stores.postgres.database import Database
from langchain_memrag.stores.postgres.erasing import Choice

from .drafts import SAID, draft
from .recording import ANN, NOW, Record, alone, contents


@pytest.fixture
def record(database: Database) -> Record:
    return Record(database)


# --- writing and reading back -----------------------------------------------------------------------


def test_an_episode_comes_back_as_it_was_given(record: Record) -> None:
    said = datetime(2025, 7, 25, 10, tzinfo=UTC)
    metadata = {"标签": ["旅行", 1.50, None], "user_id": "victim"}
    given = draft(
        "我在北京大学 studied 🎓 עברית\n'; DROP TABLE episode; -- %s {schema}",
        role="assistant",
        speaker="小王",
        occurred_at=said,
        utc_offset=8 * 3600,
        source="document",
        key="m:1",
        expires_at=NOW + timedelta(days=1),
        metadata=json.dumps(metadata, ensure_ascii=False),
    )
    space, stored = record.store.record(ANN, [given])
    assert stored == [Stored(given.id, 1, new=True)]
    assert record.reader.episodes([space], [given.id], NOW) == [
        Episode(
            id=given.id,
            scope=ANN,
            seq=1,
            role="assistant",
            content=given.content,
            speaker="小王",
            occurred_at=said,
            utc_offset=8 * 3600,
            recorded_at=NOW,
            source="document",
            key="m:1",
            expires_at=NOW + timedelta(days=1),
            metadata=metadata,
        )
    ]
    assert record.store.space_of("victim") is None


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
)
def test_any_time_that_python_can_hold(record: Record, moment: datetime) -> None:
    (ident,) = record.write("once upon a time", occurred_at=moment)
    (episode,) = record.read([ident])
    assert episode.occurred_at == moment
    assert contents(record.history()) == ["once upon a time"]


def test_times_do_not_follow_the_zone_of_the_server(
    open_database: Callable[..., Database], postgres_url: str
) -> None:
    options = "options=-c%20TimeZone%3DAsia/Shanghai%20-c%20DateStyle%3DGerman"
    odd = postgres_url.replace("options=", options)
    record = Record(open_database(url=odd))
    said = datetime(2025, 7, 25, 2, tzinfo=UTC)
    (ident,) = record.write("两点", occurred_at=said)
    (episode,) = record.read([ident])
    assert (episode.occurred_at, episode.occurred_at.tzinfo) == (said, UTC)
    with record.database.connection("test") as connection:
        assert connection.execute("SHOW TimeZone").fetchone() == ("Asia/Shanghai",)


def test_a_megabyte_is_kept_whole(record: Record) -> None:
    text = "长文本 long text 🎉 " * 65_000
    assert len(text.encode()) > 1_000_000
    assert contents(record.read(record.write(text))) == [text]


def test_long_texts_go_in_several_messages(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain_memrag.stores.postgres.records._CHARACTERS_AT_ONCE", 100)
    texts = [f"{number} " + "字" * (number * 30) for number in range(12)]
    assert contents(record.read(record.write(*texts))) == texts


def test_ten_thousand_in_one_call(record: Record) -> None:
    ids = record.write(*(f"line {number} 第{number}行" for number in range(10_000)))
    episodes = record.history()
    assert [episode.id for episode in episodes] == ids
    assert [episode.seq for episode in episodes] == list(range(1, 10_001))
    assert record.store.pending_count(record.space()) == 10_000


def test_a_call_is_stored_whole_or_not_at_all(record: Record) -> None:
    drafts = [draft(f"line {number}") for number in range(2_500)]
    drafts[2_400] = draft("bad", metadata="{not json")
    with pytest.raises(StoreError):
        record.store.record(ANN, drafts)
    assert record.store.space_of("ann") is None
    assert record.store.pending_count(None) == 0


def test_an_error_does_not_repeat_what_was_said(record: Record) -> None:
    secret = "我的密码是四七一一"
    with pytest.raises(StoreError) as caught:
        record.write(secret, metadata=f"{{{secret}")
    assert secret not in str(caught.value)
    assert secret not in str(caught.value.__cause__)


@pytest.mark.parametrize("length", [1, LONGEST_IDENTIFIER])
def test_identifiers_of_any_length_that_is_allowed(record: Record, length: int) -> None:
    # Random, so that compression does not hide what an index cannot hold.
    name = "".join(chr(0x20000 + byte * 97) for byte in os.urandom(length))
    scope = Scope(name, session_id=name, agent_id=name)
    (ident,) = record.write("hello", scope=scope, key=name)
    assert record.read([ident], user=name)[0].scope == scope
    assert contents(record.history(user=name, session=name)) == ["hello"]


def test_reading_keeps_the_order_asked_and_passes_over_what_is_missing(record: Record) -> None:
    ids = record.write("a", "b", "c")
    assert contents(record.read([ids[2], uuid4(), ids[0], ids[2]])) == ["c", "a"]
    assert record.read([]) == []


# --- keys --------------------------------------------------------------------------------------------


def test_a_known_key_gives_the_stored_episode(record: Record) -> None:
    (first,) = record.write("I moved to Lyon", key="k1")
    space, again = record.store.record(ANN, [draft("other words", key="k1"), draft("new", key="k2")])
    assert [(one.id == first, one.new) for one in again] == [(True, False), (False, True)]
    assert contents(record.history()) == ["I moved to Lyon", "new"]
    assert record.store.pending_count(space) == 2


def test_a_key_repeated_inside_a_call_counts_once(record: Record) -> None:
    _, stored = record.store.record(ANN, [draft("加载完成", key="k"), draft("x"), draft("加载完毕", key="k")])
    assert [one.new for one in stored] == [True, True, False]
    assert (stored[2].id, stored[2].seq) == (stored[0].id, stored[0].seq)
    assert contents(record.history()) == ["加载完成", "x"]


def test_an_import_run_twice_changes_nothing(record: Record) -> None:
    drafts = [draft(f"line {number}", key=f"file:{number}") for number in range(1_500)]
    first = record.store.record(ANN, drafts)[1]
    again = record.store.record(ANN, [draft(one.content, key=one.key) for one in drafts])[1]
    assert [(one.id, one.seq) for one in again] == [(one.id, one.seq) for one in first]
    assert not any(one.new for one in again)
    assert len(record.history()) == 1_500


def test_without_a_key_the_same_words_are_two_episodes(record: Record) -> None:
    assert len(set(record.write("yes", "yes"))) == 2
    assert contents(record.history()) == ["yes", "yes"]


def test_keys_are_a_users_own(record: Record) -> None:
    (anns,) = record.write("same bytes", key="k")
    (bobs,) = record.write("same bytes", scope=Scope("bob"), key="k")
    assert anns != bobs
    assert contents(record.history(user="bob")) == ["same bytes"]


# --- isolation ---------------------------------------------------------------------------------------

ODD_NAMES = (
    *("user_1", "userX1", "a%b", "axxb", "foo", "foobar", "a.b", "a/b", "a*b", "a:b", "A.B"),
    *("用户", "用户1"),
)


def test_names_are_compared_exactly(record: Record) -> None:
    for name in ODD_NAMES:
        record.write(f"said by {name}", scope=Scope(name, session_id=name))
        record.write(f"{name} in another session", scope=Scope("all", session_id=name))
    for name in ODD_NAMES:
        assert contents(record.history(user=name)) == [f"said by {name}"]
        assert contents(record.history(user="all", session=name)) == [f"{name} in another session"]
    assert len({record.space(name) for name in ODD_NAMES}) == len(ODD_NAMES)


def test_an_id_of_another_user_reads_nothing(record: Record) -> None:
    (anns,) = record.write("ann's secret")
    record.write("bob's", scope=Scope("bob"))
    assert record.read([anns], user="bob") == []
    assert record.reader.to_index(record.space("bob"), [anns], NOW) == []
    assert record.erase(Choice(ids=(anns,)), user="bob") == ()
    assert contents(record.read([anns])) == ["ann's secret"]


# --- order -------------------------------------------------------------------------------------------


def test_each_turn_knows_the_one_before_it_in_its_session(record: Record) -> None:
    one, two = Scope("ann", session_id="一"), Scope("ann", session_id="二")
    first = record.write("a", "b", scope=one)
    other = record.write("x", scope=two)
    second = record.write("c", scope=one)
    loose = record.write("l", "m", scope=Scope("ann"))
    pairs = record.reader.to_index(record.space(), [*second, *first, *other, *loose], NOW)
    assert [(episode.content, before.content if before else None) for episode, before in pairs] == [
        ("a", None),
        ("b", "a"),
        ("x", None),
        ("c", "b"),
        ("l", None),
        ("m", None),
    ]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_join_without_gap_or_overlap(record: Record, newest_first: bool, limit: int) -> None:
    moments = [SAID + timedelta(hours=hour) for hour in (3, 1, 1, 2, 1, 5, 4)]
    drafts = [draft(f"{number}", occurred_at=moment) for number, moment in enumerate(moments)]
    record.store.record(ANN, drafts)
    expected = ["1", "2", "4", "3", "0", "6", "5"]
    found = contents(record.history(limit=limit, newest_first=newest_first))
    assert found == (expected[::-1] if newest_first else expected)


def test_a_page_is_not_shifted_by_what_is_written_meanwhile(record: Record) -> None:
    record.write("a", "b", "c", "d")
    space = record.space()
    first = record.reader.history(space, NOW, session=None, limit=2, cursor=None, newest_first=True)
    record.write("e")
    second = record.reader.history(space, NOW, session=None, limit=9, cursor=first.cursor, newest_first=True)
    assert contents(first.episodes) == ["d", "c"]
    assert contents(second.episodes) == ["b", "a"]
    assert second.cursor is None


@pytest.mark.parametrize(
    "cursor", ["", "x", "###", "MjAyNg==", "bm90IGEgdGltZSAx", "你好", "MjAyNi0wMy0wMSAxMg=="]
)
def test_a_cursor_that_no_page_gave_is_refused(record: Record, cursor: str) -> None:
    record.write("a")
    with pytest.raises(ConfigurationError, match="cursor"):
        record.reader.history(record.space(), NOW, session=None, limit=2, cursor=cursor, newest_first=False)


def test_the_last_turns_of_a_session(record: Record) -> None:
    record.write(*"abcde")
    record.write("other", scope=Scope("ann", session_id="s2"))
    assert contents(record.reader.last(record.space(), "s1", 3, NOW)) == ["c", "d", "e"]
    assert record.reader.last(record.space(), "nowhere", 3, NOW) == ()


# --- expiry ------------------------------------------------------------------------------------------


def test_what_has_expired_is_never_read(record: Record) -> None:
    (kept,) = record.write("kept")
    (brief,) = record.write("brief", expires_at=NOW)
    (later,) = record.write("later", expires_at=NOW + timedelta(microseconds=1))
    ids = [kept, brief, later]
    assert contents(record.read(ids)) == ["kept", "later"]
    assert contents(record.history()) == ["kept", "later"]
    assert contents(record.reader.last(record.space(), "s1", 9, NOW)) == ["kept", "later"]
    assert record.reader.stats(record.space(), NOW).episodes == 2
    pairs = record.reader.to_index(record.space(), ids, NOW)
    assert [(one.content, before.content if before else None) for one, before in pairs] == [
        ("kept", None),
        ("later", None),
    ]


def test_a_sweep_finds_what_has_expired_and_no_more(record: Record) -> None:
    record.write("brief", "kürzer", "短", expires_at=NOW)
    record.write("kept")
    record.write("bob's", scope=Scope("bob"), expires_at=NOW + timedelta(seconds=1))
    assert record.eraser.expired(NOW, 10) == [record.space()]
    assert len(record.erase(Choice(expired_at=NOW))) == 3
    assert record.eraser.expired(NOW, 10) == []
    assert contents(record.history()) == ["kept"]
    assert contents(record.history(user="bob")) == ["bob's"]


# --- forgetting --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (Choice(session="s1"), ["3", "4"]),
        (Choice(since=SAID + timedelta(hours=2)), ["0", "1"]),
        (Choice(until=SAID + timedelta(hours=2)), ["2", "3", "4"]),
        (Choice(since=SAID + timedelta(hours=1), until=SAID + timedelta(hours=3)), ["0", "3", "4"]),
        (Choice(session="s1", since=SAID + timedelta(hours=1)), ["0", "3", "4"]),
        (Choice(ids=()), ["0", "1", "2", "3", "4"]),
        (Choice(), []),
    ],
)
def test_forgetting_takes_what_is_meant_and_no_more(record: Record, choice: Choice, left: list[str]) -> None:
    for user in ("ann", "bob"):
        for number in range(5):
            scope = Scope(user, session_id="s1" if number < 3 else "s2")
            record.write(str(number), scope=scope, occurred_at=SAID + timedelta(hours=number))
    counted = record.eraser.count(record.space(), choice)
    erased = record.erase(choice)
    assert len(erased) == counted == 5 - len(left)
    assert contents(record.history()) == left
    assert record.eraser.left(record.space(), erased) == 0
    assert len(record.pending()) == len(left)
    assert len(record.history(user="bob")) == len(record.pending("bob")) == 5


def test_a_successor_of_a_forgotten_turn_stands_alone(record: Record) -> None:
    ids = record.write("a", "b", "c", "d")
    record.erase(Choice(ids=(ids[1], ids[2])))
    pairs = record.reader.to_index(record.space(), ids, NOW)
    assert [(one.content, before.content if before else None) for one, before in pairs] == [
        ("a", None),
        ("d", None),
    ]
    (new,) = record.write("e")
    ((_, before),) = record.reader.to_index(record.space(), [new], NOW)
    assert before is not None
    assert before.content == "d"


def test_a_user_who_comes_back_gets_another_space(record: Record) -> None:
    record.write("a")
    old = record.space()
    with record.eraser.erasing(old, Choice()) as work:
        record.eraser.drop_space(work, old)
    assert record.store.space_of("ann") is None
    record.write("b")
    assert record.space() != old
    assert contents(record.history()) == ["b"]


def test_a_failed_erasure_changes_nothing(record: Record) -> None:
    ids = record.write("a", "b")
    with pytest.raises(ZeroDivisionError), record.eraser.erasing(record.space(), Choice()):
        raise ZeroDivisionError
    assert len(record.read(ids)) == len(record.pending()) == 2


# --- unfinished work ---------------------------------------------------------------------------------


def test_indexing_takes_the_mark_away_and_moves_the_generation(record: Record) -> None:
    ids = record.write("a", "b")
    before = record.reader.stats(record.space(), NOW)
    with record.store.indexing(record.space(), alone(ids[:1]), done=True) as work:
        assert work.claimed == {ids[0]}
    after = record.reader.stats(record.space(), NOW)
    assert (before.pending, after.pending) == (2, 1)
    assert after.generation == before.generation + 1
    assert record.pending() == {ids[1]}


def test_a_record_that_is_not_done_stays_marked(record: Record) -> None:
    ids = record.write("a")
    with record.store.indexing(record.space(), alone(ids), done=False) as work:
        assert work.claimed == set(ids)
    assert record.pending() == set(ids)


def test_indexing_that_fails_leaves_the_mark(record: Record) -> None:
    ids = record.write("a")
    with (
        pytest.raises(ZeroDivisionError),
        record.store.indexing(record.space(), alone(ids), done=True),
    ):
        raise ZeroDivisionError
    assert record.pending() == set(ids)


def test_two_indexers_never_claim_the_same_record(record: Record) -> None:
    ids = record.write(*(str(number) for number in range(50)))
    space = record.space()
    claimed: list[UUID] = []

    def index(_: int) -> None:
        for ident in ids:
            with record.store.indexing(space, alone([ident]), done=True) as work:
                claimed.extend(work.claimed)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(index, range(4)))
    assert sorted(claimed) == sorted(ids)


def test_what_was_forgotten_while_it_was_read_is_not_indexed(record: Record) -> None:
    first, second, third = record.write("my secret", "an answer", "more")
    space = record.space()
    read = {first: (first,), second: (second, first), third: (third, second)}
    record.erase(Choice(ids=(first,)))
    with record.store.indexing(space, read, done=True) as work:
        assert work.claimed == {third}  # the pair of the second still holds the secret
    assert record.pending() == {second}
    ((episode, before),) = record.reader.to_index(space, [second], NOW)
    assert (episode.content, before) == ("an answer", None)
    with record.store.indexing(space, alone([second]), done=True) as work:
        assert work.claimed == {second}


def test_pending_work_is_listed_in_pages(record: Record) -> None:
    record.write(*(str(number) for number in range(5)))
    record.write("x", scope=Scope("bob"))
    seen = []
    after = None
    while page := record.store.pending(space=None, limit=2, after=after):
        seen += page
        after = page[-1]
    assert len(seen) == len(set(seen)) == 6
    assert record.store.pending_count(None) == 6


def test_the_state_of_a_memory_is_read_by_a_few_looks_into_indexes(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is left to do for others: every recall begins with it."""
    record.write("hello")
    with record.database.connection("mark") as connection:
        connection.execute(
            record.database.statement(
                "INSERT INTO {schema}.pending (space, record, work, not_before)"
                " SELECT 1000 + n % 2, gen_random_uuid(), 'graph', now() FROM generate_series(1, 20000) n"
            )
        )
        connection.execute(record.database.statement("ANALYZE {schema}.pending"))
    sent: list[tuple[object, object]] = []
    execute = psycopg.Connection.execute

    def watched(self, query, params=None, **options):
        sent.append((query, params))
        return execute(self, query, params, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", watched)
    assert record.store.state_of("ann") is not None
    ((query, params),) = sent
    with record.database.connection("explain") as connection:
        plan = [row[0] for row in execute(connection, b"EXPLAIN " + query, params).fetchall()]
    on_pending = [line for line in plan if "on pending" in line]
    assert on_pending
    assert all("Index" in line for line in on_pending), plan
