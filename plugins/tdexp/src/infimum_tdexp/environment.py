"""Environments of gymnasium: as a model where they state one, else played."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from infimum.errors import InputError
from infimum_tdexp import checks
from infimum_tdexp.problem import PolicyEvaluation
from infimum_tdexp.recorded import Stream
from infimum_tdexp.tables import WHAT, Table, probabilities, rows, tabular, title
from infimum_tdexp.transitions import TRANSITIONS, Array, Batch, Moments, Request

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
        if not (callable(policy) or (isinstance(policy, str) and policy == "uniform")):
            raise InputError(
                f"Environment: policy must be 'uniform' or a function of the observation, got {checks.shown(policy)}"
            )
        if not callable(features):
            raise InputError(
                f"Environment: features must be a function of the observation, got {checks.shown(features)}"
            )
        self.make, self.policy, self.features = make, policy, features
        self.gamma = checks.discount(gamma, "Environment")
        env = made(make)
        self.dimension = 0
        self.dimension = len(self.seen(env.reset(seed=0)[0]))
        self.title = title(env)
        env.close()
        self._open: OrderedDict[tuple[int, int], tuple[int, list[Iterator[Any]]]] = OrderedDict()
        self._last: tuple[Any, Any] = (None, None)

    def __repr__(self) -> str:
        return f"Environment({self.title}, {self.dimension} features, gamma={self.gamma:g})"

    def seen(self, observation: Any) -> Array:
        """The features of an observation, checked."""
        given = self.features(observation)
        try:
            phi = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            phi = np.array(np.nan)
        # 0 until the first observation has been seen.
        d = self.dimension
        if phi.ndim != 1 or not np.isfinite(phi).all() or len(phi) != (d or len(phi)):
            size = f"{d}" if d else "a vector of"
            raise InputError(f"features({observation!r}) gave {checks.shown(given)}; expected {size} finite numbers")
        length = float(np.linalg.norm(phi))
        if length > 1 + 1e-12:
            raise InputError(
                f"features({observation!r}) have norm {length:.4g} > 1, but step sizes count on norms of at most 1; "
                "divide them by their largest norm"
            )
        return phi

    def play(self, seed: int, run: int = 0) -> Generator[tuple[Array, float, Array, bool], None, None]:
        """Endless transitions of one run: features, reward, features after it, whether that state is terminal."""
        env, rng = made(self.make), np.random.default_rng([seed, run])
        try:
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
            here = self.seen(observation)
            while True:
                action = self._action(observation, rng, env.action_space)
                observation, reward, terminated, truncated, _ = env.step(action)
                after = self.seen(observation)
                yield here, float(reward), after, bool(terminated)
                if terminated or truncated:
                    observation, _ = env.reset(seed=int(rng.integers(2**31)))
                    after = self.seen(observation)
                here = after
        finally:
            env.close()

    def _action(self, observation: Any, rng: np.random.Generator, space: Any) -> Any:
        """What the policy does; `space` is that of the actions."""
        count, first = getattr(space, "n", None), int(getattr(space, "start", 0))
        if isinstance(self.policy, str):
            if count is None:
                raise InputError(f"policy='uniform' needs a finite set of actions, got {space}")
            return first + int(rng.integers(count))
        given = self.policy(observation)
        if count is None:
            return given
        said = f"policy({observation!r})"
        if np.ndim(given) == 1:
            return first + int(rng.choice(int(count), p=checks.distribution(given, int(count), said, "actions")))
        if not space.contains(given):
            raise InputError(
                f"{said} gave {checks.shown(given)}; expected an action, {first} to {first + count - 1}, or "
                f"{count} probabilities"
            )
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
        Of the environment and the policy, at least 0.

    Returns
    -------
    Stream

    Raises
    ------
    InputError
        As `from_gymnasium`, and for `steps` or `seed` out of range.
    """
    steps, seed = checks.whole(steps, "steps", "record"), checks.whole(seed, "seed", "record", least=0)
    played = _playing(maker(env), policy, features, gamma).play(seed)
    found = [next(played) for _ in range(steps)]
    played.close()
    here, rewards, after, ended = (np.array(column) for column in zip(*found, strict=True))
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
    make = maker(env)
    example = made(make)
    table, name = Table.of(example), title(example)
    example.close()
    if model and table is None:
        raise InputError(f"{WHAT}: {name} states no transitions (unwrapped.P); leave model out to play it")
    if table is None or model is False:
        if checks.sampling(sampling, WHAT) != "markov":
            why = f"{name} states none" if table is None else "model=False leaves it out"
            raise InputError(f"{WHAT}: sampling='iid' needs a model, but {why}; play it in order, sampling='markov'")
        return PolicyEvaluation(_playing(make, policy, features, gamma), runs=runs, name=name)
    return table.problem(policy, features, gamma, sampling=sampling, scale_features=scale_features, runs=runs)


def _playing(make: Callable[[], Any], policy: Any, features: Any, gamma: float) -> Environment:
    """An environment to be played, with features and policy as functions of the observation."""
    env = made(make)
    n, actions = getattr(env.observation_space, "n", None), getattr(env.action_space, "n", None)
    env.close()
    if not callable(features):
        if n is None:
            raise InputError(
                f"{WHAT}: features={checks.shown(features)} needs finitely many states, got {env.observation_space}; "
                "give a function of the observation"
            )
        table = np.eye(int(n)) if tabular(features) else rows(features, int(n))
        features = table.__getitem__
    if policy != "uniform" if isinstance(policy, str) else not callable(policy):
        if n is None or actions is None:
            raise InputError(
                f"{WHAT}: policy={checks.shown(policy)} needs finitely many states and actions; expected 'uniform' or "
                "a function of the observation"
            )
        policy = probabilities(policy, int(n), int(actions)).__getitem__
    return Environment(make, policy, features, gamma)


def maker(env: Any) -> Callable[[], Any]:
    """A function that makes fresh environments.

    Raises
    ------
    InputError
        If gymnasium is not installed, or knows no such environment.
    """
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


def made(make: Callable[[], Any]) -> Any:
    """A fresh environment."""
    env = make()
    if not (hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "unwrapped")):
        raise InputError(f"{WHAT}: expected a function that makes an environment of gymnasium, it made {env!r}")
    return env
