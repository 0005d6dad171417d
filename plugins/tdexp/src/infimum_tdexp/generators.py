"""Markov reward processes for experiments: random ones, classical chains, and one on which TD(0) diverges."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from infimum.errors import InputError
from infimum_tdexp import checks
from infimum_tdexp.model import MRP
from infimum_tdexp.problem import PolicyEvaluation
from infimum_tdexp.transitions import Array

Size = Annotated[int, Ge(1)]
Discount = Annotated[float, Ge(0), Lt(1)]
Noise = Annotated[float, Ge(0)]
Sampling = Literal["markov", "iid"]


def garnet(
    n: Annotated[int, Ge(2)] = 30,
    d: Size = 8,
    branching: Size = 5,
    gamma: Discount = 0.9,
    spread: Annotated[float, Ge(1)] = 1.0,
    noise: Noise = 0.1,
    sampling: Sampling = "markov",
    runs: Size = 1,
    data_seed: int = 0,
) -> PolicyEvaluation:
    """A random process: from each state to a few others, with uniform rewards in [0, 1] and random features.

    Parameters
    ----------
    n : int, default 30
        States.
    d : int, default 8
        Features, at most n; the first one is constant, and rows have norm at most 1.
    branching : int, default 5
        States that can follow a state, at most n.
    gamma : float, default 0.9
        Discount, in [0, 1).
    spread : float, default 1.0
        How many times smaller the last feature's scale is than the first's; above 1 the problem is ill-conditioned.
    noise : float, default 0.1
        Standard deviation of the noise on rewards.
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.
    data_seed : int, default 0
        Of the process.

    Raises
    ------
    InputError
        For d or branching above n, and options out of range.
    """
    what = "tdexp.garnet"
    n, d, branching = (
        checks.whole(one, name, what, least)
        for one, name, least in ((n, "n", 2), (d, "d", 1), (branching, "branching", 1))
    )
    checks.number(spread, "spread", what, "a finite number >= 1", lambda x: x >= 1)
    if max(d, branching) > n:
        raise InputError(f"{what}: d={d} and branching={branching} must be at most n={n}")
    rng = np.random.default_rng(checks.whole(data_seed, "data_seed", what, least=0))
    P = np.zeros((n, n))
    for row in P:
        # Differences of sorted uniform numbers: a uniform distribution over the simplex.
        cuts = np.sort(rng.random(branching - 1))
        row[rng.choice(n, branching, replace=False)] = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    # A cycle with a small chance makes every state reachable.
    P = 0.95 * P + 0.05 * np.roll(np.eye(n), 1, axis=1)
    r = rng.random(n)
    phi = np.hstack([np.ones((n, 1)), rng.standard_normal((n, d - 1))]) * np.geomspace(1.0, 1.0 / spread, d)
    phi /= np.linalg.norm(phi, axis=1).max()
    name = "garnet" if spread == 1 else "ill-conditioned garnet"
    return PolicyEvaluation(MRP(P, r, phi, gamma, noise, sampling=sampling), runs=runs, name=name)


def boyan_chain(
    n: Annotated[int, Ge(5)] = 13,
    gamma: Discount = 0.95,
    sampling: Sampling = "markov",
    runs: Size = 1,
) -> PolicyEvaluation:
    """Boyan's chain: from state n - 1 down to 0 by one or two at a time, for -3 a step (-2 for the last); then anew.

    Features interpolate between every fourth state, so that the values of the undiscounted chain are linear in them.

    Parameters
    ----------
    n : int, default 13
        States, 4 m + 1, with m + 1 features.
    gamma : float, default 0.95
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.

    Raises
    ------
    InputError
        For n that is not 4 m + 1, and options out of range.

    References
    ----------
    Boyan, "Technical update: least-squares temporal difference learning", 2002.
    """
    n = checks.whole(n, "n", "tdexp.boyan_chain", least=5)
    if n % 4 != 1:
        raise InputError(f"tdexp.boyan_chain: n must be 4 m + 1, such as 13, got {n}")
    P, r = np.zeros((n, n)), np.full((n, n), -3.0)
    for s in range(2, n):
        P[s, s - 1] = P[s, s - 2] = 0.5
    P[1, 0], r[1, 0] = 1.0, -2.0
    knots = np.arange(0, n, 4)
    phi = np.maximum(0.0, 1.0 - np.abs(np.arange(n)[:, None] - knots) / 4.0)
    restart = np.eye(n)[-1]
    return PolicyEvaluation(MRP(P, r, phi, gamma, restart=restart, sampling=sampling), runs=runs, name="Boyan chain")


def random_walk(
    n: Annotated[int, Ge(3)] = 19,
    d: Size = 6,
    gamma: Discount = 0.95,
    width: Annotated[float, Gt(0)] = 1.0,
    sampling: Sampling = "markov",
    runs: Size = 1,
) -> PolicyEvaluation:
    """A walk that starts in the middle and ends beyond either end, for -1 on the left and +1 on the right.

    Parameters
    ----------
    n : int, default 19
        States.
    d : int, default 6
        Features, at most n: Gaussian bumps at equal distances, each row of norm 1.
    gamma : float, default 0.95
        Discount, in [0, 1).
    width : float, default 1.0
        Of the bumps, in distances between them; wide ones are nearly dependent.
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.

    Raises
    ------
    InputError
        For d above n, and options out of range.
    """
    what = "tdexp.random_walk"
    n, d, width = checks.whole(n, "n", what, least=3), checks.whole(d, "d", what), checks.positive(width, "width", what)
    if d > n:
        raise InputError(f"{what}: d={d} features need as many states, n={n}")
    P = 0.5 * (np.eye(n, k=1) + np.eye(n, k=-1))
    r = np.zeros((n, n + 1))
    r[[0, -1], n] = -1.0, 1.0
    centers = np.linspace(0, n - 1, d)
    distance = max(1.0, (n - 1) / max(1, d - 1))
    phi = np.exp(-0.5 * ((np.arange(n)[:, None] - centers) / (width * distance)) ** 2)
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    process = MRP(P, r, phi, gamma, restart=np.eye(n)[n // 2], sampling=sampling)
    return PolicyEvaluation(process, runs=runs, name="random walk")


def refresh_chain(
    n: Annotated[int, Ge(2)] = 10,
    d: Size = 4,
    rho: Annotated[float, Ge(0), Lt(1)] = 0.5,
    gamma: Discount = 0.9,
    noise: Noise = 0.0,
    sampling: Sampling = "markov",
    runs: Size = 1,
    data_seed: int = 0,
) -> PolicyEvaluation:
    """`P = rho I + (1 - rho) 1 mu'`: stays with chance rho, else is drawn from mu.

    The distance from mu in total variation is `rho^t (1 - mu_s)` after t steps from s.

    Parameters
    ----------
    n : int, default 10
        States.
    d : int, default 4
        Random features, at most n, rows of norm at most 1.
    rho : float, default 0.5
        Rate of mixing, in [0, 1).
    gamma : float, default 0.9
        Discount, in [0, 1).
    noise : float, default 0.0
        Standard deviation of the noise on rewards.
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or independent states.
    runs : int, default 1
        Independent runs at once.
    data_seed : int, default 0
        Of mu, rewards and features.

    Raises
    ------
    InputError
        For d above n, and options out of range.
    """
    what = "tdexp.refresh_chain"
    n, d, rho = checks.whole(n, "n", what, least=2), checks.whole(d, "d", what), checks.fraction(rho, "rho", what)
    if d > n:
        raise InputError(f"{what}: d={d} must be at most n={n}")
    rng = np.random.default_rng(checks.whole(data_seed, "data_seed", what, least=0))
    mu = rng.dirichlet(np.full(n, 2.0))
    P = rho * np.eye(n) + (1 - rho) * mu
    phi = rng.standard_normal((n, d))
    phi /= np.linalg.norm(phi, axis=1).max()
    process = MRP(P, rng.uniform(-1, 1, n), phi, gamma, noise, sampling=sampling)
    return PolicyEvaluation(process, runs=runs, name="refresh chain")


def baird(gamma: Discount = 0.99, runs: Size = 1) -> PolicyEvaluation:
    """Baird's star: all states lead to the last, but are visited equally often. TD(0) drifts away at any step size.

    States are drawn uniformly and transitions by the policy that is evaluated, so states do not follow each other.
    The eight features of seven states are dependent, and divided by their largest norm.

    Parameters
    ----------
    gamma : float, default 0.99
        Discount, in [0, 1).
    runs : int, default 1
        Independent runs at once.

    References
    ----------
    Baird, "Residual algorithms: reinforcement learning with function approximation", 1995.
    """
    P = np.zeros((7, 7))
    P[:, 6] = 1.0
    phi = np.hstack([2.0 * np.eye(7), np.ones((7, 1))])
    phi[6, 6:] = 1.0, 2.0
    process = MRP(P, np.zeros(7), phi, gamma, mu=np.full(7, 1 / 7), sampling="iid", scale_features=True, unique=False)
    return _Star(process, runs=runs, name="Baird's star")


class _Star(PolicyEvaluation):
    def start(self, rng: np.random.Generator) -> Array:
        """The usual start, from which the weights of the lower state are pulled away."""
        w = np.ones(8)
        w[6] = 10.0
        return w if self.runs == 1 else np.tile(w, (self.runs, 1))
