"""Run import-linter by module, since the script in `.venv/bin` does not start from every folder name."""

from __future__ import annotations

import sys

from importlinter.cli import lint_imports_command

if __name__ == "__main__":
    sys.exit(lint_imports_command())
