"""Which functions are quadratic, and with what matrix: read from the closed forms of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from infimum.functions import Function, Linear, Quadratic, SquaredL2, Zero
from infimum.functions.algebra import Scaled, Sum, Translated
from infimum.functions.derived import Composed
from infimum.functions.maps import LinearMap, ScaledIdentity


@dataclass(frozen=True, slots=True)
class Form:
    """`1/2 x^T H x + <c, x> + constant`; H is a number (times the identity), a dense or a sparse matrix."""

    H: Any
    c: np.ndarray

    def product(self, x: np.ndarray) -> np.ndarray:
        """`H x`."""
        out: np.ndarray = self.H * x if isinstance(self.H, float) else self.H @ x
        return out

    def dense(self) -> np.ndarray:
        """H as a dense matrix."""
        return as_dense(self.H, self.c.size)

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of H."""
        if isinstance(self.H, float):
            return self.H, self.H
        spectrum = np.linalg.eigvalsh(self.dense())
        return float(spectrum[0]), float(spectrum[-1])


def quadratic_form(function: Function | None, size: int) -> Form | None:
    """H and c of a function that is quadratic by its closed form, else None.

    Parameters
    ----------
    function : Function or None
        None stands for zero. Recognized: `Zero`, `Linear`, `SquaredL2`, `Quadratic`, what offers `linear_system`
        (least squares), and their sums, multiples (negative ones too), translations and compositions with matrices.
    size : int
        Length of x.
    """
    if function is None or isinstance(function, Zero):
        return Form(0.0, np.zeros(size))
    if isinstance(function, SquaredL2):
        return Form(1.0, np.zeros(size))
    if isinstance(function, Linear):
        return Form(0.0, np.array(function.c, dtype=float).reshape(-1))
    if isinstance(function, Quadratic):
        return Form(function.P, np.array(function.q, dtype=float))
    if isinstance(function, Sum | Scaled | Translated):
        return _combined(function, size)
    if isinstance(function, Composed):
        found = _composed(function, size)
        if found is not None:
            return found
    if "linear_system" in function.capabilities:
        A, b = function.linear_system(np.zeros(function.shape or (size,)))
        return Form(_gram(A), -np.asarray(A.T @ b, dtype=float).reshape(-1))
    return None


def _combined(function: Sum | Scaled | Translated, size: int) -> Form | None:
    if isinstance(function, Sum):
        total: Form | None = Form(0.0, np.zeros(size))
        for one in function.functions:
            part = quadratic_form(one, size)
            total = None if part is None or total is None else Form(add(total.H, part.H, size), total.c + part.c)
        return total
    inside = quadratic_form(function.function, size)
    if inside is None:
        return None
    if isinstance(function, Scaled):
        return Form(function.scale * inside.H, function.scale * inside.c)
    shift = (np.zeros(function.shape or size) + function.b).reshape(-1)
    return Form(inside.H, inside.c - inside.product(shift))


def _composed(function: Composed, size: int) -> Form | None:
    map_ = function.map
    if isinstance(map_, ScaledIdentity):
        inside = quadratic_form(function.function, size)
        return None if inside is None else Form(map_.scale**2 * inside.H, map_.scale * inside.c)
    if not isinstance(map_, LinearMap) or not (isinstance(map_.operator, np.ndarray) or sparse.issparse(map_.operator)):
        return None
    inside = quadratic_form(function.function, map_.shape[0])
    if inside is None:
        return None
    A = map_.operator
    H = _gram(A, inside.H) if isinstance(inside.H, float) else A.T @ (inside.H @ A)
    return Form(H, np.asarray(A.T @ inside.c).reshape(-1))


def _gram(A: Any, scale: float = 1.0) -> Any:
    H = scale * (A.T @ A)
    return sparse.csc_array(H) if sparse.issparse(H) else np.asarray(H, dtype=float)


def add(one: Any, other: Any, size: int) -> Any:
    """The sum of two matrices, each a number (times the identity), dense or sparse."""
    if isinstance(one, float) and isinstance(other, float):
        return one + other
    one, other = (_as_matrix(h, size) for h in (one, other))
    if sparse.issparse(one) != sparse.issparse(other):
        one, other = (h.toarray() if sparse.issparse(h) else h for h in (one, other))
    return one + other


def as_dense(h: Any, size: int) -> np.ndarray:
    """A number (times the identity), dense or sparse matrix as a dense one."""
    if isinstance(h, float):
        return h * np.eye(size)
    return np.asarray(h.toarray() if sparse.issparse(h) else h, dtype=float)


def _as_matrix(h: Any, size: int) -> Any:
    return h * sparse.eye_array(size, format="csc") if isinstance(h, float) else h
