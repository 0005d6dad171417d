"""Numbers as they stand in tables: one form for a column, so that they line up."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from infimum.reporting.data import Table

MINUS = "−"
"""The minus sign, as wide as a digit."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table in a page.

    Attributes
    ----------
    text : str
    sort : float or str
        What the column is sorted by.
    mark : str
        "status", "best", "error" or empty: how it is set.
    """

    text: str
    sort: float | str = ""
    mark: str = ""


@dataclass(frozen=True)
class Column:
    """A heading, and whether its cells are numbers."""

    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Grid:
    """A table ready for a page."""

    columns: list[Column]
    rows: list[list[Cell]]
    text: str = ""
    name: str = ""
    marks: list[str] = field(default_factory=list)
    """For each row: "lost" for one that failed, or empty."""


def grid(table: Table, name: str = "", marks: Sequence[str] = ()) -> Grid:
    """A table with every column formatted as a whole.

    Parameters
    ----------
    table : Table
        A cell may be a `Cell` already.
    name : str
        What the table is about, for those who do not see it.
    marks : sequence of str
        One a row, see `Grid`.
    """
    columns, cells = [], []
    for k, title in enumerate(table.columns):
        values = [row[k] for row in table.rows]
        numeric = any(_is_number(one) for one in values) and all(_is_number(one) or one is None for one in values)
        columns.append(Column(tidy(title), numeric))
        cells.append(_numbers(values) if numeric else [_cell(one) for one in values])
    rows = [[column[k] for column in cells] for k in range(len(table.rows))]
    return Grid(columns, rows, table.text, name or table.text or "table", list(marks) or [""] * len(rows))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if _is_number(value):
        return Cell(number(value), float(value))
    text = str(value)
    return Cell(text, text.casefold())


def _numbers(values: Sequence[Any]) -> list[Cell]:
    known = [one for one in values if one is not None]
    form = number_format(known)
    idle = _idle_zeros([write(one, form) for one in known]) if form.endswith("f") else 0
    texts = ["" if one is None else write(one, form) for one in values]
    finite = [text[: len(text) - idle] if idle and text[-1:].isdigit() else text for text in texts]
    return [Cell(text) if one is None else Cell(text, float(one)) for text, one in zip(finite, values, strict=True)]


def _idle_zeros(texts: Sequence[str]) -> int:
    """Characters at the end that say nothing in any number of a column: zeros after the point, where one digit at most
    stands before them, and a point before nothing."""
    numbers = [text for text in texts if text[-1:].isdigit() and "." in text]
    decimals = len(numbers[0].rpartition(".")[2]) if numbers else 0
    shared = min((decimals - len(text.rpartition(".")[2].rstrip("0")) for text in numbers), default=0)
    if shared < decimals - 1:
        return 0
    return shared + 1 if shared == decimals and decimals else shared


def number_format(values: Sequence[float]) -> str:
    """A format for all of a column: whole numbers, fixed decimals, or powers of ten."""
    if all(isinstance(one, int) for one in values):
        return ",d"
    sizes = sorted(abs(float(one)) for one in values if math.isfinite(one) and one)
    if not sizes:
        return ",.0f"
    if sizes[-1] >= 1e6 or sizes[0] < 1e-4 or sizes[-1] > 1e6 * sizes[0]:
        return ".3e"
    middle = math.floor(math.log10(sizes[len(sizes) // 2]))
    finite = [float(one) for one in values if math.isfinite(one)]
    spread = max(finite) - min(finite)
    # Five digits, or up to nine where fewer do not tell the values apart.
    apart = 1 - math.floor(math.log10(spread)) if spread > 0 else 0
    return f",.{max(0, min(max(4 - middle, apart), 8 - middle))}f"


def write(value: float, form: str) -> str:
    """A number in a format, with a real minus sign; inf is never reached, NaN is unknown."""
    if isinstance(value, float) and not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        form = form.replace("e", "f").replace(".3", ".0") if form.endswith("e") else form
    text = f"{value:{form}}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return text.replace("-", MINUS)


def tidy(text: str) -> str:
    """Text in which exponents have a real minus sign and no idle zero: 1e-05 becomes 1e−5."""
    return re.sub(r"(?<=\de)-0?(?=\d)", MINUS, text)


def number(value: float) -> str:
    """A number alone, with five digits."""
    return write(value, ",d" if isinstance(value, int) else ".5g")
