"""What a benchmark prints, and the JSON that it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["percentiles", "print_table", "write_json"]


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """The median, and the two that users complain about."""
    if not milliseconds:
        return {}
    cuts = np.percentile(np.asarray(milliseconds), [50, 95, 99])
    return {name: round(float(cut), 2) for name, cut in zip(("p50", "p95", "p99"), cuts, strict=True)}


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown, its columns aligned, numbers to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell[:1].isdigit() or cell == "-" for cell in column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    print(f"\n{title}\n")
    for cells in (header, ["-" * width for width in widths], *rows):
        print(line(cells))


def write_json(path: Path, found: Mapping[str, object]) -> None:
    """Write results, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.part")
    half.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    half.replace(path)
