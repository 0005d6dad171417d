"""A bounded record of a stream: every n-th sample, n doubling whenever the record is full."""

from __future__ import annotations

from typing import Any


class Record:
    """Columns (label, statistic, sample), at most `limit` rows however long the stream is."""

    __slots__ = ("every", "limit", "rows", "seen")

    def __init__(self, limit: int = 512) -> None:
        self.limit, self.every, self.seen = limit, 1, 0
        self.rows: list[list[float]] = []

    def add(self, *row: float) -> None:
        if self.seen % self.every == 0:
            if len(self.rows) >= self.limit:
                self.rows = self.rows[::2]
                self.every *= 2
            if self.seen % self.every == 0:
                self.rows.append(list(row))
        self.seen += 1

    def state_dict(self) -> dict[str, Any]:
        return {"every": self.every, "seen": self.seen, "rows": [list(one) for one in self.rows]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.every, self.seen = state["every"], state["seen"]
        self.rows = [list(one) for one in state["rows"]]
