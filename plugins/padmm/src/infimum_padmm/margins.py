"""Sufficient conditions for descent of the augmented Lagrangian, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from infimum.errors import InputError
from infimum.functions import Function
from infimum.functions.maps import ScaledIdentity
from infimum_padmm.engine import KINDS, Kind, Linearize, linearizes
from infimum_padmm.metric import SAFETY, Gram, gram
from infimum_padmm.options import (
    Penalty,
    Weight,
    check_linearize,
    check_penalty,
    check_weight,
    penalties,
    weights,
)
from infimum_padmm.options import multipliers as stacked
from infimum_padmm.problem import BlockProblem
from infimum_padmm.structure import Structure, dense_of, row_image

LARGEST = 2000
"""Entries of a block or row up to which a certificate is made when it is asked for."""
CHEAP = 1e8
"""Operations on matrices up to which one is made with every run."""


@dataclass(frozen=True)
class Certificate:
    """Whether the augmented Lagrangian, plus `sum_j eta_j ||dx_j||^2`, provably decreases at every iteration.

    Attributes
    ----------
    margins : dict of str to float
        By block; all positive means that it does. Sufficient, and far from necessary: penalties with positive margins
        are often slow.
    multipliers : dict of str to array, shape (2 n,)
        By row, coefficients T with `||lam_i^{k+1} - lam_i^k|| <= T . (||dx^{k+1}||, ||dx^k||)`.
    """

    margins: dict[str, float]
    multipliers: dict[str, np.ndarray]

    @property
    def holds(self) -> bool:
        """Whether every margin is positive."""
        return all(margin > 0 for margin in self.margins.values())


def certificate(
    problem: BlockProblem, beta: Penalty = 1.0, prox_weight: Weight = 0.0, linearize: Linearize = "auto"
) -> Certificate:
    """Margins of sufficient decrease at the step tau = 1.

    The multiplier of a row is bounded through the optimality of its pivot, from the row that ends in the last block
    backwards: `A_ij^T dlam_i` is the change of `-grad f_j - P dx_j - sum_{i' != i} A_i'j^T lam_i' + sum_i' beta_i'
    A_i'j^T sum_{l > j} A_i'l dx_l`. With `G = sum_i T_i T_i^T / beta_i`, the margin of block j is
    `lmin(Q_j + 2 P_j)/2 + mu_j/2` less the row sums j and n + j of G. A linearized block has `P_j = s I - Q_j` beside
    its proximal weight.

    Parameters
    ----------
    problem : BlockProblem
    beta, prox_weight, linearize
        As in the solver. A block that only an oracle can solve counts as one with a prox.

    Returns
    -------
    Certificate
        All margins are -inf where some pivot is not smooth or does not reach its row; that of a block without a
        curvature bound is.

    Raises
    ------
    InputError
        For blocks or rows of more than 2000 entries, and for options out of range.
    """
    check_penalty(beta)
    check_weight(prox_weight)
    check_linearize(linearize)
    if not isinstance(problem, BlockProblem):
        raise InputError(f"expected a BlockProblem, got {type(problem).__name__}")
    if any(size > LARGEST for size in (*problem.structure.sizes, *problem.structure.lengths)):
        raise InputError(f"the certificate factors matrices densely; blocks and rows of at most {LARGEST} entries")
    kinds = [_kind(problem.body(name)) for name in problem.structure.blocks]
    return certified(problem, penalties(problem, beta), weights(problem, prox_weight), kinds, linearize)


def certified(
    problem: BlockProblem, beta: np.ndarray, weight: np.ndarray, kinds: Sequence[Kind], linearize: Linearize
) -> Certificate:
    """The certificate at penalties by row and proximal weights by block."""
    structure, n = problem.structure, len(problem.structure.blocks)
    metrics = [_metric(structure, j, beta, weight[j], kinds[j], linearize) for j in range(n)]
    bounds = _multiplier_bounds(problem, beta, [one.largest for one in metrics])
    known = all(np.isfinite(T).all() for T in bounds)
    G = sum((np.outer(T, T) / beta[i] for i, T in enumerate(bounds)), np.zeros((2 * n, 2 * n))) if known else None
    sums = np.full(2 * n, np.inf) if G is None else G.sum(axis=1)
    margins = {}
    for j, name in enumerate(structure.blocks):
        mu = problem.curvature(name)
        c = metrics[j].decrease + (-np.inf if mu is None else mu)
        margins[name] = float(c / 2.0 - sums[j] - sums[n + j])
    return Certificate(margins, dict(zip(structure.rows, bounds, strict=True)))


def affordable(structure: Structure) -> bool:
    """Whether the certificate costs little: no large matrix to be factored, and not very many blocks."""
    work = sum(
        structure.lengths[i] * structure.sizes[j] * min(structure.lengths[i], structure.sizes[j])
        for i, row in enumerate(structure.entries)
        for j, map_ in row.items()
        if not isinstance(map_, ScaledIdentity)
    )
    most = max((*structure.sizes, *structure.lengths))
    return work <= CHEAP and most <= LARGEST and len(structure.blocks) <= 200


def _kind(body: Function) -> Kind:
    return next((kind for kind, needs in KINDS.items() if set(needs) <= body.capabilities), "prox")


@dataclass(frozen=True, slots=True)
class _Metric:
    """`lmin(Q + 2 P)`, and the largest eigenvalue of P."""

    decrease: float
    largest: float


def _metric(structure: Structure, j: int, beta: np.ndarray, weight: float, kind: Kind, linearize: Linearize) -> _Metric:
    q = gram(structure, j, beta)
    low = _smallest(q)
    if not linearizes(kind, q, linearize):
        return _Metric(low + 2.0 * weight, weight)
    s = SAFETY * q.bound
    return _Metric(2.0 * (s + weight) - q.bound, s - low + weight)


def _smallest(q: Gram) -> float:
    if q.diagonal is not None:
        return float(q.diagonal.min())
    Q = q.matrix.toarray() if hasattr(q.matrix, "toarray") else q.matrix
    return 0.0 if Q is None else max(0.0, float(np.linalg.eigvalsh(Q)[0]))


def _multiplier_bounds(problem: BlockProblem, beta: np.ndarray, P: Sequence[float]) -> list[np.ndarray]:
    structure = problem.structure
    n, place = len(structure.blocks), {j: k for k, j in enumerate(structure.order)}
    found: dict[int, np.ndarray] = {}
    for i in sorted(range(len(structure.rows)), key=lambda i: -place[structure.pivots[i]]):
        j = structure.pivots[i]
        L = problem.smoothness(structure.blocks[j])
        T = np.zeros(2 * n)
        reached = row_image(structure, i, smooth=L is not None).reaches
        T[j] = L + P[j] if L is not None and reached else np.inf
        T[n + j] = P[j]
        for other, map_ in structure.column(j).items():
            if other != i:
                T += map_.norm * found[other]
            later = {k: one for k, one in structure.entries[other].items() if place[k] > place[j]}
            for k, one in later.items():
                T[[k, n + k]] += beta[other] * map_.norm * one.norm
        found[i] = T / _least(problem, i, j)
    return [found[i] for i in range(len(structure.rows))]


def _least(problem: BlockProblem, i: int, j: int) -> float:
    """The smallest nonzero singular value of a pivot's matrix."""
    map_ = problem.structure.entries[i][j]
    if isinstance(map_, ScaledIdentity):
        return abs(map_.scale)
    s = np.linalg.svd(dense_of(map_, problem.structure.sizes[j]), compute_uv=False)
    return float(s[s > 1e-12 * s[0]].min())


def lagrangian(problem: BlockProblem, x: object, multipliers: Mapping[str, np.ndarray], beta: Penalty) -> float:
    """The augmented Lagrangian `sum f_j + sum_i <lam_i, r_i> + beta_i/2 ||r_i||^2` at x, for watching a run.

    Parameters
    ----------
    problem : BlockProblem
    x : mapping of str to array, or packed array
    multipliers : mapping of str to array
        By row, as in `result.extras`.
    beta
        As in the solver.

    Raises
    ------
    InputError
        For a multiplier that is missing or has another length, and for a penalty that is not above 0.
    """
    check_penalty(beta)
    if missing := [name for name in problem.structure.rows if name not in multipliers]:
        raise InputError(f"no multiplier of row '{missing[0]}'; expected one of every row")
    lam = stacked(problem, multipliers)
    r = np.concatenate([np.zeros(0), *problem.residuals(x).values()])
    weights_ = np.repeat(penalties(problem, beta), problem.structure.lengths)
    return problem.value(x) + float(lam @ r) + 0.5 * float(weights_ @ (r * r))
