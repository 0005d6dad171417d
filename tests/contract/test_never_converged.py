"""Six problems without a minimum that no installed solver may end as `converged` by small steps alone.

A linear f, -||x||^2, exp(-x), separable logistic regression without a penalty, two sets without a common point, and a
linear program whose dual is unbounded. Every solver of `splitting` and `scipy` that can state a problem runs on it,
with its default options and with options that make its steps, or the changes that it tests, as small as they get.

How exp(-x), and with it the logistic loss, is read: no minimum exists, but the gradient truly tends to zero. A solver
that gets there may say `converged`, since a rule on the gradient (or on a residual, or SciPy's own test of the
gradient) means just that: this gradient is small. What may never say so is a rule on small steps: a `converged` run
must have come to a point whose true gradient is small. On the other four there is nothing to converge to.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, InputError, Status
from infimum.constraints import Affine, Box, LinearConstraint, Nonnegative
from infimum.errors import InfimumError, InfimumWarning
from infimum.functions import LeastSquares, Linear, SquaredL2
from infimum.plugins.registry import get_registry
from infimum.run.run import Run

SOLVERS = [one.name for one in get_registry().components("solver") if one.plugin in ("splitting", "scipy")]
START = np.array([0.3, 0.7])
ROWS = np.array([[1.0, 0.2], [2.0, -0.1], [1.0, -0.1], [1.5, -0.3]])
"""Data of the logistic regression with the labels multiplied in: x = (1, 0) separates it."""

FIRST_ORDER = ("grad_norm(1e-6) | ", "residual(1e-6) | ", "")
SMALL_CHANGES = ("rel_change(1e-9, patience=3) | ", "")
LIMITS = "max_iter(100) | max_calls(500)"
TEMPTING: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("step", "tau"), (1e-12, 1e-18)),
    **dict.fromkeys(("ftol", "xtol", "xrtol", "fatol", "xatol", "tol", "final_tr_radius", "barrier_tol"), (1e-2,)),
    "ratio": (1e-12,),
    "stepmx": (1e-9,),
}
"""Options that make steps short, so short that rounding swallows them, or call a large change of x or f small."""


def whole(value: Any, gradient: Any, hessian: Any, **more: Any) -> Function:
    """A function with all derivatives."""
    return Function(value, gradient=gradient, hessian=hessian, hvp=lambda x, v: hessian(x) @ v, **more)


def falling(x: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(-x, 300.0))


def logistic(z: np.ndarray) -> np.ndarray:
    """`log(1 + exp(-z))`."""
    return np.logaddexp(0.0, -z)


def slope(z: np.ndarray) -> np.ndarray:
    return -0.5 * (1.0 - np.tanh(0.5 * z))


def prox_by_bisection(derivative: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, float], np.ndarray]:
    """The prox of a separable convex function that decreases, from its derivative."""

    def prox(v: np.ndarray, t: float) -> np.ndarray:
        low, high = v, v - t * derivative(v)
        for _ in range(200):
            middle = 0.5 * (low + high)
            right = middle + t * derivative(middle) < v
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        return high

    return prox


def conjugate(prox: Callable[[np.ndarray, float], np.ndarray]) -> Callable[[np.ndarray, float], np.ndarray]:
    return lambda v, s: v - s * prox(v / s, 1.0 / s)


FALLING = prox_by_bisection(lambda x: -falling(x))
LOGISTIC = prox_by_bisection(slope)
C = np.array([1.0, -2.0])
DISJOINT = {"box": Box(1.0, 2.0), "plane": Affine([[1.0, 1.0]], [-1.0])}


def linear() -> Iterator[Composite]:
    f = whole(
        lambda x: float(C @ x), lambda x: C, lambda x: np.zeros((2, 2)), lipschitz=0.0, prox=lambda v, t: v - t * C
    )
    yield Composite(f)
    yield Composite(Linear(C))
    yield Composite({"cost": Linear(C)}, constraints=[Nonnegative()])


def concave() -> Iterator[Composite]:
    yield Composite(whole(lambda x: -float(x @ x), lambda x: -2 * x, lambda x: -2 * np.eye(2), lipschitz=2.0))


def exponential() -> Iterator[Composite]:
    f = whole(
        lambda x: float(falling(x).sum()),
        lambda x: -falling(x),
        lambda x: np.diag(falling(x)),
        residual=lambda x: np.sqrt(2.0 * falling(x)),
        jacobian=lambda x: np.diag(-0.5 * np.sqrt(2.0 * falling(x))),
        prox=FALLING,
        prox_conjugate=conjugate(FALLING),
        convex=True,
        lipschitz=2.0,
    )
    yield Composite(f)


def separable() -> Iterator[Composite]:
    def root(x: np.ndarray) -> np.ndarray:
        return np.sqrt(2.0 * logistic(ROWS @ x))

    f = whole(
        lambda x: float(logistic(ROWS @ x).sum()),
        lambda x: ROWS.T @ slope(ROWS @ x),
        lambda x: ROWS.T @ np.diag(-slope(ROWS @ x) * (1.0 + slope(ROWS @ x))) @ ROWS,
        residual=root,
        jacobian=lambda x: (slope(ROWS @ x) / np.maximum(root(x), 1e-300))[:, None] * ROWS,
        convex=True,
        lipschitz=0.25 * float(np.linalg.norm(ROWS, 2) ** 2),
    )
    yield Composite(f)
    scores = Function(
        lambda z: float(logistic(z).sum()), prox=LOGISTIC, prox_conjugate=conjugate(LOGISTIC), convex=True
    )
    yield Composite(scores @ ROWS, start=START)
    yield Composite(scores @ np.diag([2.0, -2.0]), start=START)


def disjoint() -> Iterator[Composite]:
    yield Composite({"size": SquaredL2()}, constraints=DISJOINT)
    yield Composite({"nothing": Linear(np.zeros(2))}, constraints=DISJOINT)
    yield Composite({"misfit": LeastSquares(np.eye(2), np.ones(2))}, constraints=[Box(upper=-1.0), Box(lower=1.0)])


def program() -> Iterator[Composite]:
    cost = {"cost": Linear(np.ones(2))}
    yield Composite(cost, constraints={"plane": Affine([[1.0, 1.0]], [-1.0]), "orthant": Nonnegative()})
    rows = LinearConstraint([[1.0, 1.0]], upper=-1.0)
    yield Composite(cost, constraints={"rows": rows, "orthant": Nonnegative()})


CASES = {one.__name__: one for one in (linear, concave, exponential, separable, disjoint, program)}
TRUE_GRADIENT = {
    "exponential": lambda x: falling(x),
    "separable": lambda x: ROWS.T @ slope(ROWS @ x),
}


def options(name: str) -> list[dict[str, Any]]:
    """The default ones, and tempting ones one at a time."""
    target = get_registry().find(name, "solver").load()
    known = {"step" if one.name == "step_size" else one.name for one in dataclasses.fields(target)}
    single = [{option: value} for option, values in TEMPTING.items() if option in known for value in values]
    short = [{"initial_trust_radius": 1e-9, "max_trust_radius": 1e-8}] if "max_trust_radius" in known else []
    return [{}, *single, *short]


def prepared(problem: Composite, solver: dict[str, Any]) -> Run | None:
    """A run under the sharpest rules that the solver has metrics for; None where it does not take the problem."""
    for first, change in itertools.product(FIRST_ORDER, SMALL_CHANGES):
        try:
            return infimum.prepare(problem, START, solver=solver, stopping=first + change + LIMITS, seed=0)
        except InfimumError as error:
            if "does not supply" not in str(error):
                return None
    return None


def judge(case: str, result: infimum.Result) -> None:
    assert result.status is not Status.target_reached
    if result.status is Status.converged:
        assert case in TRUE_GRADIENT, result.message
        rules = {reason.rule for reason in result.fired if reason.status is Status.converged}
        assert rules <= {"grad_norm(1e-06)", "residual(1e-06)"}
        gradient = TRUE_GRADIENT[case]
        assert np.linalg.norm(gradient(result.x)) <= 1e-3 * np.linalg.norm(gradient(START)), result.message


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", SOLVERS)
def test_small_steps_are_no_convergence(name: str, case: str) -> None:
    for problem in CASES[case]():
        for given in options(name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InfimumWarning)
                run = prepared(problem, {"use": name, **given})
                if run is None:
                    continue
                try:
                    result = run.solve()
                except InputError as error:  # two boxes without a common point are found before the first step
                    if case == "disjoint" and "leave no point" in str(error):
                        continue
                    raise
                judge(case, result)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_states_one_of_them(name: str) -> None:
    assert any(prepared(problem, {"use": name}) for make in CASES.values() for problem in make())


@pytest.mark.parametrize("case", CASES)
def test_each_of_them_is_stated_by_solvers_of_both_plugins(case: str) -> None:
    able = [name for name in SOLVERS if any(prepared(problem, {"use": name}) for problem in CASES[case]())]
    assert {name.partition(".")[0] for name in able} == {"scipy", "splitting"}
