"""Connect-4 on bitboards: a column is a run of bits with a free one on top, so that rows never run over the edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_rmcts.checks import integer
from infimum_rmcts.game import Game
from infimum_rmcts.games import bits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ConnectFour(Game):
    """Drop stones into columns; `connect` in a row, a column or a diagonal win.

    A position is a pair of 64-bit boards: stones of the player to move, stones of the other. Actions are columns.

    Parameters
    ----------
    width, height : int, default 7 and 6
        `width * (height + 1)` may be 64 at most.
    connect : int, default 4
        Stones in a row that win.

    Raises
    ------
    InputError
        If the board is too large.
    """

    width: Annotated[int, Ge(1), Le(9)] = 7
    height: Annotated[int, Ge(1), Le(20)] = 6
    connect: Annotated[int, Ge(2)] = 4

    name = "connect four"

    def __post_init__(self) -> None:
        for name, least in (("width", 1), ("height", 1), ("connect", 2)):
            integer(f"connect four: {name}", getattr(self, name), least)
        if self.width > 9:
            # Actions are columns with one digit.
            raise InputError(f"connect four: width={self.width}; expected 9 at most")
        if self.width * (self.height + 1) > 64:
            raise InputError(f"connect four: {self.width} x {self.height} + 1 cells a column do not fit in 64 bits")

    @property
    def num_actions(self) -> int:  # type: ignore[override]
        return self.width

    @cached_property
    def _tables(self) -> tuple[Any, Any, Any, np.uint64, Any]:
        tall = self.height + 1
        bottom = np.array([1 << c * tall for c in range(self.width)], np.uint64)
        top = np.array([1 << c * tall + self.height - 1 for c in range(self.width)], np.uint64)
        full = bits.board(c * tall + r for c in range(self.width) for r in range(self.height))
        columns = np.array([((1 << self.height) - 1) << c * tall for c in range(self.width)], np.uint64)
        return bottom, top, columns, full, np.array([1, tall, tall - 1, tall + 1], np.uint64)

    @cached_property
    def _each(self) -> Any:
        tall = self.height + 1
        return np.array([1 << c * tall + r for c in range(self.width) for r in range(self.height)], np.uint64)

    def initial(self) -> Any:
        return np.zeros((1, 2), np.uint64)

    def legal(self, S: Any) -> NDArray[np.bool_]:
        return np.asarray(((S[:, 0] | S[:, 1])[:, None] & self._tables[1]) == 0)

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        bottom, _, columns, _, _ = self._tables
        stones = S[:, 0] | S[:, 1]
        after = np.empty_like(S)
        after[:, 0] = S[:, 1]
        after[:, 1] = S[:, 0] | ((stones + bottom[actions]) & columns[actions] & ~stones)
        return after

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        lost = bits.aligned(S[:, 1], self._tables[4], self.connect)
        return lost | ((S[:, 0] | S[:, 1]) == self._tables[3]), np.where(lost, -1.0, 0.0)

    def heuristic(self, S: Any) -> tuple[Floats, Floats]:
        """A prior that takes a win, stops one, and likes the middle; value from open rows on both sides."""
        legal = self.legal(S)
        bottom, _, columns, full, strides = self._tables
        stones = S[:, 0] | S[:, 1]
        spots = (stones[:, None] + bottom) & columns & ~stones[:, None]
        middle = np.exp(-np.abs(np.arange(self.width) - (self.width - 1) / 2.0) / 2.0)
        logits = np.broadcast_to(middle, legal.shape).copy()
        for side, weight in ((0, 30.0), (1, 10.0)):
            made = (S[:, side][:, None] | spots).ravel()
            logits += weight * bits.aligned(made, strides, self.connect).reshape(legal.shape)
        free = full & ~stones
        gain = _chances(S[:, 0], free, strides) - _chances(S[:, 1], free, strides)
        return np.where(legal, logits, 0.0), np.tanh(0.1 * gain)

    def encode(self, S: Any) -> NDArray[np.float32]:
        """Own and other stones as two planes in one row, shape (m, 2 w h)."""
        return np.asarray((S[:, :, None] & self._each != 0).reshape(len(S), -1), np.float32)

    def show(self, state: Any) -> str:
        tall = self.height + 1
        rows = [[c * tall + r for c in range(self.width)] for r in range(self.height - 1, -1, -1)]
        first = (int(state[0]).bit_count() + int(state[1]).bit_count()) % 2 == 0
        marks = " ".join(self.action_name(c) for c in range(self.width))
        return bits.drawing(rows, marks, state[0], state[1], ("X", "O") if first else ("O", "X"))

    def action_name(self, action: int) -> str:
        return str(action + 1)


def _chances(own: Any, free: Any, strides: Any) -> Floats:
    """Free cells next to two own stones in a row, as a count of chances."""
    along = strides[:, None]
    pair = own & (own >> along)
    ends = ((pair << (along * np.uint64(2))) | (pair >> along)) & free
    return np.asarray(np.bitwise_count(ends).sum(axis=0, dtype=np.float64))
