"""Rows to aligned text, Markdown or HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from infimum.errors import InputError

Rows = list[list[str]]
WIDEST = 100
"""Characters of a cell; the member has the whole text."""


def member_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], Rows]:
    """Headings and cells of a table of members; columns without content are left out."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    varied = {name for name in names if "." in name and not name.startswith("calls.")}
    skip = {name for name in names if name not in varied and name not in ("name", "status") and _idle(name, rows)}
    skip |= {"problem", "solver", "repetition"} | varied  # the name says them
    head = [name for name in names if name not in skip]
    return head, [[cell(row.get(name)) for name in head] for row in rows]


def _idle(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    return all(row.get(name) in (None, False) for row in rows)


def cell(value: Any) -> str:
    """A value as it stands in a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return "never" if value == math.inf else f"{value:.4g}"
    text = " ".join(str(value).split())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def render(head: Sequence[str], rows: Rows, form: str = "text") -> str:
    """A table as aligned text, Markdown or HTML.

    Raises
    ------
    InputError
        For any other form.
    """
    if form == "text":
        lines = [[name.upper() for name in head], *rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        return "\n".join(
            "  ".join(one.ljust(width) for one, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )
    if form == "markdown":
        lines = [list(head), ["---"] * len(head), *([one.replace("|", "\\|") for one in row] for row in rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if form == "html":
        top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(one)}</td>' for one in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    raise InputError(f"table: no form '{form}'; there are text, markdown and html")


def summary_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], Rows]:
    """Headings and cells of a comparison's summary; columns that say nothing are left out."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    alone = len({row["problem"] for row in rows}) == 1
    head = [name for name in names if not (name in ("lost", "error") and not any(row[name] for row in rows))]
    head = [name for name in head if not (name == "problem" and alone)]
    head = [name for name in head if not (name == "runs" and all(row["runs"] == 1 for row in rows))]
    return head, [[cell(row.get(name)) for name in head] for row in rows]
