from __future__ import annotations

import asyncio
import socket

import psycopg
import pytest
from pytest_socket import SocketBlockedError

# The plugin warns as it raises, and warnings are errors.
REFUSED = (SocketBlockedError, UserWarning)


def test_no_network() -> None:
    with pytest.raises(REFUSED):
        socket.create_connection(("127.0.0.1", 5432))


def test_no_unix_socket() -> None:
    with socket.socket(socket.AF_UNIX) as unix, pytest.raises(REFUSED):
        unix.connect("/tmp/x")


def test_no_database() -> None:
    with pytest.raises(REFUSED):
        psycopg.connect("postgresql://127.0.0.1/x")


async def test_event_loops_run() -> None:
    assert await asyncio.sleep(0, "done") == "done"
