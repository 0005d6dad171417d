"""What can be said of a block problem before it is solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infimum_padmm.structure import IMAGE_TOLERANCE, RowImage, row_image, whole_matrix

if TYPE_CHECKING:
    from infimum_padmm.problem import BlockProblem

CHEN = (
    "a sweep over three or more blocks of one row need not converge where fewer than all but one are strongly convex "
    "(the example of Chen, He, Ye and Yuan, Math. Program. 155, 2016)"
)


@dataclass(frozen=True)
class Report:
    """The structure of a block problem, as `BlockProblem.report()` gives it; `print` shows it.

    Attributes
    ----------
    order : tuple of str
        Blocks in the order of updates.
    rows : tuple of RowImage
        For each row its pivot, what the pivot's image leaves out, and whether the pivot's function is smooth.
    whole : dict or None
        `rank`, `rows`, `columns` of the stacked matrix, and the `distance` of its other block columns from the image
        of the last one; None for a large matrix.
    strongly_convex : dict of str to bool
        By block.
    nonconvex : tuple of str
        Blocks whose function is declared not convex.
    beta : dict of str to float
        A penalty to begin with, by row: L/||A||^2 of the pivot where its gradient has a Lipschitz constant L > 0,
        else 1.
    prox_weight : float
        `(n - 1) max_i beta_i max_j ||A_ij||^2` with n blocks in the longest row at the penalty 1: the weight with
        which even a Jacobi sweep converges for convex functions.
    warnings : tuple of str
        What the theory asks for and is missing.
    """

    order: tuple[str, ...]
    rows: tuple[RowImage, ...]
    whole: Mapping[str, Any] | None
    strongly_convex: Mapping[str, bool]
    nonconvex: tuple[str, ...]
    beta: Mapping[str, float]
    prox_weight: float
    warnings: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"order: {', '.join(self.order)}"]
        lines += [_line(row) for row in self.rows]
        if self.whole is not None:
            w = self.whole
            lines.append(
                f"whole matrix: rank {w['rank']} of {w['columns']} columns; other columns outside of the last block's "
                f"image: {w['distance']:.3g}"
            )
        return "\n".join([*lines, *(f"warning: {one}" for one in self.warnings)])

    def as_tree(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "order": list(self.order),
            "pivots": {row.row: row.pivot for row in self.rows},
            "images": {row.row: {**row.images, "rhs": row.rhs} for row in self.rows},
            "smooth_pivots": {row.row: row.smooth for row in self.rows},
            "whole": None if self.whole is None else dict(self.whole),
            "warnings": list(self.warnings),
        }


def _line(row: RowImage) -> str:
    parts = [f"{name} {_number(value)}" for name, value in {**row.images, "rhs": row.rhs}.items()]
    return (
        f"row '{row.row}': pivot {row.pivot} ({'smooth' if row.smooth else 'not smooth'}); "
        f"outside of its image: {', '.join(parts)}"
    )


def _number(value: float | None) -> str:
    return "not computed" if value is None else f"{value:.3g}"


def report(problem: BlockProblem) -> Report:
    """Order, pivots, images row by row, the whole matrix, and what is missing."""
    structure = problem.structure
    smooth = [problem.smoothness(name) is not None for name in structure.blocks]
    rows = tuple(row_image(structure, i, smooth[structure.pivots[i]]) for i in range(len(structure.rows)))
    strong = {name: problem.modulus(name) > 0 for name in structure.blocks}
    nonconvex = tuple(name for name in structure.blocks if problem.is_nonconvex(name))
    longest = max((len(row) for row in structure.entries), default=1)
    widest = max((map_.norm**2 for row in structure.entries for map_ in row.values()), default=0.0)
    return Report(
        tuple(structure.blocks[j] for j in structure.order),
        rows,
        whole_matrix(structure),
        strong,
        nonconvex,
        {row: problem.penalty(i) for i, row in enumerate(structure.rows)},
        max(0, longest - 1) * widest,
        tuple(_warnings(problem, rows, strong, nonconvex)),
    )


def _warnings(
    problem: BlockProblem, rows: tuple[RowImage, ...], strong: Mapping[str, bool], nonconvex: tuple[str, ...]
) -> list[str]:
    out = []
    structure = problem.structure
    for row, entries in zip(rows, structure.entries, strict=True):
        members = [structure.blocks[j] for j in entries]
        if not row.known and row.worst <= IMAGE_TOLERANCE:
            out.append(f"row '{row.row}': too large to find out what lies in the image of its last block '{row.pivot}'")
        elif not row.reaches:
            name, value = max(
                ((k, v) for k, v in {**row.images, "the right-hand side": row.rhs}.items() if v is not None),
                key=lambda pair: pair[1],
            )
            out.append(
                f"row '{row.row}': {name} is not in the image of its last block '{row.pivot}' (residual {value:.3g})"
            )
        if nonconvex and not row.smooth:
            out.append(f"row '{row.row}': its last block '{row.pivot}' is not smooth, which nonconvex blocks ask for")
        weak = [name for name in members if not strong[name]]
        if len(members) >= 3 and len(weak) >= 2 and not (row.reaches and row.smooth):
            out.append(f"row '{row.row}' has {len(members)} blocks, not strongly convex: {', '.join(weak)}; {CHEN}")
    return out
