"""Tic-tac-toe on bitboards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum_rmcts.game import Game
from infimum_rmcts.games import bits

Floats = NDArray[np.float64]
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_LINES = np.array([bits.board(one) for one in LINES], np.uint64)
_CELLS = np.array([1 << k for k in range(9)], np.uint64)
_FULL = np.uint64(511)
_TASTE = np.array([3.0, 2.0, 3.0, 2.0, 4.0, 2.0, 3.0, 2.0, 3.0])


def _wins(boards: Any) -> NDArray[np.bool_]:
    return np.asarray(((boards[..., None] & _LINES) == _LINES).any(axis=-1))


@dataclass(frozen=True)
class TicTacToe(Game):
    """Three in a row on nine cells.

    A position is a pair of boards: cells of the player to move, cells of the other. Actions are cells, from the top
    left, row by row.
    """

    name = "tic-tac-toe"
    num_actions = 9

    def initial(self) -> Any:
        return np.zeros((1, 2), np.uint64)

    def legal(self, S: Any) -> NDArray[np.bool_]:
        return ~bits.cells(S[:, 0] | S[:, 1], _CELLS)

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        after = np.empty_like(S)
        after[:, 0] = S[:, 1]
        after[:, 1] = S[:, 0] | _CELLS[actions]
        return after

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        lost = _wins(S[:, 1])
        return lost | ((S[:, 0] | S[:, 1]) == _FULL), np.where(lost, -1.0, 0.0)

    def heuristic(self, S: Any) -> tuple[Floats, Floats]:
        """A prior that takes a win, stops one, then likes the center and the corners; value from open lines."""
        legal = self.legal(S)
        prior = np.broadcast_to(_TASTE, legal.shape).copy()
        for side, weight in ((0, 60.0), (1, 20.0)):
            prior += weight * _wins(S[:, side][:, None] | _CELLS)
        open_own = ((S[:, 1][:, None] & _LINES) == 0).sum(axis=1)
        open_other = ((S[:, 0][:, None] & _LINES) == 0).sum(axis=1)
        return np.where(legal, prior, 0.0), np.tanh(0.15 * (open_own - open_other))

    def encode(self, S: Any) -> NDArray[np.float32]:
        """Own and other cells as two planes in one row, shape (m, 18)."""
        return np.concatenate([bits.cells(S[:, 0], _CELLS), bits.cells(S[:, 1], _CELLS)], axis=1).astype(np.float32)

    def show(self, state: Any) -> str:
        first = (int(state[0]).bit_count() + int(state[1]).bit_count()) % 2 == 0
        rows = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        return bits.drawing(rows, "", state[0], state[1], ("X", "O") if first else ("O", "X"))

    def action_name(self, action: int) -> str:
        return f"{'abc'[action % 3]}{3 - action // 3}"
