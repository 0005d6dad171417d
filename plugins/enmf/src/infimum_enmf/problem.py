"""The family `nmf`: a nonnegative matrix and a rank; points are pairs of nonnegative factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le

from infimum import arrays
from infimum.errors import InputError
from infimum.problem import Cadence, PointMetric, Problem, Term
from infimum_enmf import recipes
from infimum_enmf.checks import check_word, checked_matrix, checked_rank
from infimum_enmf.diagnostics import kkt_residual
from infimum_enmf.matrix import Array, Matrix
from infimum_enmf.svd import Truncated, truncated

Start = Literal["random", "exterior"]
KKT_EVERY = 10
"""Two products with X: as much as a round of HALS."""


class Fit(Matrix):
    """The term of the family: X with its products, as capabilities that are counted."""

    capabilities = frozenset({"times", "adjoint", "decompose"})

    def decompose(self, rank: int) -> Truncated:
        """The truncated SVD."""
        return truncated(self, rank)

    def __repr__(self) -> str:
        return f"Fit({self.shape[0]} x {self.shape[1]}, {self.dtype}{', sparse' if self.sparse else ''})"


class NMF(Problem):
    """Minimize ||X - U V^T||_F over U >= 0 (m, r) and V >= 0 (n, r).

    Points are `{"U": (m, r), "V": (n, r)}`. `value` is the relative error ||X - U V^T|| / ||X||, so `target(0.01)`
    means one percent; `residual` is the KKT residual (`kkt_residual`), taken every 10 iterations.

    Parameters
    ----------
    X : array, SciPy sparse matrix, nested sequence or mapping, (m, n)
        The matrix, or where it is: `{"file": X.npy}`, `{"file": X.csv}`, `{"file": X.npz, "key": name}`. Entries >= 0.
        float32 stays float32, all else becomes float64; sparse matrices are held as CSR.
    rank : int
        1 to min(m, n).
    start : {"random", "exterior"}, default "random"
        The start of solvers: uniform numbers of the size of X's, or everything of the exterior method but its descent,
        for any solver of the family.
    name : str, default ""
        What plans and results call it.

    Raises
    ------
    InputError
        For negative entries (says how many and where), NaN or inf, an all-zero X, a rank that does not fit.

    Examples
    --------
    >>> import infimum, numpy as np
    >>> from infimum_enmf import NMF
    >>> problem = NMF(np.outer([1.0, 2.0, 3.0], [4.0, 0.0, 1.0]) + np.eye(3), rank=2)
    >>> result = infimum.solve(problem, solver="enmf.exterior", stopping="max_iter(200) | residual(1e-8)", seed=0)
    >>> result.x["U"].shape, bool(result.x["U"].min() >= 0)
    ((3, 2), True)
    """

    family = "nmf"
    examples: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"X": [[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 1.0], [2.0, 0.5, 1.0, 0.0], [1.0, 1.0, 1.0, 2.0]], "rank": 2},
    )

    def __init__(self, X: Any, rank: Annotated[int, Ge(1)], *, start: Start = "random", name: str = "") -> None:
        self.fit = Fit(checked_matrix(recipes.from_file(X) if isinstance(X, Mapping) else X))
        self.rank = checked_rank(rank, self.fit.shape)
        check_word("start", start, ("random", "exterior"))
        self.begin, self.name = start, name

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term("fit", self.fit),)

    @property
    def merit(self) -> str:
        return "value"

    @property
    def recorded(self) -> tuple[str, ...]:
        return ("residual",)

    def start(self, rng: np.random.Generator) -> dict[str, Array]:
        m, n = self.fit.shape
        if self.begin == "exterior":
            from infimum_enmf.stages import exterior_start

            U, V = exterior_start(self.fit.X, self.rank)
            return {"U": U, "V": V}
        size = math.sqrt(2.0 * self.fit.norm / math.sqrt(m * n * self.rank))
        return {"U": size * rng.random((m, self.rank)), "V": size * rng.random((n, self.rank))}

    def prepare(self, start: Any) -> dict[str, Array]:
        if not isinstance(start, Mapping) or set(start) != {"U", "V"}:
            raise InputError(f"x0: expected {{'U': (m, r), 'V': (n, r)}}, got {type(start).__name__}")
        m, n = self.fit.shape
        out = {}
        for key, rows in (("U", m), ("V", n)):
            one = arrays.to_numpy(arrays.as_data(start[key], f"x0['{key}']", remedy="a start must be finite"))
            if one.shape != (rows, self.rank):
                raise InputError(f"x0['{key}'] has shape {one.shape}; expected {(rows, self.rank)}")
            if one.min() < 0.0:
                raise InputError(f"x0['{key}'] has negative entries; expected entries >= 0: clip it first")
            out[key] = np.array(one, dtype=self.fit.dtype)
        if not (out["U"].any() or out["V"].any()):
            raise InputError("x0 is all zero, a stationary point that no solver leaves; expected a positive entry")
        return out

    def copy(self, point: Any) -> Any:
        return {key: one.copy() for key, one in point.items()}

    def dimension(self, term: Term | None = None) -> int:
        return sum(self.fit.shape) * self.rank

    def error(self, point: Any) -> float:
        """||X - U V^T|| / ||X||."""
        return self.fit.error(point["U"], point["V"]) / self.fit.norm

    def metrics(self, point: Any) -> dict[str, PointMetric]:
        return {
            "value": lambda at, _: self.error(at),
            "residual": Cadence(lambda at, _: kkt_residual(self.fit, at["U"], at["V"]), KKT_EVERY),
            "rel_change": lambda at, before: _change(at, before, True),
            "abs_change": lambda at, before: _change(at, before, False),
        }

    def square(self, point: Any) -> float:
        return float(sum(np.vdot(one, one) for one in point.values()))

    def size(self, point: Any) -> float:
        return math.sqrt(sum(arrays.norm(one) ** 2 for one in point.values()))

    def describe(self, point: Any = None) -> str:
        m, n = self.fit.shape
        return f"{self.name or 'NMF'} ({m} x {n}, rank {self.rank}, {self.fit.dtype})"

    def composite(self) -> Any:
        """The same as a `Composite` of blocks U and V for the host's solvers: half the squared error over two orthants.

        Returns
        -------
        infimum.Composite
            Its gradient has no Lipschitz constant: take a solver with a line search.
        """
        from infimum_enmf.blocks import as_composite

        return as_composite(self)


def _change(point: Any, before: Any, relative: bool) -> float | None:
    if before is None:
        return None
    change = math.sqrt(sum(arrays.norm(point[key] - before[key]) ** 2 for key in point))
    return change / max(1.0, math.sqrt(sum(arrays.norm(one) ** 2 for one in point.values()))) if relative else change


def synthetic(
    m: Annotated[int, Ge(1)] = 500,
    n: Annotated[int, Ge(1)] = 500,
    rank: Annotated[int, Ge(1)] = 60,
    snr: float = 40.0,
    seed: Annotated[int, Ge(0)] = 1,
    start: Start = "random",
) -> NMF:
    """|W H + N|, W and H uniform on [0, 1], N Gaussian.

    Parameters
    ----------
    m, n, rank : int
        Size of X, and of the factorization. Defaults 500, 500, 60: the case at which the method is at its best.
    snr : float, default 40
        Decibels of W H over N.
    seed : int, default 1
        Of the random numbers.
    start : {"random", "exterior"}, default "random"
        Where solvers begin: uniform numbers, or the exterior method without its descent.
    """
    return NMF(recipes.low_rank(m, n, rank, snr, seed), rank, start=start, name=f"|WH + N| at {snr:g} dB")


def separable(
    m: Annotated[int, Ge(1)] = 500,
    n: Annotated[int, Ge(1)] = 400,
    rank: Annotated[int, Ge(1)] = 50,
    sparsity: Annotated[float, Ge(0.0), Le(0.95)] = 0.1,
    seed: Annotated[int, Ge(0)] = 0,
    start: Start = "random",
) -> NMF:
    """X = [I; M] V^T exactly, entries of M and V uniform on [0, 1], or zero with probability `sparsity`.

    Parameters
    ----------
    m, n, rank : int
        Defaults 500, 400, 50.
    sparsity : float, default 0.1
        Probability of a zero.
    seed : int, default 0
        Of the random numbers.
    start : {"random", "exterior"}, default "random"
        Where solvers begin: uniform numbers, or the exterior method without its descent.
    """
    return NMF(
        recipes.separable(m, n, rank, sparsity, seed)[0], rank, start=start, name=f"separable, {sparsity:g} zeros"
    )


def digits(rank: Annotated[int, Ge(1)] = 16, start: Start = "random") -> NMF:
    """The 1797 digits of scikit-learn, 8 x 8 pixels: columns of V are parts of digits.

    Parameters
    ----------
    rank : int, default 16
        Number of parts.
    start : {"random", "exterior"}, default "random"
        Where solvers begin: uniform numbers, or the exterior method without its descent.
    """
    return NMF(recipes.digits(), rank, start=start, name="digits")


def china(rank: Annotated[int, Ge(1)] = 16, start: Start = "random") -> NMF:
    """The 4240 gray patches of 8 x 8 pixels of scikit-learn's china.jpg.

    Parameters
    ----------
    rank : int, default 16
        Number of parts.
    start : {"random", "exterior"}, default "random"
        Where solvers begin: uniform numbers, or the exterior method without its descent.
    """
    return NMF(recipes.china(), rank, start=start, name="china.jpg patches")
