"""Many kinds of CVXPY problems: values, proxes, projections and optima against CVXPY itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum_cvxpy import from_cvxpy
from infimum_cvxpy.translate import express, restrict

pytestmark = pytest.mark.filterwarnings(  # Of CVXPY's own solves, with which ours are compared.
    "ignore:Solution may be inaccurate", "ignore:You are solving a parameterized problem"
)
RNG = np.random.default_rng(17)
A, b, M = RNG.standard_normal((9, 6)), RNG.standard_normal(9), RNG.standard_normal((4, 3))
S = RNG.standard_normal((4, 4))
SQUARE = S + S.T
TOLERANCES = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
TIGHT: dict[str, Any] = {**TOLERANCES, "solver": "CLARABEL"}


def vector(**attributes: Any) -> cp.Variable:
    return cp.Variable(6, name="x", **attributes)


def minimize(f: Callable[[Any], Any], x: Any = None, constraints: Callable[[Any], list] = lambda x: []) -> cp.Problem:
    x = vector() if x is None else x
    return cp.Problem(cp.Minimize(f(x)), constraints(x))


def two(f: Callable[[Any, Any], Any], constraints: Callable[[Any, Any], list] = lambda L, S: []) -> cp.Problem:
    L, R = cp.Variable((4, 3), name="L"), cp.Variable((4, 3), name="R")
    return cp.Problem(cp.Minimize(f(L, R)), constraints(L, R))


PROBLEMS: dict[str, tuple[Callable[[], cp.Problem], list[str]]] = {
    "a multiple of a sum": (
        lambda: minimize(lambda x: (cp.sum_squares(A @ x - b) + 0.3 * cp.norm1(x)) / 3 - 1),
        ["Sum", "Scaled"],
    ),
    "a maximized multiple of a sum": (
        lambda: cp.Problem(cp.Maximize(3 - 2 * (cp.norm1(x := vector()) - b[:6] @ x + cp.sum_squares(x)))),
        ["Scaled", "Scaled", "Scaled"],
    ),
    "squares in other spellings": (
        lambda: minimize(lambda x: cp.norm(A @ x - b) ** 2 + cp.sum(cp.square(x - 1)) + (x[0] - 2) ** 2),
        ["Scaled", "Scaled", "Scaled"],
    ),
    "a quadratic form and a linear function": (
        lambda: minimize(lambda x: cp.quad_form(x, A.T @ A) + b[:6] @ x, None, lambda x: [cp.sum(x) == 1, x >= 0]),
        ["Quadratic", "Linear", "Affine", "Box"],
    ),
    "weights and shifts": (
        lambda: minimize(lambda x: cp.sum_squares(x / 2 - 1) + cp.norm1(cp.multiply(np.arange(1.0, 7), 1 - x))),
        ["Scaled", "Translated"],
    ),
    "bounds from several places": (
        lambda: minimize(
            lambda x: cp.sum_squares(A @ x - b), vector(bounds=[-0.2, 0.3]), lambda x: [x[:] <= 9, x >= 0]
        ),
        ["Scaled", "CvxSet", "Box"],
    ),
    "a column": (
        lambda: minimize(lambda x: cp.sum_squares(A @ x - b[:, None]) + cp.norm1(x), cp.Variable((6, 1))),
        ["Flat", "L1"],
    ),
    "a matrix": (
        lambda: minimize(
            lambda X: cp.sum_squares(A[:, :4] @ X - A[:, :3]) + cp.sum(cp.multiply(M, X)) + cp.normNuc(X),
            cp.Variable((4, 3)),
        ),
        ["Flat", "Linear", "CvxFunction"],
    ),
    "squares across blocks": (
        lambda: two(lambda L, R: cp.sum_squares(L + 2 * R - M) + cp.normNuc(L) + 0.3 * cp.sum(cp.abs(R))),
        ["Scaled", "CvxFunction", "Scaled"],
    ),
    "equations across blocks": (
        lambda: two(lambda L, R: cp.normNuc(L) + 0.3 * cp.sum(cp.abs(R)), lambda L, R: [L + R == M]),
        ["CvxFunction", "Scaled", "Affine"],
    ),
    "a scalar": (
        lambda: minimize(lambda z: (z - 3) ** 2 + cp.abs(z), cp.Variable(name="z"), lambda z: [z <= 2]),
        ["Scaled", "L1", "Box"],
    ),
    "a semidefinite variable": (
        lambda: minimize(lambda X: cp.sum_squares(X - SQUARE) + cp.trace(X), cp.Variable((4, 4), PSD=True)),
        ["Scaled", "Linear", "PSD"],
    ),
    "a symmetric variable in a cone": (
        lambda: minimize(
            lambda X: cp.sum_squares(X - SQUARE),
            cp.Variable((4, 4), symmetric=True),
            lambda X: [X >> 0, cp.trace(X) == 1],
        ),
        ["Scaled", "PSD", "CvxSet"],
    ),
    "a symmetric variable over another matrix": (
        lambda: minimize(
            lambda X: cp.sum_squares(X - SQUARE), cp.Variable((4, 4), symmetric=True), lambda X: [X >> np.eye(4)]
        ),
        ["Scaled", "CvxSet", "CvxSet"],
    ),
    "a negative semidefinite variable": (
        lambda: minimize(lambda X: cp.sum_squares(X - SQUARE), cp.Variable((4, 4), NSD=True)),
        ["Scaled", "CvxSet"],
    ),
    "an indicator": (
        lambda: minimize(
            lambda x: cp.transforms.indicator([x >= 0, cp.sum(x) == 1]) + 2 * cp.sum_squares(x - b[:6]),
        ),
        ["Scaled", "Box", "Affine"],
    ),
    "complex data": (
        lambda: minimize(lambda x: cp.sum_squares((A + 1j * A[::-1]) @ x - b) + cp.sum_squares(x - 1j) + cp.norm1(x)),
        ["CvxFunction", "CvxFunction", "L1"],
    ),
    "a fraction with its rim at the start": (
        lambda: minimize(lambda x: cp.quad_over_lin(x[:3], x[4]) + cp.sum_squares(x - 1)),
        ["CvxFunction", "Scaled"],
    ),
    "cones of powers and exponentials": (
        lambda: minimize(
            lambda x: cp.sum_squares(x - b[:6]) + cp.norm(x, 3) + cp.log_sum_exp(x),
            None,
            lambda x: [cp.constraints.ExpCone(x[0], x[1], x[2]), cp.norm1(x) <= 4],
        ),
        ["Scaled", "CvxFunction", "CvxFunction", "CvxSet", "CvxSet"],
    ),
    "a scalar in a vector of bounds": (
        lambda: minimize(lambda z: cp.sum_squares(z - b), cp.Variable(1), lambda z: [z <= b + 9]),
        ["Scaled", "CvxSet"],
    ),
    "a constant": (lambda: minimize(lambda x: 5.0, None, lambda x: [cp.norm(x - 1) <= 1]), ["Linear", "CvxSet"]),
    "a multiple of parameters": (
        lambda: minimize(
            lambda x: (
                cp.Parameter(nonneg=True, value=0.7) * (cp.sum_squares(x - cp.Parameter(value=2.0)) + cp.norm1(x))
            ),
        ),
        ["Scaled", "Scaled"],
    ),
}


def nearest(x: cp.Variable, f: Any, sets: list, v: np.ndarray) -> np.ndarray:
    cp.Problem(cp.Minimize(f + 0.5 * cp.sum_squares(x - v)), sets).solve(**TIGHT)
    return np.asarray(x.value)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_keeps_its_values_and_its_optimum(name: str) -> None:
    make, kinds = PROBLEMS[name]
    stated = make()
    problem = from_cvxpy(stated)
    assert [type(term.body).__name__ for term in problem.terms] == kinds
    result = infimum.solve(problem, solver={"use": "cvxpy.solve", "options": TOLERANCES}, seed=0)
    assert result.value == pytest.approx(stated.solve(**TIGHT), abs=1e-6)
    variables = sorted(stated.variables(), key=lambda one: one.id)
    points = [RNG.random(one.shape) + 0.1 for one in variables]
    for one, value in zip(variables, points, strict=True):
        one.save_value(value + value.T if one.is_symmetric() and one.ndim == 2 else value)
    point = {n: v.value for n, v in zip(problem.layout.shapes, variables, strict=True)} if problem.layout else one.value
    if "indicator" not in name:
        assert problem.value(point) == pytest.approx(float(stated.objective.args[0].value), rel=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_term_has_its_prox_and_each_set_its_projection(name: str) -> None:
    problem = from_cvxpy(PROBLEMS[name][0]())
    point = problem.prepare(problem.start(RNG))
    for term in problem.terms:
        view = problem.view(term, point)
        body = problem.embed(view, term) if problem.embeds(term) else view
        v, x = RNG.standard_normal(point.shape), cp.Variable(point.shape)
        if term.role == "constraint":
            np.testing.assert_allclose(body.project(v), nearest(x, 0.0, restrict(body, x), v), atol=2e-5)
        else:
            np.testing.assert_allclose(body.prox(v, 0.4), nearest(x, 0.4 * express(body, x), [], v), atol=2e-5)


@pytest.mark.parametrize("name", ["a column", "a matrix", "squares across blocks", "a scalar"])
def test_gradients_are_those_of_the_values(name: str) -> None:
    problem = from_cvxpy(PROBLEMS[name][0]())
    point = problem.prepare(problem.start(RNG))
    x, d = RNG.standard_normal(point.shape), RNG.standard_normal(point.shape)
    first = problem.terms[0]
    f = problem.embed(problem.view(first, point), first)
    slope = (f.value(x + 1e-6 * d) - f.value(x - 1e-6 * d)) / 2e-6
    assert float(np.sum(f.gradient(x) * d)) == pytest.approx(slope, rel=1e-6)
    assert f.value_and_gradient(x)[0] == pytest.approx(f.value(x))


def test_a_matrix_of_squares_serves_a_gradient_method() -> None:
    stated = PROBLEMS["a column"][0]()
    result = infimum.solve(from_cvxpy(stated), solver="splitting.proximal_gradient", seed=0)
    assert result.x.shape == (6, 1)
    assert result.value == pytest.approx(stated.solve(**TIGHT), abs=1e-6)
    with pytest.raises(InputError, match=r"variable is \(6, 1\), x0 is \(6,\)"):
        infimum.solve(from_cvxpy(stated), np.zeros(6), solver="splitting.proximal_gradient")


def test_bounds_that_leave_no_point_stay_apart() -> None:
    problem = from_cvxpy(minimize(cp.sum_squares, None, lambda x: [x >= 1, x <= 0]))
    assert [term.name for term in problem.terms] == ["quad_over_lin", "bounds", "bounds_2"]
    assert str(infimum.solve(problem, solver="cvxpy.solve", seed=0).status) == "infeasible"


REFUSED: dict[str, tuple[Callable[[], cp.Problem], str]] = {
    "finite set": (lambda: minimize(cp.sum_squares, None, lambda x: [cp.FiniteSet(x, [1, 2])]), "finitely many points"),
    "complex": (lambda: minimize(cp.norm, cp.Variable(3, complex=True)), "is complex"),
    "hermitian": (lambda: minimize(cp.norm, cp.Variable((3, 3), hermitian=True)), "is hermitian"),
    "sparsity": (lambda: minimize(cp.sum_squares, cp.Variable((3, 3), sparsity=[(0,), (1,)])), "attribute 'sparsity'"),
    "copy": (
        lambda: minimize(lambda x: cp.perspective(cp.sum_squares(x), cp.Variable(nonneg=True))),
        "CVXPY cannot copy",
    ),
    "attributes in an addend": (
        lambda: minimize(lambda x: cp.square(cp.norm1(x - 1) + x[0]), vector(nonneg=True)),
        "addend 'power' is convex only together with the attributes",
    ),
    "attributes in a set": (
        lambda: minimize(cp.sum_squares, vector(nonneg=True), lambda x: [cp.square(cp.norm1(x) + x[0]) <= 1]),
        "constraint .* is convex only together with the attributes",
    ),
    "never": (lambda: minimize(cp.sum_squares, None, lambda x: [False]), "has no variables and does not hold"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_place_here_is_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        from_cvxpy(make())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a", "a"]}, "expected different names"),
        ({"names": "ab"}, "expected a sequence of texts"),
        ({"names": 3}, "expected a sequence of texts"),
        ({"constraints": "all"}, "expected 'each' or 'together'"),
        ({"closed_forms": "no"}, "expected True or False"),
        ({"solver": None}, "solver None is not among"),
        ({"solver_options": "abc"}, "expected a mapping of names"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_cvxpy(minimize(lambda x: cp.sum_squares(x - 1) + cp.norm1(x)), **options)
