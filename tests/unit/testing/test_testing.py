"""What we ship for tests behaves as the real things do."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.testing.chat import ScriptedChatModel
from langchain_memrag.testing.clock import FakeClock
from langchain_memrag.testing.embeddings import WordHashEmbeddings


class Person(BaseModel):
    """A person."""

    name: str


def test_a_script_is_said_line_by_line_and_written_down() -> None:
    model = ScriptedChatModel(script=["one", AIMessage("two"), lambda messages: messages[-1].text.upper()])
    assert [model.invoke(text).text for text in ("a", "b", "c")] == ["one", "two", "C"]
    assert [call.messages[0].text for call in model.calls] == ["a", "b", "c"]


def test_copies_and_bindings_share_the_tape() -> None:
    model = ScriptedChatModel(script=["one", "two"])
    copy = model.model_copy(update={"temperature": 0.3})
    assert copy.bind_tools([Person]).invoke("a").text == "one"
    assert model.invoke("b").text == "two"
    assert [(call.temperature, call.tools) for call in model.calls] == [(0.3, ("Person",)), (None, ())]


def test_a_script_at_its_end_is_an_error_or_repeats() -> None:
    with pytest.raises(LookupError, match="call 1"):
        ScriptedChatModel().invoke("a")
    assert ScriptedChatModel(otherwise="again").invoke("a").text == "again"


async def test_it_streams_in_pieces_that_add_up() -> None:
    text = "Hello Ann, 你好！ Bye."
    chunks = [chunk.text for chunk in ScriptedChatModel(script=[text]).stream("x")]
    assert "".join(chunks) == text
    assert len(chunks) > 5
    assert [chunk.text async for chunk in ScriptedChatModel(script=[text]).astream("x")] == chunks


def test_tool_calls_stream_too() -> None:
    call = AIMessage("", tool_calls=[{"name": "look", "args": {"词": "猫"}, "id": "1"}])
    whole = None
    for chunk in ScriptedChatModel(script=[call]).stream("x"):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert whole.tool_calls == [{"name": "look", "args": {"词": "猫"}, "id": "1", "type": "tool_call"}]


async def test_structured_output_and_errors() -> None:
    model = ScriptedChatModel(script=[Person(name="Ann"), {"name": "Bob"}, ConnectionError("down")])
    filled = model.with_structured_output(Person)
    assert filled.invoke("x") == Person(name="Ann")
    assert await filled.ainvoke("x") == Person(name="Bob")
    with pytest.raises(ConnectionError):
        filled.invoke("x")


def test_texts_that_share_words_are_near() -> None:
    embeddings = WordHashEmbeddings()
    live, oslo, dog = (
        np.array(v) for v in embeddings.embed_documents(["I live in Lisbon", "She lives in Oslo", "狗"])
    )
    asked = np.array(embeddings.embed_query("Who lives in Lisbon?"))
    assert asked @ live > asked @ oslo > asked @ dog
    assert (
        np.array(embeddings.embed_query("北京大学")) @ np.array(embeddings.embed_query("我在北京大学读书"))
        > 0.3
    )


@pytest.mark.parametrize("width", [1, 2, 3, 384, 3072])
def test_any_width_is_of_unit_length(width: int) -> None:
    for text in ("a b c", "我住在杭州", "", "   "):
        vector = WordHashEmbeddings(width).embed_query(text)
        assert len(vector) == width
        assert np.linalg.norm(vector) == pytest.approx(1)


async def test_embeddings_are_the_same_in_both_halves() -> None:
    embeddings = WordHashEmbeddings(64)
    assert await embeddings.aembed_documents(["a", "猫"]) == embeddings.embed_documents(["a", "猫"])
    assert await embeddings.aembed_query("a") == embeddings.embed_query("a")
    with pytest.raises(ConfigurationError):
        WordHashEmbeddings(0)


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(datetime(2026, 5, 3, tzinfo=UTC))
    assert clock() == clock() == datetime(2026, 5, 3, tzinfo=UTC)
    clock.advance(days=1, hours=2)
    assert clock() == datetime(2026, 5, 4, 2, tzinfo=UTC)
    clock.set(datetime(2020, 1, 1, tzinfo=UTC))
    assert clock().year == 2020
    with pytest.raises(ConfigurationError):
        clock.set(datetime(2020, 1, 1))


def test_a_stepping_clock_gives_no_time_twice() -> None:
    clock = FakeClock(step=timedelta(seconds=1))
    seen: list[datetime] = []
    threads = [threading.Thread(target=lambda: seen.extend(clock() for _ in range(100))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 400
