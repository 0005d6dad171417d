"""Bounded traces: columns of scalars, thinned by doubling the stride; the first, the last, the best row and those at
which the status changed always stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from infimum.errors import InputError

NAN = math.nan
DEFAULT_ROWS = 4096
BLOCK = 64
"""Rows after which one is looked at: objects that are no scalars must not pile up."""


def number(value: Any) -> float:
    """A metric as a float: NaN for None, and for an object that is no scalar (a posterior, an array)."""
    return float(value) if _is_scalar(value) else NAN


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int | float):
        return True
    return getattr(value, "ndim", None) == 0 and getattr(getattr(value, "dtype", None), "kind", "f") in "fiub"


def scalars(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Those metrics that are scalars, as floats; others, and those that are not known, are left out."""
    return {name: number(one) for name, one in metrics.items() if one is not None and _is_scalar(one)}


class Recorder:
    """Writes rows while a run goes on.

    Keeps every `stride`-th check. When `max_rows` rows are full, every second row is dropped and the stride doubles,
    so memory and cost stay bounded for any number of iterations. Rows that are marked stay beside them; should there
    be more than `max_rows` of those, every second is dropped too, the last excepted.

    Parameters
    ----------
    names : sequence of str
        Column names.
    max_rows : int
        At least 8.
    """

    def __init__(self, names: Sequence[str], max_rows: int = DEFAULT_ROWS) -> None:
        self.names = tuple(names)
        self.max_rows = max(8, max_rows)
        self.stride = 1
        self.due = 0
        """Number of the next check to record."""
        self._rows: list[Sequence[Any]] = []
        self._marks: list[Sequence[Any]] = []

    def add(self, check: int, row: Sequence[Any]) -> None:
        """Record check number `check`, which must be `due`; numbers start at 0 and grow by one."""
        rows = self._rows
        rows.append(row)
        self.due = check + self.stride
        if not len(rows) % BLOCK and not all(one is None or isinstance(one, int | float) for one in row):
            rows[-BLOCK:] = [_numbers(one) for one in rows[-BLOCK:]]
        if len(rows) > self.max_rows:
            self._rows = rows[::2]
            self.stride *= 2
            self.due = len(self._rows) * self.stride

    def mark(self, row: Sequence[Any]) -> None:
        """Keep a row whatever the stride: something changed there."""
        self._marks.append(_numbers(row))
        if len(self._marks) > self.max_rows:
            self._marks = [*self._marks[:-1:2], self._marks[-1]]

    def amend(self, row: Sequence[Any]) -> None:
        """Replace the last recorded row if it is of the same iteration."""
        for rows in (self._rows, self._marks):
            if rows and rows[-1][0] == row[0]:
                rows[-1] = row

    def finish(self, extra: Sequence[Sequence[Any]]) -> Trace:
        """The trace, with further rows (the last, the best) put in their places by iteration."""
        rows = {row[0]: row for row in (*extra, *self._marks, *self._rows)}
        table = self._table([rows[iteration] for iteration in sorted(rows)])
        return Trace({name: table[:, k].copy() for k, name in enumerate(self.names)})

    def _table(self, rows: Sequence[Sequence[Any]]) -> np.ndarray:
        try:
            # None becomes NaN by itself; only objects that are no scalars need to be looked at one by one.
            table = np.array(rows, dtype=float)
        except (TypeError, ValueError):
            table = np.array([_numbers(row) for row in rows], dtype=float)
        return table.reshape(-1, len(self.names))

    def state_dict(self) -> dict[str, Any]:
        rows, marks = self._table(self._rows), self._table(self._marks)
        return {"names": list(self.names), "rows": rows, "marks": marks, "stride": self.stride, "due": self.due}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with saved rows.

        Raises
        ------
        InputError
            If they are of other columns.
        """
        if list(state["names"]) != list(self.names):
            raise InputError(
                f"the saved trace has the columns {', '.join(state['names'])}; this one has {', '.join(self.names)}; "
                "record the same metrics"
            )
        self._rows = [list(row) for row in state["rows"].tolist()]
        self._marks = [list(row) for row in state["marks"].tolist()]
        self.stride, self.due = int(state["stride"]), int(state["due"])


def _numbers(row: Sequence[Any]) -> list[float]:
    return [number(one) for one in row]


class Trace(Mapping[str, np.ndarray]):
    """Columns of a run: `trace["iteration"]`, `trace["value"]`, …, all of one length; NaN where not computed.

    Column `time` is seconds of wall clock without what the host itself spent on evaluating for the record.
    Columns `calls.value`, `calls.gradient`, … count evaluations of the user's functions.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self._columns = {name: np.asarray(column, dtype=float) for name, column in columns.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"the trace has no column '{name}'; it has {', '.join(self._columns)}") from None

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """Number of recorded rows."""
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def __repr__(self) -> str:
        return f"Trace({self.rows} rows: {', '.join(self._columns)})"
