"""The command line: `memrag chat | remember | recall | import | stats | doctor | demo`.

Exit codes, the same for every command:

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | done in part: some lines were bad, `doctor` found problems, or the demo did not end as told |
| 2 | a mistake in the arguments, the settings or the input; nothing was done |
| 3 | the database or another engine cannot be used just now |
| 4 | the language model failed; what was said is stored |
| 130 | interrupted |
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name; ends the process with one of the exit codes."""
    from langchain_memrag.cli.app import run  # not at import: `langchain_memrag.cli` stays cheap

    run()
