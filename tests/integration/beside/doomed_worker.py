"""Workers that are killed with -9 after their n-th call of any store.

Usage: doomed_worker.py LOCATION SCHEMA GRAPH CACHE. Reads `n`, a line each time, and forks a worker that dies
after n calls; says `killed`, or `ended` where it came to an end before. The imports are paid for once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

import neo4j
import psycopg
import redis

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.testing.embeddings import WordHashEmbeddings

_LEFT = (
    'SELECT EXISTS (SELECT FROM "SCHEMA".pending) OR'
    ' EXISTS (SELECT FROM "SCHEMA".episode WHERE expires_at < now())'
)


def die_after(count: int) -> None:
    """Let so many calls of Postgres, Neo4j and Redis return from now on, then die at once."""
    lock = threading.Lock()
    left = count

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            result = call(*args, **kwargs)
            with lock:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted

    for owner, names in (
        (psycopg.Cursor, ("execute", "executemany")),
        (psycopg.Connection, ("commit",)),
        (neo4j.ManagedTransaction, ("run",)),
        (neo4j.Session, ("execute_write",)),
        (redis.Redis, ("execute_command",)),
    ):
        for name in names:
            setattr(owner, name, counting(getattr(owner, name)))


def work(location: str, schema: str, graph: str, cache: str, calls: int) -> None:
    memory = MemRAG.open(
        location, schema=schema, graph=graph, cache=cache, embeddings=WordHashEmbeddings(32), background=False
    )
    ended = threading.Event()

    def watch() -> None:
        with psycopg.connect(location, autocommit=True) as connection:
            cursor = connection.cursor()
            while plain(cursor, _LEFT.replace("SCHEMA", schema)).fetchone() != (False,):
                time.sleep(0.05)
        ended.set()

    plain = psycopg.Cursor.execute  # what looks on is not counted
    threading.Thread(target=watch, daemon=True).start()
    die_after(calls)
    memory.maintenance.work(ended)
    memory.close()


def main() -> None:
    location, schema, graph, cache = sys.argv[1:]
    for line in sys.stdin:
        child = os.fork()
        if not child:
            work(location, schema, graph, cache, int(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print({0: "ended", -signal.SIGKILL: "killed"}.get(code, f"failed with {code}"), flush=True)


if __name__ == "__main__":
    main()
