"""Linear maps: anything with `@` and `.T` (arrays, SciPy sparse and LinearOperator, PyLops, torch)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, inner, is_array, is_complex, is_sparse, like, namespace, norm
from infimum.errors import InputError

LANCZOS_STEPS = 200
LANCZOS_TOLERANCE = 1e-10
SMALL_SIDE = 1024
"""Smaller side up to which the norm of a dense matrix is taken from its Gram matrix."""


class Map:
    """Base of linear maps: what the host asks of one. Subclass it for a map that is no matrix.

    Attributes
    ----------
    shape : (int, int) or None
        `(rows, columns)`; None when it serves any size or is not known.
    """

    shape: tuple[int, int] | None = None

    def forward(self, x: Array) -> Array:
        """`A x`."""
        raise NotImplementedError

    def adjoint(self, y: Array) -> Array:
        """`A^T y`, conjugated for complex maps."""
        raise NotImplementedError

    def rows(self, X: Array) -> Array:
        """`A x` for every point stacked along the first axis of `X`, stacked in the same way."""
        return namespace(X).stack([self.forward(X[i]) for i in range(X.shape[0])])

    def check(self, x: Array) -> None:
        """Raise `InputError` if the map cannot be applied to a point like `x`."""
        if self.shape is not None and (not x.ndim or x.shape[0] != self.shape[1]):
            raise InputError(
                f"the linear map is {self.shape}, x0 is {tuple(x.shape)}; "
                f"expected {self.shape[1]} entries along its first axis"
            )

    def to(self, x: Array) -> Map:
        """The same map with its data in the namespace, dtype and device of `x`."""
        return self

    @property
    def norm(self) -> float:
        """The spectral norm or an upper bound of it."""
        raise NotImplementedError

    @property
    def tight(self) -> float | None:
        """`c > 0` with `A A^T = c I` (a semi-orthogonal map up to scale), or None where that is not so or unknown."""
        return None


class LinearMap(Map):
    """A matrix or linear operator behind `forward`, `adjoint` and `norm`.

    Parameters
    ----------
    operator : object
        Anything with `@`, `.T` (or `.H`) and a two-dimensional `.shape`. Matrices of integers become float64.
    norm : float, optional
        Spectral norm, if known. Otherwise computed once at first use: from the Gram matrix for dense matrices with
        a side of at most 1024, else by Lanczos bidiagonalization from a fixed start (from below, so 1e-6 of it is
        added).
    tight : float, optional
        `c` with `A A^T = c I`, if known. For dense and sparse matrices it is found out; for operators it is not.

    Raises
    ------
    InputError
        If the operator has no `@`, no transpose, is not two-dimensional, is empty or holds NaN or inf, or if a
        declared number is out of range.
    """

    def __init__(self, operator: Any, norm: float | None = None, tight: float | None = None) -> None:
        if isinstance(operator, list | tuple):
            operator = np.asarray(operator)
        shape = getattr(operator, "shape", None)
        if shape is None or len(shape) != 2 or not hasattr(operator, "__matmul__"):
            got = "" if shape is None else f" with shape {tuple(shape)}"
            raise InputError(
                f"a linear map needs `@`, `.T` and a two-dimensional shape, got {type(operator).__name__}{got}; "
                "pass a matrix, a SciPy sparse matrix or a LinearOperator"
            )
        if not hasattr(operator, "T"):
            raise InputError(f"the linear map {type(operator).__name__} has no transpose `.T`")
        for name, number in (("norm", norm), ("tight", tight)):
            if number is not None and not (0 <= number < math.inf):
                raise InputError(f"LinearMap(…, {name}={number}): expected a finite number >= 0")
        if is_array(operator) or is_sparse(operator):
            operator = as_data(operator, "the linear map", real=False)
        self.operator = operator
        self.transposed = _adjoint(operator)
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self._norm = norm
        self._tight = tight
        self._probed = tight is not None

    def __repr__(self) -> str:
        return f"LinearMap{self.shape}"

    def forward(self, x: Array) -> Array:
        """`A @ x`; shape (columns,) or (columns, k) to (rows,) or (rows, k)."""
        return self.operator @ x

    def adjoint(self, y: Array) -> Array:
        """`A.T @ y` (conjugated for complex data); shape (rows,) or (rows, k) to (columns,) or (columns, k)."""
        return self.transposed @ y

    def rows(self, X: Array) -> Array:
        if X.ndim == 2:
            return (self.operator @ X.T).T
        xp, (points, columns, *rest) = namespace(X), X.shape
        wide = xp.reshape(xp.permute_dims(X, (1, 0, *range(2, X.ndim))), (columns, -1))
        image = xp.reshape(self.operator @ wide, (self.shape[0], points, *rest))
        return xp.permute_dims(image, (1, 0, *range(2, X.ndim)))

    def to(self, x: Array) -> LinearMap:
        data = like(self.operator, x)
        kind: type[LinearMap] = LinearMap
        if not (is_array(data) or is_sparse(data)) and isinstance(x, np.ndarray) and not _fits(data, x.dtype):
            kind = _CastMap
        if data is self.operator and kind is type(self) is LinearMap:
            return self
        twin = kind(data, self._norm, self._tight)
        twin._probed = self._probed
        if isinstance(twin, _CastMap):
            twin.dtype = x.dtype
        return twin

    @property
    def norm(self) -> float:
        """Spectral norm, computed once."""
        if self._norm is None:
            self._norm = spectral_norm(self)
        return self._norm

    @property
    def tight(self) -> float | None:
        if not self._probed:
            known = is_array(self.operator) or is_sparse(self.operator)
            self._tight = _probe_tight(self) if known and self.shape[0] <= self.shape[1] else None
            self._probed = True
        return self._tight


class _CastMap(LinearMap):
    """An operator that computes in a precision of its own, behind results in the dtype of the points."""

    dtype: np.dtype

    def forward(self, x: Array) -> Array:
        return (self.operator @ x).astype(self.dtype, copy=False)

    def adjoint(self, y: Array) -> Array:
        return (self.transposed @ y).astype(self.dtype, copy=False)

    def rows(self, X: Array) -> Array:
        return super().rows(X).astype(self.dtype, copy=False)


def _fits(operator: Any, point: np.dtype) -> bool:
    """Whether the results of an operator have the dtype of real points without a cast."""
    own = getattr(operator, "dtype", None)
    return own is None or np.dtype(own).kind != "f" or point.kind != "f" or np.dtype(own).itemsize <= point.itemsize


def _adjoint(operator: Any) -> Any:
    if is_array(operator):
        return namespace(operator).conj(operator.T) if is_complex(operator) else operator.T
    if is_sparse(operator):
        return (operator.conj() if is_complex(operator) else operator).T
    return operator.H if hasattr(operator, "H") else operator.T


class ScaledIdentity(Map):
    """`x -> c x`."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = float(scale)
        if not math.isfinite(self.scale):
            raise InputError(f"a multiple of the identity needs a finite factor, got {scale}")

    def __repr__(self) -> str:
        return "identity" if self.scale == 1.0 else f"{self.scale:g} * identity"

    def forward(self, x: Array) -> Array:
        return x if self.scale == 1.0 else self.scale * x

    def adjoint(self, y: Array) -> Array:
        return self.forward(y)

    def rows(self, X: Array) -> Array:
        return self.forward(X)

    @property
    def norm(self) -> float:
        return abs(self.scale)

    @property
    def tight(self) -> float | None:
        return self.scale**2 if self.scale else None


class Product(Map):
    """`x -> A (B x)`."""

    def __init__(self, outer: Map, inner: Map) -> None:
        self.outer, self.inner = outer, inner
        if outer.shape is not None and inner.shape is not None:
            if outer.shape[1] != inner.shape[0]:
                raise InputError(
                    f"maps of shapes {outer.shape} and {inner.shape} do not compose: the outer takes "
                    f"{outer.shape[1]} entries, the inner gives {inner.shape[0]}"
                )
            self.shape = (outer.shape[0], inner.shape[1])
        elif isinstance(outer, ScaledIdentity):
            self.shape = inner.shape
        elif isinstance(inner, ScaledIdentity):
            self.shape = outer.shape

    def __repr__(self) -> str:
        return f"{self.outer!r} @ {self.inner!r}"

    def forward(self, x: Array) -> Array:
        return self.outer.forward(self.inner.forward(x))

    def adjoint(self, y: Array) -> Array:
        return self.inner.adjoint(self.outer.adjoint(y))

    def rows(self, X: Array) -> Array:
        return self.outer.rows(self.inner.rows(X))

    def check(self, x: Array) -> None:
        self.inner.check(x)

    def to(self, x: Array) -> Product:
        return Product(self.outer.to(x), self.inner.to(x))

    @property
    def norm(self) -> float:
        """An upper bound: the product of the two norms."""
        return self.outer.norm * self.inner.norm

    @property
    def tight(self) -> float | None:
        outer, inner = self.outer.tight, self.inner.tight
        return None if outer is None or inner is None else outer * inner


class BlockMap(Map):
    """A map from named blocks: `{"L": A, "S": B}` stands for `A @ L + B @ S`; a number is a multiple of the identity.

    It becomes a map on the packed vector once the problem's blocks are known (`infimum.functions.blocks.place_map`).
    """

    def __init__(self, maps: Mapping[str, Any]) -> None:
        if not maps:
            raise InputError("a map from blocks needs at least one block: f @ {'name': A}")
        for name, operator in maps.items():
            if isinstance(operator, Mapping | BlockMap):
                raise InputError(f"the map of block '{name}' is itself a map from blocks; give a matrix or a number")
        self.maps: dict[str, Map] = {name: as_map(operator) for name, operator in maps.items()}

    def __repr__(self) -> str:
        return f"BlockMap({', '.join(self.maps)})"

    def forward(self, x: Array) -> Array:
        raise self._unplaced()

    def adjoint(self, y: Array) -> Array:
        raise self._unplaced()

    def rows(self, X: Array) -> Array:
        raise self._unplaced()

    def _unplaced(self) -> InputError:
        return InputError(f"{self!r} maps named blocks: put it in a Composite with blocks={{{', '.join(self.maps)}}}")

    def to(self, x: Array) -> BlockMap:
        return BlockMap({name: one.to(x) for name, one in self.maps.items()})

    @property
    def norm(self) -> float:
        """An upper bound: the root of the sum of squared norms (exact for multiples of the identity)."""
        return math.sqrt(sum(one.norm**2 for one in self.maps.values()))

    @property
    def tight(self) -> float | None:
        parts = [one.tight for one in self.maps.values()]
        return None if any(part is None for part in parts) else float(sum(part for part in parts if part is not None))


def as_map(operator: Any, norm: float | None = None) -> Map:
    """Whatever the user wrote after `@`, as a `Map`."""
    if isinstance(operator, Map):
        return operator
    if isinstance(operator, Mapping):
        return BlockMap(operator)
    if isinstance(operator, Real):
        return ScaledIdentity(float(operator))
    return LinearMap(operator, norm)


def spectral_norm(map_: LinearMap) -> float:
    """Largest singular value of a linear map (see `LinearMap`)."""
    operator, shape = map_.operator, map_.shape
    if is_array(operator) and min(shape) <= SMALL_SIDE:
        xp = namespace(operator)
        # Squares that leave the floating range say nothing; Lanczos takes none.
        if 1e-15 < float(xp.max(xp.abs(operator))) < 1e15:
            gram = operator @ map_.transposed if shape[0] <= shape[1] else map_.transposed @ operator
            return math.sqrt(float(xp.linalg.eigvalsh(gram)[-1]))
    return _lanczos_norm(map_)


def _random(map_: LinearMap, size: int, seed: int) -> Array:
    """A fixed random vector that the operator can be applied to."""
    start = np.random.default_rng(seed).standard_normal(size)
    if is_array(map_.operator):
        return like(start, map_.operator)
    dtype = np.dtype(getattr(map_.operator, "dtype", None) or float)
    return start.astype(dtype if dtype.kind in "fc" else float)


def _lanczos_norm(map_: LinearMap) -> float:
    """Golub-Kahan bidiagonalization; without reorthogonalization, which the largest singular value can do without."""
    v = _random(map_, map_.shape[1], 0)
    v = v / norm(v)
    u, beta, top = None, 0.0, 0.0
    diagonal: list[float] = []
    above: list[float] = []
    for k in range(min(LANCZOS_STEPS, 4 * min(map_.shape) + 1)):
        u = map_.forward(v) if u is None else map_.forward(v) - beta * u
        alpha = norm(u)
        if alpha <= 1e-14 * top:
            break
        u = u / alpha
        w = map_.adjoint(u) - alpha * v
        beta = norm(w)
        diagonal.append(alpha)
        if k % 5 == 4 or beta <= 1e-14 * top:
            previous, top = top, _largest(diagonal, above)
            if beta <= 1e-14 * top or top - previous <= LANCZOS_TOLERANCE * top:
                break
        v = w / beta
        above.append(beta)
    return _largest(diagonal, above) * (1 + 1e-6) if diagonal else 0.0


def _largest(diagonal: list[float], above: list[float]) -> float:
    bidiagonal = np.diag(diagonal) + (np.diag(above[: len(diagonal) - 1], 1) if len(diagonal) > 1 else 0.0)
    return float(np.linalg.svd(bidiagonal, compute_uv=False)[0])


def _probe_tight(map_: LinearMap) -> float | None:
    """Test `A A^T = c I` on two random vectors: for a Gaussian y, ||(A A^T - c I) y|| is of the size of the gap."""
    dtype = map_.operator.dtype
    eps = float((np if isinstance(dtype, np.dtype) else namespace(map_.operator)).finfo(dtype).eps)
    c = None
    for seed in (1, 2):
        y = _random(map_, map_.shape[0], seed)
        with np.errstate(over="ignore", invalid="ignore"):
            image = map_.forward(map_.adjoint(y))
        c = inner(y, image) / inner(y, y) if c is None else c
        if not 0 < c < math.inf or norm(image - c * y) > 50 * eps * math.sqrt(map_.shape[1]) * c * norm(y):
            return None
    assert c is not None
    return float(round(c)) if abs(c - round(c)) <= 10 * eps * c and round(c) else c
