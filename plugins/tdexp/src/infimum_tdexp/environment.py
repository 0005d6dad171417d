"""Environments of gymnasium: as a model where they state one, else played."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from infimum.errors import InputError
from infimum_tdexp.model import MRP, Outcomes
from infimum_tdexp.problem import PolicyEvaluation
from infimum_tdexp.recorded import Stream
from infimum_tdexp.transitions import TRANSITIONS, Array, Batch, Moments, Request, check_gamma

WHAT = "from_gymnasium"
_SESSIONS = 4
"""Played runs that are kept open."""
Features = Callable[[Any], Any] | Array | Literal["tabular"]


class Environment:
    """An environment that is played under a policy; for those that state no model.

    Parameters
    ----------
    make : callable
        `make()` gives a fresh environment (`reset`, `step`), equal and independent at each call.
    policy : callable or "uniform"
        `policy(observation)` gives an action, or the probabilities of the actions.
    features : callable
        `features(observation)` gives d numbers, of norm at most 1.
    gamma : float
        Discount, in [0, 1).

    Raises
    ------
    InputError
        For a discount out of range, features that are no vector or too long.

    Notes
    -----
    A terminal state has the value 0. An episode that is cut off (`truncated`) goes on behind the cut: the state after
    it counts by its value, and the environment is reset. The seed of a run decides all that happens in it, so a run
    that is taken up plays again from its start, unasked and uncounted.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset({TRANSITIONS})
    sampling = "markov"
    omega: float | None = None
    moments: Moments | None = None

    def __init__(self, make: Callable[[], Any], policy: Any, features: Callable[[Any], Any], gamma: float) -> None:
        check_gamma(gamma, "Environment")
        if not (policy == "uniform" or callable(policy)):
            raise InputError(f"Environment: policy must be 'uniform' or a function of the observation, got {policy!r}")
        self.make, self.policy, self.features, self.gamma = make, policy, features, float(gamma)
        env = make()
        self.dimension = len(self.seen(env.reset(seed=0)[0]))
        self.title = str(getattr(env.spec, "id", None) or type(env.unwrapped).__name__)
        env.close()
        self._open: OrderedDict[tuple[int, int], tuple[int, list[Iterator[Any]]]] = OrderedDict()
        self._last: tuple[Any, Any] = (None, None)

    def __repr__(self) -> str:
        return f"Environment({self.title}, {self.dimension} features, gamma={self.gamma:g})"

    def seen(self, observation: Any) -> Array:
        """The features of an observation, checked."""
        phi = np.asarray(self.features(observation), dtype=np.float64)
        if phi.ndim != 1 or not np.isfinite(phi).all():
            raise InputError(f"features({observation!r}) gave {phi!r}; expected a vector of finite numbers")
        length = float(np.linalg.norm(phi))
        if length > 1 + 1e-12:
            raise InputError(
                f"features({observation!r}) have norm {length:.4g} > 1, but step sizes count on norms of at most 1; "
                "divide them by their largest norm"
            )
        return phi

    def play(self, seed: int, run: int = 0) -> Iterator[tuple[Array, float, Array, bool]]:
        """Endless transitions of one run: features, reward, features after it, whether that state is terminal."""
        env, rng = self.make(), np.random.default_rng([seed, run])
        try:
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
            here = self.seen(observation)
            while True:
                action = self._action(observation, rng, env)
                observation, reward, terminated, truncated, _ = env.step(action)
                after = self.seen(observation)
                yield here, float(reward), after, bool(terminated)
                if terminated or truncated:
                    observation, _ = env.reset(seed=int(rng.integers(2**31)))
                    after = self.seen(observation)
                here = after
        finally:
            env.close()

    def _action(self, observation: Any, rng: np.random.Generator, env: Any) -> Any:
        count = getattr(env.action_space, "n", None)
        if self.policy == "uniform":
            if count is None:
                raise InputError(f"policy='uniform' needs a finite set of actions, got {env.action_space}")
            return int(rng.integers(count))
        given = self.policy(observation)
        if np.ndim(given) == 1 and count is not None:
            return int(rng.choice(int(count), p=np.asarray(given, dtype=np.float64)))
        return given

    def transitions(self, request: Request) -> Batch:
        """The next steps of each run; what was played last is remembered, what lies before it is played again."""
        asked = (request.seed, request.first, request.steps, request.runs)
        if self._last[0] == asked:
            return self._last[1]  # type: ignore[no-any-return]
        played = self._session(request)
        d, shape = self.dimension, (request.steps, request.runs)
        phi, psi, rewards = np.empty((*shape, d)), np.empty((*shape, d)), np.empty(shape)
        for run, steps in enumerate(played):
            for k in range(request.steps):
                here, rewards[k, run], after, ended = next(steps)
                phi[k, run] = here
                psi[k, run] = -here if ended else self.gamma * after - here
        self._open[request.seed, request.runs] = (request.first + request.steps, played)
        batch = Batch.of(phi, psi, rewards)
        self._last = (asked, batch)
        return batch

    def _session(self, request: Request) -> list[Iterator[Any]]:
        at, played = self._open.pop((request.seed, request.runs), (-1, []))
        if at != request.first:
            played = [self.play(request.seed, run) for run in range(request.runs)]
            for steps in played:
                for _ in range(request.first):
                    next(steps)
        while len(self._open) >= _SESSIONS:
            self._open.popitem(last=False)
        return played


def record(
    env: Any,
    policy: Any = "uniform",
    features: Any = "tabular",
    gamma: float = 0.99,
    *,
    steps: int,
    seed: int = 0,
) -> Stream:
    """Play an environment and keep its transitions.

    Parameters
    ----------
    env, policy, features, gamma
        As in `from_gymnasium`.
    steps : int
        How many.
    seed : int, default 0

    Returns
    -------
    Stream
    """
    played = _playing(_maker(env), policy, features, gamma).play(seed)
    rows = [next(played) for _ in range(steps)]
    here, rewards, after, ended = (np.array(column) for column in zip(*rows, strict=True))
    return Stream(here, rewards, after, ended, gamma)


def from_gymnasium(
    env: Any,
    policy: Any = "uniform",
    features: Features = "tabular",
    gamma: float = 0.99,
    *,
    sampling: Literal["markov", "iid"] = "markov",
    model: bool | None = None,
    scale_features: bool = False,
    runs: int = 1,
) -> PolicyEvaluation:
    """The evaluation of a policy in an environment of gymnasium.

    Parameters
    ----------
    env : str, gymnasium.Env or callable
        An id such as "CliffWalking-v1", an environment that was made from one, or a function that makes one.
    policy : "uniform", array or callable, default "uniform"
        An action for each state (n,), probabilities (n, actions), or a function of the observation that gives either.
    features : "tabular", array of shape (n, d) or callable, default "tabular"
        One-hot, a row for each state, or a function of the observation.
    gamma : float, default 0.99
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        "iid" needs a model.
    model : bool, optional
        Use the tables of transitions that the toy texts state (`env.unwrapped.P`), where everything is known, or play.
        By default the tables where there are any.
    scale_features : bool, default False
        Divide features by the largest norm where it exceeds 1; with a model.
    runs : int, default 1
        Independent runs at once.

    Returns
    -------
    PolicyEvaluation
        Over an `MRP` of the states that the policy visits again and again, or an `Environment`.

    Raises
    ------
    InputError
        If gymnasium is not installed, or something does not fit: naming it.

    Notes
    -----
    After a terminal state nothing is expected and a new episode begins. Time limits cut episodes off without ending
    them: the model has none, and when playing the state behind the cut counts by its value.
    """
    make = _maker(env)
    example = make()
    table = getattr(example.unwrapped, "P", None)
    name = str(getattr(example.spec, "id", None) or type(example.unwrapped).__name__)
    if model and table is None:
        raise InputError(f"{WHAT}: {name} states no transitions (unwrapped.P); leave model out to play it")
    if table is None or model is False:
        if sampling != "markov":
            raise InputError(
                f"{WHAT}: sampling={sampling!r} needs a model, which {name} does not state; play it in order"
            )
        played = _playing(make, policy, features, gamma)
        return PolicyEvaluation(played, runs=runs, name=name)
    n, actions = len(table), len(table[0])
    start = np.asarray(example.unwrapped.initial_state_distrib, dtype=np.float64)
    outcomes = table_outcomes(table, policy_table(policy, n, actions), start)
    phi = np.eye(n) if isinstance(features, str) else _rows(features, n)
    if isinstance(features, str):
        _only_tabular(features)
        states = _visited(outcomes, n)
        phi = phi[:, states]
    made = MRP.from_outcomes(outcomes, phi, gamma, restart=start, sampling=sampling, scale_features=scale_features)
    return PolicyEvaluation(made, runs=runs, name=name)


def policy_table(policy: Any, n: int, actions: int) -> Array:
    """Probabilities of the actions by state, (n, actions).

    Raises
    ------
    InputError
        For a policy that is neither "uniform", an array, nor a function, or whose rows are no distributions.
    """
    if isinstance(policy, str):
        if policy != "uniform":
            raise InputError(f"{WHAT}: policy={policy!r}; expected 'uniform', an array or a function of the state")
        return np.full((n, actions), 1.0 / actions)
    given = [policy(s) for s in range(n)] if callable(policy) else policy
    table = np.asarray(given)
    if table.shape == (n,) and table.dtype.kind in "iu" and table.min() >= 0 and table.max() < actions:
        return np.eye(actions)[table]  # type: ignore[no-any-return]
    table = table.astype(np.float64)
    if table.shape != (n, actions) or (table < 0).any() or not np.allclose(table.sum(axis=1), 1.0, atol=1e-8):
        raise InputError(
            f"{WHAT}: policy must give an action (0 to {actions - 1}) for each of {n} states, or probabilities, "
            f"({n}, {actions}), whose rows sum to 1; got shape {table.shape}"
        )
    return table


def table_outcomes(table: Any, policy: Array, start: Array) -> Outcomes:
    """What can happen under a policy, from gymnasium's `P[s][a] = [(probability, next state, reward, done), …]`."""
    rows = [
        (s, policy[s, a] * p, t, reward, not done)
        for s, choices in table.items()
        for a, found in choices.items()
        for p, t, reward, done in found
        if policy[s, a] * p > 0
    ]
    source, chance, target, reward, goes_on = (np.array(column) for column in zip(*rows, strict=True))
    ends, first = np.flatnonzero(~goes_on), np.flatnonzero(start)
    again = np.repeat(ends, len(first))
    to = np.tile(first, len(ends))
    stay = np.flatnonzero(goes_on)
    joined = [
        (source[stay], source[again]),
        (chance[stay], chance[again] * start[to]),
        (target[stay], to),
        (reward[stay], reward[again]),
        (goes_on[stay], goes_on[again]),
    ]
    return Outcomes.sorted(*(np.concatenate(both) for both in joined))


def _visited(outcomes: Outcomes, n: int) -> Array:
    from infimum_tdexp import chain

    return chain.recurrent(outcomes.matrix(n, ends=True), WHAT)


def _rows(features: Any, n: int) -> Array:
    rows = np.asarray([features(s) for s in range(n)] if callable(features) else features, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != n:
        raise InputError(f"{WHAT}: features must have a row for each of {n} states, got shape {rows.shape}")
    return rows


def _only_tabular(features: str) -> None:
    if features != "tabular":
        raise InputError(
            f"{WHAT}: features={features!r}; expected 'tabular', an array or a function of the observation"
        )


def _playing(make: Callable[[], Any], policy: Any, features: Any, gamma: float) -> Environment:
    env = make()
    n = getattr(env.observation_space, "n", None)
    if isinstance(features, str):
        _only_tabular(features)
        if n is None:
            raise InputError(f"{WHAT}: features='tabular' needs finitely many states, got {env.observation_space}")
        features = np.eye(int(n))
    if not callable(features):
        rows = _rows(features, int(n or 0))
        features = rows.__getitem__
    if policy != "uniform" if isinstance(policy, str) else not callable(policy):
        policy = policy_table(policy, int(n or 0), int(env.action_space.n)).__getitem__
    env.close()
    return Environment(make, policy, features, gamma)


def _maker(env: Any) -> Callable[[], Any]:
    """A function that makes fresh environments."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise InputError(
            f"{WHAT} needs gymnasium, which is not installed: pip install 'infimum-tdexp[gymnasium]'"
        ) from error
    if isinstance(env, gymnasium.Env):
        spec = env.spec
        if spec is None:
            raise InputError(f"{WHAT}: {env} was not made by its id; give a function that makes it")
        return lambda: gymnasium.make(spec)
    if isinstance(env, str):
        try:
            gymnasium.spec(env)
        except gymnasium.error.Error as error:
            raise InputError(f"{WHAT}: gymnasium knows no environment {env!r}: {error}") from error
        return lambda: gymnasium.make(env)
    if callable(env):
        return env  # type: ignore[no-any-return]
    raise InputError(f"{WHAT}: env must be an id, an environment or a function that makes one, got {env!r}")
