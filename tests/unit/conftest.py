from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from pytest_socket import SocketBlockedError, disable_socket


@pytest.fixture(autouse=True)
def _no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit test that reaches for the network or a database fails.

    An event loop wakes itself through a Unix socket pair, so those may exist; nobody may connect one.
    Psycopg's sockets belong to libpq, out of reach of a patch of `socket`.
    """
    monkeypatch.setattr("socket.socket.connect", _refuse("connect"))
    monkeypatch.setattr("socket.socket.connect_ex", _refuse("connect_ex"))
    monkeypatch.setattr(psycopg, "connect", _refuse("psycopg"))
    monkeypatch.setattr(psycopg.Connection, "connect", _refuse("psycopg"))
    monkeypatch.setattr(psycopg.AsyncConnection, "connect", _refuse("psycopg"))
    disable_socket(allow_unix_socket=True)


def _refuse(what: str) -> Callable[..., None]:
    def refuse(*args: object, **kwargs: object) -> None:
        raise SocketBlockedError(what)

    return refuse
