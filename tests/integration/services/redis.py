"""A real Redis with a password."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from .process import ServerProcess

__all__ = ["RedisServer", "missing"]


def missing() -> str | None:
    """What it lacks to run here; `None` where it can."""
    return None if shutil.which("redis-server") else "redis-server is not installed"


class RedisServer(ServerProcess):
    """A Redis over TCP.

    Args:
        folder: Its own.
        appendonly: Whether what was acknowledged survives a `kill`.
        settings: More lines of `redis.conf`, such as `maxmemory 10mb`.
    """

    ready_within = 30.0

    def __init__(self, folder: Path, *, appendonly: bool = False, settings: Sequence[str] = ()) -> None:
        super().__init__(folder)
        self.password = secrets.token_urlsafe(12)
        self._appendonly = appendonly
        self._settings = settings

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> Sequence[str]:
        # The password stands in a file: a command line is there for everyone to read.
        conf = self.folder / "redis.conf"
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f'dir "{self.folder}"',
            'save ""',
            f"appendonly {'yes' if self._appendonly else 'no'}",
            "appendfsync always",
            *self._settings,
        ]
        conf.write_text("\n".join(lines) + "\n")
        conf.chmod(0o600)
        return ["redis-server", str(conf)]

    def answers(self) -> bool:
        import redis

        client = redis.Redis(
            port=self.port, password=self.password, socket_timeout=1, socket_connect_timeout=1
        )
        try:
            return bool(client.ping())
        except redis.RedisError:  # not there yet, or still reading its file
            return False
        finally:
            client.close()
