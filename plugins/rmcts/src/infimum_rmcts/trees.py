"""The rival: search by the PUCT rule, one leaf per simulation and root, vectorized over the roots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum_rmcts.game import Rules

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EPS = 0.1
"""Added below the root of the visit count, so that the prior decides while nothing was visited."""
_NONE: Ints = np.zeros(0, np.int64)
ARRAYS = ("q", "bonus", "visits", "child", "total", "over", "value", "sign", "used", "prior", "hits")


class Trees:
    """One tree for each of B roots, in arrays of B x capacity nodes that are filled in place.

    The score of an action is `Q + c prior sqrt(sum N + eps) / (1 + N)`, with Q = 0 before its first visit. `bonus` is
    kept as `c prior / (1 + N)`, so that a selection costs one product, one sum and one argmax a depth.

    Parameters
    ----------
    roots : array, shape (B, ...), or None
        Without roots, `place` must follow.
    size : int
        B.
    capacity : int
        Nodes of a tree at most.
    num_actions : int
    c : float
    """

    def __init__(self, roots: Any, size: int, capacity: int, num_actions: int, c: float) -> None:
        self.size, self.capacity, self.c = size, capacity, c
        nodes = size * capacity
        self.first = np.arange(size) * capacity
        self.roots: Any = roots
        self.states: Any = None
        if roots is not None:
            # A position that is not there is None or zero, never what the memory held.
            blank = None if roots.dtype == object else 0
            self.states = np.full((nodes, *roots.shape[1:]), blank, roots.dtype)
            self.states[self.first] = roots
        self.q = np.zeros((nodes, num_actions))
        self.bonus = np.zeros((nodes, num_actions))
        self.visits = np.zeros((nodes, num_actions), np.int64)
        self.child = np.full((nodes, num_actions), -1, np.int64)
        self.prior = np.zeros((nodes, num_actions))
        self.total = np.full(nodes, EPS)
        self.over = np.zeros(nodes, bool)
        self.value = np.zeros(nodes)
        self.sign = np.ones(nodes)
        self.used = np.zeros(self.size, np.int64)
        self.hits = np.zeros(self.size, np.int64)
        self.simulations = self.calls = self.depth = 0

    def place(self, roots: Any, states: Any) -> None:
        """Put the positions of all nodes into trees that were made without roots."""
        self.roots, self.states = roots, states

    def simulate(self, rules: Rules) -> None:
        """One simulation in every tree; at most one evaluator call. Nothing is changed if something raises."""
        if self.simulations == 0:
            prior, value = rules.evaluate(self.roots, "the roots")
            self._enter(self.first, prior, value)
            self.used += 1
            self.calls, self.simulations, self.depth = 1, 1, 1
            return
        path, leaf, fresh = self._select_one() if self.size == 1 else self._select()
        rows, node, action = fresh
        if len(rows):
            new = self.first[rows] + self.used[rows]
            before = self.states[node]
            states = rules.play(before, action)
            sign = rules.signs(before, states)
            over, score = rules.terminal(states)
            live = ~over
            if live.any():
                every = bool(live.all())
                prior, value = rules.evaluate(
                    states if every else states[live], f"depth {len(path)} of simulation {self.simulations + 1}"
                )
                self.calls += 1
                self._enter(new if every else new[live], prior, value)
            self.states[new] = states
            self.sign[new] = sign
            self.over[new] = over
            self.value[new[over]] = score[over]
            self.child[node, action] = new
            self.used[rows] += 1
            leaf[rows] = new
        self.hits += self.over[leaf]
        if self.size == 1:
            self._back_one(path, int(leaf[0]))
        else:
            self._back(path, leaf)
        self.simulations += 1
        self.depth = max(self.depth, len(path) + 1)

    def _enter(self, nodes: Ints, prior: Floats, value: Floats) -> None:
        self.prior[nodes], self.value[nodes] = prior, value
        self.bonus[nodes] = self.c * prior
        # An illegal action has no prior and must never be chosen.
        self.q[nodes] = np.where(prior > 0.0, 0.0, -np.inf)

    def _select(self) -> tuple[list[tuple[Any, Ints, Ints]], Ints, tuple[Ints, Ints, Ints]]:
        """Walk down to a leaf in every tree: the path by depth, terminal leaves, and where new nodes go."""
        rows = np.arange(self.size)
        node, leaf = self.first, np.zeros(self.size, np.int64)
        path: list[tuple[Any, Ints, Ints]] = []
        fresh: list[tuple[Ints, Ints, Ints]] = []
        while len(rows):
            score = self.bonus[node] * np.sqrt(self.total[node])[:, None]
            score += self.q[node]
            action = score.argmax(axis=1)
            path.append((rows, node, action))
            below = self.child[node, action]
            new = below < 0
            if new.all():
                fresh.append((rows, node, action))
                break
            ends = new | self.over[below]
            if ends.any():
                fresh.append((rows[new], node[new], action[new]))
                done = ends & ~new
                leaf[rows[done]] = below[done]
                rows, below = rows[~ends], below[~ends]
            node = below
        if len(fresh) == 1:
            return path, leaf, fresh[0]
        joined = tuple(np.concatenate([_NONE, *(one[k] for one in fresh)]) for k in range(3))
        return path, leaf, joined  # type: ignore[return-value]

    def _select_one(self) -> tuple[list[tuple[Any, Any, Any]], Ints, tuple[Ints, Ints, Ints]]:
        """The same for a single tree, with plain numbers in place of arrays of one."""
        bonus, q, total, child, over = self.bonus, self.q, self.total, self.child, self.over
        node, path = 0, []
        while True:
            score = bonus[node] * math.sqrt(total[node])
            score += q[node]
            action = int(score.argmax())
            path.append((0, node, action))
            below = int(child[node, action])
            if below < 0:
                return path, np.zeros(1, np.int64), (np.zeros(1, np.int64), np.array([node]), np.array([action]))
            if over[below]:
                return path, np.array([below]), (_NONE, _NONE, _NONE)
            node = below

    def _back_one(self, path: list[tuple[Any, Any, Any]], below: int) -> None:
        visits, q, bonus, prior, sign = self.visits, self.q, self.bonus, self.prior, self.sign
        value = float(self.value[below])
        for _, node, action in reversed(path):
            value *= sign.item(below)
            count = visits.item(node, action) + 1
            old = q.item(node, action)
            visits[node, action] = count
            q[node, action] = old + (value - old) / count
            bonus[node, action] = self.c * prior.item(node, action) / (1.0 + count)
            self.total[node] += 1.0
            below = node

    def _back(self, path: list[tuple[Any, Ints, Ints]], leaf: Ints) -> None:
        """Add the value of each tree's leaf along its path."""
        value, node_below = self.value[leaf], leaf.copy()
        for rows, node, action in reversed(path):
            seen = value[rows] * self.sign[node_below[rows]]
            count = self.visits[node, action] + 1
            self.visits[node, action] = count
            old = self.q[node, action]
            self.q[node, action] = old + (seen - old) / count
            self.bonus[node, action] = self.c * self.prior[node, action] / (1.0 + count)
            self.total[node] += 1.0
            value[rows], node_below[rows] = seen, node

    def policy(self) -> Floats:
        """Shares of the visits at the roots; the prior before there are any."""
        visits = self.visits[self.first]
        total = visits.sum(axis=1, keepdims=True)
        return np.where(total > 0, visits / np.maximum(total, 1), self.prior[self.first])

    def root_values(self) -> tuple[Floats, Floats, Ints]:
        """Value of the roots, Q of their actions (NaN without a visit), visits."""
        visits = self.visits[self.first]
        q = np.where(visits > 0, self.q[self.first], np.nan)
        summed = np.where(visits > 0, visits * np.nan_to_num(q), 0.0).sum(axis=1)
        return (self.value[self.first] + summed) / (1.0 + visits.sum(axis=1)), q, visits

    def statistics(self) -> dict[str, int]:
        """What the search cost; see `infimum_rmcts.tree.statistics`."""
        nodes = int(self.used.sum())
        return {
            "calls": self.calls,
            "evaluated": nodes - int(self.over.sum()),
            "nodes": nodes,
            "terminal_hits": int(self.hits.sum()),
            "depth": self.depth,
        }

    def state_dict(self) -> dict[str, Any]:
        """The trees as plain data, without the positions."""
        keep = {name: getattr(self, name) for name in ARRAYS}
        return {**keep, "numbers": [self.simulations, self.calls, self.depth]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ARRAYS:
            getattr(self, name)[...] = state[name]
        self.simulations, self.calls, self.depth = (int(one) for one in state["numbers"])
