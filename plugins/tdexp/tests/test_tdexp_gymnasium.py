"""Environments of gymnasium: terminal is not truncated, the model is the played game, runs are taken up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum_tdexp import TD0, Environment, PolicyEvaluation, from_gymnasium, record
from infimum_tdexp.tables import Table
from infimum_tdexp.toy_text import frozen_lake, taxi
from infimum_tdexp.transitions import Request

gymnasium = pytest.importorskip("gymnasium")


class Corridor(gymnasium.Env):  # type: ignore[name-defined,misc]
    """Three cells to the right, 1 for each step; the last step ends the episode, or a time limit cuts it off."""

    def __init__(self, limit: int | None = None) -> None:
        self.observation_space = gymnasium.spaces.Discrete(4)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.limit, self.cell, self.time = limit, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell, self.time = 0, 0
        return 0, {}

    def step(self, action: int) -> Any:
        self.cell, self.time = self.cell + 1, self.time + 1
        return self.cell, 1.0, self.cell == 3, self.limit is not None and self.time >= self.limit, {}


def test_terminal_is_not_truncated() -> None:
    ended = record(Corridor, gamma=0.5, steps=300)
    # 1 + .5 + .25 and so on; the terminal cell is never left.
    np.testing.assert_allclose(ended.moments.w_star, [1.75, 1.5, 1.0, 0.0], atol=1e-8)
    cut = record(lambda: Corridor(2), gamma=0.5, steps=300)
    # Cells 0 and 1 only are left; what follows the cut, cell 2, is worth w_2 = 0 by the least norm, not by an end.
    assert cut.psi[1].tolist() == [0.0, -1.0, 0.5, 0.0]
    assert ended.psi[2].tolist() == [0.0, 0.0, -1.0, 0.0]


def test_the_model_is_the_played_game() -> None:
    features = np.random.default_rng(0).standard_normal((48, 3))
    features /= np.linalg.norm(features, axis=1).max()
    model = from_gymnasium("CliffWalking-v1", "uniform", features, 0.9)
    played = from_gymnasium("CliffWalking-v1", "uniform", features, 0.9, model=False)
    assert played.merit is None and model.merit == "value"
    batch = played.process.transitions(Request(3, 0, 12_000, 1))
    phi, psi, reward = batch.phi[:, 0], batch.psi[:, 0], batch.reward[:, 0]
    moments: Any = model.moments
    np.testing.assert_allclose(-phi.T @ psi / len(phi), moments.A, atol=0.03)
    np.testing.assert_allclose(phi.T @ phi / len(phi), moments.G, atol=0.08)
    assert reward.mean() == pytest.approx(float(model.process._weight @ model.process.outcomes.reward), rel=0.15)  # type: ignore[attr-defined]


def test_a_played_run_is_taken_up_bit_for_bit() -> None:
    def prepare() -> Any:
        problem = from_gymnasium("FrozenLake-v1", model=False, runs=2)
        return infimum.prepare(problem, solver=TD0(horizon=200), stopping="max_iter(200)", check_every=20, seed=5)

    whole, first = prepare().solve(), prepare()
    first.advance(70)
    second = prepare().load_state_dict(first.state_dict())
    resumed = second.solve()
    assert np.array_equal(resumed.x, whole.x) and resumed.evaluations == whole.evaluations
    assert whole.evaluations == {"process": {"transitions": 400}} and whole.value is None


@pytest.mark.parametrize("name", ["taxi", "cliff_walking", "frozen_lake"])
def test_toy_texts_are_registered(name: str) -> None:
    problem: Any = infimum.prepare({"use": f"tdexp.{name}", "policy": "greedy"}, solver=TD0(), seed=0).problem
    process = problem.process
    assert process.mu.min() > 0 and process.omega > 0
    assert np.linalg.norm(process.features, axis=1).max() <= 1 + 1e-12
    assert process.moments.residuals(process.w_star) < 1e-8
    result = infimum.solve(problem, solver=TD0(horizon=4000), stopping="max_iter(4000)", check_every=400, seed=1)
    assert result.value < 0.8 * process.moments.energy


def test_a_deterministic_policy_and_one_by_function_agree() -> None:
    right = np.ones(48, dtype=int)
    one = from_gymnasium("CliffWalking-v1", 0.5 * np.eye(4)[right] + 0.125)
    other = from_gymnasium("CliffWalking-v1", lambda s: 0.5 * np.eye(4)[1] + 0.125)
    np.testing.assert_allclose(one.process.w_star, other.process.w_star)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: from_gymnasium("NoSuchThing-v0"), "knows no environment"),
        (lambda: from_gymnasium("Taxi-v4", "greedy"), "expected 'uniform', an array or a function"),
        (lambda: from_gymnasium("Taxi-v4", np.ones((500, 6))), "rows sum to 1"),
        (lambda: from_gymnasium("Taxi-v4", features=np.ones((3, 2))), "a row for each of 500 states"),
        (lambda: from_gymnasium("Blackjack-v1", model=True), "states no transitions"),
        (lambda: from_gymnasium("Blackjack-v1", features=lambda o: [1.0], sampling="iid"), "needs a model"),
        (lambda: from_gymnasium("Blackjack-v1"), "needs finitely many states"),
        (lambda: Environment(Corridor, "uniform", lambda o: [2.0], 0.9), "have norm 2 > 1"),
        (lambda: from_gymnasium(3), "env must be an id"),
        (lambda: TD0("theory", 10).check(_parts()), "needs omega"),
        (lambda: from_gymnasium(lambda: 3), "expected a function that makes an environment"),
        (lambda: from_gymnasium("Taxi-v4", sampling="iid", model=False), "model=False leaves it out"),
        (lambda: from_gymnasium("Blackjack-v1", [1, 2], lambda o: [0.1]), "policy=.* needs finitely many states"),
        (lambda: from_gymnasium("Blackjack-v1", features=np.eye(3)), "features=.* needs finitely many states"),
        (lambda: Environment(Corridor, np.eye(2), lambda o: [1.0], 0.9), "policy must be 'uniform' or a function"),
        (lambda: Environment(Corridor, "uniform", None, 0.9), "features must be a function"),  # type: ignore[arg-type]
        (lambda: record(Corridor, steps=0), "steps must be an integer >= 1"),
        (lambda: record(Corridor, steps=5, seed=-1), "seed must be an integer >= 0"),
        (lambda: record(Corridor, lambda s: 2, steps=5), r"policy\(0\) gave 2; expected an action, 0 to 1, or 2 prob"),
        (lambda: record(Corridor, lambda s: "left", steps=5), r"policy\(0\) gave 'left'"),
        (lambda: record(Corridor, lambda s: [0.5, 0.4], steps=5), r"policy\(0\) must be a distribution over the 2 act"),
        (lambda: record(Corridor, lambda s: [1.0], steps=5), r"policy\(0\) must be a distribution over the 2 actions"),
        (lambda: record(Corridor, features=lambda s: ["a"], steps=5), r"features\(0\) gave \['a'\]"),
        (lambda: record(Corridor, features=lambda s: [0.1] * (1 + s), steps=5), r"features\(1\) gave .* expected 1 "),
        (lambda: taxi("best"), "policy='best'; expected 'uniform' or 'greedy'"),  # type: ignore[arg-type]
        (lambda: taxi("greedy", epsilon=5), r"epsilon must be a number in \(0, 1\], got 5"),
        (lambda: taxi(gamma=1.0), r"gamma must be in \[0, 1\), got 1"),
        (lambda: frozen_lake("5x5"), "size='5x5'; expected '4x4' or '8x8'"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def _parts() -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(process=from_gymnasium("FrozenLake-v1", model=False).process)


def test_actions_are_counted_from_where_they_start() -> None:
    seen: list[int] = []

    class Later(Corridor):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = gymnasium.spaces.Discrete(2, start=5)

        def step(self, action: int) -> Any:
            seen.append(action)
            return super().step(action)

    record(Later, "uniform", steps=40)
    record(Later, lambda s: [0.5, 0.5], steps=40)
    assert set(seen[:40]) == set(seen[40:]) == {5, 6}


def test_the_near_optimal_policy_is_better_than_any_other() -> None:
    env = gymnasium.make("FrozenLake-v1")
    table, gamma = Table.of(env), 0.95
    assert table is not None

    def values(policy: np.ndarray) -> np.ndarray:
        chance = policy[table.state, table.action] * table.probability
        P = np.zeros((len(table), len(table)))
        np.add.at(P, (table.state, table.target), chance * ~table.ended)
        return np.linalg.solve(np.eye(len(table)) - gamma * P, np.bincount(table.state, chance * table.reward))

    best, rng = values(table.near_optimal(gamma, 1e-12)), np.random.default_rng(0)
    for _ in range(50):
        assert (best >= values(np.eye(4)[rng.integers(0, 4, len(table))]) - 1e-9).all()
    assert best[0] > 0.1
    np.testing.assert_allclose(table.near_optimal(gamma, 1.0), 0.25)


def test_blackjack_is_played() -> None:
    def features(seen: Any) -> list[float]:
        mine, dealer, ace = seen
        return [0.5, mine / 64.0, dealer / 20.0, 0.5 * ace]

    problem = from_gymnasium("Blackjack-v1", lambda seen: int(seen[0] < 18), features, 0.9)
    assert isinstance(problem, PolicyEvaluation)
    result = infimum.solve(problem, solver=TD0(horizon=500), stopping="max_iter(500)", check_every=100, seed=1)
    assert np.isfinite(result.x).all() and result.x.shape == (4,)
