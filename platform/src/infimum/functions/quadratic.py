"""Quadratic functions of a vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, inner, is_array, is_sparse, like, namespace, to_numpy
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.functions.factor import Solve, factorize, kept
from infimum.functions.maps import SMALL_SIDE, LinearMap

CURVATURE_TOLERANCE = 1e-10
"""Negative eigenvalues down to this share of ||P|| are taken for rounding."""


class Quadratic(Function):
    """`1/2 x^T P x + q^T x + r` for a vector x.

    Parameters
    ----------
    P : array or SciPy sparse matrix, shape (n, n)
        A symmetric matrix. Not copied: leave it unchanged while the function is in use.
    q : array, shape (n,), optional
        Linear part, 0 by default.
    r : float, default 0
        Constant.
    convex : bool, optional
        Whether P is positive semidefinite, if known. By default it is found out: from the eigenvalues up to n = 1024,
        else by a factorization. Without convexity there is no prox.

    Raises
    ------
    InputError
        If P is not square or not symmetric, shapes do not agree, or the data is empty, complex or holds NaN or inf.

    Notes
    -----
    `prox` solves with a Cholesky factorization of `I + t P` (a sparse LU for sparse P), kept for the last few steps t.
    `strongly_convex` is the smallest eigenvalue of P up to n = 1024 for dense P, else 0.

    Examples
    --------
    >>> import numpy as np
    >>> f = Quadratic(np.diag([1.0, 4.0]), q=[-1.0, 0.0], r=0.5)
    >>> f.value(np.array([1.0, 1.0])), f.lipschitz, f.strongly_convex
    (2.0, 4.0, 1.0)
    """

    provides = ("value", "values", "gradient", "value_and_gradient", "hvp", "hessian", "prox")
    data = ("matrix", "q")
    real = True

    def __init__(self, P: Any, q: Any = None, r: float = 0.0, *, convex: bool | None = None) -> None:
        if hasattr(P, "matvec"):
            raise InputError(
                f"P is a {type(P).__name__}; expected a dense array or a SciPy sparse matrix. With an operator B, "
                "1/2 ||B x||^2 is SquaredL2() @ B"
            )
        P = as_data(P, "P")
        if len(P.shape) != 2 or P.shape[0] != P.shape[1]:
            raise InputError(f"P is {tuple(P.shape)}; expected a square matrix, (n, n)")
        _check_symmetry(P)
        n = int(P.shape[0])
        q = np.zeros(n) if q is None else as_data(q, "q")
        if tuple(q.shape) != (n,):
            raise InputError(f"P is {tuple(P.shape)}, q is {tuple(q.shape)}; expected q of shape ({n},)")
        if not math.isfinite(r):
            raise InputError(f"r is {r}; expected a finite number")
        self.matrix = LinearMap(P)
        self.q = like(q, P if is_array(P) else np.empty(0, P.dtype))
        self.r = float(r)
        self.shape, self.shape_source = (n,), f"P is {tuple(P.shape)}"
        self._factors: dict[float, Solve] = {}
        self._set_curvature(convex)

    def _set_curvature(self, declared: bool | None) -> None:
        P = self.matrix.operator
        if is_array(P) and P.shape[0] <= SMALL_SIDE:
            spectrum = np.linalg.eigvalsh(to_numpy(P).astype(np.float64))
            low, high = float(spectrum[0]), float(max(abs(spectrum[0]), abs(spectrum[-1])))
            self.matrix = LinearMap(P, norm=high)
            self.convex = low >= -CURVATURE_TOLERANCE * high if declared is None else declared
            self.strongly_convex = low if self.convex and low > CURVATURE_TOLERANCE * high else 0.0
        else:
            self.convex = _is_semidefinite(P, self.matrix.norm) if declared is None else declared

    def __getstate__(self) -> dict[str, Any]:
        # A twin in another dtype or process must not inherit factorizations of this matrix.
        return {**self.__dict__, "_factors": {}}

    def __repr__(self) -> str:
        return f"Quadratic({self.shape_source}{'' if self.convex else ', not convex'})"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(self.provides) - (frozenset() if self.convex else {"prox"})

    @property
    def P(self) -> Any:
        """The matrix, (n, n)."""
        return self.matrix.operator

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """The spectral norm of P, computed once, at first use."""
        return self.matrix.norm

    def value(self, x: Array) -> float:
        return inner(x, 0.5 * self.matrix.forward(x) + self.q) + self.r

    def values(self, X: Array) -> Array:
        return namespace(X).sum(X * (0.5 * self.matrix.rows(X) + self.q), axis=1) + self.r

    def gradient(self, x: Array) -> Array:
        return self.matrix.forward(x) + self.q

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        image = self.matrix.forward(x)
        return inner(x, 0.5 * image + self.q) + self.r, image + self.q

    def hvp(self, x: Array, v: Array) -> Array:
        return self.matrix.forward(v)

    def hessian(self, x: Array) -> Array:
        """P itself, sparse where it is; do not change it in place."""
        return self.matrix.operator

    def prox(self, v: Array, t: float) -> Array:
        """`(I + t P)^{-1} (v - t q)`."""
        step = float(t)
        solve = kept(self._factors, step, lambda: factorize(self.matrix.operator, step, "a quadratic: I + t P"))
        return solve(v - step * self.q)


def _check_symmetry(P: Any) -> None:
    gap = abs(P - P.T)
    size, worst = float(abs(P).max()), float(gap.max())
    eps = float((np if isinstance(P.dtype, np.dtype) else namespace(P)).finfo(P.dtype).eps)
    if worst <= 100 * eps * size:
        return
    host = gap.toarray() if is_sparse(gap) else to_numpy(gap)
    i, j = (int(one) for one in np.unravel_index(int(np.argmax(host)), host.shape))
    raise InputError(
        f"P is not symmetric: P[{i}, {j}] is {float(P[i, j]):g}, P[{j}, {i}] is {float(P[j, i]):g}; "
        "pass (P + P.T) / 2, which gives the same function"
    )


def _is_semidefinite(P: Any, size: float) -> bool:
    """Whether `P + tolerance I` has a Cholesky factorization, or positive pivots where P is sparse."""
    if size == 0:
        return True
    shift = CURVATURE_TOLERANCE * size
    if is_sparse(P):
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        symmetric = {"SymmetricMode": True}
        system = (P.astype(np.float64) + shift * eye_array(P.shape[0])).tocsc()
        try:
            factor = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
        except RuntimeError:  # exactly singular
            return False
        # Without row exchanges U holds the pivots of a congruence, whose signs are those of the eigenvalues.
        return bool(np.array_equal(factor.perm_r, factor.perm_c) and np.all(factor.U.diagonal() > 0))
    try:
        np.linalg.cholesky(to_numpy(P).astype(np.float64) + shift * np.eye(P.shape[0]))
    except np.linalg.LinAlgError:
        return False
    return True
