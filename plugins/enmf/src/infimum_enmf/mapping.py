"""From rotations to all invertible maps: (U A, V A^-T) has the product U V^T for every invertible A.

A nonnegative factorization of the truncated SVD is (U* A, V* A^-T) for some A, which need not be orthogonal. So after
the rotation, A is improved by L-BFGS on the squared negative parts of the columns, each scaled to norm 1. Without the
scaling a column of U with a negative part would be scaled away at the cost of nothing but a long column of V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from infimum_enmf.matrix import Array

MEMORY = 20
ARMIJO, WOLFE = 1e-4, 0.9
TRIALS = 25
PROMISING, PATIENCE = 2e-3, 4
"""Below this loss per column a map has led nearly in, and the window of the plateau rule is this many times as long: on
exact data the loss stands still at about half of it, for more than 50 steps, before it falls to zero."""


@dataclass(frozen=True)
class Mapping:
    """State of the mapping stage: the map A, its loss and gradient, and the pairs that L-BFGS remembers, newest last.

    Attributes
    ----------
    A, gradient : ndarray, (r, r)
    loss : float
    steps, changes : ndarray, (k, r, r)
        Differences of A and of the gradient.
    rounds : int
    settled : bool
    history : list of float
    """

    A: Array
    gradient: Array
    loss: float
    steps: Array
    changes: Array
    rounds: int
    settled: bool
    history: list[float]


def loss_and_gradient(U: Array, V: Array, A: Array) -> tuple[float, Array]:
    """Half the squared norm of the negative parts of the columns of U A and V A^-T, scaled to norm 1; inf if singular.

    Parameters
    ----------
    U, V : ndarray, (m, r) and (n, r)
    A : ndarray, (r, r)

    Returns
    -------
    loss : float
    gradient : ndarray, (r, r)
    """
    try:
        B = np.linalg.inv(A).T
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(A)
    fu, gu = _negative_part(U @ A)
    fv, gv = _negative_part(V @ B)
    return fu + fv, U.T @ gu - B @ ((V.T @ gv).T @ B)


def _negative_part(M: Array) -> tuple[float, Array]:
    lengths = np.linalg.norm(M, axis=0)
    lengths[lengths == 0.0] = 1.0
    scaled = M / lengths
    negative = np.minimum(scaled, 0.0)
    squares = np.einsum("ij,ij->j", negative, negative)
    return 0.5 * float(squares.sum()), (negative - squares * scaled) / lengths


def start(U: Array, V: Array) -> Mapping:
    """The identity: U and V as they are, (m, r) and (n, r)."""
    r = U.shape[1]
    eye = np.eye(r)
    loss, gradient = loss_and_gradient(U, V, eye)
    none = np.empty((0, r, r))
    return Mapping(eye, gradient, loss, none, none, 0, not loss > 0.0, [])


def advance(
    U: Array, V: Array, at: Mapping, rounds: int, floor: float = 1e-16, window: int = 50, plateau: float = 0.01
) -> Mapping:
    """At most `rounds` steps of L-BFGS with a weak Wolfe search.

    Parameters
    ----------
    U, V : ndarray, (m, r) and (n, r)
    at : Mapping
    rounds : int
    floor : float, default 1e-16
        Settled when the loss is below it.
    window, plateau : int, float
        Settled when the loss fell by less than a share of `plateau` over `window` steps, over four times as many where
        the loss is small.
    """
    A, g, f, S, Y = at.A, at.gradient, at.loss, at.steps, at.changes
    history, settled, done = at.history, at.settled, at.rounds
    while not settled and done < at.rounds + rounds:
        d = -_two_loops(g, S, Y)
        if not np.vdot(d, g) < 0.0:
            d, S, Y = -g, S[:0], Y[:0]
        first = 1.0 if len(S) else 1.0 / max(1e-300, float(np.linalg.norm(g)))
        found = _search(U, V, A, d, f, float(np.vdot(d, g)), first)
        done += 1
        if found is None:
            if not len(S):
                settled = True
                break
            S, Y = S[:0], Y[:0]
            continue
        t, f, new = found
        if np.vdot(t * d, new - g) > 0.0:
            S = np.concatenate([S[-MEMORY + 1 :], (t * d)[None]])
            Y = np.concatenate([Y[-MEMORY + 1 :], (new - g)[None]])
        A, g = A + t * d, new
        history = [*history, f][-PATIENCE * window - 1 :]
        back = window * (PATIENCE if f <= PROMISING * len(A) else 1)
        settled = f <= floor or (len(history) > back and f >= (1.0 - plateau) * history[-1 - back])
    return replace(at, A=A, gradient=g, loss=f, steps=S, changes=Y, rounds=done, settled=settled, history=history)


def _two_loops(g: Array, S: Array, Y: Array) -> Array:
    q = g.copy()
    weights = []
    for s, y in zip(S[::-1], Y[::-1], strict=True):
        scale = 1.0 / float(np.vdot(s, y))
        weight = scale * float(np.vdot(s, q))
        q -= weight * y
        weights.append((scale, weight))
    if len(S):
        q *= float(np.vdot(S[-1], Y[-1])) / float(np.vdot(Y[-1], Y[-1]))
    for s, y, (scale, weight) in zip(S, Y, weights[::-1], strict=True):
        q += (weight - scale * float(np.vdot(y, q))) * s
    return q


def _search(
    U: Array, V: Array, A: Array, d: Array, f: float, slope: float, t: float
) -> tuple[float, float, Array] | None:
    """A step with sufficient decrease, if possible with the curvature condition too; (step, loss, gradient)."""
    low, high = 0.0, np.inf
    held = None
    for _ in range(TRIALS):
        new, g = loss_and_gradient(U, V, A + t * d)
        if not new <= f + ARMIJO * t * slope:
            high = t
        else:
            held = (t, new, g)
            if np.vdot(g, d) >= WOLFE * slope:
                return held
            low = t
        t = 0.5 * (low + high) if high < np.inf else 2.0 * t
    return held


def mapped(U: Array, V: Array, A: Array) -> tuple[Array, Array]:
    """(U A, V A^-T), the columns of both scaled to equal norms."""
    left, right = U @ A, V @ np.linalg.inv(A).T
    return balance(left, right)


def balance(U: Array, V: Array) -> tuple[Array, Array]:
    """The same product with ||U_k|| = ||V_k|| in every column k; a pair with a zero column becomes zero."""
    a, b = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    root = np.sqrt(a * b)
    left = np.divide(root, a, out=np.zeros_like(a), where=a > 0)
    right = np.divide(root, b, out=np.zeros_like(b), where=b > 0)
    return U * left, V * right
