"""The Stiefel manifold as a constraint: matrices with orthonormal rows or columns, one or a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from infimum.arrays import Array, all_finite, describe, is_complex
from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum_pogo import geometry
from infimum_pogo.checks import LAYOUTS, lies_in_rows

NAME = "pogo.stiefel"


@dataclass(frozen=True)
class Stiefel(Constraint):
    """Matrices with orthonormal rows, `X X^H = I`, or orthonormal columns; a batch of shape (b, p, n) or one (p, n).

    Square real matrices are the orthogonal group, square complex ones the unitary group.

    - `violation`: the largest `||X X^H - I||_F` over the batch; 0 up to rounding, 4 eps p.
    - `project`: the polar factor `U V^H` of each matrix, its nearest point in the set.
    - `tangent`: the orthogonal projection `g - 1/2 (g X^H + X g^H) X`.
    - `step`: from x along the tangent part of d, and back onto the set (`polar(x + tangent(x, d))`) by products of
      matrices, without a factorization unless d is large.

    Parameters
    ----------
    rows : bool or "auto", default True
        True: orthonormal rows, p <= n. False: orthonormal columns, p >= n. "auto": along the shorter side.
    packed : bool, default False
        Points are real arrays of shape (…, p, n, 2) with real and imaginary parts last: complex matrices for solvers
        of real points, and for run files. Their gradient is (df/dRe, df/dIm).
    flatten : bool, default False
        A point of any number of axes is one matrix, with a row for each entry of its first axis: kernels of
        convolutions (out, in, k, k) as out x (in k k).

    Raises
    ------
    InputError
        When a point has fewer than two axes, or more orthonormal rows than entries per row.
    """

    rows: bool | Literal["auto"] = True
    packed: bool = False
    flatten: bool = False

    provides: ClassVar[tuple[str, ...]] = ("violation", "project", "tangent", "step", "matrices", "assemble")
    convex = False
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"rows": False},
        {"rows": "auto"},
        {"packed": True},
        {"flatten": True},
    )

    def __post_init__(self) -> None:
        if self.packed and self.flatten:
            raise InputError(
                f"{NAME}: packed=True and flatten=True do not go together; reshape the point into matrices"
            )
        if not isinstance(self.rows, bool) and self.rows != "auto":
            raise InputError(f"{NAME}: rows={self.rows!r}; expected {LAYOUTS}")

    @property
    def shape(self) -> tuple[int, ...] | None:
        """A shape of points, for those who want to try one."""
        return (4, 2, 3, 2) if self.packed else None

    @property
    def layout(self) -> str:
        """What is orthonormal, as a word that parts hand on: "rows", "columns" or "auto"."""
        return "auto" if self.rows == "auto" else "rows" if self.rows else "columns"

    def matrices(self, x: Array) -> Array:
        """The point as a batch (b, p, n) with orthonormal rows, complex where it is packed; a view where it can be."""
        if self.packed:
            x = to_complex(x)
        elif self.flatten:
            x = x.reshape((int(x.shape[0]), -1))
        wide = x if lies_in_rows(tuple(x.shape), self.rows, NAME) else geometry.on_columns(x)
        return wide.reshape((-1, *wide.shape[-2:]))

    def assemble(self, X: Array, x: Array) -> Array:
        """A batch from `matrices` in the form of the point x."""
        shape = self._form(x)
        if lies_in_rows(shape, self.rows, NAME):
            out = X.reshape(shape)
        else:
            out = geometry.on_columns(X.reshape((*shape[:-2], shape[-1], shape[-2])))
        if self.flatten:
            return out.reshape(tuple(x.shape))
        return to_real(out) if self.packed else out

    def _form(self, x: Array) -> tuple[int, ...]:
        """The shape of the point's matrices."""
        shape = tuple(int(k) for k in x.shape)
        if self.flatten:
            return shape[0], math.prod(shape[1:])
        return shape[:-1] if self.packed else shape

    def violation(self, x: Array) -> float:
        """The largest `||X X^H - I||_F`; 0 up to the rounding of the dtype, `4 eps p`."""
        X = self.matrices(x)
        gap = geometry.largest_gap(X)
        return 0.0 if gap <= geometry.rounding(X) else gap

    def project(self, x: Array) -> Array:
        """The nearest point of the set, by one singular value decomposition per matrix."""
        return self.assemble(geometry.polar(self.matrices(x)), x)

    def tangent(self, x: Array, g: Array) -> Array:
        """`g` projected on the tangent space at x."""
        return self.assemble(geometry.tangent(self.matrices(x), self.matrices(g)), x)

    def step(self, x: Array, d: Array) -> Array:
        """A point of the set: `polar(x + tangent(x, d))`."""
        X = self.matrices(x)
        Z = geometry.tangent(X, self.matrices(d))
        if not all_finite(Z):
            return x * float("nan")
        return self.assemble(geometry.retract(X, Z), x)

    def determinant_signs(self, x: Array) -> Array:
        """Sign of the determinant of each matrix (real and square): no continuous path changes it."""
        return geometry.determinant_signs(self.matrices(x))

    def check(self, x: Array) -> None:
        """Refuse points that are no matrices, or too tall or too wide ones."""
        least = 3 if self.packed else 2
        form = "(…, p, n, 2)" if self.packed else "(p, n) or (b, p, n)"
        if x.ndim < least or (self.packed and x.shape[-1] != 2):
            hint = ""
            if not self.packed and x.ndim == 1:
                hint = f"; reshape the {x.shape[0]} entries into matrices"
            raise InputError(f"{NAME} is a set of matrices {form}, x0 is {tuple(x.shape)}{hint}")
        if self.packed and is_complex(x):
            raise InputError(f"{NAME}: packed points are real, x0 is complex ({describe(x)}); leave packed out")
        lies_in_rows(self._form(x), self.rows, NAME)


def to_complex(x: Array) -> Array:
    """Real and imaginary parts along the last axis as one complex number; shares memory where it can."""
    if isinstance(x, np.ndarray):
        kind = np.complex64 if x.dtype == np.float32 else np.complex128
        return np.ascontiguousarray(x).view(kind)[..., 0]
    import torch

    return torch.view_as_complex(x.contiguous())


def to_real(X: Array) -> Array:
    """Complex numbers as real and imaginary parts along a new last axis; shares memory where it can."""
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)
        return X.view(X.real.dtype).reshape((*X.shape, 2))
    import torch

    return torch.view_as_real(X.contiguous())


def as_batch(X: Array, rows: bool | str, what: str) -> Array:
    """A matrix or a batch of them as (b, p, n) with orthonormal rows; a view."""
    if X.ndim not in (2, 3):
        raise InputError(f"{what} is {tuple(X.shape)}; expected one matrix (p, n) or a batch (b, p, n)")
    wide = X if lies_in_rows(tuple(X.shape), rows, what) else geometry.on_columns(X)
    return wide[None] if wide.ndim == 2 else wide


def as_form(X: Array, like: Array, rows: bool | str, what: str) -> Array:
    """A batch (b, p, n) in the layout of `like`."""
    wide = X if lies_in_rows(tuple(like.shape), rows, what) else geometry.on_columns(X)
    return wide if like.ndim == 3 else wide[0]
