"""Solvers of the splitting plugin: their recursions, what they refuse, and optima against CVXPY."""

from __future__ import annotations

import copy
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import infimum
from infimum.errors import InfimumWarning, InputError
from infimum.exactness import Exactness
from infimum.functions import L1, LeastSquares
from infimum.schedule import Power
from infimum_splitting import DouglasRachford, GradientDescent, ProximalGradient


class Part:
    """A function as a solver sees it, which records what it was asked."""

    lipschitz: float | None = None

    def __init__(self, lipschitz=None, **capabilities):
        self.lipschitz = lipschitz
        self.asked = []
        self._names = set(capabilities)
        for name, call in capabilities.items():
            setattr(self, name, self._recording(name, call))

    def _recording(self, name, call):
        def recorded(*args):
            self.asked.append(name)
            return call(*args)

        return recorded

    def offers(self, name):
        return name in self._names


ZERO = Part(0.0, prox=lambda v, t: v, gradient=np.zeros_like)


def soft(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)


def least_squares(A, b):
    """(1/2)||Ax - b||^2 with everything that a solver may want."""
    gram = A.T @ A
    return Part(
        float(np.linalg.norm(A, 2) ** 2),
        gradient=lambda x: A.T @ (A @ x - b),
        value_and_gradient=lambda x: (0.5 * float((A @ x - b) @ (A @ x - b)), A.T @ (A @ x - b)),
        prox=lambda v, t: np.linalg.solve(np.eye(len(v)) + t * gram, v + t * (A.T @ b)),
    )


def lasso_data(n=30, d=12):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    return A, A @ np.where(np.arange(d) < 3, 2.0, 0.0) + 0.1 * rng.standard_normal(n)


def iterate(solver, parts, x0, steps):
    """The states of iterations 0 to `steps`."""
    solver.check(parts)
    states = [solver.init(parts, x0, np.random.default_rng(0))]
    for _ in range(steps):
        states.append(solver.step(parts, states[-1]))
    return states


# Gradient descent.


def test_gradient_descent_on_a_diagonal_quadratic_follows_its_closed_form():
    d, x0, t = np.array([1.0, 4.0, 10.0]), np.array([1.0, -2.0, 0.5]), 0.15
    parts = SimpleNamespace(smooth=Part(10.0, gradient=lambda x: d * x))
    states = iterate(GradientDescent(step=t), parts, x0, 12)
    for k, state in enumerate(states):
        np.testing.assert_allclose(state.x, (1 - t * d) ** k * x0, rtol=1e-12)
        assert GradientDescent.metrics["grad_norm"].get(state) == pytest.approx(np.linalg.norm(d * state.x))
        assert state.value is None


def test_gradient_descent_records_value_and_gradient_of_the_reported_point():
    part = Part(2.0, value_and_gradient=lambda x: (float(x @ x), 2 * x), gradient=lambda x: 2 * x)
    states = iterate(GradientDescent(step=0.2), SimpleNamespace(smooth=part), np.array([3.0, 4.0]), 5)
    for state in states:
        assert GradientDescent.metrics["value"].get(state) == pytest.approx(float(state.x @ state.x), rel=1e-14)
        np.testing.assert_array_equal(state.gradient, 2 * state.x)
    assert part.asked == ["value_and_gradient"] * 6


def test_gradient_descent_asks_for_the_gradient_alone_where_values_come_apart():
    part = Part(2.0, gradient=lambda x: 2 * x)
    states = iterate(GradientDescent(step=0.2), SimpleNamespace(smooth=part), np.array([3.0, 4.0]), 5)
    assert [GradientDescent.metrics["value"].get(state) for state in states] == [None] * 6
    assert part.asked == ["gradient"] * 6


def test_auto_step_is_one_over_lipschitz_and_one_for_a_linear_function():
    steep = SimpleNamespace(smooth=Part(8.0, gradient=lambda x: 8 * x))
    flat = SimpleNamespace(smooth=Part(0.0, gradient=np.ones_like))
    np.testing.assert_allclose(iterate(GradientDescent(), steep, np.ones(2), 1)[1].x, 0.0)
    np.testing.assert_allclose(iterate(GradientDescent(), flat, np.ones(2), 3)[3].x, -2.0)


@pytest.mark.parametrize("make", [GradientDescent, ProximalGradient])
def test_auto_step_without_a_lipschitz_constant_says_what_to_do(make):
    parts = SimpleNamespace(smooth=Part(None, gradient=lambda x: x), rest=ZERO)
    with pytest.raises(InputError, match=r"no Lipschitz constant .* 'smooth' .*lipschitz=L.* give a number as step"):
        make().check(parts)


@pytest.mark.parametrize("make", [GradientDescent, ProximalGradient, DouglasRachford])
@pytest.mark.parametrize("step", [0, -0.5, math.inf, math.nan, "fast", True])
def test_a_step_that_is_no_positive_number_is_refused(make, step):
    with pytest.raises(InputError, match=rf"splitting\.\w+: step={step!r}; expected a positive finite number"):
        make(step=step)


@pytest.mark.parametrize("make", [GradientDescent, ProximalGradient])
def test_a_step_beyond_the_bound_warns_with_the_numbers(make):
    parts = SimpleNamespace(smooth=Part(64.5, gradient=lambda x: x), rest=ZERO)
    with pytest.warns(InfimumWarning, match=r"step 0\.5 > 2/L = 0\.03101: "):
        make(step=0.5).check(parts)
    with pytest.warns(InfimumWarning, match=r"step 0\.5 > 2/L"):
        make(step=Power(0.5, 0.6)).check(parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(step=2 / 64.5).check(parts)


def test_accelerated_steps_have_the_smaller_bound():
    parts = SimpleNamespace(smooth=Part(4.0, gradient=lambda x: x), rest=ZERO)
    ProximalGradient(step=0.3).check(parts)
    with pytest.warns(InfimumWarning, match=r"step 0\.3 > 1/L = 0\.25: accelerated"):
        ProximalGradient(step=0.3, acceleration=True).check(parts)


def test_options_are_shown_as_they_are_given():
    assert repr(GradientDescent(step=0.5)) == "GradientDescent(step=0.5, backtracking=False)"
    assert repr(DouglasRachford()) == "DouglasRachford(step='auto', relaxation=1.0)"
    assert GradientDescent(step=0.5) == GradientDescent(step=0.5) != GradientDescent()


def test_a_schedule_gives_each_step():
    parts = SimpleNamespace(smooth=Part(1.0, gradient=np.ones_like), rest=ZERO)
    schedule = Power(0.5, 1.0)
    for solver in (GradientDescent(step=schedule), ProximalGradient(step=schedule)):
        states = iterate(solver, parts, np.zeros(1), 4)
        np.testing.assert_allclose([state.x[0] for state in states], -0.5 * np.array([0, 1, 3 / 2, 11 / 6, 25 / 12]))
        assert solver.metrics["grad_norm"].get(states[-1]) == pytest.approx(1.0)


# Proximal gradient.


def test_proximal_gradient_without_a_rest_is_gradient_descent():
    A, b = lasso_data()
    parts = SimpleNamespace(smooth=least_squares(A, b), rest=ZERO)
    ours = iterate(ProximalGradient(), parts, np.zeros(12), 20)
    plain = iterate(GradientDescent(), parts, np.zeros(12), 20)
    np.testing.assert_allclose(ours[-1].x, plain[-1].x, rtol=1e-12)
    assert ProximalGradient.metrics["grad_norm"].get(ours[0]) is None
    assert ProximalGradient.metrics["grad_norm"].get(ours[1]) == pytest.approx(np.linalg.norm(plain[0].gradient))


def textbook_fista(A, b, lam, steps):
    """FISTA as in Beck and Teboulle (2009), section 4: y_1 = x_0, t_1 = 1."""
    L = np.linalg.norm(A, 2) ** 2
    x = y = np.zeros(A.shape[1])
    t = 1.0
    out = []
    for _ in range(steps):
        x_new = soft(y - A.T @ (A @ y - b) / L, lam / L)
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = x_new + (t - 1) / t_new * (x_new - x)
        x, t = x_new, t_new
        out.append(x)
    return out


def test_acceleration_is_the_textbook_recursion():
    A, b = lasso_data()
    parts = SimpleNamespace(smooth=least_squares(A, b), rest=Part(prox=lambda v, t: soft(v, 3.0 * t)))
    states = iterate(ProximalGradient(acceleration=True), parts, np.zeros(12), 40)
    for state, reference in zip(states[1:], textbook_fista(A, b, 3.0, 40), strict=True):
        np.testing.assert_allclose(state.x, reference, rtol=1e-9, atol=1e-12)
    assert parts.smooth.asked == ["gradient"] * 40
    assert parts.rest.asked == ["prox"] * 40


def test_restart_forgets_momentum_that_points_uphill():
    d = np.array([1.0, 1e-3])
    parts = SimpleNamespace(smooth=Part(1.0, gradient=lambda x: d * x), rest=ZERO)
    plain = iterate(ProximalGradient(acceleration=True), parts, np.ones(2), 1000)
    restarted = iterate(ProximalGradient(acceleration=True, restart=True), parts, np.ones(2), 1000)
    assert any(state.theta == 1.0 for state in restarted[2:])
    assert np.linalg.norm(restarted[-1].x) < 1e-3 * np.linalg.norm(plain[-1].x)


def test_restart_needs_acceleration():
    with pytest.raises(InputError, match="restart=True restarts the momentum, but acceleration=False"):
        ProximalGradient(restart=True)


@pytest.mark.parametrize("acceleration", [False, True])
def test_grad_norm_certifies_the_distance_of_the_subdifferential(acceleration):
    A, b = lasso_data()
    lam, f = 3.0, least_squares(A, b)
    parts = SimpleNamespace(smooth=f, rest=Part(prox=lambda v, t: soft(v, lam * t)))
    for state in iterate(ProximalGradient(acceleration=acceleration), parts, np.zeros(12), 60)[1:]:
        slope = f.gradient(state.x)
        rest = np.where(state.x != 0, slope + lam * np.sign(state.x), np.maximum(np.abs(slope) - lam, 0.0))
        certificate = ProximalGradient.metrics["grad_norm"].get(state)
        assert np.linalg.norm(rest) <= certificate * (1 + 1e-9) + 1e-12


def test_only_acceleration_refuses_a_stochastic_prox():
    for slot in (0, 1):
        accepts = [ProximalGradient(acceleration=on).slots()[slot].accepts for on in (False, True)]
        assert accepts == [Exactness.stochastic, Exactness.approximate]


# Douglas–Rachford.


def test_douglas_rachford_reports_x_and_starts_at_the_start():
    A, b = lasso_data()
    lam, t = 3.0, 0.05
    f = least_squares(A, b)
    parts = SimpleNamespace(first=f, second=Part(prox=lambda v, s: soft(v, lam * s)))
    solver, x0 = DouglasRachford(step=t, relaxation=1.5), np.random.default_rng(1).standard_normal(12)
    states = iterate(solver, parts, x0, 8)
    assert solver.solution(states[0]) is x0
    assert DouglasRachford.metrics["residual"].get(states[0]) is None
    z = x0
    for state in states[1:]:
        x = np.linalg.solve(np.eye(12) / t + A.T @ A, z / t + A.T @ b)
        y = soft(2 * x - z, lam * t)
        z = z + 1.5 * (y - x)
        np.testing.assert_allclose(solver.solution(state), x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.z, z, rtol=1e-9, atol=1e-12)
        assert DouglasRachford.metrics["residual"].get(state) == pytest.approx(np.linalg.norm(y - x) / t, rel=1e-9)


def test_the_residual_of_douglas_rachford_does_not_shrink_with_the_step():
    """A short step keeps x and y together and a long one the subgradient small, far from any solution."""
    a, b = np.array([0.0, 0.0]), np.array([3.0, 4.0])
    for step in (1e-9, 1e9):
        parts = SimpleNamespace(
            first=Part(prox=lambda v, t: (v + t * a) / (1 + t)), second=Part(prox=lambda v, t: (v + t * b) / (1 + t))
        )
        state = iterate(DouglasRachford(step=step), parts, np.array([10.0, 10.0]), 1)[-1]
        assert np.linalg.norm(2 * state.x - a - b) > 1
        assert DouglasRachford.metrics["residual"].get(state) > 1


def test_douglas_rachford_auto_step_is_the_declared_curvature_else_one():
    for first, second, step in ((None, None, 1.0), (4.0, None, 0.25), (None, 5.0, 0.2), (0.0, 2.0, 0.5)):
        parts = SimpleNamespace(first=Part(first, prox=soft), second=Part(second, prox=soft))
        assert DouglasRachford().init(parts, np.zeros(1), np.random.default_rng(0)).t == step


@pytest.mark.parametrize("relaxation", [0, 2, -1.0, math.nan])
def test_douglas_rachford_refuses_a_relaxation_outside_its_range(relaxation):
    with pytest.raises(InputError, match=rf"relaxation={relaxation!r}; expected a number above 0 and below 2"):
        DouglasRachford(relaxation=relaxation)


def test_douglas_rachford_finds_a_point_in_two_sets():
    parts = SimpleNamespace(
        first=Part(prox=lambda v, t: np.maximum(v, 0.0)),
        second=Part(prox=lambda v, t: v + (1.0 - v.sum()) / len(v)),
    )
    x = iterate(DouglasRachford(), parts, np.array([5.0, -3.0, 0.2]), 200)[-1].x
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1.0, abs=1e-9)


# All of them.

SOLVERS = [
    GradientDescent(),
    ProximalGradient(),
    ProximalGradient(acceleration=True),
    ProximalGradient(acceleration=True, restart=True),
    DouglasRachford(),
]


def both_parts(target):
    """Half the squared distance to `target` and a tenth of the l1 norm, in any namespace."""
    one = Part(
        1.0,
        gradient=lambda x: x - target,
        prox=lambda v, t: (v + t * target) / (1 + t),
    )
    shrink = Part(prox=lambda v, t: v - v.clip(-0.1 * t, 0.1 * t))
    return SimpleNamespace(smooth=one, first=one, rest=shrink, second=shrink)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_steps_change_nothing_in_place_and_states_survive_a_dump(solver):
    target = np.array([1.0, -2.0, 0.05])
    parts = both_parts(target)
    x0 = np.zeros(3)
    state = solver.init(parts, x0, np.random.default_rng(0))
    for _ in range(5):
        before = copy.deepcopy(solver.dump(state))
        new = solver.step(parts, state)
        for key, value in solver.dump(state).items():
            np.testing.assert_array_equal(value, before[key])
        again = solver.step(parts, solver.load(solver.dump(state), x0))
        np.testing.assert_array_equal(solver.solution(new), solver.solution(again))
        state = new
    np.testing.assert_array_equal(x0, np.zeros(3))


# Through the host.


def lasso():
    A, b = lasso_data()
    return infimum.Composite({"loss": LeastSquares(A, b), "penalty": 0.3 * L1()})


def test_names_and_options_build_the_same_solver():
    options = {"use": "splitting.proximal_gradient", "step": 0.1, "acceleration": True}
    named = infimum.solve(lasso(), solver=options, stopping="max_iter(20)")
    direct = infimum.solve(lasso(), solver=ProximalGradient(step=0.1, acceleration=True), stopping="max_iter(20)")
    np.testing.assert_array_equal(named.x, direct.x)
    with pytest.raises(InputError, match=r"'step': expected a number > 0, 'auto' or a Schedule, got int -1"):
        infimum.solve(lasso(), solver={"use": "splitting.gradient_descent", "step": -1})


def test_the_host_shows_the_step_warning():
    lipschitz = LeastSquares(*lasso_data()).lipschitz
    with pytest.warns(InfimumWarning, match=r"splitting\.proximal_gradient: step .* > 2/L = "):
        infimum.solve(lasso(), solver=ProximalGradient(step=4 / lipschitz), stopping="max_iter(1)")


def test_gradient_descent_hands_its_value_to_the_host():
    A, b = lasso_data()
    result = infimum.solve(LeastSquares(A, b), solver=GradientDescent(), stopping="max_iter(2000) | grad_norm(1e-9)")
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(result.x, expected, atol=1e-7)
    n = result.iterations + 1
    assert result.evaluations == {"objective": {"value": n, "gradient": n}}
    assert result.value == pytest.approx(LeastSquares(A, b).value(expected), abs=1e-12)
