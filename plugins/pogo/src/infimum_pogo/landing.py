"""How far to land: the polynomial of the defect along the normal direction, and its minimizer."""

from __future__ import annotations

from infimum.arrays import Array, is_complex, namespace
from infimum_pogo.geometry import adjoint

NEWTON = 4
"""Newton steps; with these the minimizer is found to rounding wherever the defect is below about 1/2."""


def coefficients(E: Array) -> tuple[Array, ...]:
    """`c_0 … c_4` of `P(l) = ||(M + l N)(M + l N)^H - I||_F^2 / ||E||_F^2`, and `||E||_F^2`.

    With E = M M^H - I and N = M - M M^H M = -E M, the defect after landing by l is
    `E (1 - 2 l) + E^2 (l^2 - 2 l) + E^3 l^2`.

    Parameters
    ----------
    E : array, shape (..., p, p)
        Hermitian.
    """
    xp = namespace(E)
    square = E @ E
    cube = square @ E

    def inner(A: Array, B: Array) -> Array:
        out = (xp.conj(A) if is_complex(A) else A) * B
        total = xp.sum(out, axis=(-2, -1))
        return xp.real(total) if is_complex(total) else total

    t2, t3, t4, t5, t6 = inner(E, E), inner(E, square), inner(square, square), inner(square, cube), inner(cube, cube)
    safe = xp.where(t2 > 0, t2, xp.ones_like(t2))
    r3, r4, r5, r6 = t3 / safe, t4 / safe, t5 / safe, t6 / safe
    c1, c2 = -4.0 - 4.0 * r3, 4.0 + 10.0 * r3 + 6.0 * r4
    return xp.ones_like(t2), c1, c2, -4.0 * r3 - 8.0 * r4 - 4.0 * r5, r4 + 2.0 * r5 + r6, t2


def best_lambda(E: Array) -> Array:
    """The landing step that leaves the smallest defect, near 1/2.

    The quartic has in general no real root; what serves is its minimizer. It is found by Newton's method from where a
    defect with one eigenvalue would vanish, and kept within [0, 1]; where the defect is at rounding level, or 1/2 is no
    worse, it is 1/2.

    Parameters
    ----------
    E : array, shape (..., p, p)
        `M M^H - I`.

    Returns
    -------
    array, shape (...)
        Real, in [0, 1].
    """
    xp = namespace(E)
    c0, c1, c2, c3, c4, t2 = coefficients(E)
    half = 0.5 * c0
    at = _scalar(-0.25 * c1 - 1.0)
    for _ in range(NEWTON):
        slope = c1 + at * (2.0 * c2 + at * (3.0 * c3 + at * 4.0 * c4))
        bend = 2.0 * c2 + at * (6.0 * c3 + at * 12.0 * c4)
        moved = at - slope / xp.where(bend > 0, bend, c0)
        at = xp.where(bend > 0, xp.clip(moved, 0.0, 1.0), at)

    def value(step: Array) -> Array:
        return c0 + step * (c1 + step * (c2 + step * (c3 + step * c4)))

    rounding = (16.0 * float(xp.finfo(E.dtype).eps)) ** 2 * int(E.shape[-1])
    return xp.where((t2 > rounding) & (value(at) < value(half)), at, half)


def _scalar(e: Array) -> Array:
    """The step after which the defect of a single row, (1 - l e)^2 (1 + e) - 1, is zero."""
    xp = namespace(e)
    e = xp.clip(e, -0.9, None)
    small = xp.abs(e) < 1e-3
    safe = xp.where(small, xp.ones_like(e), e)
    return xp.where(small, 0.5 - 0.375 * e, (1.0 - (1.0 + safe) ** -0.5) / safe)


def land(M: Array, optimal: bool = False) -> Array:
    """`M + l N` with N = M - M M^H M, and l = 1/2 or the best one."""
    gram = M @ adjoint(M)
    if not optimal:
        return 1.5 * M - 0.5 * (gram @ M)
    from infimum_pogo.geometry import identity

    step = best_lambda(gram - identity(M))[..., None, None]
    return (1.0 + step) * M - step * (gram @ M)
