"""Quadratic programs with a known solution: under bounds, and without constraints but ill-conditioned."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from infimum.constraints import Box
from infimum.errors import InputError
from infimum.functions import Quadratic
from infimum.problem import Composite


def box_qp(
    n: Annotated[int, Ge(1)] = 50,
    condition: Annotated[float, Ge(1)] = 100.0,
    active: Annotated[float, Ge(0), Le(1)] = 0.4,
    seed: Annotated[int, Ge(0)] = 0,
) -> Composite:
    """A strongly convex quadratic under bounds: minimize `x^T P x / 2 + q^T x` over `-1 <= x <= 1`.

    Nothing is measured; the numbers come from the seed. P has eigenvalues from 1 to `condition`, evenly spaced in the
    logarithm, in random directions. A solution x* and the gradient there are drawn (0 where x* is inside, pointing
    outward at a bound), and q follows from them, so the optimal value is known.

    Parameters
    ----------
    n : int, default 50
        Number of variables.
    condition : float, default 100
        Largest over smallest eigenvalue of P.
    active : float, default 0.4
        Share of the variables that are at a bound in the solution.
    seed : int, default 0
        Of the matrix, the solution and the gradient there.

    Returns
    -------
    Composite
        Term `objective` (gradient, prox) and constraint `box` (project); x has shape (n,).

    Raises
    ------
    InputError
        For a condition below 1, a share outside of 0 to 1, or no variable.
    """
    _check("problems.box_qp", n, condition)
    if not 0 <= active <= 1:
        raise InputError(f"problems.box_qp: active={active!r}; expected a share of the variables, from 0 to 1")
    rng = np.random.default_rng(seed)
    P = _matrix(n, condition, rng)
    x, slope = rng.uniform(-0.9, 0.9, size=n), np.zeros(n)
    at_bound = rng.choice(n, size=round(active * n), replace=False)
    x[at_bound] = rng.choice([-1.0, 1.0], size=len(at_bound))
    slope[at_bound] = -x[at_bound] * rng.uniform(0.1, 1.0, size=len(at_bound))
    objective = Quadratic(P, slope - P @ x, convex=True)
    return Composite(
        {"objective": objective},
        constraints={"box": Box(lower=-1.0, upper=1.0)},
        reference=objective.value(x),
        name="box-constrained quadratic",
    )


def ill_conditioned_quadratic(
    n: Annotated[int, Ge(1)] = 20, condition: Annotated[float, Ge(1)] = 1e4, seed: Annotated[int, Ge(0)] = 0
) -> Composite:
    """A narrow valley: minimize `x^T P x / 2`, whose optimum is 0 at x = 0.

    Nothing is measured; P has eigenvalues from 1 to `condition`, evenly spaced in the logarithm, in random directions.
    The start has the component 1 along each of them.

    Parameters
    ----------
    n : int, default 20
        Number of variables.
    condition : float, default 1e4
        Largest over smallest eigenvalue of P.
    seed : int, default 0
        Of the directions.

    Returns
    -------
    Composite
        Term `objective` (gradient, Hessian, prox); x has shape (n,).

    Raises
    ------
    InputError
        For a condition below 1 or no variable.
    """
    _check("problems.ill_conditioned_quadratic", n, condition)
    rng = np.random.default_rng(seed)
    U = _directions(n, rng)
    P = _symmetric(U, _eigenvalues(n, condition))
    return Composite(
        {"objective": Quadratic(P, convex=True)},
        start=U.sum(axis=1),
        reference=0.0,
        name="ill-conditioned quadratic",
    )


def _check(what: str, n: int, condition: float) -> None:
    if n < 1:
        raise InputError(f"{what}: n={n!r}; expected at least one variable")
    if not 1 <= condition < float("inf"):
        raise InputError(f"{what}: condition={condition!r}; expected a finite number >= 1")


def _matrix(n: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    return _symmetric(_directions(n, rng), _eigenvalues(n, condition))


def _eigenvalues(n: int, condition: float) -> np.ndarray:
    return np.geomspace(1.0, condition, n) if n > 1 else np.ones(1)


def _directions(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def _symmetric(U: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    P: np.ndarray = (U * eigenvalues) @ U.T
    P = 0.5 * (P + P.T)
    return P
