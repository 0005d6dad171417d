"""Othello on bitboards. Who cannot move passes, so one player may move several times in a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_rmcts.game import Game
from infimum_rmcts.games import bits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Othello(Game):
    """Enclose the other's stones to turn them; the larger number of stones wins.

    A position is a row of three 64-bit integers: stones of the player to move, of the other, and who moves (0 or 1).
    A pass is no action: when only one player can move, that player moves again. Actions are cells.

    Parameters
    ----------
    size : {4, 6, 8}, default 6
        Cells along a side.

    Raises
    ------
    InputError
        For another size.
    """

    size: Literal[4, 6, 8] = 6

    name = "othello"

    def __post_init__(self) -> None:
        if self.size not in (4, 6, 8):
            raise InputError(f"othello: size={self.size!r:.80}; expected 4, 6 or 8")

    @property
    def num_actions(self) -> int:  # type: ignore[override]
        return self.size * self.size

    @cached_property
    def _tables(self) -> tuple[Any, list[tuple[int, np.uint64]]]:
        n = self.size
        each = np.array([1 << k for k in range(n * n)], np.uint64)
        full = (1 << n * n) - 1
        left, right = sum(1 << r * n for r in range(n)), sum(1 << r * n + n - 1 for r in range(n))
        # After a step to the right nothing may stand in the first column, to the left in the last one.
        shifts = [(1, full & ~left), (-1, full & ~right), (n, full), (-n, full)]
        shifts += [(n + 1, full & ~left), (n - 1, full & ~right), (-n + 1, full & ~left), (-n - 1, full & ~right)]
        return each, [(by, np.uint64(mask)) for by, mask in shifts]

    def _moves(self, own: Any, other: Any) -> Any:
        """The cells where `own` can play, as boards."""
        empty, found = ~(own | other), np.zeros_like(own)
        for by, mask in self._tables[1]:
            inside = other & mask
            run = bits.shift(own, by) & inside
            for _ in range(self.size - 3):
                run |= bits.shift(run, by) & inside
            found |= bits.shift(run, by) & mask & empty
        return found

    def initial(self) -> Any:
        n = self.size
        low, high = (n // 2 - 1) * n + n // 2 - 1, (n // 2) * n + n // 2 - 1
        first = bits.board((low + 1, high))
        return np.array([[first, bits.board((low, high + 1)), 0]], np.uint64)

    def mover(self, S: Any) -> Any:
        return S[:, 2]

    def legal(self, S: Any) -> NDArray[np.bool_]:
        return bits.cells(self._moves(S[:, 0], S[:, 1]), self._tables[0])

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        own, other, stone = S[:, 0], S[:, 1], self._tables[0][actions]
        turned = np.zeros_like(own)
        for by, mask in self._tables[1]:
            inside = other & mask
            run = bits.shift(stone, by) & inside
            for _ in range(self.size - 3):
                run |= bits.shift(run, by) & inside
            closed = (bits.shift(run, by) & mask & own) != 0
            turned |= np.where(closed, run, np.uint64(0))
        mine, theirs = own | stone | turned, other & ~turned
        # The other moves, unless only the same player can.
        again = (self._moves(theirs, mine) == 0) & (self._moves(mine, theirs) != 0)
        after = np.empty_like(S)
        after[:, 0], after[:, 1] = np.where(again, mine, theirs), np.where(again, theirs, mine)
        after[:, 2] = np.where(again, S[:, 2], np.uint64(1) - S[:, 2])
        return after

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        over = self._moves(S[:, 0], S[:, 1]) == 0
        if over.any():
            over[over] = self._moves(S[over, 1], S[over, 0]) == 0
        return over, np.where(over, np.sign(self._lead(S)), 0.0)

    @staticmethod
    def _lead(S: Any) -> Floats:
        return np.asarray(np.bitwise_count(S[:, 0]).astype(np.float64) - np.bitwise_count(S[:, 1]))

    def heuristic(self, S: Any) -> tuple[Floats, Floats]:
        """Corners first, the cells beside them last; value from corners and mobility."""
        n = self.size
        taste = np.full((n, n), 4.0)
        taste[0, :] = taste[-1, :] = taste[:, 0] = taste[:, -1] = 6.0
        for r in (0, -1):
            for c in (0, -1):
                near_r, near_c = (1, n - 2)[r], (1, n - 2)[c]
                taste[near_r, c] = taste[r, near_c] = 2.0
                taste[near_r, near_c] = 1.0
                taste[r, c] = 20.0
        corners = bits.board((0, n - 1, n * n - n, n * n - 1))
        held = np.bitwise_count(S[:, 0] & corners).astype(float) - np.bitwise_count(S[:, 1] & corners)
        own, other = self._moves(S[:, 0], S[:, 1]), self._moves(S[:, 1], S[:, 0])
        mobile = np.bitwise_count(own).astype(float) - np.bitwise_count(other)
        return np.where(bits.cells(own, self._tables[0]), taste.ravel(), 0.0), np.tanh(0.4 * held + 0.08 * mobile)

    def encode(self, S: Any) -> NDArray[np.float32]:
        """Own and other stones as two planes in one row, shape (m, 2 n n)."""
        each = self._tables[0]
        return np.concatenate([bits.cells(S[:, 0], each), bits.cells(S[:, 1], each)], axis=1).astype(np.float32)

    def show(self, state: Any) -> str:
        n = self.size
        rows = [[r * n + c for c in range(n)] for r in range(n)]
        letters = ("X", "O") if int(state[2]) == 0 else ("O", "X")
        lines = bits.drawing(rows, "", state[0], state[1], letters).splitlines()
        lines = [f"{line} {r + 1}" for r, line in enumerate(lines)]
        return "\n".join([*lines, " ".join("abcdefgh"[:n])])

    def action_name(self, action: int) -> str:
        return f"{'abcdefgh'[action % self.size]}{action // self.size + 1}"
