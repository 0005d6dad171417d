"""The breadth-first search: a level is expanded with one evaluator batch, values are backed up from below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum_rmcts.game import Rules
from infimum_rmcts.policy import solve_prior_first, split_checked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TINY = np.finfo(np.float64).tiny
"""Smallest weight of the prior, for a c_puct that rounds to none."""


@dataclass(slots=True)
class Frontier:
    """The nodes of a level that is not evaluated yet: m of them, none terminal."""

    states: Any
    sims: Ints
    """Simulations that pass through each node, itself included."""
    parent: Ints
    """Row in the level above."""
    action: Ints
    sign: Floats
    """Turns a node's value into the frame of its parent."""


@dataclass(slots=True)
class Level:
    """An evaluated level of m nodes; `sims`, `parent`, `action`, `sign` as in its frontier."""

    sims: Ints
    parent: Ints
    action: Ints
    sign: Floats
    prior: Floats
    value: Floats
    counts: Ints
    """Simulations of each action, shape (m, A)."""
    over: Floats
    """Q of the actions that end the game, NaN elsewhere, shape (m, A)."""


@dataclass(slots=True)
class Backup:
    """Values at the roots, from the levels that are there."""

    policy: Floats
    value: Floats
    q: Floats
    counts: Ints
    values: list[Floats]
    """Of all nodes, level by level."""


def roots_frontier(states: Any, num_simulations: int) -> Frontier:
    """The level of the roots."""
    m = len(states)
    nothing = np.zeros(m, np.int64)
    return Frontier(states, np.full(m, num_simulations, np.int64), nothing, nothing, np.ones(m))


def expand(
    rules: Rules, frontier: Frontier, depth: int, rng: np.random.Generator, x: Floats | None = None
) -> tuple[Level, Frontier | None]:
    """Evaluate a level in one batch, split its budgets, and make the next level; None where there is no next one.

    `x` replaces the uniform numbers of the split, one for each node with more than one simulation.
    """
    f = frontier
    prior, value = rules.evaluate(f.states, f"level {depth}")
    counts = np.zeros(prior.shape, np.int64)
    inner = np.flatnonzero(f.sims > 1)
    if len(inner):
        x = rng.random(len(inner)) if x is None else x
        counts[inner] = split_checked(prior[inner], f.sims[inner] - 1, x)
    over = np.full(prior.shape, np.nan)
    level = Level(f.sims, f.parent, f.action, f.sign, prior, value, counts, over)
    parent, action = counts.nonzero()
    if not len(parent):
        return level, None
    before = f.states[parent]
    states = rules.play(before, action)
    sign = rules.signs(before, states)
    done, score = rules.terminal(states)
    sims = counts[parent, action]
    if done.any():
        over[parent[done], action[done]] = sign[done] * score[done]
        go = ~done
        if not go.any():
            return level, None
        states, sims, parent, action, sign = states[go], sims[go], parent[go], action[go], sign[go]
    return level, Frontier(states, sims, parent, action, sign)


def backup(levels: Sequence[Level], frontier: Frontier | None, c: float) -> Backup:
    """Values and policies from the deepest level up.

    A node with a child that is not evaluated yet (a search that is stopped half way) counts as a leaf.
    """
    values: list[Floats] = []
    below: tuple[Level, Floats] | None = None
    for level in reversed(levels):
        q = level.over.copy()
        inner = level.sims > 1
        if below is not None:
            child, v = below
            q[child.parent, child.action] = child.sign * v
        elif frontier is not None:
            inner[frontier.parent] = False
        policy, v = _policies(level, q, inner, c)
        values.append(v)
        below = (level, v)
    return Backup(policy, v, q, np.where(inner[:, None], level.counts, 0), values[::-1])


def _policies(level: Level, q: Floats, inner: NDArray[np.bool_], c: float) -> tuple[Floats, Floats]:
    """Policy and value of each node of a level; prior and evaluated value where it is a leaf."""
    whole = bool(inner.all())
    if not inner.any():
        return level.prior, level.value
    rows: Any = slice(None) if whole else np.flatnonzero(inner)
    counts = level.counts[rows]
    tried = counts > 0
    known = np.where(tried, q[rows], 0.0)
    prior = np.where(tried, level.prior[rows], 0.0)
    prior /= prior @ np.ones((prior.shape[1], 1))
    total = level.sims[rows] - 1.0
    found = solve_prior_first(known, prior, np.maximum(c / np.sqrt(total), TINY), tried)
    mean = (level.value[rows] + total * (found * known).sum(axis=1)) / (total + 1.0)
    if whole:
        return found, mean
    policy, value = level.prior.copy(), level.value.copy()
    policy[rows], value[rows] = found, mean
    return policy, value


def statistics(levels: Sequence[Level]) -> dict[str, int]:
    """What a search cost: evaluator calls, positions evaluated, nodes, simulations that ended the game, depth."""
    evaluated = sum(len(one.sims) for one in levels)
    ended = sum(int((~np.isnan(one.over)).sum()) for one in levels)
    hits = sum(int(one.counts[~np.isnan(one.over)].sum()) for one in levels)
    return {
        "calls": len(levels),
        "evaluated": evaluated,
        "nodes": evaluated + ended,
        "terminal_hits": hits,
        "depth": len(levels),
    }


def dump(part: Level | Frontier) -> dict[str, Any]:
    """A level or frontier as plain data; states as they are."""
    return {one.name: getattr(part, one.name) for one in fields(part)}
