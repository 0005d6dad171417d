"""Orthogonal Procrustes problems, one or thousands at once, real or complex; the solution is known."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.problem.composite import Composite
from infimum_pogo.checks import check_number, check_size, check_word, lies_in_rows
from infimum_pogo.geometry import adjoint, polar
from infimum_pogo.stiefel import Stiefel

NAME = "pogo.procrustes"
Size = Annotated[int, Ge(1)]


class Misfit(Function):
    """`1/2 sum_i ||A_i X_i - B_i||_F^2` over a batch of matrices X_i of shape (p, n).

    Kept as H = A^H A, C = A^H B and ||B||^2, so that an evaluation costs p^2 n however many rows A has.

    Parameters
    ----------
    A : array, shape (b, m, p)
    B : array, shape (b, m, n)
        With complex data points hold real and imaginary parts along a last axis: (b, p, n, 2).
    """

    provides: ClassVar[tuple[str, ...]] = ("value", "gradient", "value_and_gradient")
    data: ClassVar[tuple[str, ...]] = ("H", "C", "offset")
    convex = True

    def __init__(self, A: np.ndarray, B: np.ndarray) -> None:
        self.H, self.C = adjoint(A) @ A, adjoint(A) @ B
        self.offset = 0.5 * np.sum(np.abs(B) ** 2, axis=(-2, -1))
        self.packed = bool(np.iscomplexobj(self.C))
        shape = tuple(int(k) for k in self.C.shape)
        self.shape = (*shape, 2) if self.packed else shape
        self.lipschitz = float(np.linalg.eigvalsh(self.H)[..., -1].max())

    def value(self, x: Array) -> float:
        return self.value_and_gradient(x)[0]

    def gradient(self, x: Array) -> Array:
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        xp = namespace(x)
        X = x[..., 0] + 1j * x[..., 1] if self.packed else x
        image = self.H @ X
        # 1/2 <X, H X> - <X, C>
        inner = (xp.conj(X) if self.packed else X) * (0.5 * image - self.C)
        value = float(xp.sum(xp.real(inner) if self.packed else inner)) + float(xp.sum(self.offset))
        G = image - self.C
        return value, xp.stack([xp.real(G), xp.imag(G)], axis=-1) if self.packed else G


def procrustes(
    batch: Size = 16,
    p: Size = 32,
    n: Size = 48,
    samples: Size | None = None,
    noise: Annotated[float, Ge(0)] = 0.1,
    field: Literal["real", "complex"] = "real",
    group: Literal["all", "rotations"] = "all",
    dtype: Literal["float64", "float32"] = "float64",
    data_seed: int = 0,
) -> Composite:
    """Find the matrices X_i with orthonormal rows that bring A_i X_i nearest to B_i.

    Minimizes `1/2 sum_i ||A_i X_i - B_i||_F^2` over X_i X_i^H = I. The A_i are Gaussian, `B_i = A_i X0_i + noise` with
    hidden X0_i. Since ||A X|| does not depend on X there, the solution is the polar factor of A^H B, and `reference`
    is exact. Square real matrices have two components, determinant +1 and -1: the start lies on that of the solution.

    Parameters
    ----------
    batch : int, default 16
        Number of matrices: 4096 of 4 x 8 or 16384 of 3 x 3 are a matter of seconds.
    p : int, default 32
        Rows of each matrix, at most n.
    n : int, default 48
        Columns of each matrix.
    samples : int, optional
        Rows of A; 2 p by default.
    noise : float, default 0.1
        Standard deviation of the entries of the noise, times 1/sqrt(samples).
    field : {"real", "complex"}, default "real"
        "complex" asks for matrices with orthonormal complex rows, unitary ones for p = n; points then have shape
        (batch, p, n, 2), real and imaginary parts last.
    group : {"all", "rotations"}, default "all"
        "rotations" asks for determinant +1, for real p = n (Wahba's problem for 3 x 3).
    dtype : {"float64", "float32"}, default "float64"
        Of the start, which the solver keeps.
    data_seed : int, default 0
        Of the data and the start.

    Returns
    -------
    Composite
        Term `misfit` (value, gradient), constraint `stiefel`.

    Raises
    ------
    InputError
        For p > n, or rotations that are complex or not square.
    """
    for name, size in (("batch", batch), ("p", p), ("n", n), ("samples", 1 if samples is None else samples)):
        check_size(size, name, NAME)
    lies_in_rows((batch, p, n), True, NAME)
    check_word(field, "field", ("real", "complex"), NAME)
    check_word(group, "group", ("all", "rotations"), NAME)
    check_word(dtype, "dtype", ("float64", "float32"), NAME)
    check_number(noise, "noise", NAME, 0.0, open_low=False)
    if group == "rotations" and (p != n or field == "complex"):
        raise InputError(f"{NAME}: group='rotations' needs real square matrices, got p={p}, n={n}, field={field!r}")
    rng = np.random.default_rng(data_seed)
    m = 2 * p if samples is None else samples
    A = _gaussian(rng, (batch, m, p), field) / np.sqrt(m)
    hidden = polar(_gaussian(rng, (batch, p, n), field))
    if group == "rotations":
        hidden = _rotated(hidden)
    B = A @ hidden + noise / np.sqrt(m) * _gaussian(rng, (batch, m, n), field)
    misfit = Misfit(A, B)
    best = nearest(misfit.C, group)
    start = polar(_gaussian(rng, (batch, p, n), field))
    if p == n and field == "real":
        start = _on_component(start, np.linalg.slogdet(best)[0])
    packed = field == "complex"
    if packed:
        best, start = (np.stack([one.real, one.imag], axis=-1) for one in (best, start))
    return Composite(
        {"misfit": misfit},
        constraints={"stiefel": Stiefel(packed=packed)},
        start=start.astype(dtype),
        reference=misfit.value(best),
        name="Procrustes",
    )


def nearest(C: np.ndarray, group: str = "all") -> np.ndarray:
    """The X_i that maximize Re <X_i, C_i> over orthonormal rows, or over rotations.

    Among rotations the smallest singular direction turns where the polar factor is a reflection (Umeyama, 1991).
    """
    left, _, right = np.linalg.svd(C, full_matrices=False)
    if group == "rotations":
        left[..., -1] *= np.linalg.slogdet(left @ right)[0][..., None]
    best: np.ndarray = left @ right
    return best


def _gaussian(rng: np.random.Generator, shape: tuple[int, ...], field: str) -> np.ndarray:
    real = rng.standard_normal(shape)
    return real if field == "real" else (real + 1j * rng.standard_normal(shape)) / np.sqrt(2.0)


def _on_component(X: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Square matrices with a first row turned where the determinant has the other sign."""
    out = X.copy()
    out[..., 0, :] *= (np.linalg.slogdet(X)[0] * signs)[..., None]
    return out


def _rotated(X: np.ndarray) -> np.ndarray:
    return _on_component(X, np.ones(X.shape[:-2]))
