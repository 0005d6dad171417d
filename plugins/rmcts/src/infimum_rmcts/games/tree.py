"""A game given as an explicit tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_rmcts.game import Game

Floats = NDArray[np.float64]
DEEPEST = 500


class TreeGame(Game):
    """A tree of nested lists: a list is a node with a branch an action, null a move that is not there, a number an end.

    A number is the score for the first player, who moves at the root.

    Parameters
    ----------
    tree : nested sequences
        Such as `[1, [-3, 2]]`.
    players : {1, 2}, default 1
        With 2 the players alternate.

    Raises
    ------
    InputError
        For a tree that is no list of lists and finite numbers, or deeper than 500 moves; for another number of players.
    """

    name = "tree"

    def __init__(self, tree: Sequence[Any], players: int = 1) -> None:
        if players not in (1, 2):
            raise InputError(f"players={players!r}: expected 1 or 2")
        if isinstance(tree, str) or not isinstance(tree, Sequence) or not len(tree):
            raise InputError(f"tree={tree!r:.60}: expected a list of moves, each a list, a number or null")
        self.players = players
        rows: list[list[int]] = []
        scores: list[float] = []
        depths: list[int] = []
        self._add(tree, 0, rows, scores, depths)
        self.num_actions = max(map(len, rows))
        self._child = np.full((len(rows), self.num_actions), -1, np.int64)
        for k, row in enumerate(rows):
            self._child[k, : len(row)] = row
        self._score, self._depth = np.array(scores), np.array(depths)

    def _add(self, node: Any, depth: int, rows: list[list[int]], scores: list[float], depths: list[int]) -> int:
        here = len(rows)
        rows.append([])
        depths.append(depth)
        if isinstance(node, int | float) and not isinstance(node, bool):
            if not math.isfinite(node):
                raise InputError(f"tree: a score is {node}; expected finite numbers")
            scores.append(float(node))
            return here
        if depth >= DEEPEST:
            raise InputError(f"tree: deeper than {DEEPEST} moves")
        if isinstance(node, str) or not isinstance(node, Sequence) or all(one is None for one in node):
            raise InputError(f"tree: a node must be a number or a list with at least one move, got {node!r:.60}")
        scores.append(np.nan)
        for one in node:
            rows[here].append(-1 if one is None else self._add(one, depth + 1, rows, scores, depths))
        return here

    def initial(self) -> Any:
        return np.zeros((1, 1), np.int64)

    def mover(self, S: Any) -> Any:
        return self._depth[S[:, 0]] % self.players

    def legal(self, S: Any) -> NDArray[np.bool_]:
        return np.asarray(self._child[S[:, 0]] >= 0)

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        return self._child[S[:, 0], actions][:, None]

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        score = self._score[S[:, 0]]
        over = ~np.isnan(score)
        return over, np.where(over, np.where(self.mover(S) == 0, score, -score), 0.0)

    def show(self, state: Any) -> str:
        return f"node {int(state[0])}"
