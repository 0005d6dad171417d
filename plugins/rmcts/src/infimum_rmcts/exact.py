"""Exact values of small games: every position by number of moves, then values from the ends back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_rmcts.game import check_game, check_positions

Floats = NDArray[np.float64]
MAX_POSITIONS = 2_000_000
"""Positions at which an enumeration gives up: some hundred megabytes."""


def levels_of(game: Any, roots: Any, max_positions: int = MAX_POSITIONS) -> list[tuple[Any, Any, Any]]:
    """Distinct positions that can be reached in 0, 1, 2, … moves, with where the moves lead.

    Parameters
    ----------
    game : Game
        Its positions are rows of integers.
    roots : array, shape (m, k)
    max_positions : int, default 2_000_000

    Returns
    -------
    list of (states, parent and action, row in the next level)
        The second is a pair of arrays, one entry a legal move of a position that is not over.

    Raises
    ------
    InputError
        If there are more positions, or they are no rows of numbers.
    """
    if not isinstance(roots, np.ndarray) or roots.dtype == object or roots.ndim != 2:
        raise InputError("minimax: positions must be rows of numbers, as those of the games of this package are")
    states, found, total = roots, [], 0
    while len(states):
        total += len(states)
        if total > max_positions:
            raise InputError(
                f"minimax: more than {max_positions} positions can be reached; take roots later in the game, a smaller "
                "board, or no reference"
            )
        over, _ = game.terminal(states)
        live = np.flatnonzero(~over)
        if not len(live):
            found.append((states, (live, live), live))
            break
        row, action = np.asarray(game.legal(states[live]), bool).nonzero()
        after = game.play(states[live[row]], action)
        below, where = np.unique(after, axis=0, return_inverse=True)
        found.append((states, (live[row], action), where.reshape(-1)))
        states = below
    return found


def minimax(game: Any, roots: Any, max_positions: int = MAX_POSITIONS) -> tuple[Floats, Floats]:
    """Exact values of positions and of their actions, by full search with equal positions merged.

    Parameters
    ----------
    game : Game
    roots : array, shape (m, k)
        Positions that are not over.
    max_positions : int, default 2_000_000

    Returns
    -------
    value : ndarray, shape (m,)
        For the player to move, under best play.
    q : ndarray, shape (m, A)
        Values of the actions in that player's frame; NaN where illegal.

    Raises
    ------
    InputError
        If there are too many positions.
    """
    check_game(game)
    if len(roots):
        roots = check_positions(game, roots)
    mover = getattr(game, "mover", None)
    below: Floats = np.zeros(0)
    next_states: Any = None
    q = np.zeros((0, game.num_actions))
    for states, (row, action), where in reversed(levels_of(game, roots, max_positions)):
        over, score = game.terminal(states)
        q = np.full((len(states), game.num_actions), np.nan)
        if len(row):
            same = False if mover is None else np.asarray(mover(states))[row] == np.asarray(mover(next_states))[where]
            q[row, action] = np.where(same, 1.0, -1.0) * below[where] + 0.0  # no -0
        value = np.where(np.isnan(q), -np.inf, q).max(axis=1)
        below, next_states = np.where(over, score, value), states
    return below, q


def all_positions(game: Any, max_positions: int = MAX_POSITIONS) -> Any:
    """Every position of a game from its beginning that is not over, each once, in order of the number of moves.

    Raises
    ------
    InputError
        For something that is no game, or more than `max_positions` positions.
    """
    check_game(game)
    found = []
    for states, _, _ in levels_of(game, game.initial(), max_positions):
        over, _ = game.terminal(states)
        found.append(states[~over])
    return np.concatenate(found)
