"""What a report is made of, as plain data: sections, figures, curves and tables. Nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from infimum.errors import InputError, did_you_mean

Scale = Literal["linear", "log"]
Style = Literal["line", "steps", "points", "bars"]


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve of a figure, with a band around it if `low` and `high` are given.

    Parameters
    ----------
    x : array_like, shape (n,)
        Numbers, or names for a figure of bars. NaN and inf are gaps.
    y : array_like, shape (n,)
        Numbers. NaN and inf are gaps, and so are values that are not positive on a log axis.
    label : str, default ""
        Its name in the legend. Curves of one name share a color and are switched together.
    low, high : array_like, shape (n,), optional
        Edges of a band, such as quantiles over repetitions. Give both or none.
    style : {"line", "steps", "points", "bars"}, default "line"
        `steps` holds a value until the next point (best values, profiles).

    Raises
    ------
    InputError
        If the lengths differ or something is no number.
    """

    x: Any
    y: Any
    label: str = ""
    low: Any = None
    high: Any = None
    style: Style = "line"

    def __post_init__(self) -> None:
        what = f"curve '{self.label}'" if self.label else "curve"
        _one_of(what, "style", self.style, Style)
        names = _is_text(self.x)
        columns = {"x": [str(one) for one in self.x] if names else _numbers(what, "x", self.x)}
        for name in ("y", "low", "high"):
            given = getattr(self, name)
            if given is not None:
                columns[name] = _numbers(what, name, given)
        if (self.low is None) != (self.high is None):
            raise InputError(f"{what}: a band has two edges; give low and high, or neither")
        for name, column in columns.items():
            if len(column) != len(columns["y"]):
                raise InputError(f"{what}: {name} has {len(column)} entries and y has {len(columns['y'])}")
            object.__setattr__(self, name, column)

    @property
    def categorical(self) -> bool:
        """Whether `x` are names."""
        return isinstance(self.x, list)


@dataclass(frozen=True, eq=False)
class Figure:
    """Curves over a common axis.

    Parameters
    ----------
    title : str
    curves : sequence of Curve, or mapping of str to sequence of Curve
        A mapping gives the same curves over several horizontal axes by name (`{"iterations": […], "seconds": […]}`):
        the page has a switch for them, and a picture shows the first.
    x, y : str, default ""
        Titles of the axes. With a mapping of curves its keys are the titles of the horizontal axis.
    x_scale, y_scale : {"linear", "log"}, default "linear"
        How the axes start; a page can switch both. Curves without positive values are drawn linearly.
    text : str, default ""
        A sentence below the figure.

    Raises
    ------
    InputError
        If there is no curve, or a scale is unknown.
    """

    title: str
    curves: Sequence[Curve] | Mapping[str, Sequence[Curve]]
    x: str = ""
    y: str = ""
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    text: str = ""

    def __post_init__(self) -> None:
        what = f"figure '{self.title}'"
        _one_of(what, "x_scale", self.x_scale, Scale)
        _one_of(what, "y_scale", self.y_scale, Scale)
        if not self.views or not all(self.views.values()):
            raise InputError(f"{what}: there is no curve in it")
        for curve in (one for curves in self.views.values() for one in curves):
            if not isinstance(curve, Curve):
                raise InputError(f"{what}: expected curves, got {type(curve).__name__}")

    @property
    def views(self) -> dict[str, tuple[Curve, ...]]:
        """Title of the horizontal axis to the curves over it."""
        if isinstance(self.curves, Mapping):
            return {name: tuple(curves) for name, curves in self.curves.items()}
        return {self.x: tuple(self.curves)}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of cells under headings; numbers are aligned at the right and shortened, `None` is an empty cell.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequences
        Each as long as `columns`; text, numbers, bools or None.
    text : str, default ""
        A sentence above the table.

    Raises
    ------
    InputError
        If a row has another length than `columns`.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    text: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(f"table: row {number} has {len(row)} cells for {len(self.columns)} columns")


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a report under a heading of its own: text, figures, tables.

    Plugins return them from the hook `infimum_report_sections(result)`. Sections with one title that belong to
    several runs are shown together, each under the name of its run.

    Parameters
    ----------
    title : str
    text : str, default ""
        Plain text; an empty line begins a paragraph, and one of several lines keeps them (a board, a matrix).
    figures : sequence of Figure, default ()
    tables : sequence of Table, default ()

    Raises
    ------
    InputError
        If something else stands among the figures or tables.
    """

    title: str
    text: str = ""
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()

    def __post_init__(self) -> None:
        for name, expected in (("figures", Figure), ("tables", Table)):
            for one in getattr(self, name):
                if not isinstance(one, expected):
                    raise InputError(f"section '{self.title}': {name} hold {expected.__name__}, got {one!r:.80}")


def _one_of(what: str, name: str, value: object, choices: Any) -> None:
    allowed = get_args(choices)
    if value not in allowed:
        raise InputError(f"{what}: {name}={value!r}; {did_you_mean(str(value), allowed)}")


def _is_text(values: Any) -> bool:
    return len(values) > 0 and isinstance(next(iter(values)), str)


def _numbers(what: str, name: str, values: Any) -> np.ndarray:
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: {name} must be numbers, got {values!r:.80}") from None
    if column.ndim != 1:
        raise InputError(f"{what}: {name} must be one column of numbers, got shape {column.shape}")
    return column
