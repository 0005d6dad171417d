"""Plain text tables and JSON: the same in a terminal and in a pipe, whatever the width."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer


def say(text: str = "") -> None:
    """One line (or several) to stdout."""
    typer.echo(text)


def table(rows: Iterable[Sequence[str]], head: Sequence[str], indent: str = "") -> None:
    """Rows in aligned columns under upper-case headings; the last column is as long as it is."""
    lines = [
        [heading.upper() for heading in head],
        *[["" if cell is None else str(cell) for cell in row] for row in rows],
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        say((indent + "  ".join(cells)).rstrip())


def as_json(data: Any) -> None:
    """Data as indented JSON on stdout."""
    say(json.dumps(data, indent=2, ensure_ascii=False, default=str))
