"""Every method of SciPy under the host: optimum, stopping, NaN, counts, bounds, constraints, arrays."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so
from scipy.optimize._minimize import MINIMIZE_METHODS
from scipy.sparse import csr_array

import infimum
from infimum import Composite, InputError, PlanError, Status
from infimum.constraints import Affine, Box, LinearConstraint, NonlinearConstraint
from infimum.functions import Function, LeastSquares, Linear, Quadratic, Residuals
from infimum.plugins.registry import get_registry

METHODS = [f"scipy.{name.replace('-', '_')}" for name in MINIMIZE_METHODS]
BLIND = ["scipy.nelder_mead", "scipy.powell", "scipy.cobyla", "scipy.cobyqa"]
SLOPED = [name for name in METHODS if name not in BLIND]
BOUNDED = [*BLIND, "scipy.l_bfgs_b", "scipy.tnc", "scipy.slsqp", "scipy.trust_constr"]
CONSTRAINED = ["scipy.cobyla", "scipy.cobyqa", "scipy.slsqp", "scipy.trust_constr"]
START = np.array([-1.2, 1.0])


class Watched:
    """Rosenbrock's function with all derivatives; counts its values, remembers them, and may turn NaN or slow."""

    def __init__(self, nan_after: float = np.inf, pause: float = 0.0) -> None:
        self.nan_after, self.pause = nan_after, pause
        self.values: list[float] = []
        self.calls = 0

    def value(self, x: np.ndarray) -> float:
        self.calls += 1
        if self.pause:
            time.sleep(self.pause)
        if self.calls > self.nan_after:
            return float("nan")
        self.values.append(float(so.rosen(x)))
        return self.values[-1]

    @property
    def function(self) -> Function:
        return Function(self.value, gradient=so.rosen_der, hessian=so.rosen_hess, hvp=so.rosen_hess_prod)


def own_options(name: str) -> dict[str, Any]:
    """Of SciPy's own call, for the same run."""
    method, out = name.removeprefix("scipy.").replace("_", "-"), {}
    if name in SLOPED:
        out["jac"] = so.rosen_der
    if method in ("dogleg", "trust-exact"):
        out["hess"] = so.rosen_hess
    elif method in ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"):
        out["hessp"] = so.rosen_hess_prod
    if method == "tnc":
        out["options"] = {"maxfun": 10_000}
    return {"method": method, **out}


def test_every_method_that_scipy_lists_is_registered() -> None:
    registered = {one.name for one in get_registry().components("solver") if one.plugin == "scipy"}
    assert registered == {*METHODS, "scipy.least_squares", "scipy.lsq_linear", "scipy.linprog"}


def test_options_are_those_of_scipy() -> None:
    """Each documented option of a method is an option here, or belongs to the host, or is a difference step."""
    hosts = {"maxiter", "maxfev", "maxfun", "disp", "return_all", "f_target", "verbose", "iprint", "mesg_num"}
    differences = {"eps", "finite_diff_rel_step", "workers"}
    handed = {"func", "fun", "x0", "args", "jac", "grad", "hess", "hessp", "bounds", "constraints", "callback"}
    modules = {"nelder-mead": "_minimize_neldermead", "powell": "_minimize_powell", "cg": "_minimize_cg"}
    modules |= {"bfgs": "_minimize_bfgs", "newton-cg": "_minimize_newtoncg"}
    import inspect

    from scipy.optimize import _optimize

    for method, name in modules.items():
        theirs = set(inspect.signature(getattr(_optimize, name)).parameters) - {"unknown_options"}
        target = get_registry().find(f"scipy.{method.replace('-', '_')}", "solver").load()
        ours = {one.name for one in dataclasses.fields(target)}
        assert ours == theirs - hosts - differences - handed, method


@pytest.mark.parametrize("name", METHODS)
def test_reaches_the_optimum_with_scipys_own_counts(name: str) -> None:
    if name == "scipy.cobyla":  # crawls along the valley
        result = infimum.solve(lambda x: float((x - 2) @ (x - 2)), START, solver=name, seed=0)
        assert np.allclose(result.x, 2.0, atol=1e-3)
        assert result.status is Status.stalled
        return
    watched, x0 = Watched(), START.copy()
    result = infimum.solve(watched.function, x0, solver=name, seed=0, stopping="max_iter(2000)")
    theirs = so.minimize(so.rosen, START, **own_options(name))
    assert np.array_equal(x0, START)
    assert np.array_equal(result.x, theirs.x)
    assert result.value == so.rosen(result.x)
    assert result.value < 1e-5
    assert result.nfev == watched.calls
    if name == "scipy.powell":  # asks twice for the end of a line search
        assert 0.9 * theirs.nfev < result.nfev <= theirs.nfev
    else:
        assert result.nfev == theirs.nfev
    if "njev" in theirs:
        assert result.njev == theirs.njev
    assert result.status is (Status.stalled if name in BLIND else Status.converged), result.message
    assert theirs.message.strip() in result.message
    assert result.trace is not None
    assert result.trace["value"][0] == so.rosen(START)


@pytest.mark.parametrize("nan_after", [8, 30])
@pytest.mark.parametrize("name", METHODS)
def test_nan_ends_the_run_at_once_and_keeps_the_best_point(name: str, nan_after: int) -> None:
    watched = Watched(nan_after)
    # Far away in ten dimensions every method is busy for longer; dogleg needs a positive definite Hessian all along.
    start, given = np.tile([4.0, -3.0], 5), {}
    if name == "scipy.dogleg":
        start, given = START, {"initial_trust_radius": 1e-3, "max_trust_radius": 2e-3}
    result = infimum.solve(watched.function, start, solver={"use": name, **given}, seed=0)
    assert result.status is Status.nonfinite
    assert watched.calls == watched.nan_after + 1
    assert result.best_value == min(watched.values)
    assert so.rosen(result.best_x) == result.best_value
    assert np.isfinite(result.value)
    assert "'objective' returned NaN" in result.message


@pytest.mark.parametrize("name", SLOPED)
def test_nan_in_a_gradient_ends_the_run(name: str) -> None:
    calls = []

    def gradient(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return so.rosen_der(x) if len(calls) < 4 else np.array([np.nan, 0.0])

    f = Function(so.rosen, gradient=gradient, hessian=so.rosen_hess, hvp=so.rosen_hess_prod)
    result = infimum.solve(f, START, solver=name, seed=0)
    assert result.status is Status.nonfinite
    assert len(calls) == 4


@pytest.mark.parametrize("name", METHODS)
def test_every_rule_ends_every_method(name: str) -> None:
    def run(stopping: str, **options: Any) -> Any:
        watched = Watched(**options)
        return infimum.solve(watched.function, START, solver=name, seed=0, stopping=stopping)

    by_iteration = run("max_iter(2)")
    assert (by_iteration.status, by_iteration.iterations) == (Status.limit, 2)
    assert run("max_iter(0)").nfev == 1
    by_calls = run("max_calls(7)")
    assert (by_calls.status, by_calls.nfev) == (Status.limit, 7)
    by_target = run("target(4.2) | max_iter(200)")
    assert by_target.status is Status.target_reached
    assert by_target.value <= 4.2
    began = time.perf_counter()
    by_time = run("max_time(0.05)", pause=0.02)
    assert by_time.status is Status.limit
    assert time.perf_counter() - began < 2.0
    assert by_time.nfev <= 5


@pytest.mark.parametrize("name", METHODS)
def test_a_callback_stops_every_method(name: str) -> None:
    seen: list[np.ndarray] = []

    def tell(progress: Any) -> None:
        seen.append(np.array(progress.point))
        if progress.iteration == 3:
            raise StopIteration

    result = infimum.solve(Watched().function, START, solver=name, seed=0, callback=tell)
    assert (result.status, result.iterations) == (Status.interrupted, 3)
    assert np.array_equal(seen[0], START)
    assert np.array_equal(seen[-1], result.x)


@pytest.mark.parametrize("name", METHODS)
def test_errors_of_the_function_come_through(name: str) -> None:
    calls = []

    def value(x: np.ndarray) -> float:
        calls.append(x)
        if len(calls) > 5:
            raise ZeroDivisionError("no such point")
        return float(so.rosen(x))

    f = Function(value, gradient=so.rosen_der, hessian=so.rosen_hess, hvp=so.rosen_hess_prod)
    result = infimum.solve(f, START, solver=name, seed=0)
    assert result.status is Status.failed
    assert isinstance(result.error, ZeroDivisionError)
    assert len(calls) == 6


@pytest.mark.parametrize("name", METHODS)
def test_bounds_are_respected_or_refused(name: str) -> None:
    points: list[np.ndarray] = []
    target = np.array([2.0, -1.0, 3.0])

    def value(x: np.ndarray) -> float:
        points.append(np.array(x))
        return float((x - target) @ (x - target))

    f = Function(value, gradient=lambda x: 2 * (x - target), hessian=lambda x: 2 * np.eye(3), hvp=lambda x, v: 2 * v)
    given = {"solver": name, "bounds": so.Bounds([0.0, 0.0, -np.inf], 1.0), "seed": 0}
    if name not in BOUNDED:
        with pytest.raises(PlanError, match="constraint"):
            infimum.solve(f, np.full(3, 0.5), **given)
        return
    result = infimum.solve(f, np.full(3, 0.5), **given)
    assert np.allclose(result.x, [1.0, 0.0, 1.0], atol=1e-4)
    assert result.violation is not None
    assert result.violation <= 1e-8
    if name not in ("scipy.trust_constr", "scipy.cobyla"):  # these leave the bounds on the way
        assert all((one <= 1 + 1e-12).all() and (one[:2] >= -1e-12).all() for one in points)
    assert result.status is (Status.stalled if name in BLIND else Status.converged)


@pytest.mark.parametrize("name", BOUNDED)
def test_a_start_outside_of_the_bounds_is_moved_with_a_word(name: str) -> None:
    f = Function(lambda x: float(x @ x), gradient=lambda x: 2 * x)
    result = infimum.solve(f, np.full(2, 5.0), solver=name, bounds=[(1, 2), (None, 3)], seed=0, stopping="max_iter(0)")
    assert np.array_equal(result.x, [2.0, 3.0])
    assert any("outside of the bounds" in note for note in result.notes)


def test_bounds_that_leave_no_point_are_refused() -> None:
    problem = Composite(Function(lambda x: float(x @ x)), constraints=[Box(upper=0.0), Box(lower=1.0)])
    with pytest.raises(InputError, match="leave no point: lower 1 > upper 0"):
        infimum.solve(problem, np.zeros(2), solver="scipy.powell")


def hs071() -> Composite:
    f = Function(
        lambda x: float(x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]),
        gradient=lambda x: np.array(
            [x[3] * (2 * x[0] + x[1] + x[2]), x[0] * x[3], x[0] * x[3] + 1, x[0] * (x[0] + x[1] + x[2])]
        ),
    )
    product = NonlinearConstraint(lambda x: float(np.prod(x)), lower=25.0, jacobian=lambda x: np.prod(x) / x)
    sphere = NonlinearConstraint(lambda x: float(x @ x), lower=40.0, upper=40.0, jacobian=lambda x: 2 * x)
    return Composite(f, constraints={"box": Box(1.0, 5.0), "product": product, "sphere": sphere})


@pytest.mark.parametrize("name", CONSTRAINED)
def test_hs071(name: str) -> None:
    result = infimum.solve(hs071(), np.array([1.0, 5.0, 5.0, 1.0]), solver=name, seed=0, feasibility_tol=1e-6)
    assert abs(result.best_value - 17.0140173) < 1e-4
    assert np.allclose(result.x, [1.0, 4.7429994, 3.8211503, 1.3794082], atol=1e-3)
    assert result.violation is not None
    assert result.violation < 1e-6
    assert result.status is (Status.stalled if name in BLIND else Status.converged)
    assert result.evaluations["sphere"]["residual"] > 1


@pytest.mark.parametrize("name", [one for one in METHODS if one not in CONSTRAINED])
def test_general_constraints_are_refused_elsewhere(name: str) -> None:
    f = Function(so.rosen, gradient=so.rosen_der, hessian=so.rosen_hess, hvp=so.rosen_hess_prod)
    disk = NonlinearConstraint(lambda x: float(x @ x), upper=1.0, jacobian=lambda x: 2 * x)
    with pytest.raises(PlanError, match="constraint 'disk'"):
        infimum.solve(Composite(f, constraints={"disk": disk}), START, solver=name)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_linear_constraints(name: str, form: Callable[..., Any]) -> None:
    f = Quadratic(np.diag([1.0, 2.0, 3.0]), np.array([-2.0, 1.0, -9.0]))
    sets = [Affine(form(np.ones((1, 3))), np.array([1.0])), LinearConstraint(form([[1.0, -1.0, 0.0]]), upper=0.2)]
    result = infimum.solve(Composite(f, constraints=sets), np.zeros(3), solver=name, seed=0)
    assert np.allclose(result.x, [-0.6266667, -0.8266667, 2.4533333], atol=2e-3)
    assert result.violation is not None
    assert result.violation < 1e-8


@pytest.mark.parametrize("name", ["scipy.slsqp", "scipy.trust_constr"])
def test_a_constraint_without_a_jacobian_is_refused_where_it_is_needed(name: str) -> None:
    disk = NonlinearConstraint(lambda x: float(x @ x), upper=1.0)
    f = Function(so.rosen, gradient=so.rosen_der)
    with pytest.raises(PlanError, match="jacobian"):
        infimum.solve(Composite(f, constraints={"disk": disk}), START, solver=name)


@pytest.mark.parametrize("name", ["scipy.newton_cg", "scipy.trust_ncg", "scipy.trust_krylov"])
def test_products_follow_from_the_hessian_where_only_that_is_there(name: str) -> None:
    f = Function(so.rosen, gradient=so.rosen_der, hessian=so.rosen_hess)
    result = infimum.solve(f, START, solver=name, seed=0)
    assert result.status is Status.converged
    assert result.evaluations["objective"]["hessian"] <= result.iterations + 1
    with pytest.raises(PlanError, match="hvp"):
        infimum.solve(Function(so.rosen, gradient=so.rosen_der), START, solver=name)


@pytest.mark.parametrize("name", ["scipy.l_bfgs_b", "scipy.bfgs", "scipy.slsqp", "scipy.trust_constr"])
def test_a_pair_is_evaluated_once_a_point(name: str) -> None:
    points = []

    def pair(x: np.ndarray) -> tuple[float, np.ndarray]:
        points.append(tuple(x))
        return float(so.rosen(x)), so.rosen_der(x)

    result = infimum.solve(pair, START, jac=True, solver=name, seed=0)
    assert result.status is Status.converged
    assert len(points) == len(set(points)) == result.nfev


CASES: dict[str, Function] = {
    "linear": Function(lambda x: float(x.sum()), gradient=np.ones_like),
    "concave": Function(lambda x: -float(x @ x), gradient=lambda x: -2 * x),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [*BLIND, "scipy.bfgs", "scipy.l_bfgs_b", "scipy.tnc", "scipy.slsqp"])
def test_small_steps_on_an_unbounded_function_never_converge(name: str, case: str) -> None:
    rule = "max_iter(200) | max_calls(1000)"
    result = infimum.solve(CASES[case], np.array([0.3, -0.2]), solver=name, seed=0, stopping=rule)
    assert result.status not in (Status.converged, Status.target_reached)


def test_a_small_change_far_from_a_minimum_is_stalled() -> None:
    f = Function(lambda x: float(1e12 + x.sum()), gradient=np.ones_like)
    result = infimum.solve(f, np.zeros(2), solver={"use": "scipy.l_bfgs_b", "ftol": 1e-3}, seed=0)
    assert result.status is Status.stalled
    assert "gradient 1 is 1e+00 of that at the start > 0.001" in result.message


def test_scipys_tolerances_are_options() -> None:
    loose, tight = (
        infimum.solve(Watched().function, START, solver={"use": "scipy.bfgs", "gtol": gtol}, stopping="max_iter(500)")
        for gtol in (1e-1, 1e-7)
    )
    assert loose.iterations < tight.iterations


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bfgs", {"maxiter": 3}, "no option 'maxiter'"),
        ("bfgs", {"gtol": -1.0}, "gtol"),
        ("bfgs", {"hess_inv0": [[1.0]]}, r"hess_inv0 is \(1, 1\)"),
        ("cg", {"c1": 0.5}, "0 < c1 < c2 < 1"),
        ("dogleg", {"initial_trust_radius": 5.0, "max_trust_radius": 2.0}, "initial_trust_radius=5"),
        ("nelder_mead", {"initial_simplex": [[0, 1], [1, 0]]}, r"initial_simplex is \(2, 2\)"),
        ("powell", {"direc": [[1, 0, 0]]}, r"direc is \(1, 3\)"),
        ("tnc", {"scale": [1.0]}, r"scale is \(1,\)"),
        ("trust_constr", {"hessian": "exactly"}, "hessian"),
    ],
)
def test_options_are_checked(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        infimum.solve(Watched().function, START, solver={"use": f"scipy.{name}", **options})


@pytest.mark.parametrize("name", METHODS)
def test_repeats_bit_for_bit_and_says_where_it_stops(name: str) -> None:
    runs = [infimum.prepare(Watched().function, START, solver=name, seed=k, stopping="max_iter(5)") for k in (0, 1)]
    first, second = (run.solve() for run in runs)
    assert np.array_equal(first.x, second.x)
    assert "stops evaluation" in first.plan
    assert "resume none" in first.plan
    with pytest.raises(InputError, match="resume = none"):
        runs[0].state_dict()


# Arrays ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scipy.bfgs", "scipy.nelder_mead", "scipy.cobyqa"])
def test_float32_is_converted_both_ways_with_a_word(name: str) -> None:
    dtypes = set()

    def value(x: np.ndarray) -> np.float32:
        dtypes.add(x.dtype)
        return np.float32(((x - 1) ** 2).sum())

    f = Function(value, gradient=lambda x: 2 * (x - 1))
    result = infimum.solve(f, np.zeros(3, np.float32), solver=name, seed=0)
    assert dtypes == {np.dtype(np.float32)}
    assert result.x.dtype == np.float32
    assert np.allclose(result.x, 1.0, atol=1e-2)
    assert any("numpy float32" in note for note in result.notes)


def test_torch_points_are_converted_both_ways_with_a_word() -> None:
    torch = pytest.importorskip("torch")
    f = Function(lambda x: ((x - 1) ** 2).sum(), gradient=lambda x: 2 * (x - 1))
    result = infimum.solve(f, torch.zeros(2, 2), solver="scipy.l_bfgs_b", seed=0)
    assert isinstance(result.x, torch.Tensor)
    assert result.x.dtype == torch.float32
    assert torch.allclose(result.x, torch.ones(2, 2))
    assert any("torch float32" in note for note in result.notes)


def test_points_of_any_shape_and_blocks() -> None:
    matrix = Function(lambda X: float(((X - 1) ** 2).sum()), gradient=lambda X: 2 * (X - 1))
    assert np.allclose(infimum.solve(matrix, np.zeros((2, 3)), solver="scipy.bfgs", seed=0).x, np.ones((2, 3)))
    problem = Composite(
        {"a": matrix, "b": Function(lambda y: float(y @ y), gradient=lambda y: 2 * y)},
        constraints={"c": Box(lower=1.0), "d": Box(upper=0.5)},
        blocks={"X": (2, 2), "y": (3,)},
        on={"a": "X", "b": "y", "c": "y", "d": "X"},
    )
    result = infimum.solve(problem, {"X": np.zeros((2, 2)), "y": np.full(3, 2.0)}, solver="scipy.l_bfgs_b", seed=0)
    assert result.status is Status.converged
    assert np.allclose(result.x["X"], 0.5)
    assert np.allclose(result.x["y"], 1.0)


# As one comes from SciPy ----------------------------------------------------------------------------------------------


def test_familiar_arguments() -> None:
    def f(x: np.ndarray, a: float, b: float) -> float:
        return float(a * (x[0] - 1) ** 2 + b * (x[1] - 2) ** 2)

    def slope(x: np.ndarray, a: float, b: float) -> np.ndarray:
        return np.array([2 * a * (x[0] - 1), 2 * b * (x[1] - 2)])

    theirs = so.minimize(f, np.zeros(2), args=(1.0, 10.0), jac=slope, method="L-BFGS-B", bounds=so.Bounds(-1, 1.5))
    result = infimum.solve(
        f, np.zeros(2), args=(1.0, 10.0), jac=slope, solver="scipy.l_bfgs_b", bounds=so.Bounds([-1, -1], [1.5, 1.5]),
        stopping="max_iter(100)", seed=0,
    )  # fmt: skip
    assert result.success is True
    assert np.array_equal(result.x, theirs.x)
    assert (result.fun, result.nit, result.nfev, result.njev) == (theirs.fun, theirs.nit, theirs.nfev, theirs.njev)
    assert theirs.message in result.message


@pytest.mark.parametrize("name", ["scipy.l_bfgs_b", "scipy.nelder_mead", "scipy.trust_constr"])
def test_maximize_shows_the_users_sense(name: str) -> None:
    result = infimum.solve(
        lambda x: 5.0 - float(x @ x), np.ones(2), jac=lambda x: -2 * x, maximize=True, solver=name, seed=0
    )
    assert abs(result.value - 5.0) < 1e-6
    assert result.best_value >= result.value
    assert result.trace is not None
    assert result.trace["value"][0] == 3.0
    reached = infimum.solve(
        lambda x: 5.0 - float(x @ x), np.ones(2), jac=lambda x: -2 * x, maximize=True, solver=name, seed=0,
        stopping="target(4.5) | max_iter(100)",
    )  # fmt: skip
    assert reached.status is Status.target_reached


# Least squares and linear programs ------------------------------------------------------------------------------------

VALLEY = Residuals(
    lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]), lambda x: np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])
)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares_is_scipys(method: str) -> None:
    spec = {"use": "scipy.least_squares", "method": method}
    result = infimum.solve(VALLEY, START, solver=spec, seed=0, stopping="max_iter(500)")
    theirs = so.least_squares(VALLEY.residual, START, jac=VALLEY.jacobian, method=method)
    assert np.array_equal(result.x, theirs.x)
    assert result.status is Status.converged
    assert result.evaluations["objective"]["residual"] == theirs.nfev
    assert result.evaluations["objective"]["jacobian"] == theirs.njev
    assert infimum.solve(VALLEY, START, solver=spec, stopping="max_iter(2)").iterations == 2
    few = infimum.solve(VALLEY, START, solver=spec, stopping="max_calls(3, of='residual')")
    assert (few.status, few.evaluations["objective"]["residual"]) == (Status.limit, 3)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares_and_nan(method: str) -> None:
    calls = []

    def residual(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return VALLEY.residual(x) * (np.nan if len(calls) > 5 else 1.0)

    spec = {"use": "scipy.least_squares", "method": method}
    f = Function(VALLEY.value, residual=residual, jacobian=VALLEY.jacobian)
    result = infimum.solve(f, START, solver=spec, seed=0)
    assert result.status is Status.nonfinite
    assert len(calls) == 6


def test_least_squares_refuses_a_residual_that_is_not_the_value() -> None:
    f = Function(lambda x: float(x @ x), residual=lambda x: x, jacobian=lambda x: np.eye(2))
    with pytest.raises(InputError, match="minimizes 1/2"):
        infimum.solve(f, np.ones(2), solver="scipy.least_squares")
    with pytest.raises(PlanError, match="residual"):
        infimum.solve(Watched().function, START, solver="scipy.least_squares")


@pytest.mark.parametrize("bounds", [None, [(-0.1, 0.1)] * 3])
@pytest.mark.parametrize("name", ["scipy.least_squares", "scipy.lsq_linear"])
def test_linear_least_squares_of_two_terms(name: str, bounds: Any) -> None:
    rng = np.random.default_rng(0)
    A, b, C, d = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(4, 3)), rng.normal(size=4)
    problem = Composite({"one": LeastSquares(A, b, "sum"), "two": LeastSquares(C, d, "sum")})
    result = infimum.solve(problem, np.zeros(3), solver=name, bounds=bounds, seed=0)
    box = (-np.inf, np.inf) if bounds is None else (-0.1, 0.1)
    expected = so.lsq_linear(np.vstack([A, C]), np.concatenate([b, d]), bounds=box)
    assert np.allclose(result.x, expected.x, atol=1e-6)
    assert abs(result.value - expected.cost) < 1e-9
    assert result.status is Status.converged


def test_sparse_least_squares() -> None:
    from scipy.sparse import random_array

    A = random_array((30, 5), density=0.4, rng=np.random.default_rng(0)).tocsr()
    b = np.ones(30)
    expected = np.linalg.lstsq(A.toarray(), b)[0]
    for name in ("scipy.least_squares", "scipy.lsq_linear"):
        result = infimum.solve(LeastSquares(A, b), np.zeros(5), solver=name, seed=0)
        assert np.allclose(result.x, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["scipy.least_squares", "scipy.lsq_linear"])
def test_scaled_and_translated_squares_are_squares(name: str) -> None:
    A, b = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    f, ridge = 0.5 * LeastSquares(A, b, reduction="sum"), 0.1 * LeastSquares(np.eye(2), np.zeros(2), reduction="sum")
    solved = infimum.solve(Composite({"fit": f, "ridge": ridge.translate([1.0, 0.0])}), solver=name, seed=0)
    expected = np.linalg.solve(0.5 * A.T @ A + 0.1 * np.eye(2), 0.5 * A.T @ b + 0.1 * np.array([1.0, 0.0]))
    assert np.allclose(solved.x, expected, atol=1e-6)


def program(c: Any, *sets: Any) -> Composite:
    return Composite(Linear(np.array(c)), constraints=list(sets))


def test_linear_programs() -> None:
    rows = LinearConstraint(np.array([[1.0, 1.0], [1.0, 3.0]]), upper=np.array([4.0, 6.0]))
    solved = infimum.solve(program([-1.0, -2.0], Box(lower=0.0), rows), solver="scipy.linprog", seed=0)
    assert solved.status is Status.converged
    assert np.allclose(solved.x, [3.0, 1.0])
    assert abs(solved.value + 5.0) < 1e-9
    assert "stops never" in solved.plan
    assert any("one call" in note for note in solved.notes)
    equation = Affine(np.ones((1, 2)), np.array([3.0]))
    assert infimum.solve(program([1.0, 1.0], Box(0.0, 1.0), equation), solver="scipy.linprog").status is (
        Status.infeasible
    )
    assert infimum.solve(program([-1.0, -1.0], Box(lower=0.0)), solver="scipy.linprog").status is Status.diverged


def test_linear_programs_made_of_several_functions() -> None:
    maximal = Composite(Linear(np.array([1.0, 2.0]), 0.5), constraints=[Box(0.0, 1.0)], sense="max")
    solved = infimum.solve(maximal, solver="scipy.linprog", seed=0)
    assert solved.x.tolist() == [1.0, 1.0]
    assert solved.value == pytest.approx(3.5)
    summed = Linear(np.array([1.0, 2.0])) + 2.0 * Linear(np.array([0.0, -3.0]))
    assert infimum.solve(Composite(summed, constraints=Box(0.0, 1.0)), solver="scipy.linprog", seed=0).x.tolist() == [
        0.0,
        1.0,
    ]


@pytest.mark.parametrize("call", [lambda: Linear([]), lambda: Linear([1.0], r=np.inf), lambda: Residuals(1, len)])
def test_new_functions_refuse_bad_data(call: Callable[[], Any]) -> None:
    with pytest.raises(InputError):
        call()


def test_linear_satisfies_the_prox_identities() -> None:
    rng = np.random.default_rng(0)
    f, v = Linear(rng.normal(size=3), 0.5), rng.normal(size=3)
    u = f.prox(v, 0.7)
    assert np.allclose(u + 0.7 * f.gradient(u), v)
    assert np.allclose(f.prox_conjugate(v, 0.3), v - 0.3 * f.prox(v / 0.3, 1 / 0.3))
    assert f.values(np.stack([v, u])).tolist() == pytest.approx([f.value(v), f.value(u)])


# A GPU is refused without one -----------------------------------------------------------------------------------------


def test_a_device_is_refused() -> None:
    torch = pytest.importorskip("torch")
    f = Function(lambda x: (x * x).sum(), gradient=lambda x: 2 * x)
    if not torch.cuda.is_available():
        from infimum_scipy.form import Form

        with pytest.raises(InputError, match="meta"):
            Form(torch.zeros(2, device="meta"), "scipy.bfgs")
        return
    with pytest.raises(InputError, match="cuda"):
        infimum.solve(f, torch.zeros(2, device="cuda"), solver="scipy.bfgs")


@pytest.mark.parametrize("name", METHODS)
def test_an_interrupt_ends_a_method_between_two_evaluations(name: str) -> None:
    watched = Watched()
    run: Any = None

    def value(x: np.ndarray) -> float:
        if watched.calls == 5:
            run.monitor.request = Status.interrupted
        return watched.value(x)

    f = Function(value, gradient=so.rosen_der, hessian=so.rosen_hess, hvp=so.rosen_hess_prod)
    run = infimum.prepare(f, START, solver=name, seed=0)
    assert run.solve().status is Status.interrupted
    assert watched.calls == 6


def test_a_general_constraint_on_a_block_is_refused() -> None:
    disk = NonlinearConstraint(lambda y: float(y @ y), upper=1.0, jacobian=lambda y: 2 * y)
    problem = Composite(
        {"f": Function(lambda x: float(x @ x), gradient=lambda x: 2 * x)},
        constraints={"disk": disk},
        blocks={"x": (2,), "y": (2,)},
        on={"f": "x", "disk": "y"},
    )
    with pytest.raises((InputError, PlanError), match=r"'y'|disk"):
        infimum.solve(problem, np.zeros(4), solver="scipy.slsqp")
