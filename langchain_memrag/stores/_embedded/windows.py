"""Starting, recognising and stopping the server on Windows.

There is no socket in a folder that only we may enter, so the server listens on 127.0.0.1, on a port the
system picks, and asks for a password (scram) that lies in the data folder. `pg_ctl` starts it, because it
drops an administrator's rights, with which PostgreSQL refuses to run. The settings go through a file:
`pg_ctl` hands what it is given to a command line of the shell.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from langchain_memrag.errors import StoreUnavailableError
from langchain_memrag.stores._embedded.binaries import find_binaries, program
from langchain_memrag.stores._embedded.folder import INITDB_PREFIX, DataFolder
from langchain_memrag.stores._embedded.locks import POLL_SECONDS
from langchain_memrag.stores._embedded.settings import DATABASE, USER, server_settings

_SECONDS = 120
_CONNECT_SECONDS = 10
_SETTINGS_FILE = "memrag.conf"
_PASSWORD_FILE = "memrag.password"  # noqa: S105 - the name of the file
_KEPT_ENVIRONMENT = ("SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "PATH", "COMSPEC", "USERPROFILE", "USERNAME")


class WindowsServer:
    """The one server of a data folder. Callers hold the folder's change lock."""

    def __init__(self, folder: DataFolder, major: int) -> None:
        self._folder = folder
        self._major = major

    def ensure_running(self) -> str:
        """Adopt the folder's server or start it; its URL.

        Raises:
            ConfigurationError: The folder or the system does not admit one.
            StoreUnavailableError: It does not start, or not in time.
        """
        binaries = find_binaries(self._major)
        if self._folder.pgdata.exists():
            self._folder.check_version(self._major)
        else:
            self._create(binaries)
        url = self._answering_url()
        if url is None:
            # A pid in a dead server's file may be anybody's by now, and would keep pg_ctl from starting.
            # That no server of this folder lives we know only from its not answering; should one live
            # all the same, PostgreSQL's shared memory keeps a second one from the directory.
            with contextlib.suppress(PermissionError):  # held open by a live server: wait for that one
                (self._folder.pgdata / "postmaster.pid").unlink(missing_ok=True)
            url = self._start(binaries)
        return url

    def stop(self) -> None:
        """Stop the server if it runs, and wait until it is gone."""
        if self._answering_url() is None:
            return
        binaries = find_binaries(self._major)
        self._run(
            binaries, "pg_ctl", ["stop", "-D", str(self._folder.pgdata), "-m", "fast", "-w", "-t", "60"]
        )

    def _create(self, binaries: Path) -> None:
        self._folder.sweep()
        making = Path(tempfile.mkdtemp(prefix=INITDB_PREFIX, dir=self._folder.path))
        data = making / "data"
        password = making / "password"
        password.write_text(secrets.token_urlsafe(24), encoding="ascii")
        arguments = [
            "-D",
            str(data),
            f"--username={USER}",
            "--encoding=UTF8",
            "--locale=C",
            "--auth=scram-sha-256",
            f"--pwfile={password}",
            "--no-instructions",
        ]
        if self._major >= 17:
            arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run(binaries, "initdb", arguments)
        password.replace(data / _PASSWORD_FILE)
        with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\ninclude_if_exists = '{_SETTINGS_FILE}'\n")
        data.rename(self._folder.pgdata)
        shutil.rmtree(making, ignore_errors=True)

    def _start(self, binaries: Path) -> str:
        # The name of a setting and its value, quoted; none of ours has a quote in it.
        settings = server_settings() | {"listen_addresses": "127.0.0.1", "port": str(_free_port())}
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        (self._folder.pgdata / _SETTINGS_FILE).write_text("".join(lines), encoding="ascii")
        if self._folder.log.exists():
            self._folder.log.replace(self._folder.log.with_name("server.log.1"))
        self._run(
            binaries,
            "pg_ctl",
            ["start", "-D", str(self._folder.pgdata), "-l", str(self._folder.log), "-W"],
        )
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            url = self._answering_url()
            if url is not None:
                return url
            time.sleep(POLL_SECONDS)
        raise self._failed(f"the PostgreSQL server does not answer after {_SECONDS} s; try again later")

    def _answering_url(self) -> str | None:
        """The server's URL if it takes our password and serves this very directory."""
        try:
            lines = (
                (self._folder.pgdata / "postmaster.pid")
                .read_text(encoding="utf-8", errors="replace")
                .splitlines()
            )
            password = (self._folder.pgdata / _PASSWORD_FILE).read_text(encoding="ascii").strip()
        except (FileNotFoundError, PermissionError):
            return None
        if len(lines) < 8 or lines[7].strip() != "ready":
            return None
        base = f"postgresql://{USER}:{quote(password)}@127.0.0.1:{lines[3]}"
        pinned = "sslmode=disable&gssencmode=disable&options=&target_session_attrs=any&client_encoding=UTF8"
        try:
            self._check(f"{base}/postgres?{pinned}", lines)
        except psycopg.OperationalError:
            return None
        return f"{base}/{DATABASE}?{pinned}"

    def _check(self, url: str, lines: list[str]) -> None:
        with psycopg.connect(url, connect_timeout=_CONNECT_SECONDS, autocommit=True) as connection:
            row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
            if row is None or row[0].splitlines()[:4] != lines[:4]:
                raise psycopg.OperationalError("another server")
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if known is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _run(self, binaries: Path, name: str, arguments: list[str]) -> None:
        # The output goes to a file: the server inherits it, and a pipe would stay open as long as it runs.
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(  # noqa: S603 - our own programs, and no shell
                    [str(binaries / program(name)), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_SECONDS,
                    check=False,
                    env={key: os.environ[key] for key in _KEPT_ENVIRONMENT if key in os.environ},
                    # A group of its own, so that Ctrl-C reaches only the caller, and no console window.
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
                    | getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
            except subprocess.TimeoutExpired as error:
                raise self._failed(f"{name} took more than {_SECONDS} s") from error
            if done.returncode:
                output.seek(0)
                text = "\n".join(output.read().decode("utf-8", "replace").splitlines()[-12:])
                raise self._failed(f"{name} ended with {done.returncode}:\n{text}")

    def _failed(self, what: str) -> StoreUnavailableError:
        message = f"{what}. The end of {self._folder.log}:\n{self._folder.log_tail()}"
        return StoreUnavailableError(message, engine="postgres", operation="open")


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
