"""What a search leaves for reports: the game in words, and the tree below the first root as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum_rmcts.game import named, shown
from infimum_rmcts.tree import Level
from infimum_rmcts.trees import Trees

Floats = NDArray[np.float64]
SEARCH, MATCH = "rmcts search", "rmcts match"
"""What extras say they are, under `what`: a solver given as an object has no registered name."""
MOST = 120
"""Nodes of a picture at most: those with the most simulations."""


def facts(game: Any, roots: Any) -> dict[str, Any]:
    """The game, its first root and its actions as text."""
    actions = [named(game, a) for a in range(game.num_actions)]
    return {"game": str(getattr(game, "name", type(game).__name__)), "board": shown(game, roots[0]), "actions": actions}


def pack(game: Any, states: Any) -> Any:
    """Positions as plain data; they are already, where the game is not there (after a checkpoint)."""
    own = getattr(game, "pack", None)
    return states if own is None else own(states)


def unpack(game: Any, tree: Any) -> Any:
    """Positions from plain data."""
    own = getattr(game, "unpack", None)
    return tree if own is None else own(tree)


def from_levels(levels: Sequence[Level], values: Sequence[Floats]) -> dict[str, Any]:
    """The first root's nodes, parents first: parent, depth, action, simulations, value for the root's player, ends."""
    columns = _Columns()
    ids = columns.add(1, -1, 0, -1, levels[0].sims[:1], values[0][:1])
    rows, frame = np.array([0]), np.ones(1)
    for depth, level in enumerate(levels):
        ended, action = (~np.isnan(level.over[rows])).nonzero()
        q = frame[ended] * level.over[rows[ended], action]
        columns.add(len(ended), ids[ended], depth + 1, action, level.counts[rows[ended], action], q, over=True)
        if depth + 1 == len(levels):
            break
        below = levels[depth + 1]
        position = np.searchsorted(rows, below.parent)
        position = np.minimum(position, len(rows) - 1)
        keep = np.flatnonzero(rows[position] == below.parent)
        up = position[keep]
        frame = frame[up] * below.sign[keep]
        q = frame * values[depth + 1][keep]
        ids = columns.add(len(keep), ids[up], depth + 1, below.action[keep], below.sims[keep], q)
        rows = keep
        if not len(rows):
            break
    return columns.largest()


def from_trees(trees: Trees) -> dict[str, Any]:
    """The same of the first tree of a search by PUCT; a node's value is the mean below it."""
    columns = _Columns()
    total = int(trees.visits[0].sum()) + 1
    columns.add(1, -1, 0, -1, np.array([total]), trees.root_values()[0][:1])
    nodes, ids, frame = np.array([0]), np.array([0]), np.ones(1)
    depth = 0
    while len(nodes):
        depth += 1
        row, action = (trees.child[nodes] >= 0).nonzero()
        if not len(row):
            break
        child, sims = trees.child[nodes[row], action], trees.visits[nodes[row], action]
        q = frame[row] * trees.q[nodes[row], action]
        over = trees.over[child]
        ids = columns.add(len(row), ids[row], depth, action, sims, q, over=over)
        frame, nodes = frame[row] * trees.sign[child], child
    return columns.largest()


class _Columns:
    """Nodes as columns, in the order in which they are added."""

    def __init__(self) -> None:
        self.count = 0
        self.parts: dict[str, list[Any]] = {name: [] for name in ("parent", "depth", "action", "sims", "value", "over")}

    def add(self, n: int, parent: Any, depth: int, action: Any, sims: Any, value: Any, over: Any = False) -> Any:
        """Add n nodes; their numbers."""
        for name, one in (
            ("parent", parent),
            ("depth", depth),
            ("action", action),
            ("sims", sims),
            ("value", value),
            ("over", over),
        ):
            self.parts[name].append(np.broadcast_to(one, (n,)))
        self.count += n
        return np.arange(self.count - n, self.count)

    def largest(self) -> dict[str, Any]:
        """The columns of the nodes with the most simulations; a parent always has more than its children."""
        columns = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        order = np.lexsort((np.arange(self.count), -columns["sims"]))[:MOST]
        kept = np.sort(order)
        number = np.full(self.count + 1, -1)
        number[kept] = np.arange(len(kept))
        found = {name: column[kept] for name, column in columns.items()}
        found["parent"] = number[found["parent"]]
        return {**found, "nodes": self.count}
