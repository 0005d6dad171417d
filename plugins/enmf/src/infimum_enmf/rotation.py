"""The rotation: among the factors (U* R, V* R) with R orthogonal, those with the least negative mass, by ADMM."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from infimum_enmf.matrix import Array

BALANCE, FACTOR = 2.0, 1.1


def shrink(B: Array, t: float) -> Array:
    """The prox of t times the negative mass, sum of max(0, -b)."""
    out: Array = np.maximum(B, np.minimum(B + t, 0.0))
    return out


def nearest_rotation(M: Array) -> Array:
    """The orthogonal R that maximizes tr(R^T M)."""
    A, _, Ct = np.linalg.svd(M)
    out: Array = A @ Ct
    return out


def negative_mass(*factors: Array) -> float:
    """Sum of -x over the negative entries x."""
    return float(sum(-np.minimum(one, 0).sum(dtype=np.float64) for one in factors)) + 0.0


@dataclass(frozen=True)
class Rotation:
    """State of the rotation stage.

    Attributes
    ----------
    R, Y : ndarray, (r, r) and (m + n, r)
        Iterate and multipliers.
    rho : float
    best, least : ndarray, float
        The best rotation seen and its negative mass.
    steps : int
    settled : bool
    history : list of float
        `least` at the last steps, as many as the plateau rule looks back.
    """

    R: Array
    Y: Array
    rho: float
    best: Array
    least: float
    steps: int = 0
    settled: bool = False
    history: list[float] = field(default_factory=list)


def start(W: Array, rho: float) -> Rotation:
    """The identity, with multipliers of one."""
    eye = np.eye(W.shape[1], dtype=W.dtype)
    least = negative_mass(W)
    return Rotation(eye, np.ones_like(W), rho, eye, least, settled=least == 0.0)


def advance(W: Array, at: Rotation, steps: int, tol: float, window: int, plateau: float) -> Rotation:
    """At most `steps` ADMM steps.

    Parameters
    ----------
    W : ndarray, (m + n, r)
        U* over V*.
    at : Rotation
    steps : int
    tol : float
        Settled when the primal or the dual residual is below it.
    window : int
        Settled when the least negative mass fell by less than a share of `plateau` over this many steps; 0: never.
    plateau : float
    """
    R, Y, rho, best, least, history = at.R, at.Y.copy(), at.rho, at.best, at.least, list(at.history)
    done, settled = at.steps, at.settled
    WR = W @ R
    while not settled and done < at.steps + steps:
        Z = shrink(WR - Y / rho, 1.0 / rho)
        dual = rho * float(np.linalg.norm(WR - Z))
        R = nearest_rotation(W.T @ (Z + Y / rho))
        WR = W @ R
        gap = Z - WR
        primal = float(np.linalg.norm(gap))
        Y += rho * gap
        done += 1
        mass = negative_mass(WR)
        if mass < least:
            least, best = mass, R
        if primal > BALANCE * dual:
            rho *= FACTOR
        elif dual > BALANCE * primal:
            rho /= FACTOR
        settled = primal <= tol or dual <= tol or least == 0.0
        if window:
            history.append(least)
            if len(history) > window:
                settled = settled or least >= (1.0 - plateau) * history.pop(0)
    return replace(at, R=R, Y=Y, rho=rho, best=best, least=least, steps=done, settled=settled, history=history)
