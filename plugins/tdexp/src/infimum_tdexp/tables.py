"""Tables of transitions, as the toy texts of gymnasium state them, and the policies that are evaluated on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from infimum.errors import InputError
from infimum_tdexp import chain, checks
from infimum_tdexp.model import MRP, Outcomes
from infimum_tdexp.problem import PolicyEvaluation
from infimum_tdexp.transitions import Array

WHAT = "from_gymnasium"
_SWEEPS = 10_000
"""Of value iteration at most; a discount of 0.99 needs 3000."""


@dataclass(frozen=True, eq=False)
class Table:
    """What each action can lead to: from `state` by `action`, with `probability`, to `target` for `reward`.

    Attributes
    ----------
    state, action, probability, target, reward, ended : array, shape (N,)
        `ended`: the episode ends in `target`, a terminal state.
    start : array, shape (n,)
        Distribution of the first state of an episode.
    actions : int
    name : str
    """

    state: Array
    action: Array
    probability: Array
    target: Array
    reward: Array
    ended: Array
    start: Array
    actions: int
    name: str

    @classmethod
    def of(cls, env: Any) -> Table | None:
        """From `P[s][a] = [(probability, next state, reward, done), …]` of an environment; None where it has none."""
        stated = getattr(env.unwrapped, "P", None)
        if stated is None:
            return None
        rows = [(s, a, *row) for s, choices in stated.items() for a, found in choices.items() for row in found]
        state, action, probability, target, reward, ended = (np.array(column) for column in zip(*rows, strict=True))
        start = np.asarray(env.unwrapped.initial_state_distrib, dtype=np.float64)
        return cls(state, action, probability, target, reward, ended.astype(bool), start, len(stated[0]), title(env))

    def __len__(self) -> int:
        """Number of states."""
        return len(self.start)

    def outcomes(self, policy: Array) -> Outcomes:
        """What can happen under probabilities of the actions (n, actions); after an end, episodes start anew."""
        chance = policy[self.state, self.action] * self.probability
        stay, ends = (np.flatnonzero((chance > 0) & which) for which in (~self.ended, self.ended))
        first = np.flatnonzero(self.start)
        again, to = np.repeat(ends, len(first)), np.tile(first, len(ends))
        rows = np.concatenate([stay, again])
        probability = np.concatenate([chance[stay], chance[again] * self.start[to]])
        target = np.concatenate([self.target[stay], to])
        return Outcomes.sorted(self.state[rows], probability, target, self.reward[rows], ~self.ended[rows])

    def near_optimal(self, gamma: float, epsilon: float) -> Array:
        """The best action, by value iteration, with chance `epsilon` a random one; shape (n, actions)."""
        n, actions = len(self), self.actions
        pair = self.state * actions + self.action
        value = np.zeros(n)
        for _ in range(_SWEEPS):
            after = self.reward + gamma * np.where(self.ended, 0.0, value[self.target])
            q = np.bincount(pair, self.probability * after, n * actions).reshape(n, actions)
            value, before = q.max(axis=1), value
            if np.abs(value - before).max() <= 1e-12 * max(1.0, float(np.abs(value).max())):
                break
        policy = np.full((n, actions), epsilon / actions)
        policy[np.arange(n), q.argmax(axis=1)] += 1 - epsilon
        return policy

    def problem(
        self,
        policy: Any,
        features: Any,
        gamma: float,
        *,
        sampling: Literal["markov", "iid"],
        scale_features: bool = False,
        runs: int = 1,
    ) -> PolicyEvaluation:
        """The evaluation of a policy on the states that it visits again and again; options are those of
        `from_gymnasium`."""
        n = len(self)
        outcomes = self.outcomes(probabilities(policy, n, self.actions))
        if tabular(features):
            phi = np.eye(n)[:, chain.recurrent(outcomes.matrix(n, ends=True), WHAT)]
        else:
            phi = rows(features, n)
        process = MRP.from_outcomes(
            outcomes, phi, gamma, restart=self.start, sampling=sampling, scale_features=scale_features
        )
        return PolicyEvaluation(process, runs=runs, name=self.name)


def title(env: Any) -> str:
    """The id of an environment, or the name of its class."""
    return str(getattr(env.spec, "id", None) or type(env.unwrapped).__name__)


def tabular(features: Any) -> bool:
    """Whether features are one-hot; refuses any other word."""
    if isinstance(features, str) and features != "tabular":
        raise InputError(
            f"{WHAT}: features={features!r}; expected 'tabular', an array or a function of the observation"
        )
    return isinstance(features, str)


def rows(features: Any, n: int) -> Array:
    """Features by state, (n, d), from an array or a function of the state."""
    given = [features(s) for s in range(n)] if callable(features) else features
    found = checks.numbers(given, f"{WHAT}: features")
    if found.ndim != 2 or len(found) != n:
        raise InputError(f"{WHAT}: features must have a row for each of {n} states, got shape {found.shape}")
    return found


def probabilities(policy: Any, n: int, actions: int) -> Array:
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
    table = checks.numbers(given, f"{WHAT}: policy")
    chosen = table.astype(np.intp)
    if table.shape == (n,) and (table == chosen).all() and table.min() >= 0 and table.max() < actions:
        return np.eye(actions)[chosen]
    if table.shape != (n, actions) or (table < 0).any() or not np.allclose(table.sum(axis=1), 1.0, atol=1e-8):
        raise InputError(
            f"{WHAT}: policy must give an action (0 to {actions - 1}) for each of {n} states, or probabilities, "
            f"({n}, {actions}), whose rows sum to 1; got shape {table.shape}"
        )
    return table
