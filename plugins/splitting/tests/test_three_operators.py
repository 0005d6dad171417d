"""Davis–Yin and the proximal point method: identities, certificates, refusals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import infimum
from infimum.constraints import Box, Nonnegative
from infimum.errors import InfimumWarning, InputError
from infimum.functions import L1, LeastSquares, SquaredL2, Zero
from infimum.schedule import Power
from infimum_splitting import DavisYin, DouglasRachford, ProximalGradient, ProximalPoint

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((30, 8)), RNG.standard_normal(30)
START = RNG.standard_normal(8)
LOSS = LeastSquares(A, B, reduction="sum")
RESIDUAL = DavisYin.metrics["residual"].get


def states(solver, parts, steps, start=START):
    out = [solver.init(parts, start, np.random.default_rng(0))]
    for _ in range(steps):
        out.append(solver.step(parts, out[-1]))
    return out


def test_without_a_smooth_term_it_is_douglas_rachford():
    one, two = LOSS, 2.0 * L1()
    ours = states(DavisYin(step=0.05, relaxation=1.3), SimpleNamespace(smooth=Zero(), first=one, second=two), 30)
    theirs = states(DouglasRachford(step=0.05, relaxation=1.3), SimpleNamespace(first=one, second=two), 30)
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(mine.x, other.x, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(mine.z, other.z, rtol=1e-10, atol=1e-13)
        assert RESIDUAL(mine) == pytest.approx(DouglasRachford.metrics["residual"].get(other), rel=1e-9)


def test_with_the_second_prox_alone_it_is_proximal_gradient():
    penalty = 2.0 * L1()
    ours = states(DavisYin(), SimpleNamespace(smooth=LOSS, first=Zero(), second=penalty), 40)
    plain = states(ProximalGradient(), SimpleNamespace(smooth=LOSS, rest=penalty), 40)
    for mine, other in zip(ours[1:], plain[1:], strict=True):
        np.testing.assert_allclose(mine.y, other.x, rtol=1e-10, atol=1e-13)


def test_with_the_first_prox_alone_it_is_proximal_gradient_begun_after_a_prox():
    penalty, t = 2.0 * L1(), 1.0 / LOSS.lipschitz
    ours = states(DavisYin(), SimpleNamespace(smooth=LOSS, first=penalty, second=Zero()), 40)
    parts = SimpleNamespace(smooth=LOSS, rest=penalty)
    plain = states(ProximalGradient(), parts, 39, penalty.prox(START, t))
    for mine, other in zip(ours[1:], plain, strict=True):
        np.testing.assert_allclose(mine.x, other.x, rtol=1e-10, atol=1e-13)


def test_the_residual_is_that_of_the_optimality_condition():
    """With quadratics every subgradient is a gradient: (x - y)/t = grad h(x) + grad f(x) + grad g(y)."""
    a, c = RNG.standard_normal(8), RNG.standard_normal(8)
    f, g = SquaredL2().translate(a), 3.0 * SquaredL2().translate(c)
    for t in (1e-4 / LOSS.lipschitz, 1.0 / LOSS.lipschitz, 1.9 / LOSS.lipschitz):
        for state in states(DavisYin(step=t), SimpleNamespace(smooth=LOSS, first=f, second=g), 40)[1:]:
            left = LOSS.gradient(state.x) + f.gradient(state.x) + g.gradient(state.y)
            apart = float(np.linalg.norm(state.x - state.y))
            assert RESIDUAL(state) == pytest.approx(max(np.linalg.norm(left), apart), rel=1e-6)


def test_a_short_step_does_not_look_converged():
    problem = infimum.Composite(
        {"loss": LOSS, "penalty": 2.0 * L1()}, constraints=[Nonnegative()], start=np.full(8, 5.0)
    )
    result = infimum.solve(problem, solver=DavisYin(step=1e-9), stopping="max_iter(50) | residual(1e-3)")
    assert result.status == "limit"


def test_a_step_of_two_over_l_is_refused_with_the_numbers():
    problem = infimum.Composite({"smooth": 8.0 * SquaredL2(), "penalty": L1()}, start=np.ones(3))
    with pytest.raises(InputError, match=r"davis_yin: step 0\.25 >= 2/L = 0\.25 \(L = 8\).*below that, or 'auto'"):
        infimum.prepare(problem, solver=DavisYin(step=0.25))
    with pytest.raises(InputError, match=r"relaxation 1\.6 >= 2 - t L/2 = 1\.5 \(t = 0\.125, L = 8\)"):
        infimum.prepare(problem, solver=DavisYin(relaxation=1.6))
    result = infimum.solve(problem, solver=DavisYin(step=0.2, relaxation=1.1), stopping="max_iter(500)|residual(1e-9)")
    assert result.success
    np.testing.assert_allclose(result.x, 0.0, atol=1e-8)


@pytest.mark.parametrize("relaxation", [0, 2, -1.0, float("nan")])
def test_a_relaxation_outside_its_range_is_refused(relaxation):
    with pytest.raises(InputError, match=rf"relaxation={relaxation!r}; expected a number above 0 and below 2"):
        DavisYin(relaxation=relaxation)


def test_two_sets_without_a_common_point_never_look_converged():
    sets = {"low": Box(upper=0.0), "high": Box(lower=1.0)}
    smooth = {"loss": SquaredL2()}
    problem = infimum.Composite(smooth, constraints=sets, start=np.full(3, 0.3))
    result = infimum.solve(problem, solver=DavisYin(), stopping="max_iter(3000) | residual(1e-2)")
    assert not result.success


def test_proximal_point_follows_its_closed_form_and_certifies_its_point():
    d, t = np.array([1.0, 4.0]), 0.5
    f = SimpleNamespace(prox=lambda v, s: v / (1 + s * d), lipschitz=None)
    out = states(ProximalPoint(step=t), SimpleNamespace(objective=f), 10, np.array([3.0, -2.0]))
    get = ProximalPoint.metrics["grad_norm"].get
    assert get(out[0]) is None
    for k, state in enumerate(out[1:], 1):
        np.testing.assert_allclose(state.x, np.array([3.0, -2.0]) / (1 + t * d) ** k, rtol=1e-12)
        assert get(state) == pytest.approx(np.linalg.norm(d * state.x), rel=1e-9)


def test_proximal_point_steps():
    for constant, step in ((None, 1.0), (0.0, 1.0), (4.0, 2.5)):
        f = SimpleNamespace(prox=lambda v, t: v, lipschitz=constant)
        assert ProximalPoint().init(SimpleNamespace(objective=f), START, None).t == step
    asked = []
    f = SimpleNamespace(prox=lambda v, t: asked.append(t) or v, lipschitz=None)
    states(ProximalPoint(step=Power(1.0, 1.0)), SimpleNamespace(objective=f), 3)
    assert asked == [1.0, 0.5, pytest.approx(1 / 3)]


def test_proximal_point_projects_on_a_set_and_takes_one_term_only():
    result = infimum.solve(
        infimum.Composite({}, constraints=[Box(0.0, 1.0)], start=np.array([2.0, -1.0])),
        solver=ProximalPoint(),
        stopping="max_iter(5) | grad_norm(1e-12)",
    )
    np.testing.assert_array_equal(result.x, [1.0, 0.0])
    with pytest.raises(infimum.errors.PlanError, match=r"at most 1|no place"):
        infimum.prepare(infimum.Composite({"one": L1(), "two": SquaredL2()}, start=START), solver=ProximalPoint())


def test_the_bound_of_proximal_gradient_is_a_warning_since_schedules_may_fall_below_it():
    problem = infimum.Composite({"loss": LOSS, "penalty": L1()})
    with pytest.warns(InfimumWarning, match="> 2/L ="):
        infimum.prepare(problem, solver=ProximalGradient(step=3.0 / LOSS.lipschitz))
