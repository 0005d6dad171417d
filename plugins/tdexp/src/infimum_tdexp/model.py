"""Markov reward processes whose model is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from infimum.errors import InputError
from infimum_tdexp import chain, checks
from infimum_tdexp.transitions import BLOCK, TRANSITIONS, Array, Batch, Moments, Request, joined, uniforms

WHAT = "MRP"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What can happen: from `source`, with `probability`, to `target` for `reward`; sorted by source.

    Where `goes_on` is false the episode ends: nothing is expected after it, and `target` is where the next one starts.
    """

    source: Array
    probability: Array
    target: Array
    reward: Array
    goes_on: Array

    @classmethod
    def of(cls, P: Array, r: Array, ends: Array, restart: Array | None) -> Outcomes:
        """From a matrix of probabilities, rewards by state or by transition, and chances of ending by state."""
        s, t = np.nonzero(P)
        by_state = r.ndim == 1
        rows = [(s, P[s, t], t, r[s] if by_state else r[s, t], np.ones(len(s), dtype=bool))]
        if restart is not None:
            leaving, starts = np.flatnonzero(ends), np.flatnonzero(restart)
            s, t = np.repeat(leaving, len(starts)), np.tile(starts, len(leaving))
            last = r[s] if by_state else r[s, -1] if r.shape[1] > len(P) else np.zeros(len(s))
            rows.append((s, ends[s] * restart[t], t, last, np.zeros(len(s), dtype=bool)))
        return cls.sorted(*(np.concatenate(column) for column in zip(*rows, strict=True)))

    @classmethod
    def sorted(cls, source: Array, *columns: Array) -> Outcomes:
        """With the rows in the order of their sources."""
        order = np.argsort(source, kind="stable")
        return cls(source[order], *(one[order] for one in columns))

    def kept(self, states: Array, n: int) -> Outcomes:
        """Those of some states, which are numbered anew."""
        number = np.full(n, -1)
        number[states] = np.arange(len(states))
        held = number[self.source] >= 0
        columns = (self.probability[held], number[self.target[held]], self.reward[held], self.goes_on[held])
        return Outcomes(number[self.source[held]], *columns)

    def matrix(self, n: int, *, ends: bool) -> Array:
        """Probabilities from state to state; without the outcomes that end an episode unless `ends`."""
        out = np.zeros((n, n))
        weight = self.probability if ends else self.probability * self.goes_on
        np.add.at(out, (self.source, self.target), weight)
        return out


class MRP:
    """A finite Markov reward process with linear features, of which everything is known.

    Parameters
    ----------
    P : array, shape (n, n)
        `P[s, s']`, the probability of going from s to s'. Rows sum to 1, or to less where `restart` is given: what is
        missing is the chance that the episode ends after state s.
    r : array, shape (n,), (n, n) or (n, n + 1)
        Rewards by state, or by transition; a last column holds what the end of an episode pays (without it, by
        transition, nothing).
    features : array, shape (n, d)
        Of norm at most 1 in each row, of rank d on the states that are visited.
    gamma : float
        Discount, in [0, 1).
    noise : float, default 0.0
        Standard deviation of Gaussian noise on each reward.
    restart : array, shape (n,), optional
        Distribution of the first state of an episode.
    mu : array, shape (n,), optional
        Draw states from this distribution instead of the stationary one (off-policy), independently of each other.
    sampling : {"markov", "iid"}, default "markov"
        One trajectory, or in each transition an independent state.
    scale_features : bool, default False
        Divide features by the largest norm where it exceeds 1.
    unique : bool, default True
        Refuse features that are linearly dependent.

    Raises
    ------
    InputError
        Naming what does not fit: rows that do not sum to 1, a chain that is reducible, features that are too long
        or dependent, a discount out of range, shapes.

    Notes
    -----
    States that are visited at most finitely often are left out: `states` says which ones stay.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset({TRANSITIONS})

    def __init__(
        self,
        P: Any,
        r: Any,
        features: Any,
        gamma: float,
        noise: float = 0.0,
        *,
        restart: Any = None,
        mu: Any = None,
        sampling: Literal["markov", "iid"] = "markov",
        scale_features: bool = False,
        unique: bool = True,
    ) -> None:
        P, r = checks.numbers(P, f"{WHAT}: P"), checks.numbers(r, f"{WHAT}: r")
        n = _states(P, r)
        restart = None if restart is None else checks.distribution(restart, n, f"{WHAT}: restart")
        mu = None if mu is None else checks.distribution(mu, n, f"{WHAT}: mu")
        P, ends = _probabilities(P, episodes=restart is not None)
        outcomes = Outcomes.of(P, r, ends, restart)
        self._set_up(outcomes, features, gamma, noise, restart, mu, sampling, scale_features, unique)

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Outcomes,
        features: Any,
        gamma: float,
        *,
        restart: Array | None = None,
        sampling: Literal["markov", "iid"] = "markov",
        scale_features: bool = False,
        unique: bool = True,
    ) -> MRP:
        """From a list of all that can happen, as tables of environments state it."""
        made = cls.__new__(cls)
        made._set_up(outcomes, features, gamma, 0.0, restart, None, sampling, scale_features, unique)
        return made

    def _set_up(
        self,
        outcomes: Outcomes,
        features: Any,
        gamma: float,
        noise: float,
        restart: Array | None,
        mu: Any,
        sampling: str,
        scale_features: bool,
        unique: bool,
    ) -> None:
        self.gamma, self.noise = checks.discount(gamma, WHAT), checks.non_negative(noise, "noise", WHAT)
        self.sampling = checks.sampling(sampling, WHAT)
        if mu is not None and sampling == "markov":
            raise InputError(f"{WHAT}: states of a given distribution mu are drawn independently; set sampling='iid'")
        phi = checks.features(features, scale_features, WHAT)
        n = int(max(outcomes.source.max(), outcomes.target.max())) + 1
        if len(phi) != n:
            raise InputError(f"{WHAT}: features of {len(phi)} states were given, but there are {n} states")
        whole = outcomes.matrix(n, ends=True)
        self.states = np.arange(n) if mu is not None else chain.recurrent(whole, WHAT)
        self.outcomes = outcomes.kept(self.states, n)
        self.features = phi[self.states]
        self.dimension = phi.shape[1]
        self.chain = whole[np.ix_(self.states, self.states)]
        self.mu = chain.stationary(self.chain, WHAT) if mu is None else mu
        self.restart = None if restart is None else restart[self.states]
        self.unique = unique
        if unique:
            checks.rank(self.features[self.mu > 0], WHAT)
        self._tables()

    def _tables(self) -> None:
        """What drawing transitions looks up."""
        o, n = self.outcomes, len(self.states)
        running = np.cumsum(o.probability)
        last = np.searchsorted(o.source, np.arange(n), side="right") - 1
        base = np.concatenate([[0.0], running[last[:-1]]])
        self._levels = o.source + (running - base[o.source]) / (running[last] - base)[o.source]
        # Exactly the next whole number, so that no rounding leads to a neighbor's outcomes.
        self._levels[last] = np.arange(1, n + 1)
        self._weight = self.mu[o.source] * o.probability
        self._joint = np.cumsum(self._weight)
        self._joint /= self._joint[-1]
        start = self.mu if self.restart is None or self.restart.sum() <= 0 else self.restart
        self._start = np.cumsum(start / start.sum())
        follow = np.where(o.goes_on[:, None], self.gamma, 0.0) * self.features[o.target]
        self._phi = self.features[o.source]
        self._psi = follow - self._phi
        self._update, self._error = joined(self._phi, np.zeros(len(follow))), joined(self._psi, o.reward)
        self._target = o.target.astype(np.float64)
        self._memo: tuple[Any, Any] = (None, None)

    def __repr__(self) -> str:
        return f"MRP({len(self.states)} states, {self.dimension} features, gamma={self.gamma:g}, {self.sampling})"

    # Facts -----------------------------------------------------------------------------------------------------------

    @cached_property
    def moments(self) -> Moments:
        """A, b and the features' second moments under mu."""
        weighted = self._phi.T * self._weight
        G = (self.features.T * self.mu) @ self.features
        return Moments(-weighted @ self._psi, weighted @ self.outcomes.reward, G)

    @property
    def w_star(self) -> Array:
        """The fixed point of TD(0)."""
        return self.moments.w_star

    @property
    def omega(self) -> float:
        """Smallest eigenvalue of the features' second moments."""
        return self.moments.omega

    @cached_property
    def rho(self) -> float:
        """Rate of mixing: the second largest modulus of an eigenvalue of the chain."""
        return chain.second_modulus(self.chain)

    @cached_property
    def sigma2(self) -> float:
        """`E||g(w*)||^2`, the noise of the updates at the fixed point."""
        error2 = (self.outcomes.reward + self._psi @ self.w_star) ** 2 + self.noise**2
        return float((self._weight * error2 * (self._phi**2).sum(axis=1)).sum())

    @cached_property
    def values(self) -> Array:
        """The true value of each state in `states`."""
        o, n = self.outcomes, len(self.states)
        reward = np.bincount(o.source, o.probability * o.reward, n)
        return np.asarray(np.linalg.solve(np.eye(n) - self.gamma * o.matrix(n, ends=False), reward))

    def mixing_time(self, delta: float) -> int:
        """The first t at which every start is within `delta` of the stationary distribution in total variation."""
        return chain.mixing_time(self.chain, self.mu, delta)

    # Transitions -----------------------------------------------------------------------------------------------------

    def transitions(self, request: Request) -> Batch:
        """Transitions of independent runs; a function of the request alone."""
        drawn = np.empty((request.steps, request.runs), dtype=np.intp)
        noise = np.zeros((request.steps, request.runs)) if self.noise else None
        where, at = request.where, 0
        if where is None:
            u, _ = uniforms(request.seed, 0, (request.runs,), stream=1)
            where = self._start.searchsorted(u, "right").astype(np.float64)
        while at < request.steps:
            block, offset = divmod(request.first + at, BLOCK)
            u, normal = self._numbers(request.seed, block, request.runs)
            take = min(request.steps - at, BLOCK - offset)
            piece = slice(offset, offset + take)
            where = self._draw(u[piece], where, drawn[at : at + take])
            if noise is not None:
                noise[at : at + take] = normal[piece]
            at += take
        batch = Batch(self._update.take(drawn, axis=0), self._error.take(drawn, axis=0), where)
        if noise is not None:
            batch.reward[:] += self.noise * noise
        return batch

    def _draw(self, u: Array, where: Array, out: Array) -> Array:
        """Outcomes for uniform numbers (steps, runs), from where the chains stand; where they stand after it."""
        if self.sampling == "iid":
            out[:] = np.minimum(self._joint.searchsorted(u, "right"), len(self._joint) - 1)
            return where
        search, target, level, add = self._levels.searchsorted, self._target.take, np.empty(u.shape[1]), np.add
        for k, one in enumerate(u):
            add(one, where, level)
            out[k] = chosen = search(level, "right")
            where = target(chosen)
        return where

    def _numbers(self, seed: int, block: int, runs: int) -> Any:
        """Random numbers of a block of steps; the last block is remembered for those who go step by step."""
        key, kept = (seed, block, runs), self._memo
        if kept[0] == key:
            return kept[1]
        u, rng = uniforms(seed, block, (BLOCK, runs))
        made = (u, rng.standard_normal((BLOCK, runs)) if self.noise else None)
        self._memo = (key, made)
        return made


def _states(P: Array, r: Array) -> int:
    """Number of states, if the shapes agree."""
    n = len(P) if P.ndim == 2 else 0
    if n == 0 or P.shape != (n, n):
        raise InputError(f"{WHAT}: P must be a square matrix of probabilities, got shape {P.shape}")
    if r.shape not in ((n,), (n, n), (n, n + 1)):
        raise InputError(
            f"{WHAT}: r must have shape ({n},), by state, ({n}, {n}), by transition, or ({n}, {n + 1}), with the ends "
            f"of episodes, got {r.shape}"
        )
    return n


def _probabilities(P: Array, *, episodes: bool) -> tuple[Array, Array]:
    """P without its rounding errors, and the chances of an episode's end by state, shape (n,)."""
    if (P < 0).any():
        row = int(np.argmax((P < 0).any(axis=1)))
        raise InputError(f"{WHAT}: row {row} of P holds a number that is no probability, {P[row].min():g}")
    sums = P.sum(axis=1)
    wrong = sums > 1 + checks.SUM if episodes else np.abs(sums - 1) > checks.SUM
    if wrong.any():
        row = int(np.argmax(wrong))
        hint = "" if episodes or sums[row] > 1 else "; for chances of ending an episode give restart too"
        raise InputError(f"{WHAT}: rows of P do not sum to 1 (row {row}: {sums[row]:.6g}){hint}")
    ends = np.where(sums < 1 - checks.SUM, 1 - sums, 0.0) if episodes else np.zeros(len(P))
    return P * ((1 - ends) / np.where(sums > 0, sums, 1.0))[:, None], ends
