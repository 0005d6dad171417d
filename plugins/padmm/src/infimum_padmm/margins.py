"""Sufficient conditions for descent of the augmented Lagrangian, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from infimum.errors import InputError
from infimum.functions.maps import ScaledIdentity
from infimum_padmm.metric import gram
from infimum_padmm.options import Penalty, Weight, check_penalty, check_weight, penalties, weights
from infimum_padmm.problem import BlockProblem
from infimum_padmm.structure import dense_of


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


def certificate(problem: BlockProblem, beta: Penalty = 1.0, prox_weight: Weight = 0.0) -> Certificate:
    """Margins of sufficient decrease at the step tau = 1, with blocks solved as they are (not linearized).

    The multiplier of a row is bounded through the optimality of its pivot, from the row that ends in the last block
    backwards: `A_ij^T dlam_i` is the change of `-grad f_j - P dx_j - sum_{i' != i} A_i'j^T lam_i' + sum_i' beta_i'
    A_i'j^T sum_{l > j} A_i'l dx_l`. With `G = sum_i T_i T_i^T / beta_i`, the margin of block j is
    `lmin(Q_j)/2 + P_j + mu_j/2` less the row sums j and n + j of G.

    Parameters
    ----------
    problem : BlockProblem
    beta, prox_weight
        As in the solver.

    Returns
    -------
    Certificate
        A margin is -inf where a pivot is not smooth or has no curvature bound, or does not reach its row.
    """
    check_penalty(beta)
    check_weight(prox_weight)
    b, P = penalties(problem, beta), weights(problem, prox_weight)
    structure = problem.structure
    n = len(structure.blocks)
    if any(size > 2000 for size in (*structure.sizes, *structure.lengths)):
        raise InputError("the certificate factors every matrix densely; blocks and rows of at most 2000 entries")
    bounds = _multiplier_bounds(problem, b, P)
    known = all(np.isfinite(T).all() for T in bounds)
    G = sum((np.outer(T, T) / b[i] for i, T in enumerate(bounds)), np.zeros((2 * n, 2 * n))) if known else None
    sums = np.full(2 * n, np.inf) if G is None else G.sum(axis=1)
    margins = {}
    for j, name in enumerate(structure.blocks):
        mu = problem.curvature(name)
        c = _smallest(problem, j, b) + 2.0 * P[j] + (-np.inf if mu is None else mu)
        margins[name] = float(c / 2.0 - sums[j] - sums[n + j])
    return Certificate(margins, dict(zip(structure.rows, bounds, strict=True)))


def _smallest(problem: BlockProblem, j: int, beta: np.ndarray) -> float:
    q = gram(problem.structure, j, beta)
    if q.diagonal is not None:
        return float(q.diagonal.min())
    Q = q.matrix.toarray() if hasattr(q.matrix, "toarray") else q.matrix
    return 0.0 if Q is None else max(0.0, float(np.linalg.eigvalsh(Q)[0]))


def _multiplier_bounds(problem: BlockProblem, beta: np.ndarray, P: np.ndarray) -> list[np.ndarray]:
    structure = problem.structure
    n, place = len(structure.blocks), {j: k for k, j in enumerate(structure.order)}
    found: dict[int, np.ndarray] = {}
    for i in sorted(range(len(structure.rows)), key=lambda i: -place[structure.pivots[i]]):
        j = structure.pivots[i]
        L = problem.smoothness(structure.blocks[j])
        T = np.zeros(2 * n)
        T[j] = np.inf if L is None else L + P[j]
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
    """
    r, b = problem.residuals(x), penalties(problem, beta)
    rows = sum(
        float(np.dot(multipliers[name], one)) + 0.5 * float(b[i]) * float(one @ one)
        for i, (name, one) in enumerate(r.items())
    )
    return problem.value(x) + rows
