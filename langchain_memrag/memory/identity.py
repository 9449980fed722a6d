"""Who is the user? One answer for every adapter.

Asked, in this order: the server's authenticated identity, `runtime.context.user_id`, then
`configurable["user_id"]` and `configurable["langgraph_user_id"]`. Blank is missing; two that differ are an
error, so that nobody reads another user's memory by naming him; and there is no default. The run around a
call is asked too, so a tool cannot look for somebody else by an inner config.

A thread id is where something was said. It never decides whose memory it is. A graph that is called inside
another's run is a run of its own: LangGraph shows it nothing of the outer one but what its config keeps, and
its user is the one whom the calling code names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime
from langgraph.typing import ContextT
from langgraph_sdk.auth import is_studio_user

from langchain_memrag.errors import ScopeError
from langchain_memrag.records import Scope
from langchain_memrag.text import is_blank

__all__ = ["require_owner", "resolve_scope", "resolve_user"]

_FOREIGN = "this run belongs to another user; resume it as the user who started it, or start a new run"
_MISSING = (
    "no user: memory is never read or written without one. Pass it with the call, as in "
    'agent.invoke(..., {"configurable": {"user_id": "ann"}}), or as user_id of the runtime context'
)


class _Claim(NamedTuple):
    """A user that somebody named, and where."""

    user: str
    origin: str


def resolve_scope(
    config: RunnableConfig | None = None,
    runtime: Runtime[ContextT] | None = None,
    *,
    agent_id: str | None = None,
) -> Scope:
    """The user of a run, and its thread as the session.

    Args:
        config: The run's config; what is left out is taken from the run around the call, if there is one.
        runtime: The run's LangGraph runtime, likewise.
        agent_id: The agent that takes part, where several serve one user.

    Raises:
        ScopeError: No user, a user that is not a string, or two that differ.
    """
    return Scope(resolve_user(config, runtime), session_id=_session(config), agent_id=agent_id)


def resolve_user(config: RunnableConfig | None = None, runtime: Runtime[ContextT] | None = None) -> str:
    """The user of a run.

    Args:
        config: The run's config; what is left out is taken from the run around the call, if there is one.
        runtime: The run's LangGraph runtime, likewise.

    Raises:
        ScopeError: No user, a user that is not a string, or two that differ.
    """
    configurables = [
        ensure_config(config).get("configurable") or {},
        _config_around().get("configurable") or {},
    ]
    runtimes = [found for found in (runtime, _runtime_around()) if found is not None]
    studio: list[_Claim] = []
    claims = [*_authenticated(configurables, runtimes, studio), *_named(configurables, runtimes)]
    if not claims:
        claims = studio
    if not claims:
        raise ScopeError(_MISSING)
    first = claims[0]
    for other in claims[1:]:
        if other.user != first.user:
            raise ScopeError(
                f"the user of {other.origin} is not the user of {first.origin}; "
                f"name one user, or only the authenticated one"
            )
    return first.user


def require_owner(user: str, owner: str | None) -> None:
    """Refuse to go on with somebody else's run: what it recalled and said is his.

    Args:
        user: Who goes on with the run.
        owner: Who started it, where that is known.

    Raises:
        ScopeError: They are not the same.
    """
    if owner and owner != user:
        raise ScopeError(_FOREIGN)


def _session(config: RunnableConfig | None) -> str | None:
    thread = (ensure_config(config).get("configurable") or {}).get("thread_id")
    session = "" if thread is None else str(thread)
    return None if is_blank(session) else session


def _authenticated(
    configurables: Sequence[Mapping[str, object]], runtimes: Sequence[Runtime[Any]], studio: list[_Claim]
) -> Iterator[_Claim]:
    """What the server vouches for, also by the run around the call: an inner config cannot shed it.

    LangGraph's server shows a developer (in Studio, or with the deployment's API key) as a Studio user.
    He acts for whichever user he names, so his own identity counts only where nobody is named.
    """
    users: list[tuple[object, str]] = [
        (one.server_info.user, "the server's authentication") for one in runtimes if one.server_info
    ]
    users += [(one.get("langgraph_auth_user"), "the server's authentication") for one in configurables]
    developers: set[str] = set()
    for user, origin in users:
        claim = _claim(_field(user, "identity"), origin)
        if claim and is_studio_user(user):  # type: ignore[arg-type]
            developers.add(claim.user)
            studio.append(claim)
        elif claim:
            yield claim
    for source in configurables:
        claim = _claim(source.get("langgraph_auth_user_id"), 'configurable["langgraph_auth_user_id"]')
        if claim and claim.user not in developers:
            yield claim


def _named(
    configurables: Sequence[Mapping[str, object]], runtimes: Sequence[Runtime[Any]]
) -> Iterator[_Claim]:
    """Whom the call names, and the run around it: an inner config cannot name somebody else either."""
    for runtime in runtimes:
        claim = _claim(_field(runtime.context, "user_id"), "runtime.context.user_id")
        if claim:
            yield claim
    for source in configurables:
        for name in ("user_id", "langgraph_user_id"):
            claim = _claim(source.get(name), f'configurable["{name}"]')
            if claim:
                yield claim


def _claim(value: object, origin: str) -> _Claim | None:
    if value is None or (isinstance(value, str) and is_blank(value)):
        return None
    if not isinstance(value, str):
        raise ScopeError(f"the user of {origin} must be a string, not {type(value).__name__}")
    return _Claim(Scope(value).user_id, origin)


def _field(holder: object, name: str) -> object:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _config_around() -> RunnableConfig:
    try:
        return get_config()
    except RuntimeError:  # not inside a run
        return {}


def _runtime_around() -> Runtime[None] | None:
    try:
        return get_runtime()
    except RuntimeError:  # not inside a run
        return None
