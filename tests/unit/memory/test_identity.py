"""Who is the user: one answer, never a default, never somebody else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, ServerInfo
from langgraph_sdk.auth.types import StudioUser

from langchain_memrag.errors import ScopeError
from langchain_memrag.memory.identity import require_owner, resolve_scope, resolve_user


class User:
    """As a server's authentication gives it."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.is_authenticated = True
        self.display_name = identity
        self.permissions: list[str] = []


@dataclass
class Context:
    user_id: str = ""


def config(**configurable: Any) -> RunnableConfig:
    return {"configurable": configurable}


def served(user: object) -> Runtime[Any]:
    return Runtime(server_info=ServerInfo(assistant_id="a", graph_id="g", user=user))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "runtime"),
    [
        (config(user_id="ann"), None),
        (config(langgraph_user_id="ann"), None),
        (config(user_id="ann", langgraph_user_id="ann"), None),
        (config(user_id="", langgraph_user_id="ann"), None),
        (config(langgraph_auth_user=User("ann")), None),
        (config(langgraph_auth_user={"identity": "ann"}), None),
        (config(langgraph_auth_user_id="ann"), None),
        (config(langgraph_auth_user=User("ann"), user_id="ann"), None),
        (config(langgraph_auth_user=User(""), user_id="ann"), None),
        (config(langgraph_auth_user=None, langgraph_auth_user_id="", user_id="ann"), None),
        (config(), Runtime(context=Context("ann"))),
        (config(), Runtime(context={"user_id": "ann"})),
        (config(user_id="ann"), Runtime(context=Context("ann"))),
        (config(user_id="ann"), Runtime(context=None)),
        (config(user_id="ann"), Runtime(context=Context("  "))),
        (config(), served(User("ann"))),
        (config(user_id="ann"), served(User("ann"))),
    ],
)
def test_the_user_is_found_wherever_he_is_named(given: RunnableConfig, runtime: Runtime[Any] | None) -> None:
    assert resolve_user(given, runtime) == "ann"


@pytest.mark.parametrize(
    ("given", "runtime"),
    [
        (config(user_id="ann", langgraph_user_id="bob"), None),
        (config(langgraph_auth_user=User("ann"), user_id="bob"), None),
        (config(langgraph_auth_user=User("ann"), langgraph_auth_user_id="bob"), None),
        (config(langgraph_auth_user_id="ann", user_id="bob"), None),
        (config(user_id="bob"), Runtime(context=Context("ann"))),
        (config(user_id="bob"), served(User("ann"))),
        (config(), served(User("ann")).override(context=Context("bob"))),
        (config(user_id="ann", langgraph_user_id="Ann"), None),
        (config(user_id="user_1", langgraph_user_id="userX1"), None),
        (config(user_id="foo", langgraph_user_id="foobar"), None),
        (config(user_id="a%b", langgraph_user_id="axxb"), None),
    ],
)
def test_two_that_differ_are_an_error(given: RunnableConfig, runtime: Runtime[Any] | None) -> None:
    with pytest.raises(ScopeError, match="is not the user of"):
        resolve_user(given, runtime)


@pytest.mark.parametrize("blank", ["", "   ", "\t\n", "\u200b", "\u00a0", "\u3000", None])
def test_blank_is_missing_and_missing_says_what_to_pass(blank: str | None) -> None:
    with pytest.raises(ScopeError, match=re.escape('"configurable": {"user_id": "ann"}')):
        resolve_user(config(user_id=blank, thread_id="t1"), Runtime(context=Context(blank or "")))


def test_without_any_config_there_is_no_user() -> None:
    with pytest.raises(ScopeError, match="no user"):
        resolve_user()


def test_spaces_around_are_trimmed_before_comparing() -> None:
    assert resolve_user(config(user_id=" ann ", langgraph_user_id="ann")) == "ann"


@pytest.mark.parametrize("wrong", [42, ["ann"], {"identity": "ann"}, b"ann", True])
def test_a_user_that_is_no_string_is_refused(wrong: object) -> None:
    with pytest.raises(ScopeError, match="must be a string"):
        resolve_user(config(user_id=wrong))


def test_errors_do_not_name_the_users() -> None:
    with pytest.raises(ScopeError) as caught:
        resolve_user(config(user_id="ann-secret", langgraph_user_id="bob-secret"))
    assert "secret" not in str(caught.value)


def test_a_metadata_user_does_not_count() -> None:
    with pytest.raises(ScopeError, match="no user"):
        resolve_user({"configurable": {}, "metadata": {"user_id": "victim"}, "tags": ["user_id:victim"]})


def test_the_thread_is_the_session_and_never_the_user() -> None:
    scope = resolve_scope(config(user_id="ann", thread_id="bob"), agent_id="helper")
    assert (scope.user_id, scope.session_id, scope.agent_id) == ("ann", "bob", "helper")
    assert resolve_scope(config(user_id="ann")).session_id is None
    assert resolve_scope(config(user_id="ann", thread_id="")).session_id is None
    assert resolve_scope(config(user_id="ann", thread_id=7)).session_id == "7"


def test_a_studio_developer_acts_for_whom_he_names() -> None:
    studio = StudioUser("developer")
    assert resolve_user(config(langgraph_auth_user=studio, user_id="ann")) == "ann"
    assert (
        resolve_user(config(langgraph_auth_user=studio, langgraph_auth_user_id="developer", user_id="ann"))
        == "ann"
    )
    assert resolve_user(config(langgraph_auth_user=studio)) == "developer"
    assert (
        resolve_user(config(langgraph_auth_user={"kind": "StudioUser", "identity": "dev"}, user_id="ann"))
        == "ann"
    )


class State(TypedDict, total=False):
    user: str


def graph_of(node: Any, context_schema: type | None = None) -> Any:
    graph = StateGraph(State, context_schema=context_schema)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile()


def test_inside_a_graph_the_run_says_who_it_is() -> None:
    graph = graph_of(lambda state: {"user": resolve_user()}, Context)
    assert graph.invoke({}, config(user_id="ann"))["user"] == "ann"
    assert graph.invoke({}, context=Context("ann"))["user"] == "ann"
    assert graph.invoke({}, config(langgraph_auth_user=User("ann")))["user"] == "ann"
    with pytest.raises(ScopeError):
        graph.invoke({}, config(user_id="bob"), context=Context("ann"))
    with pytest.raises(ScopeError):
        graph.invoke({}, config(thread_id="ann"))


async def test_inside_an_async_graph_too() -> None:
    async def node(state: State) -> State:
        return {"user": resolve_user()}

    graph = graph_of(node, Context)
    assert (await graph.ainvoke({}, config(user_id="ann")))["user"] == "ann"
    assert (await graph.ainvoke({}, context=Context("ann")))["user"] == "ann"


def test_an_inner_config_cannot_shed_the_authenticated_user() -> None:
    graph = graph_of(lambda state: {"user": resolve_user(config(user_id="victim"))})
    with pytest.raises(ScopeError):
        graph.invoke({}, config(langgraph_auth_user=User("ann")))
    assert graph.invoke({}, config(langgraph_auth_user=User("victim")))["user"] == "victim"


@pytest.mark.parametrize("name", ["user_id", "langgraph_user_id"])
def test_an_inner_config_cannot_name_somebody_else(name: str) -> None:
    graph = graph_of(lambda state: {"user": resolve_user(config(**{name: "victim"}))}, Context)
    for given, context in ((config(user_id="ann"), None), (config(), Context("ann"))):
        with pytest.raises(ScopeError, match="is not the user of"):
            graph.invoke({}, given, context=context)
    assert graph.invoke({}, config(user_id="victim"))["user"] == "victim"
    step = RunnableLambda(lambda text: resolve_user(config(**{name: "victim"})))
    with pytest.raises(ScopeError, match="is not the user of"):
        (RunnableLambda(str) | step).invoke("x", config(user_id="ann"))


def test_what_an_inner_config_leaves_out_is_that_of_the_run_around() -> None:
    graph = graph_of(lambda state: {"user": resolve_user(config(thread_id="inner"))})
    assert graph.invoke({}, config(user_id="ann"))["user"] == "ann"


def test_a_graph_that_is_called_with_a_user_is_a_run_of_its_own() -> None:
    """As a nightly job calls the agent for each user. LangGraph shows it nothing of the run around."""
    inner = graph_of(lambda state: {"user": resolve_user()})
    outer = graph_of(lambda state: inner.invoke({}, config(user_id="bob", thread_id="his")))
    assert outer.invoke({}, config(user_id="job"))["user"] == "bob"


def test_nobody_goes_on_with_anothers_run() -> None:
    require_owner("ann", "ann")
    require_owner("ann", None)
    with pytest.raises(ScopeError, match="resume it as the user who started it") as caught:
        require_owner("bob-secret", "ann-secret")
    assert "secret" not in str(caught.value)


def test_a_subgraph_is_run_by_the_same_user() -> None:
    inner = graph_of(lambda state: {"user": resolve_user()}, Context)
    outer = graph_of(inner, Context)
    assert outer.invoke({}, context=Context("ann"))["user"] == "ann"


def test_a_chain_carries_the_user_to_its_steps() -> None:
    chain = RunnableLambda(lambda text: text) | RunnableLambda(lambda text: resolve_user())
    assert chain.invoke("x", config(user_id="ann")) == "ann"
