"""Which updates of a sweep can be done together."""

from __future__ import annotations

from collections.abc import Sequence

from infimum_padmm.structure import Structure


def schedule(structure: Structure, quadratic: Sequence[bool]) -> list[list[int]]:
    """Groups of blocks that give, one after the other, the same sweep as the order of the structure.

    Only blocks that share a row must keep their order. A group holds either quadratic blocks, in order, or other
    blocks that share no row among themselves.

    Parameters
    ----------
    structure : Structure
    quadratic : sequence of bool
        By block.
    """
    place = {j: k for k, j in enumerate(structure.order)}
    before: dict[int, set[int]] = {j: set() for j in structure.order}
    for row in structure.entries:
        members = sorted(row, key=lambda j: place[j])
        for k, j in enumerate(members):
            before[j].update(members[:k])
    left, groups = list(structure.order), []
    while left:
        for kind in (False, True):
            group = _ready(left, before, quadratic, kind)
            if group:
                groups.append(group)
                left = [j for j in left if j not in set(group)]
    return groups


def _ready(left: Sequence[int], before: dict[int, set[int]], quadratic: Sequence[bool], kind: bool) -> list[int]:
    """The blocks of a kind that wait for nothing; for quadratic ones, beside those that go before them in the group."""
    waiting = set(left)
    group: list[int] = []
    for j in left:
        blocked = before[j] & (waiting - set(group) if kind else waiting)
        if quadratic[j] is kind and not blocked:
            group.append(j)
    return group
