"""A server as a child process that tests may stop, kill, pause and start again."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tests.integration.servers import free_port

__all__ = ["ServerProcess"]

_running: weakref.WeakSet[ServerProcess] = weakref.WeakSet()


class ServerProcess(ABC):
    """One server on a port and a data folder of its own, both kept from one start to the next.

    Args:
        folder: Where its data, its settings and its log lie.
    """

    ready_within: float = 60.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What to run; settings are written before."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it does its work already."""

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if self._process is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            # In a session of its own, so that Ctrl-C reaches the tests alone and they end it in order.
            self._process = subprocess.Popen(
                [*_dying_with_us(), *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _running.add(self)
        deadline = time.monotonic() + self.ready_within
        while not self.answers():
            if self._process.poll() is not None:
                self._process = None
                raise AssertionError(f"the server ended at once:\n{self.log[-2000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server is not ready:\n{self.log[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask it to end, and wait until it has; after a while without asking."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it stand still: connections stay, nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        # One that is paused would not hear SIGTERM.
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=30)
        finally:
            _running.discard(self)


def _dying_with_us() -> list[str]:
    """Where the system can, it ends the server with the tests even when those are killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


@atexit.register
def _end_all() -> None:
    for server in list(_running):
        server.kill()
