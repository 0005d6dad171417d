"""A canonical problem kept inside of Clarabel, solved again and again for another objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

TOLERANCE = 1e-10
"""Of gap and feasibility: a prox serves inside of a method that looks at small differences. Clarabel's own is 1e-8."""
_SOLVED = ("Solved", "AlmostSolved")

Canonical = Callable[[Sequence[np.ndarray], float], Mapping[str, Any]]


class Repeated:
    """`min q^T x + 1/2 x^T P x` with `A x + s = b`, s in a cone.

    Here `q = constant + t slope - (v at the places)`, and P too is affine in t (where f has a quadratic part).

    Parameters
    ----------
    data, twice : mapping
        Of the canonical problem for v = 0 and t = 1 or t = 2, as CVXPY gives it.
    places : array of int
        Where in x the entries of the variables stand.
    options : mapping
        Settings of Clarabel by its own names.
    """

    def __init__(
        self, data: Mapping[str, Any], twice: Mapping[str, Any], places: np.ndarray, options: Mapping[str, Any]
    ) -> None:
        import clarabel

        settings = clarabel.DefaultSettings()
        chosen = {
            **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE),
            **options,
            # Both would rule out new data for a solver that is set up.
            **{"verbose": False, "presolve_enable": False, "chordal_decomposition_enable": False},
        }
        for name, value in chosen.items():
            setattr(settings, name, value)
        q, P = np.asarray(data["c"], dtype=np.float64), _upper(data)
        self._slope, self._places = np.asarray(twice["c"]) - q, places
        self._constant = q - self._slope
        self._bend = _upper(twice).data - P.data
        self._quadratic = P.data - self._bend
        A = sp.csc_matrix(data["A"])
        self._solver = clarabel.DefaultSolver(P, q, A, data["b"], cones(data["dims"]), settings)

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
        q = self._constant + t * self._slope
        q[self._places] -= v
        if self._bend.any():
            self._solver.update(q=q, P=self._quadratic + t * self._bend)
        else:
            self._solver.update(q=q)
        solution = self._solver.solve()
        status = str(solution.status)
        return np.asarray(solution.x)[self._places if status in _SOLVED else self._places[:0]], status


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
