"""The steps of two rivals, on batches (b, p, n), for NumPy and torch: Landing, and Riemannian descent with QR."""

from __future__ import annotations

from typing import Any

from infimum.arrays import Array, namespace
from infimum_pogo.geometry import adjoint, defects, frobenius, relative_gradient, sturdy, tangent


def _each(lr: Any) -> Any:
    return lr[:, None, None] if hasattr(lr, "ndim") and lr.ndim else lr


def landing_step(
    X: Array, D: Array, lr: Any, attraction: float = 1.0, radius: float | None = 0.5
) -> tuple[Array, Array | float]:
    """`X - eta (R + attraction (X X^H - I) X)`, R the relative gradient: one step of Landing.

    With F = R + attraction N the defect after the step is `E - 2 eta a (E + E^2) + eta^2 F F^H`, so with d = ||E|| and
    g = ||F|| it stays within `radius` for eta up to `(a d (1 - d) + sqrt((a d (1 - d))^2 + g^2 (radius - d))) / g^2`,
    which is their safe step size. None takes lr for all.

    Returns
    -------
    array, shape (b, p, n), and the step size of each matrix.

    Source: P. Ablin and G. Peyre, AISTATS 2022; P. Ablin and others, arXiv 2303.16510, for p < n.
    """
    xp = namespace(X)
    E = defects(X)
    F = relative_gradient(X, D) + attraction * (E @ X)
    if radius is not None:
        d, g = frobenius(E), frobenius(F) ** 2
        pull, room = attraction * d * (1.0 - d), xp.clip(radius - d, 0.0, None)
        some = xp.where(g > 0, g, xp.ones_like(g))
        most = (pull + (pull**2 + some * room) ** 0.5) / some
        # Outside of the region no step is safe by that bound; a quarter of the attraction's own limit leads back.
        most = xp.where(d < radius, most, xp.full_like(most, 0.25 / attraction))
        lr = xp.where(most < lr, most, xp.ones_like(most) * lr)
    return X - _each(lr) * F, lr


def riemannian_step(X: Array, D: Array, lr: Any) -> Array:
    """`qf(X - lr P_X(D))`: along the orthogonal projection of D on the tangent space, back by a QR factorization."""
    xp = namespace(X)
    moved = X - _each(lr) * tangent(X, D)
    Q, T = xp.linalg.qr(adjoint(sturdy(moved)))
    corner = xp.linalg.diagonal(T)
    size = xp.abs(corner)
    # The factor with positive diagonal is the one that continues X; LAPACK leaves the phases open.
    phase = xp.where(size > 0, corner, xp.ones_like(corner)) / xp.where(size > 0, size, xp.ones_like(size))
    Q = Q * phase[..., None, :]
    return xp.astype(adjoint(Q), moved.dtype)
