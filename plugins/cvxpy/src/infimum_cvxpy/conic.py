"""A canonical problem kept inside of Clarabel, solved again and again for another objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from infimum.errors import InputError
from infimum_cvxpy.faces import Faces

TOLERANCE = 1e-10
"""Of gap and feasibility: a prox serves inside of a method that looks at small differences. Clarabel's own is 1e-8."""
LOOSE = 1e-6
"""The same where the solution is only to tell which rows are active."""
_TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
_SOLVED = ("Solved", "AlmostSolved")

Canonical = Callable[[Sequence[np.ndarray], float], Mapping[str, Any]]


class Repeated:
    """`min q^T x + 1/2 x^T P x` with `A x + s = b`, s in a cone.

    Here `q = constant + t slope - (v at the places)`, and P too is affine in t (where f has a quadratic part).

    Where all cones are rays (quadratic programs), the solution is mostly exact up to rounding errors: see `Faces`.

    Parameters
    ----------
    data, twice : mapping
        Of the canonical problem for v = 0 and t = 1 or t = 2, as CVXPY gives it.
    places : array of int
        Where in x the entries of the variables stand.
    options : mapping
        Settings of Clarabel by its own names.

    Raises
    ------
    InputError
        For settings that Clarabel does not know.
    """

    def __init__(
        self, data: Mapping[str, Any], twice: Mapping[str, Any], places: np.ndarray, options: Mapping[str, Any]
    ) -> None:
        q, P = np.asarray(data["c"], dtype=np.float64), _upper(data)
        self._slope, self._places = np.asarray(twice["c"]) - q, places
        self._constant = q - self._slope
        self._bend = _upper(twice).data - P.data
        self._quadratic = P.data - self._bend
        self._upper, self._fixed = P, not self._bend.any()
        A, b, self._cones = sp.csc_matrix(data["A"]), data["b"], cones(data["dims"])
        self._solver = self._made((P, q, A, b), {**dict.fromkeys(_TOLERANCES, TOLERANCE), **options})
        self._faces: Faces | None = None
        self._whole: Any = None
        if A.shape[0] == data["dims"].zero + data["dims"].nonneg:
            self._faces = Faces(A, b, data["dims"].zero)
            self._quick = self._made((P, q, A, b), {**options, **dict.fromkeys(_TOLERANCES, LOOSE)})
            if not any(self._on_trial()):
                self._faces = None

    def _made(self, problem: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """A Clarabel that is set up."""
        import clarabel

        settings = clarabel.DefaultSettings()
        # Presolve and decomposition would rule out new data for a solver that is set up.
        fixed = {"verbose": False, "presolve_enable": False, "chordal_decomposition_enable": False}
        for name, value in {**options, **fixed}.items():
            try:
                setattr(settings, name, value)
            except (AttributeError, TypeError, ValueError, OverflowError) as error:
                raise InputError(f"option {name}={value!r} was refused by Clarabel: {error}") from error
        return clarabel.DefaultSolver(*problem, self._cones, settings)

    @classmethod
    def of(cls, canonical: Canonical, sizes: Sequence[int], options: Mapping[str, Any]) -> Repeated | None:
        """The problem, if only q and P depend on v and t, in the way that this class takes; else None.

        The places of the variables are read off a canonical problem with distinct numbers for v.
        """
        total = sum(sizes)
        marks = np.random.default_rng(0).permutation(total) + 1.0
        zero, ends = np.zeros(total), np.cumsum(sizes)[:-1]
        base = canonical(np.split(zero, ends), 1.0)
        twice, marked = canonical(np.split(zero, ends), 2.0), canonical(np.split(marks, ends), 1.0)
        shift = np.asarray(base["c"]) - np.asarray(marked["c"])
        places = np.flatnonzero(shift)
        if places.size != total or not (_same(base, twice, "Ab") and _same(base, marked, "PAb")):
            return None
        if not (np.array_equal(_upper(base).indices, _upper(twice).indices) and base["P"].nnz == twice["P"].nnz):
            return None
        order = np.argsort(marks)
        found = places[np.argsort(shift[places])][np.argsort(order)]
        if not np.allclose(shift[found], marks) or not _known(base["dims"]):
            return None
        return cls(base, twice, found, options)

    def solve(self, v: np.ndarray, t: float) -> tuple[np.ndarray, str]:
        """The variables for `v`, (n,), and a step `t`, empty where there is no solution; and Clarabel's status."""
        exact = self._exact(v, t)
        if exact is not None:
            return exact[self._places], _SOLVED[0]
        self._solver.update(**self._objective(v, t))
        solution = self._solver.solve()
        status = str(solution.status)
        return np.asarray(solution.x)[self._places if status in _SOLVED else self._places[:0]], status

    def _objective(self, v: np.ndarray, t: float) -> dict[str, np.ndarray]:
        q = self._constant + t * self._slope
        q[self._places] -= v
        return {"q": q} if self._fixed else {"q": q, "P": self._quadratic + t * self._bend}

    def _exact(self, v: np.ndarray, t: float) -> np.ndarray | None:
        """The solution of a quadratic program up to rounding errors; None where its active rows are not clear."""
        if self._faces is None:
            return None
        new, key = self._objective(v, t), 1.0 if self._fixed else t
        if self._whole is None or self._whole[0] != key:
            upper = self._upper.copy()
            upper.data = new.get("P", upper.data)
            self._whole = key, upper + sp.triu(upper, 1).T
        P = self._whole[1]
        found = self._faces.again(P, new["q"], key)
        if found is not None:
            return found
        self._quick.update(**new)
        solution = self._quick.solve()
        if str(solution.status) not in _SOLVED:
            return None
        return self._faces.near(P, new["q"], key, np.asarray(solution.z) > np.asarray(solution.s))

    def _on_trial(self) -> Iterator[bool]:
        """Whether points of several sizes have their solution on a face: never where that leaves some x open."""
        rng = np.random.default_rng(0)
        for size in (1.0, 0.1, 10.0):
            yield self._exact(size * rng.standard_normal(len(self._places)), 1.0) is not None


def _upper(data: Mapping[str, Any]) -> Any:
    """The upper triangle of P, as Clarabel takes it. There always is one: the objective has `1/2 ||u||^2`."""
    return sp.triu(data["P"]).tocsc()


def _same(one: Mapping[str, Any], other: Mapping[str, Any], names: str) -> bool:
    """Whether two canonical problems agree in the matrices and vectors of these names."""

    def equal(a: Any, b: Any) -> bool:
        return bool(a.shape == b.shape and (not min(a.shape) or not abs(a - b).max()))

    return all(equal(one[name], other[name]) for name in names)


def _known(dims: Any) -> bool:
    return not any(len(getattr(dims, name, ()) or ()) for name in ("p3d", "pnd"))


def cones(dims: Any) -> list[Any]:
    """Clarabel's cones, in the order in which CVXPY stacks the rows of A."""
    import clarabel

    out: list[Any] = []
    if dims.zero:
        out.append(clarabel.ZeroConeT(dims.zero))
    if dims.nonneg:
        out.append(clarabel.NonnegativeConeT(dims.nonneg))
    out += [clarabel.SecondOrderConeT(n) for n in dims.soc]
    out += [clarabel.PSDTriangleConeT(n) for n in dims.psd]
    return out + [clarabel.ExponentialConeT() for _ in range(dims.exp)]
