"""The entry: negative entries walk to zero in equal steps while all others descend by projected block steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from infimum_enmf.matrix import Array, Matrix

ENOUGH = 0.2
"""Row steps of a round end when the projected gradient is below this times its norm at the entry."""


@dataclass(frozen=True)
class Walk:
    """State of the entry.

    Attributes
    ----------
    U, V : ndarray, (m, r) and (n, r)
    step_u, step_v : float
        What a negative entry gains in a round.
    norm_u, norm_v : float
        Norms of the projected gradients at the entry.
    rounds : int
    inside : bool
        Whether no entry is negative any more.
    """

    U: Array
    V: Array
    step_u: float
    step_v: float
    norm_u: float
    norm_v: float
    rounds: int = 0
    inside: bool = False


def start(data: Matrix, U: Array, V: Array, rounds: int) -> Walk:
    """Steps that lead in within `rounds` rounds; with 0 rounds the negative entries are cut off at once."""
    if rounds == 0 or min(U.min(), V.min()) >= 0.0:
        return Walk(np.maximum(U, 0.0), np.maximum(V, 0.0), 0.0, 0.0, 0.0, 0.0, inside=True)
    grad_u = U @ (V.T @ V) - data.times(V)
    grad_v = V @ (U.T @ U) - data.adjoint(U)
    return Walk(
        U,
        V,
        max(0.0, -float(U.min())) / rounds,
        max(0.0, -float(V.min())) / rounds,
        _projected(U, grad_u),
        _projected(V, grad_v),
    )


def advance(data: Matrix, at: Walk, rounds: int, inner: int, limit: int) -> Walk:
    """At most `rounds` rounds, `limit` in all; what rounding leaves negative after those is cut off."""
    U, V, done, inside = at.U, at.V, at.rounds, at.inside
    while not inside and done < at.rounds + rounds:
        V = _block(_walked(V, at.step_v), data.adjoint(U), U.T @ U, inner, ENOUGH * at.norm_v)
        U = _block(_walked(U, at.step_u), data.times(V), V.T @ V, inner, ENOUGH * at.norm_u)
        done += 1
        if done >= limit:
            U, V = np.maximum(U, 0.0), np.maximum(V, 0.0)
        inside = bool(U.min() >= 0.0 and V.min() >= 0.0)
    return replace(at, U=U, V=V, rounds=done, inside=inside)


def _walked(A: Array, step: float) -> Array:
    # Up to zero only: a step beyond it would bring entries in that belong at zero.
    return np.where(A < 0.0, np.minimum(A + step, 0.0), A)


def _block(A: Array, XB: Array, gram: Array, inner: int, enough: float) -> Array:
    """`inner` exact line searches, each for all rows at once, along the projected gradient."""
    for _ in range(inner):
        gradient = A @ gram - XB
        if _projected(A, gradient) <= enough:
            break
        D = np.where(A > 0.0, gradient, 0.0)
        lengths = np.einsum("ij,ij->i", D, D)
        curves = np.einsum("ij,ij->i", D, D @ gram)
        t = np.divide(lengths, curves, out=np.zeros_like(lengths), where=curves > 0.0)
        moved = A - t[:, None] * D
        A = np.where((A >= 0.0) & (moved < 0.0), 0.0, moved)
    return A


def _projected(A: Array, gradient: Array) -> float:
    return float(np.linalg.norm(np.where((A > 0.0) | ((A == 0.0) & (gradient < 0.0)), gradient, 0.0)))
