"""A process that remembers turns and is killed with -9 after its n-th SQL statement.

Usage: crash_writer.py LOCATION SCHEMA RUN KILL_AFTER BATCHES. Prints each acknowledged id; then `done`.
"""

from __future__ import annotations

import os
import signal
import sys

import psycopg

from langchain_memrag.engine.memrag import MemRAG
from langchain_memrag.records import Scope
from langchain_memrag.testing.embeddings import WordHashEmbeddings


def kill_after(count: int) -> None:
    """Let the driver send `count` statements from now on, then die at once."""
    left = count
    execute, executemany, copy = psycopg.Cursor.execute, psycopg.Cursor.executemany, psycopg.Cursor.copy

    def counted() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counting_execute(self, *args, **kwargs):
        result = execute(self, *args, **kwargs)
        counted()
        return result

    def counting_executemany(self, *args, **kwargs):
        executemany(self, *args, **kwargs)
        counted()

    def counting_copy(self, *args, **kwargs):
        counted()
        return copy(self, *args, **kwargs)

    psycopg.Cursor.execute = counting_execute
    psycopg.Cursor.executemany = counting_executemany
    psycopg.Cursor.copy = counting_copy


def main() -> None:
    location, schema, run, statements, batches = sys.argv[1:]
    memory = MemRAG.open(location, schema=schema, embeddings=WordHashEmbeddings(32), background=False)
    scope = Scope("ann", session_id="s")
    memory.remember(f"warm up of run{run}", scope)
    kill_after(int(statements))
    for batch in range(int(batches)):
        turns = [
            ("user" if i % 2 else "assistant", f"run{run} batch{batch} line{i} Zurich") for i in range(3)
        ]
        receipt = memory.remember(turns, scope)
        print(*receipt.ids, flush=True)
    print("done", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
