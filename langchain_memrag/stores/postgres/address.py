"""Reads a `postgresql://` URL: what to connect with, and what may be said about it aloud."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from langchain_memrag.errors import ConfigurationError

__all__ = ["Address", "parse_address", "valid_schema"]

_SCHEMES = ("postgresql://", "postgres://")
_PORTS = re.compile(r"[0-9,]*")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")

# A peer that vanished without a word is noticed in half a minute, not in two hours.
_DEFAULTS: Mapping[str, str | int] = {
    "application_name": "langchain-memrag",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is.

    Attributes:
        conninfo: For the driver; holds the password, so it is never shown.
        label: Host, port and database, fit for messages.
    """

    conninfo: str
    label: str

    def __repr__(self) -> str:
        return f"Address({self.label})"

    def with_search_path(self, *schemas: str) -> str:
        """The connection string of a session that looks for names in these schemas, in order."""
        given = str(conninfo_to_dict(self.conninfo).get("options") or "")
        quoted = ",".join('"' + name.replace('"', '""') + '"' for name in schemas)
        # Inside `options` a backslash escapes, and a bare space would end the value.
        value = quoted.replace("\\", "\\\\").replace(" ", "\\ ")
        option = f"-c search_path={value}"
        return make_conninfo(self.conninfo, options=f"{given} {option}".strip())


def parse_address(url: str) -> Address:
    """Check a URL and fill in our defaults.

    Raises:
        ConfigurationError: It is not a usable `postgresql://` URL. The message never repeats it.
    """
    if not url.startswith(_SCHEMES):
        raise ConfigurationError(
            "a database URL starts with postgresql://, as in postgresql://user:password@host:5432/database"
        )
    try:
        given = conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):
        # The driver quotes pieces of the URL, the password among them: do not chain it.
        raise ConfigurationError(_MALFORMED) from None
    shown = [str(given.get(part) or "") for part in ("host", "port", "dbname")]
    if any("@" in part for part in shown) or not _PORTS.fullmatch(shown[1]) or "\x00" in url:
        raise ConfigurationError(_MALFORMED)
    merged = {name: value for name, value in {**_DEFAULTS, **given}.items() if value is not None}
    host, port, name = shown
    place = "a local socket" if not host or host.startswith("/") else host
    label = f"{place}{f':{port}' if port else ''}/{name or given.get('user') or ''}"
    return Address(make_conninfo("", **merged), label)


def valid_schema(schema: str) -> str:
    """Check a schema's name, which is the only thing of a user's that becomes an identifier.

    Raises:
        ConfigurationError: It is not a plain lower-case name of at most 63 characters.
    """
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise ConfigurationError(
            "a schema is named with a-z, 0-9 and _, starts with a letter other than in pg_, "
            "and has at most 63 characters"
        )
    return schema


_MALFORMED = (
    "the database URL cannot be read; write postgresql://user:password@host:5432/database and "
    "percent-encode the characters @ : / ? # % in user and password"
)
