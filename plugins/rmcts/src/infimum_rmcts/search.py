"""The two searches as plain functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum_rmcts.checks import generator
from infimum_rmcts.evaluators import Uniform
from infimum_rmcts.game import Evaluator, Rules, check_game, check_nodes, check_numbers, check_roots
from infimum_rmcts.tree import Level, backup, expand, roots_frontier, statistics
from infimum_rmcts.trees import Trees

MAX_NODES = 4_000_000
"""Nodes that a search may need at most: a gigabyte or so for a board game."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found at B roots.

    Attributes
    ----------
    policy : ndarray, shape (B, A)
        Rows sum to one; zero for actions that were not tried.
    value : ndarray, shape (B,)
        For the player to move at the root.
    q : ndarray, shape (B, A)
        Values of the actions in that player's frame; NaN where none was tried.
    counts : ndarray of int, shape (B, A)
        Simulations of each action.
    stats : dict of str to int
        `calls` of the evaluator, positions `evaluated`, `nodes`, `terminal_hits` (simulations that ended the game),
        `depth`; sums over the roots.
    """

    policy: NDArray[np.float64]
    value: NDArray[np.float64]
    q: NDArray[np.float64]
    counts: NDArray[np.int64]
    stats: dict[str, int] = field(default_factory=dict)


def rmcts(
    game: Any,
    roots: Any,
    num_simulations: int = 256,
    c_puct: float = 1.0,
    evaluator: Evaluator | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    max_nodes: int = MAX_NODES,
    check: bool = False,
) -> SearchResult:
    """Search breadth first: budgets follow the prior, values come back through regularized policies.

    One evaluator batch per depth for all roots, in place of one evaluation per simulation. The tree does not adapt to
    what it finds, only the policies do: at equal simulations it is behind `puct` as soon as there are enough of them
    (about 32 in tic-tac-toe, fewer in Connect-4), and far quicker.

    Parameters
    ----------
    game : Game
        Or any object with `num_actions`, `legal`, `play`, `terminal`. Deterministic, zero-sum or for one player.
    roots : array, shape (B, ...)
        Positions that are not terminal.
    num_simulations : int, default 256
        Evaluations and terminal hits per root, the root's own among them. With 1 the prior comes back.
    c_puct : float, default 1.0
        Weight of the prior, for values in [-1, 1]; the value of the paper's timings. Scale it with the values.
    evaluator : callable, optional
        `evaluator(S) -> (prior (m, A), value (m,))`, the value for the player to move; a flat prior and value 0
        without it.
    rng : numpy.random.Generator or int, optional
        For the rounding of the budgets, the only chance in it; seed 0 by default.
    max_nodes : int, default 4_000_000
        A search that may need more is refused.
    check : bool, default False
        Play every move twice and refuse a game that is not deterministic.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        For numbers out of range, no or terminal roots, an evaluator that returns something wrong (named with the
        level), a position without a legal action, or too many nodes.

    Warns
    -----
    InfimumWarning
        If values leave [-1, 1].

    References
    ----------
    K. Frankston, B. Howard, "Accelerating Monte-Carlo tree search with optimized posterior policies", 2026.

    Examples
    --------
    >>> from infimum_rmcts.games import TicTacToe
    >>> game = TicTacToe()
    >>> found = rmcts(game, game.initial(), num_simulations=64)
    >>> found.policy.shape, found.stats["calls"]
    ((1, 9), 3)
    """
    simulations, c = check_numbers(num_simulations, c_puct, max_nodes)
    check_game(game)
    rules = Rules.of(game, Uniform(game.num_actions) if evaluator is None else evaluator, check=check)
    states = check_roots(game, roots)
    check_nodes(states, simulations, rules.num_actions, max_nodes)
    chance = generator(0 if rng is None else rng)
    frontier = roots_frontier(states, simulations)
    levels: list[Level] = []
    rest: Any = frontier
    while rest is not None:
        level, rest = expand(rules, rest, len(levels), chance)
        levels.append(level)
    found = backup(levels, None, c)
    return SearchResult(found.policy, found.value, found.q, found.counts, statistics(levels))


def puct(
    game: Any,
    roots: Any,
    num_simulations: int = 256,
    c_puct: float = 1.0,
    evaluator: Evaluator | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    max_nodes: int = MAX_NODES,
    check: bool = False,
) -> SearchResult:
    """Search by the PUCT rule, as AlphaZero does: one leaf per simulation, the policy is the share of the visits.

    The rival of `rmcts`, with its signature. Many roots are searched at once, one evaluator batch per simulation. No
    noise is added at the root and nothing is drawn: `rng` is not used.

    Parameters
    ----------
    game, roots, num_simulations, c_puct, evaluator, rng, max_nodes, check
        As in `rmcts`.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        As in `rmcts`.

    References
    ----------
    D. Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go through self-play",
    Science 362, 2018.
    """
    simulations, c = check_numbers(num_simulations, c_puct, max_nodes)
    check_game(game)
    rules = Rules.of(game, Uniform(game.num_actions) if evaluator is None else evaluator, check=check)
    states = check_roots(game, roots)
    check_nodes(states, simulations, rules.num_actions, max_nodes)
    trees = Trees(states, len(states), simulations, rules.num_actions, c)
    for _ in range(simulations):
        trees.simulate(rules)
    value, q, counts = trees.root_values()
    return SearchResult(trees.policy(), value, q, counts, trees.statistics())
