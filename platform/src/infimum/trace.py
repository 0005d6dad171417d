"""Bounded traces: columns of scalars, thinned by doubling the stride; first, last and best rows always stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NAN = math.nan
DEFAULT_ROWS = 4096


class Recorder:
    """Writes rows while a run goes on.

    Keeps every `stride`-th check. When `max_rows` rows are full, every second row is dropped and the stride doubles,
    so memory and cost stay bounded for any number of iterations.

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
        self._rows: list[Sequence[float | None]] = []

    def add(self, check: int, row: Sequence[float | None]) -> None:
        """Record check number `check`, which must be `due`; numbers start at 0 and grow by one."""
        rows = self._rows
        rows.append(row)
        self.due = check + self.stride
        if len(rows) > self.max_rows:
            self._rows = rows[::2]
            self.stride *= 2
            self.due = len(self._rows) * self.stride

    def amend(self, row: Sequence[float | None]) -> None:
        """Replace the last recorded row if it is of the same iteration."""
        if self._rows and self._rows[-1][0] == row[0]:
            self._rows[-1] = row

    def finish(self, extra: Sequence[Sequence[float | None]]) -> Trace:
        """The trace, with further rows (the last, the best) put in their places by iteration."""
        rows = {row[0]: row for row in extra} | {row[0]: row for row in self._rows}
        table = np.asarray([rows[iteration] for iteration in sorted(rows)], dtype=float).reshape(-1, len(self.names))
        return Trace({name: table[:, k].copy() for k, name in enumerate(self.names)})

    def state_dict(self) -> dict[str, Any]:
        table = np.asarray(self._rows, dtype=float).reshape(-1, len(self.names))
        return {"rows": table, "stride": self.stride, "due": self.due}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows = [list(row) for row in state["rows"].tolist()]
        self.stride, self.due = int(state["stride"]), int(state["due"])


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
