"""The second-order cone and the cone of positive semidefinite matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from infimum.arrays import Array, all_finite, clip, namespace, norm, zeros_like
from infimum.constraints.base import ConvexSet
from infimum.errors import InputError


@dataclass(frozen=True)
class SecondOrderCone(ConvexSet):
    """`||x[1:]|| <= x[0]` for a vector x: the bound stands first."""

    def project(self, x: Array) -> Array:
        bound, size = float(x[0]), norm(x[1:])
        if size <= bound:
            return 1.0 * x
        if size <= -bound:
            return zeros_like(x)
        half = 0.5 * (size + bound)
        out = (half / size) * x
        out[0] = half
        return out

    def violation(self, x: Array) -> float:
        """Euclidean distance to the set."""
        bound, size = float(x[0]), norm(x[1:])
        if size <= bound:
            return 0.0
        return math.hypot(bound, size) if size <= -bound else (size - bound) / math.sqrt(2.0)

    def check(self, x: Array) -> None:
        super().check(x)
        if x.ndim != 1:
            raise InputError(f"{self!r} is a set of vectors, x0 is {tuple(x.shape)}; expected one axis, bound first")


@dataclass(frozen=True)
class PSD(ConvexSet):
    """Symmetric (Hermitian where complex) matrices x without negative eigenvalues.

    The projection takes one eigendecomposition of `(x + x^T) / 2`. A matrix that holds NaN or inf gives NaN.
    """

    real = False

    def project(self, x: Array) -> Array:
        if not all_finite(x):
            return x * float("nan")
        xp = namespace(x)
        values, vectors = xp.linalg.eigh(0.5 * (x + xp.conj(x.T)))
        half = vectors * clip(values, 0.0, None) ** 0.5
        return half @ xp.conj(half.T)

    def violation(self, x: Array) -> float:
        """Euclidean distance to the set."""
        if not all_finite(x):
            return float("nan")
        xp = namespace(x)
        mirrored = xp.conj(x.T)
        negative = clip(xp.linalg.eigvalsh(0.5 * (x + mirrored)), None, 0.0)
        return math.hypot(norm(negative), 0.5 * norm(x - mirrored))

    def check(self, x: Array) -> None:
        super().check(x)
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise InputError(f"{self!r} is a set of square matrices, x0 is {tuple(x.shape)}; expected (n, n)")
