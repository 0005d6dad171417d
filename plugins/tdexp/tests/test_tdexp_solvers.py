"""Processes, solvers and the grid: against plain loops, closed forms and each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.schedule import Power
from infimum.status import Status
from infimum_tdexp import (
    MRP,
    TD0,
    Doubling,
    Exponential,
    PolicyEvaluation,
    Stream,
    baird,
    boyan_chain,
    garnet,
    grid,
    random_walk,
    refresh_chain,
)
from infimum_tdexp.transitions import Batch, Request

PROBLEMS = [garnet, boyan_chain, random_walk, refresh_chain]


def plain(batch: Batch, run: int, steps: Any, gamma: float, lam: float = 0.0) -> np.ndarray:
    w = np.zeros(batch.phi.shape[-1])
    for k in range(len(batch.reward)):
        phi, psi = batch.phi[k, run], batch.psi[k, run]
        delta = batch.reward[k, run] + psi @ w
        w = w + steps(k) * (delta * phi - lam * w)
    return w


@pytest.mark.parametrize("sampling", ["iid", "markov"])
@pytest.mark.parametrize("make", PROBLEMS)
def test_solver_and_grid_are_the_plain_loop(make: Any, sampling: str) -> None:
    problem, T = make(sampling=sampling, runs=3), 700
    run = infimum.prepare(
        problem, solver=TD0(Exponential(T), lam=0.01), stopping=f"max_iter({T})", check_every=97, seed=4
    )
    result = run.solve()
    batch = problem.process.transitions(Request(run.state.seed, 0, T, 3))
    expected = [plain(batch, one, Exponential(T), problem.process.gamma, 0.01) for one in range(3)]
    np.testing.assert_allclose(result.x, expected, rtol=1e-9, atol=1e-12)
    assert result.evaluations == {"process": {"transitions": 3 * T}}
    out = grid(problem, {"e": Exponential(T), "p": Power(0.5, 0.5)}, steps=T, runs=3, seed=run.state.seed, lam=0.01)
    np.testing.assert_allclose(out.last[0], expected, rtol=1e-9, atol=1e-12)
    other = [plain(batch, one, Power(0.5, 0.5), problem.process.gamma, 0.01) for one in range(3)]
    np.testing.assert_allclose(out.last[1], other, rtol=1e-9, atol=1e-12)


def test_the_usual_steps_are_exponential_from_1_with_beta_10() -> None:
    for T, beta in ((700, 10.0), (4, 4.0)):
        usual, said = (
            infimum.solve(garnet(), solver=one, stopping=f"max_iter({T})", seed=2).x
            for one in (TD0(horizon=T), TD0(Exponential(T, 1.0, beta)))
        )
        assert np.array_equal(usual, said)
    unknown, said = (
        infimum.solve(garnet(), solver=one, stopping="max_iter(1500)", check_every=500, seed=2).x
        for one in (TD0(), TD0(Doubling(1024, 1.0, 10.0)))
    )
    assert np.array_equal(unknown, said)


@pytest.mark.parametrize("solver", ["tdexp.lstd", {"use": "tdexp.td0", "step": 0.2, "average": 130}])
@pytest.mark.parametrize("runs", [1, 4])
def test_any_cadence_gives_the_same_bits(solver: Any, runs: int) -> None:
    found = [
        infimum.solve(garnet(runs=runs), solver=solver, stopping="max_iter(600)", check_every=every, seed=2).x
        for every in (1, 7, 256, 600)
    ]
    assert all(np.array_equal(one, found[0]) for one in found[1:])


def test_a_run_is_taken_up_bit_for_bit() -> None:
    def prepare() -> Any:
        return infimum.prepare(
            random_walk(runs=4), solver=TD0(average=100), stopping="max_iter(900)", check_every=50, seed=9
        )

    whole, first = prepare().solve(), prepare()
    first.advance(350)
    second = prepare().load_state_dict(first.state_dict())
    assert np.array_equal(second.solve().x, whole.x)


def test_averaging_is_the_mean_of_the_late_iterates() -> None:
    options = {"stopping": "max_iter(60)", "seed": 3}
    iterates: list[np.ndarray] = []
    run = infimum.prepare(boyan_chain(), solver=TD0(0.1), **options)
    for _ in range(60):
        run.advance(1)
        iterates.append(run.current.copy())
    mean = infimum.solve(boyan_chain(), solver=TD0(0.1, average=20), **options).x
    np.testing.assert_allclose(mean, np.mean(iterates[20:], axis=0), rtol=1e-12)


@pytest.mark.parametrize("make", PROBLEMS)
def test_moments_are_those_of_the_transitions(make: Any) -> None:
    for sampling in ("iid", "markov"):
        process = make(sampling=sampling).process
        batch = process.transitions(Request(1, 0, 4000, 50))
        phi, psi, reward = (one.reshape(-1, *one.shape[2:]) for one in (batch.phi, batch.psi, batch.reward))
        np.testing.assert_allclose(-phi.T @ psi / len(phi), process.moments.A, atol=0.02)
        np.testing.assert_allclose(phi.T @ reward / len(phi), process.moments.b, atol=0.03)
        np.testing.assert_allclose(phi.T @ phi / len(phi), process.moments.G, atol=0.02)
        g2 = ((reward + psi @ process.w_star)[:, None] * phi) ** 2
        assert g2.sum(axis=1).mean() == pytest.approx(process.sigma2, rel=0.1)


def test_tabular_features_give_the_true_values() -> None:
    rng = np.random.default_rng(0)
    P, r = rng.dirichlet(np.ones(6), size=6), rng.standard_normal(6)
    process = MRP(P, r, np.eye(6), 0.8)
    expected = np.linalg.solve(np.eye(6) - 0.8 * P, r)
    np.testing.assert_allclose(process.w_star, expected, rtol=1e-8)
    np.testing.assert_allclose(process.values, expected, rtol=1e-10)
    np.testing.assert_allclose(process.mu @ P, process.mu, atol=1e-12)
    result = infimum.solve(
        PolicyEvaluation(process), solver=TD0(horizon=20_000), stopping="max_iter(20000)", check_every=5000, seed=1
    )
    assert result.value == pytest.approx(result.metrics["value"]) and result.value < 1e-2 * process.moments.energy


def test_an_end_of_an_episode_is_worth_nothing() -> None:
    """Two states in a row, 1 for each, then the end: values 1 + gamma and 1, and the next episode starts anew."""
    process = MRP([[0, 1.0], [0, 0]], [1.0, 1.0], np.eye(2), 0.5, restart=[1.0, 0.0])
    np.testing.assert_allclose(process.w_star, [1.5, 1.0])
    np.testing.assert_allclose(process.mu, [0.5, 0.5])
    batch = process.transitions(Request(0, 0, 6, 1))
    assert batch.phi[:, 0].tolist() == [[1, 0], [0, 1]] * 3
    assert batch.psi[1, 0].tolist() == [0, -1]
    walk = random_walk(n=5, d=5, gamma=0.999999).process
    np.testing.assert_allclose(walk.values, [-2 / 3, -1 / 3, 0, 1 / 3, 2 / 3], atol=1e-4)


def test_lstd_finds_the_fixed_point_of_what_it_saw() -> None:
    rng = np.random.default_rng(3)
    phi, after = rng.standard_normal((2, 200, 4)) / 10
    ended = rng.random(200) < 0.1
    record = Stream(phi, rng.standard_normal(200), after, ended, 0.9)
    result = infimum.solve(
        PolicyEvaluation(record), solver={"use": "tdexp.lstd", "ridge": 1e-12}, stopping="max_iter(200)", seed=0
    )
    np.testing.assert_allclose(result.x, record.moments.w_star, rtol=1e-6)
    assert result.value < 1e-12 and result.metrics["value"] == result.value


def test_lstd_is_better_than_any_step_on_a_model() -> None:
    problem, T = garnet(runs=16), 4000
    out = grid(problem, {f"{eta}": Exponential(T, eta) for eta in (0.3, 1.0, 2.0)}, steps=T, runs=16, seed=1)
    assert out.errors(out.lstd).mean() < out.errors(out.last).mean(axis=1).min()


def test_one_eta0_serves_unlike_chains_where_a_constant_does_not() -> None:
    """The benchmark's claim in small: within 5 of the best of all, where every other setting is off by more than 8."""
    T, runs = 8000, 12
    compared: dict[str, Any] = {"exp": Exponential(T)}
    compared |= {f"constant {eta}": Power(eta, 0.0) for eta in (0.03, 0.1, 0.3, 1.0)}
    compared |= {f"root {eta}": Power(eta, 0.5) for eta in (0.3, 1.0, 2.0)}
    worst: dict[str, float] = dict.fromkeys(compared, 0.0)
    for problem in (garnet(), random_walk(), boyan_chain()):
        out = grid(problem, compared, steps=T, runs=runs, seed=1)
        means = out.errors(out.last).mean(axis=1)
        for name, one in zip(out.names, means / means.min(), strict=True):
            worst[name] = max(worst[name], float(one))
    assert worst.pop("exp") < 5 and min(worst.values()) > 8


def test_the_stopping_rules_know_the_metrics() -> None:
    result = infimum.solve(
        boyan_chain(runs=4),
        solver=TD0(horizon=4000),
        stopping="target(0.5) | max_calls(1e5, of='transitions') | max_iter(1e5)",
        check_every=100,
        seed=1,
        record=["step", "td_error", "mspbe", "residual", "value_error", "norm"],
    )
    assert result.status is Status.target_reached and result.best_value <= 0.5
    assert set(result.trace) >= {"value", "step", "td_error", "mspbe", "residual", "value_error", "norm"}
    budget = infimum.solve(
        boyan_chain(runs=4), solver=TD0(), stopping="max_calls(1000, of='transitions') | max_iter(1e5)", seed=1
    )
    assert budget.status is Status.limit and budget.evaluations["process"]["transitions"] == 1000


def test_least_squares_come_first_and_constant_steps_last() -> None:
    problem = random_walk(runs=8)
    solvers = {"exp": TD0(horizon=2000), "constant": TD0(1.0), "LSTD": "tdexp.lstd"}
    values = {
        name: infimum.solve(problem, solver=one, stopping="max_iter(2000)", check_every=500, seed=7).value
        for name, one in solvers.items()
    }
    assert values["LSTD"] < values["exp"] < values["constant"]


def test_divergence_is_said() -> None:
    result = infimum.solve(baird(), solver=TD0(0.3), stopping="max_iter(1e5)", check_every=200, seed=1)
    assert result.status is Status.diverged and "||w|| passed 1e+08" in result.message
    too_large = infimum.solve(boyan_chain(), solver=TD0(2.5), stopping="max_iter(1e5)", check_every=200, seed=1)
    assert too_large.status is Status.diverged
    out = grid(boyan_chain(), {"large": Power(2.5, 0.0)}, steps=20_000, runs=2)
    assert np.isinf(out.errors(out.last)).all()


def test_theory_takes_what_is_known_of_the_process() -> None:
    for solver, expected in (
        (TD0("theory", 1000), 0.0),
        (TD0("theory", 1000, lam="1/sqrt(T)"), 1 / np.sqrt(1000)),
    ):
        run = infimum.prepare(garnet(), solver=solver, stopping="max_iter(10)", seed=1)
        result = run.solve()
        assert result.extras["TD0"]["lam"] == expected
        assert 0 < run.state.lr < 1e-6
    run = infimum.prepare(garnet(sampling="iid"), solver=TD0("theory", 1000), stopping="max_iter(1)", seed=1)
    run.solve()
    assert run.state.lr == pytest.approx(0.0125 * 1000 ** (-1 / 1000))


def test_streams_from_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    phi = np.eye(3)[rng.integers(0, 3, 500)]
    np.savez(tmp_path / "s.npz", features=phi[:-1], rewards=rng.random(499), next_features=phi[1:])
    spec = {"use": "tdexp.stream", "path": str(tmp_path / "s.npz"), "gamma": 0.5, "sampling": "iid", "runs": 2}
    result = infimum.solve(spec, solver=TD0(horizon=3000), stopping="max_iter(3000)", check_every=500, seed=1)
    assert result.value < 1e-2
    np.savez(tmp_path / "bad.npz", features=phi)
    with pytest.raises(InputError, match="lacks rewards, next_features"):
        infimum.solve({"use": "tdexp.stream", "path": str(tmp_path / "bad.npz")}, solver=TD0())


I2, FLAT = np.eye(2), [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MRP(FLAT, [0, 1], 7.3 * I2, 0.9), r"max \|\|phi\|\| = 7.3 > 1.*scale_features=True"),
        (lambda: MRP([[0.5, 0.5], [0.5, 0.47]], [0, 1], I2, 0.9), r"rows of P do not sum to 1 \(row 1: 0.97\)"),
        (lambda: MRP(I2, [0, 1], I2, 0.9), "reducible.*no unique stationary distribution"),
        (lambda: MRP(FLAT, [0, 1], np.ones((2, 2)) / 2, 0.9), "rank 1 < 2.*not unique"),
        (lambda: MRP(FLAT, [0, 1], I2, 1.0), r"gamma must be in \[0, 1\)"),
        (lambda: MRP(FLAT, [0, 1, 2], I2, 0.9), "r must have shape"),
        (lambda: MRP(FLAT, [0, np.nan], I2, 0.9), r"r\[1\] is nan"),
        (lambda: MRP([[1.5, -0.5], [0.5, 0.5]], [0, 1], I2, 0.9), "row 0 of P holds a number that is no probability"),
        (lambda: MRP(FLAT, [0, 1], np.eye(3), 0.9), "features of 3 states"),
        (lambda: MRP(FLAT, [0, 1], I2, 0.9, restart=[1, 1]), "restart must be a distribution"),
        (lambda: MRP(FLAT, [0, 1], I2, 0.9, mu=[0.5, 0.5]), "sampling='iid'"),
        (lambda: MRP(FLAT, [0, 1], I2, 0.9, sampling="both"), "expected 'iid'"),  # type: ignore[arg-type]
        (lambda: MRP(FLAT, [0, 1], I2, 0.9, noise=-1.0), "noise must be"),
        (lambda: PolicyEvaluation(3), "expected a process"),  # type: ignore[arg-type]
        (lambda: PolicyEvaluation(garnet().process, runs=0), "runs must be"),
        (lambda: garnet().prepare(np.zeros(3)), "expected weights of shape"),
        (lambda: TD0(-1.0), "step=-1.0"),
        (lambda: TD0("theory"), "needs horizon=T"),
        (lambda: TD0(lam="1/sqrt(T)"), "needs horizon=T"),
        (lambda: TD0(Exponential(10), horizon=11), "that of the schedule is 10"),
        (lambda: Stream(I2, [1.0], I2), "rewards must be 2"),
        (lambda: Stream(I2, [1.0, 1], I2, [0, 1]), "terminated must be 2 booleans"),
        (lambda: grid(garnet(), {"bad": lambda k: float("nan")}, steps=5), "gave nan at k = 0"),
        (lambda: grid(garnet(), {}, steps=5), "expected schedules"),
        (lambda: boyan_chain(n=12), "4 m \\+ 1"),
        (lambda: random_walk().process.mixing_time(0.1), "periodic"),
    ],
)
def test_bad_input_is_refused(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
