"""Optimal values of the installed problems, found without infimum: from CVXPY, or with a proof by duality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EXACT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
APART = 1e-9
"""Relative gap of the bounds between which the optimum of robust PCA is caught."""


def reference(name: str, problem: Any) -> float | None:
    """Optimal value of the problem `name`, which need not have its default options; None where nobody knows it."""
    if problem.reference is not None:
        return float(problem.reference)
    find = REFERENCES.get(name)
    return None if find is None else find({term.name: term.body for term in problem.terms})


def _least(objective: Any, constraints: Any = ()) -> float:
    import cvxpy as cp

    return float(cp.Problem(cp.Minimize(objective), list(constraints)).solve(**EXACT))


def _squares(loss: Any) -> tuple[Any, Any]:
    import cvxpy as cp

    x = cp.Variable(loss.A.shape[1])
    return x, cp.sum_squares(loss.A @ x - loss.b) / (2 * len(loss.b))


def _lasso(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    x, loss = _squares(terms["loss"])
    return _least(loss + terms["penalty"].weights * cp.norm1(x))


def _elastic_net(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    x, loss = _squares(terms["loss"])
    net = terms["penalty"]
    return _least(loss + net.l1 * cp.norm1(x) + 0.5 * net.l2 * cp.sum_squares(x))


def _nonnegative_least_squares(terms: dict[str, Any]) -> float:
    x, loss = _squares(terms["loss"])
    return _least(loss, [x >= 0])


def _overlapping_group_lasso(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    x, loss = _squares(terms["loss"])
    penalty = terms["penalty"]
    norms = sum(cp.norm(x[list(group)]) for group in penalty.function.groups)
    return _least(loss + penalty.scale * norms)


def _sparse_logistic(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    loss, weights = terms["loss"], terms["penalty"].weights
    w = cp.Variable(loss.A.shape[1])
    mean = cp.sum(cp.logistic(-cp.multiply(loss.y, loss.A @ w))) / len(loss.y)
    return _least(mean + weights @ cp.abs(w))


def _svm_dual(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    dual, box, balance = terms["dual"], terms["box"], terms["balance"]
    a = cp.Variable(len(dual.q))
    objective = 0.5 * cp.quad_form(a, cp.psd_wrap(dual.P)) + dual.q @ a
    return _least(objective, [a >= box.lower, a <= box.upper, balance.A @ a == balance.b])


def _box_qp(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    quadratic, box = terms["objective"], terms["box"]
    x = cp.Variable(len(quadratic.q))
    objective = 0.5 * cp.quad_form(x, cp.psd_wrap(quadratic.P)) + quadratic.q @ x
    return _least(objective, [x >= box.lower, x <= box.upper])


def _basis_pursuit(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    equations = terms["equations"]
    x = cp.Variable(equations.A.shape[1])
    return _least(cp.norm1(x), [equations.A @ x == equations.b])


def _tv_denoising_1d(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    b, weight = terms["loss"].b, getattr(terms["tv"], "scale", 1.0)
    x = cp.Variable(len(b))
    return _least(0.5 * cp.sum_squares(x - b) + weight * cp.norm1(cp.diff(x)))


def _tv_denoising_2d(terms: dict[str, Any]) -> float:
    import cvxpy as cp

    b, norm = terms["loss"].b, terms["tv"].function
    x = cp.Variable(b.shape)
    down, right = cp.diff(x, axis=0), cp.diff(x, axis=1)
    if "L21" not in repr(norm):
        total = cp.norm1(down) + cp.norm1(right)
        return _least(0.5 * cp.sum_squares(x - b) + getattr(norm, "scale", 1.0) * total)
    rows, columns = b.shape
    pairs = cp.vstack([cp.vec(down[:, :-1], order="C"), cp.vec(right[:-1, :], order="C")])
    edges = cp.norm1(down[:, columns - 1]) + cp.norm1(right[rows - 1, :])
    total = cp.sum(cp.norm(pairs, 2, axis=0)) + edges
    return _least(0.5 * cp.sum_squares(x - b) + getattr(norm, "scale", 1.0) * total)


def _robust_pca(terms: dict[str, Any]) -> float:
    """By augmented Lagrangians, until a feasible point and a feasible multiplier enclose the optimum.

    Every Y with singular values <= 1 and entries <= weight bounds the optimum from below by <Y, M>.
    """
    weight, b = terms["l1"].weights, terms["sum"].b
    side = round(len(b) ** 0.5)
    M = b.reshape(side, side)
    mu, S, Y = 4.0 / np.abs(M).mean(), np.zeros_like(M), np.zeros_like(M)
    for k in range(20_000):
        U, s, V = np.linalg.svd(M - S + Y / mu, full_matrices=False)
        L = (U * np.maximum(s - 1.0 / mu, 0.0)) @ V
        rest = M - L + Y / mu
        S = rest - np.clip(rest, -weight / mu, weight / mu)
        Y = Y + mu * (M - L - S)
        if k % 50 == 49:
            upper = np.linalg.norm(L, "nuc") + weight * np.abs(M - L).sum()
            scale = max(np.linalg.norm(Y, 2), np.abs(Y).max() / weight, 1.0)
            if upper - (Y * M).sum() / scale <= APART * upper:
                return float(upper)
    raise RuntimeError("robust PCA: the bounds did not meet")


REFERENCES: dict[str, Callable[[dict[str, Any]], float]] = {
    "problems.basis_pursuit": _basis_pursuit,
    "problems.box_qp": _box_qp,
    "problems.elastic_net": _elastic_net,
    "problems.lasso": _lasso,
    "problems.nonnegative_least_squares": _nonnegative_least_squares,
    "problems.overlapping_group_lasso": _overlapping_group_lasso,
    "problems.robust_pca": _robust_pca,
    "problems.sparse_logistic": _sparse_logistic,
    "problems.svm_dual": _svm_dual,
    "problems.tv_denoising_1d": _tv_denoising_1d,
    "problems.tv_denoising_2d": _tv_denoising_2d,
}
