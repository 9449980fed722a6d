"""`MemoryRetriever`: LangChain's own suite, chains, and whose memory it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.errors import ScopeError
from langchain_memrag.records import RecallFilter, Scope
from langchain_memrag.retrievers.memory import MemoryRetriever
from langchain_memrag.testing.chat import ScriptedChatModel

ANN: Any = {"configurable": {"user_id": "ann"}}


class TestStandard(RetrieversIntegrationTests):
    """The suite that LangChain asks every retriever to pass."""

    @pytest.fixture(autouse=True)
    def _memory(self, memrag: MemRAG) -> None:
        memrag.remember([f"Ann likes song number {number}." for number in range(8)], Scope("ann"))
        self._memrag = memrag

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memrag": self._memrag, "scope": Scope("ann")}

    @property
    def retriever_query_example(self) -> str:
        return "Which songs does Ann like?"


def format_documents(documents: list[Any]) -> str:
    return "\n".join(document.page_content for document in documents)


def chain_of(retriever: MemoryRetriever, model: ScriptedChatModel) -> Any:
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("user", "{question}")])
    context = {"context": retriever | format_documents, "question": RunnablePassthrough()}
    return context | prompt | model | StrOutputParser()


async def test_it_works_in_a_chain_for_the_user_of_the_run(memrag: MemRAG) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann"))
    memrag.remember("My dog is called Bello.", Scope("bob"))
    model = ScriptedChatModel(otherwise="ok")
    chain = chain_of(MemoryRetriever(memrag=memrag), model)
    assert chain.invoke("What is my dog called?", ANN) == "ok"
    assert "Rex" in model.calls[-1].messages[0].text
    await chain.ainvoke("What is my dog called?", {"configurable": {"user_id": "bob"}})
    assert model.calls[-1].messages[0].text == "My dog is called Bello."
    assert "".join(chain.stream("What is my dog called?", ANN)) == "ok"
    for batch in (chain.batch(["a dog?", "my dog?"], ANN), await chain.abatch(["a dog?", "my dog?"], ANN)):
        assert batch == ["ok", "ok"]
    assert "Bello" not in model.calls[-1].messages[0].text


async def test_without_a_user_it_reads_nothing(memrag: MemRAG) -> None:
    retriever = MemoryRetriever(memrag=memrag)
    with pytest.raises(ScopeError, match="no user"):
        retriever.invoke("dog?")
    with pytest.raises(ScopeError, match="no user"):
        await retriever.ainvoke("dog?", {"configurable": {"thread_id": "t1"}})
    with pytest.raises(ScopeError, match="no user"):
        retriever.batch(["dog?"])


def test_documents_say_where_they_come_from(memrag: MemRAG) -> None:
    scope = Scope("ann", session_id="s1")
    receipt = memrag.remember("我的狗叫豆豆。", scope, speaker="小雨", metadata={"mood": "好"})
    (found,) = MemoryRetriever(memrag=memrag, scope=scope).invoke("狗叫什么？")
    assert found.page_content == "我的狗叫豆豆。"
    assert found.id == found.metadata["id"] == str(receipt.ids[0])
    assert found.metadata["sources"] == [str(receipt.ids[0])]
    assert (found.metadata["role"], found.metadata["speaker"], found.metadata["session_id"]) == (
        "user",
        "小雨",
        "s1",
    )
    assert found.metadata["metadata"] == {"mood": "好"}
    assert found.metadata["occurred_at"].endswith("+00:00")
    assert found.metadata["signals"][0]["score"] > 0
    assert json.loads(json.dumps(found.metadata)) == found.metadata


def test_a_call_may_narrow(memrag: MemRAG) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann", session_id="1"))
    memrag.remember("My dog is called Rex, too.", Scope("ann", session_id="2"))
    retriever = MemoryRetriever(memrag=memrag, scope=Scope("ann"), where=RecallFilter(session_id="1"))
    assert len(retriever.invoke("dog Rex?")) == 1
    assert len(retriever.invoke("dog Rex?", where=RecallFilter())) == 2


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 5000}, {"top_k": 3}])
def test_wrong_options_are_refused(memrag: MemRAG, wrong: Any) -> None:
    with pytest.raises(ValidationError):
        MemoryRetriever(memrag=memrag, **wrong)


def test_a_stranger_sees_nothing(memrag: MemRAG) -> None:
    memrag.remember("My dog is called Rex.", Scope("ann"), metadata={"user_id": "bob"})
    assert MemoryRetriever(memrag=memrag, scope=Scope("bob")).invoke("dog?") == []
