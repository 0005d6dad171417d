"""Three environments of gymnasium under a uniform or a nearly optimal policy, as registered problems."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from infimum.errors import InputError
from infimum_tdexp import checks
from infimum_tdexp.environment import maker
from infimum_tdexp.problem import PolicyEvaluation
from infimum_tdexp.tables import Table

Policy = Literal["uniform", "greedy"]
Sampling = Literal["markov", "iid"]
Discount = Annotated[float, Ge(0), Lt(1)]
Runs = Annotated[int, Ge(1)]
Chance = Annotated[float, Gt(0), Le(1)]


def taxi(
    policy: Policy = "uniform",
    epsilon: Chance = 0.1,
    gamma: Discount = 0.9,
    sampling: Sampling = "markov",
    runs: Runs = 1,
) -> PolicyEvaluation:
    """Taxi-v4 through 16 features: row, column, where the passenger is and wants to go, and a constant.

    Each group of one-hot columns lacks its last, which follows from the constant. Features are divided by sqrt(5).

    Parameters
    ----------
    policy : {"uniform", "greedy"}, default "uniform"
        "greedy" takes the best action, with chance `epsilon` a random one.
    epsilon : float, default 0.1
        In (0, 1].
    gamma : float, default 0.9
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.
    """
    s = np.arange(500)
    groups = [(s // 100, 5), (s // 20 % 5, 5), (s // 4 % 5, 5), (s % 4, 4)]
    columns = [np.eye(size)[one][:, :-1] for one, size in groups]
    features = np.hstack([*columns, np.ones((500, 1))]) / np.sqrt(5.0)
    return _problem(("Taxi-v4", "Taxi-v3"), policy, epsilon, features, gamma, sampling, runs)


def cliff_walking(
    policy: Policy = "uniform",
    epsilon: Chance = 0.1,
    gamma: Discount = 0.9,
    sampling: Sampling = "markov",
    runs: Runs = 1,
) -> PolicyEvaluation:
    """CliffWalking-v1 with one feature for each cell that is visited (37 under the uniform policy).

    Parameters
    ----------
    policy : {"uniform", "greedy"}, default "uniform"
        "greedy" takes the best action, with chance `epsilon` a random one.
    epsilon : float, default 0.1
        In (0, 1].
    gamma : float, default 0.9
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.
    """
    return _problem(("CliffWalking-v1", "CliffWalking-v0"), policy, epsilon, "tabular", gamma, sampling, runs)


def frozen_lake(
    size: Literal["4x4", "8x8"] = "4x4",
    policy: Policy = "greedy",
    epsilon: Chance = 0.1,
    gamma: Discount = 0.95,
    sampling: Sampling = "markov",
    runs: Runs = 1,
) -> PolicyEvaluation:
    """FrozenLake-v1 (slippery) with one feature for each cell that is visited.

    Parameters
    ----------
    size : {"4x4", "8x8"}, default "4x4"
        On the large one the uniform policy hardly ever meets a reward: there is nothing to learn from.
    policy : {"uniform", "greedy"}, default "greedy"
        "greedy" takes the best action, with chance `epsilon` a random one.
    epsilon : float, default 0.1
        In (0, 1].
    gamma : float, default 0.95
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.
    """
    named = {"4x4": "FrozenLake-v1", "8x8": "FrozenLake8x8-v1"}
    if size not in named:
        raise InputError(f"tdexp.frozen_lake: size={size!r}; expected '4x4' or '8x8'")
    return _problem((named[size],), policy, epsilon, "tabular", gamma, sampling, runs)


def _problem(
    names: tuple[str, ...], policy: str, epsilon: float, features: Any, gamma: float, sampling: Any, runs: int
) -> PolicyEvaluation:
    """By the first of several names that the installed gymnasium knows: versions rename environments.

    Raises
    ------
    InputError
        For options out of range, or without gymnasium.
    """
    if policy not in ("uniform", "greedy"):
        raise InputError(f"{names[0]}: policy={policy!r}; expected 'uniform' or 'greedy'")
    checks.number(epsilon, "epsilon", names[0], "a number in (0, 1]", lambda x: 0 < x <= 1)
    checks.discount(gamma, names[0])
    table = _table(names)
    chosen = policy if policy == "uniform" else table.near_optimal(gamma, epsilon)
    return table.problem(chosen, features, gamma, sampling=sampling, runs=runs)


def _table(names: tuple[str, ...]) -> Table:
    for name in names:
        try:
            env = maker(name)()
            break
        except InputError:
            if name == names[-1]:
                raise
    table = Table.of(env)
    env.close()
    if table is None:
        raise InputError(f"{name}: this version of gymnasium states no transitions for it (unwrapped.P)")
    return table
