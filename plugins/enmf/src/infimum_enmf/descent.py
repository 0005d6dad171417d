"""Hierarchical alternating least squares, with extrapolation: the polish inside the orthant."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from infimum_enmf.matrix import Array

GROW, GROW_CAP, SHRINK = 1.05, 1.005, 1.5
BETA = 0.5


def sweep(At: Array, XBt: Array, gram: Array, times: int = 1) -> None:
    """`times` passes of exact minimization over the rows of At, one after the other, in place.

    Parameters
    ----------
    At : ndarray, (r, m)
        Transposed factor.
    XBt : ndarray, (r, m)
        (X B)^T for the other factor B.
    gram : ndarray, (r, r)
        B^T B; rows of At whose diagonal entry here is zero stay as they are.
    times : int, default 1
    """
    live = [(k, 1.0 / float(gram[k, k])) for k in range(len(At)) if gram[k, k] > 0.0]
    gain = np.empty_like(At[0])
    for _ in range(times):
        for k, inverse in live:
            np.dot(gram[k], At, out=gain)
            np.subtract(XBt[k], gain, out=gain)
            gain *= inverse
            gain += At[k]
            np.maximum(gain, 0.0, out=At[k])


@dataclass(frozen=True)
class Descent:
    """State of HALS: the last accepted pair and those that the next round starts from, all of them transposed.

    Attributes
    ----------
    Ut, Vt : ndarray, (r, m) and (r, n)
        The accepted pair, of which `error` is the ||X - U V^T||.
    Us, Vs : ndarray
        Results of the sweeps before extrapolation.
    Ve : ndarray
        The extrapolated V.
    error : float
    beta, cap : float
        Weight of the extrapolation and its bound; 0 for none.
    rounds : int
    norm : float
        ||X||_F.
    """

    Ut: Array
    Vt: Array
    Us: Array
    Vs: Array
    Ve: Array
    error: float
    beta: float = BETA
    cap: float = 1.0
    rounds: int = 0
    norm: float = 1.0


def start(data: Any, U: Array, V: Array, *, extrapolate: bool = True, error: float | None = None) -> Descent:
    """From nonnegative U and V, (m, r) and (n, r)."""
    Ut, Vt = np.ascontiguousarray(U.T), np.ascontiguousarray(V.T)
    found = data.error(U, V) if error is None else error
    return Descent(Ut, Vt, Ut, Vt, Vt, found, BETA if extrapolate else 0.0, norm=data.norm)


def advance(data: Any, at: Descent, passes: int) -> Descent:
    """One round: U, extrapolated, then V. A round that does not lower the error is taken back and shortens beta.

    Parameters
    ----------
    data : Matrix
        Or anything with its products.
    at : Descent
    passes : int
        Sweeps over the columns of a factor per product with X, which cost little beside it.
    """
    Un = at.Ut.copy()
    sweep(Un, _rows(data.times(at.Ve.T)), at.Ve @ at.Ve.T, passes)
    Ux = np.maximum(Un + at.beta * (Un - at.Us), 0.0) if at.beta else Un
    XtU = _rows(data.adjoint(Ux.T))
    Vn = at.Ve.copy()
    sweep(Vn, XtU, Ux @ Ux.T, passes)
    error = data.error(Ux.T, Vn.T, XtU=XtU.T)
    if not math.isfinite(error):  # For the caller to see: not a round to be taken back.
        return replace(at, Ut=Ux, Vt=Vn, error=error, rounds=at.rounds + 1)
    if at.beta and not error <= at.error:
        return replace(
            at,
            Us=at.Ut,
            Vs=at.Vt,
            Ve=at.Vt,
            cap=at.beta,
            beta=at.beta / SHRINK if at.beta > 1e-3 else 0.0,
            rounds=at.rounds + 1,
        )
    if not error <= at.error:  # Rounding: an exact sweep cannot do worse.
        return replace(at, rounds=at.rounds + 1)
    Ve = np.maximum(Vn + at.beta * (Vn - at.Vs), 0.0) if at.beta else Vn
    cap = min(1.0, at.cap * GROW_CAP)
    beta = min(cap, at.beta * GROW)
    return replace(at, Ut=Ux, Vt=Vn, Us=Un, Vs=Vn, Ve=Ve, error=error, beta=beta, cap=cap, rounds=at.rounds + 1)


def _rows(product: Array) -> Array:
    return np.ascontiguousarray(product.T)
