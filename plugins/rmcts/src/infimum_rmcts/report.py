"""Sections of a report: a picture of the tree, the moves at the roots, a game board by board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from infimum.reporting import Curve, Figure, Section, Table
from infimum_rmcts.record import MATCH, SEARCH

WIDTH, GAP = 100, 4
"""Characters in a row of boards, and between two of them."""


def sections(extras: Mapping[str, Any]) -> Iterator[Section]:
    """A section for each search or match among the extras of a result."""
    for tree in extras.values():
        what = tree.get("what")
        if what == SEARCH:
            yield _search(tree)
        elif what == MATCH:
            yield _match(tree)


def _search(tree: Mapping[str, Any]) -> Section:
    stats = tree["stats"]
    text = (
        f"{tree['game']}, the first of {len(tree['value'])} roots. {stats['evaluated']} positions were evaluated in "
        f"{stats['calls']} calls of the evaluator; {stats['terminal_hits']} simulations ended the game.\n\n"
        f"{tree['board']}"
    )
    return Section("Search tree", text, [_picture(tree)], [_root(tree)])


def _root(tree: Mapping[str, Any]) -> Table:
    prior, policy, counts, q = (np.asarray(tree[name])[0] for name in ("prior", "policy", "counts", "q"))
    rows = [
        [tree["actions"][a], float(prior[a]), int(counts[a]), None if np.isnan(q[a]) else float(q[a]), float(policy[a])]
        for a in np.argsort(-policy, kind="stable")
        if prior[a] > 0
    ]
    value = float(np.asarray(tree["value"])[0])
    return Table(["move", "prior", "simulations", "Q", "policy"], rows, f"The root; its value is {value:.4g}.")


def _picture(tree: Mapping[str, Any]) -> Figure:
    """Nodes below their parents, side by side without crossings; colors by who gains."""
    nodes = {name: np.asarray(one) for name, one in tree["tree"].items() if name != "nodes"}
    children, depth = _children(nodes), nodes["depth"]
    x, tour = _layout(children), _tour(children)
    curves = [Curve(x[tour], -depth[tour], "moves")] if len(tour) > 1 else []
    value, over = nodes["value"], nodes["over"].astype(bool)
    groups = {
        "good for the player at the root": ~over & (value > 0.1),
        "level": ~over & (np.abs(value) <= 0.1),
        "bad": ~over & (value < -0.1),
        "won at the end": over & (value > 0),
        "drawn at the end": over & (value == 0),
        "lost at the end": over & (value < 0),
    }
    curves += [Curve(x[one], -depth[one], name, style="points") for name, one in groups.items() if one.any()]
    shown, total = len(x), int(tree["tree"]["nodes"])
    text = "Moves in the order of the actions, from left to right."
    if shown < total:
        text += f" The {shown} nodes with the most simulations, of {total}."
    return Figure("Tree below the first root", curves, "", "minus depth", text=text)


def _children(nodes: Mapping[str, Any]) -> list[list[int]]:
    """The children of each node, in the order of their actions."""
    children: list[list[int]] = [[] for _ in nodes["parent"]]
    for k in np.argsort(nodes["action"], kind="stable").tolist():
        if nodes["parent"][k] >= 0:
            children[nodes["parent"][k]].append(k)
    return children


def _tour(children: list[list[int]]) -> list[int]:
    """Down and up along every branch: one line that draws all branches and nothing else."""
    tour, stack = [0], [iter(children[0])]
    path = [0]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
            path.pop()
            tour += path[-1:]
        else:
            path.append(below)
            tour.append(below)
            stack.append(iter(children[below]))
    return tour


def _layout(children: list[list[int]]) -> Any:
    """Horizontal places: leaves in a row, a parent over the middle of its children."""
    x = np.zeros(len(children))
    place, stack, order = 0.0, [0], []
    while stack:
        k = stack.pop()
        order.append(k)
        if not children[k]:
            x[k], place = place, place + 1.0
        stack += children[k][::-1]
    for k in reversed(order):
        if children[k]:
            x[k] = 0.5 * (x[children[k][0]] + x[children[k][-1]])
    return x


def _match(tree: Mapping[str, Any]) -> Section:
    points, first, moves = (np.asarray(tree[name]) for name in ("points", "first", "moves"))
    rows = []
    for label, chosen in (("all games", first >= 0), ("moving first", first == 0), ("moving second", first == 1)):
        some = points[chosen]
        if chosen.any():
            known = some[~np.isnan(some)]
            error = float(known.std() / np.sqrt(len(known))) if len(known) > 1 else None
            counts = [int((some == one).sum()) for one in (1.0, 0.5, 0.0)]
            rows.append([label, len(some), *counts, float(known.mean()) if len(known) else None, error])
    text = f"{tree['title']}.\n\n{game_text(tree)}"
    table = Table(
        [f"{tree['names'][0]}", "games", "won", "drawn", "lost", "score", "standard error"],
        rows,
        f"Score of {tree['names'][0]}: 1 for a win, 0.5 for a draw.",
    )
    if len(moves) < 2:
        return Section("Match", text, tables=[table])
    plies = (moves >= 0).sum(axis=1)
    figure = Figure(
        "Length of the games", [Curve(np.arange(1, len(plies) + 1), plies, style="points")], "game", "plies"
    )
    return Section("Match", text, [figure], [table])


def game_text(tree: Mapping[str, Any], *, last: bool = False) -> str:
    """The first game: its moves, and all its boards or the last one."""
    moves = [tree["actions"][a] for a in np.asarray(tree["moves"])[0] if a >= 0] if np.size(tree["moves"]) else []
    who = tree["names"][int(np.asarray(tree["first"])[0])]
    point = float(np.asarray(tree["points"])[0])
    end = {1.0: f"{tree['names'][0]} won", 0.5: "drawn", 0.0: f"{tree['names'][1]} won"}.get(point, "not over")
    head = f"The first game, {who} moving first: {end}. Moves: {' '.join(moves) or 'none'}."
    boards = tree["boards"]
    if last:
        return f"{head}\n\n{boards[-1]}"
    titles = ["start", *(f"{k}. {move}" for k, move in enumerate(moves, 1))]
    return "\n\n".join([head, *_side_by_side([f"{title}\n{one}" for title, one in zip(titles, boards, strict=False)])])


def _side_by_side(boards: list[str]) -> Iterator[str]:
    """Boards in rows of as many as fit."""
    blocks = [one.splitlines() for one in boards]
    wide = max(len(line) for block in blocks for line in block)
    fit = max(1, (WIDTH + GAP) // (wide + GAP))
    for k in range(0, len(blocks), fit):
        lines = zip_longest(*blocks[k : k + fit], fillvalue="")
        yield "\n".join((" " * GAP).join(one.ljust(wide) for one in row).rstrip() for row in lines)
