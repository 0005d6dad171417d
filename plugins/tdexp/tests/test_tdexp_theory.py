"""Schedules and formulas: what they equal, and where they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import infimum
from infimum.errors import InputError
from infimum.schedule import Constant, Schedule
from infimum_tdexp import Doubling, Exponential, Theory, garnet, grid, refresh_chain, theory


@given(st.integers(2, 10**7), st.floats(1e-3, 10), st.floats(0.01, 2))
def test_the_last_step_is_eta0_beta_over_T_and_the_factor_is_constant(T: int, eta0: float, beta: float) -> None:
    steps = Exponential(T, eta0, beta)
    assert isinstance(steps, Schedule)
    assert steps(T - 1) == eta0 * beta / T == steps(T) == steps(10 * T)
    factor = (beta / T) ** (1 / T)
    assert steps(0) == pytest.approx(eta0 * factor, rel=1e-9)
    half = T // 2
    assert steps(half) == pytest.approx(eta0 * factor ** (half + 1), rel=1e-6)


@given(st.integers(2, 20_000))
@settings(max_examples=40, deadline=None)
def test_the_sum_of_the_factors_is_as_large_as_the_proof_needs(T: int) -> None:
    steps = Exponential(T)
    total = math.fsum(steps(k) for k in range(T))
    assert total >= theory.sum_bound(T) * (1 - 1e-12)


def test_doubling_is_one_exponential_after_another() -> None:
    steps = Doubling(first=8, eta0=0.5, beta=2.0)
    rounds = [Exponential(8 << j, 0.5, 2.0)(k) for j in range(4) for k in range(8 << j)]
    assert [steps(k) for k in range(len(rounds))] == rounds


def test_initial_steps_of_the_theorems() -> None:
    assert theory.iid_step(0.9) == pytest.approx(0.0125)
    assert Theory(1000, 0.9).eta0 == theory.iid_step(0.9)
    # Linear in omega; the regularized one knows nothing of it.
    one, two = (Theory(10**6, 0.5, "markov", omega).eta0 for omega in (0.02, 0.04))
    assert two == pytest.approx(2 * one) and one == pytest.approx(4.2e-11, rel=0.02)
    assert Theory(10**6, 0.5, "markov", 0.3, True).eta0 == Theory(10**6, 0.9, "markov", None, True).eta0
    assert theory.regularized_step(10**6) == pytest.approx(8.4e-12, rel=0.02)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-6])
def test_mixing_time_of_refresh_chains(rho: float, delta: float) -> None:
    process = refresh_chain(rho=rho).process
    P, mu = process.chain, process.mu
    power, brute = np.eye(len(mu)), 0
    while 0.5 * np.abs(power - mu).sum(axis=1).max() > delta:
        power, brute = power @ P, brute + 1
    assert theory.mixing_time(delta, 1 - mu.min(), rho) == brute == process.mixing_time(delta)
    assert process.rho == pytest.approx(rho, abs=1e-6)


def test_the_bound_of_theorem_3_4_holds() -> None:
    problem = garnet(n=30, d=5, gamma=0.5, sampling="iid")
    process = problem.process
    for T in (1000, 8000):
        out = grid(problem, {"theory": Theory(T, 0.5)}, steps=T, runs=32, seed=5)
        reached = float(((out.last[0] - process.w_star) ** 2).sum(axis=1).mean())
        start = float(process.w_star @ process.w_star)
        assert reached <= theory.iid_bound(T, 0.5, process.omega, process.sigma2, start)


def test_one_step_recursion_on_a_scalar_is_exact() -> None:
    """One state, phi = 1, reward r + noise: E(w - w*)^2 obeys v+ = (1 - eta (1 - gamma))^2 v + eta^2 noise^2."""
    from infimum_tdexp import MRP, PolicyEvaluation

    gamma, noise, T, runs = 0.5, 0.3, 200, 20_000
    problem = PolicyEvaluation(MRP([[1.0]], [1.0], [[1.0]], gamma, noise), runs=runs)
    out = grid(problem, {"exp": Exponential(T, 0.5)}, steps=T, runs=runs, seed=3)
    v = (1 / (1 - gamma)) ** 2
    for k in range(T):
        eta = Exponential(T, 0.5)(k)
        v = (1 - eta * (1 - gamma)) ** 2 * v + eta**2 * noise**2
        if eta <= theory.iid_step(gamma):
            # The recursion of the proof bounds it.
            assert (1 - eta * (1 - gamma)) ** 2 <= 1 - eta * (1 - gamma)
    squares = (out.last[0, :, 0] - 2.0) ** 2
    assert abs(squares.mean() - v) < 5 * squares.std() / math.sqrt(runs)


def test_a_constant_step_stalls_and_an_exponential_one_does_not() -> None:
    problem = garnet(d=5, gamma=0.5, sampling="iid")
    errors = {}
    for T in (2000, 16_000):
        out = grid(problem, {"exp": Exponential(T), "constant": Constant(1.0)}, steps=T, runs=32, seed=1)
        errors[T] = out.errors(out.last).mean(axis=1)
    slopes = np.log(errors[16_000] / errors[2000]) / math.log(8)
    assert slopes[0] < -0.7 and abs(slopes[1]) < 0.2


def test_regularization_leads_to_its_own_fixed_point() -> None:
    problem = garnet(sampling="iid")
    moments, lam = problem.process.moments, 0.01
    np.testing.assert_allclose((moments.A + lam * np.eye(8)) @ moments.shifted(lam), moments.b, atol=1e-10)
    biases = [moments.bias(T**-0.5) for T in (1e4, 1e8, 1e12)]
    assert biases[0] > 10 * biases[1] > 100 * biases[2]
    T = 20_000
    out = grid(problem, {"exp": Exponential(T)}, steps=T, runs=16, seed=1, lam=lam)
    off = moments.errors(out.last[0]).mean()
    gap = out.last[0] - moments.shifted(lam)
    own = np.einsum("ri,ij,rj->r", gap, moments.G, gap).mean()
    assert own < 0.02 * off


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Exponential(), "needs horizon=T"),
        (lambda: Exponential(10, -1.0), "eta0 must be a finite number above 0"),
        (lambda: Exponential(10, 1.0, 11.0), "at most the horizon"),
        (lambda: Exponential(2.5), "horizon must be an integer"),
        (lambda: Doubling(first=0), "first must be an integer >= 1"),
        (lambda: Theory(100, 1.0), "gamma must be in"),
        (lambda: Theory(100, 0.9, "markov"), "needs omega"),
        (lambda: theory.mixing_time(0.0, 1.0, 0.5), "delta must be a finite number above 0"),
    ],
)
def test_bad_numbers_are_refused(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()  # type: ignore[operator]


def test_every_solver_that_takes_a_step_takes_the_schedule() -> None:
    pytest.importorskip("infimum_splitting")
    steps = {"use": "tdexp.exponential", "horizon": 200, "eta0": 0.4}
    solver = {"use": "splitting.gradient_descent", "step": steps}
    options = {"jac": lambda x: 2 * (x - 1), "solver": solver, "stopping": "max_iter(200)"}
    result = infimum.solve(lambda x: float((x - 1) @ (x - 1)), np.zeros(2), **options)
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)


def test_it_is_a_scheduler_of_torch() -> None:
    torch = pytest.importorskip("torch")
    ScheduleLR = pytest.importorskip("infimum_torch").ScheduleLR
    T, beta = 50, 2.0
    weight = torch.nn.Parameter(torch.zeros(1))
    ours, theirs = (torch.optim.SGD([weight], lr=0.3) for _ in range(2))
    mine = ScheduleLR(ours, Exponential(T, 0.3, beta))
    # torch's own factor, written by hand, starts one step earlier.
    other = torch.optim.lr_scheduler.ExponentialLR(theirs, gamma=(beta / T) ** (1 / T))
    for k in range(T):
        assert ours.param_groups[0]["lr"] == pytest.approx(Exponential(T, 0.3, beta)(k))
        theirs.step()
        other.step()
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"])
        ours.step()
        mine.step()
