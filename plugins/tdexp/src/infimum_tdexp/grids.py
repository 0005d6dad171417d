"""Many schedules, each for many runs, over the same transitions: one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from infimum.errors import InputError
from infimum.schedule import Schedule
from infimum_tdexp import checks, kernel
from infimum_tdexp.lstd import LSTD, accumulate, solved
from infimum_tdexp.problem import PolicyEvaluation
from infimum_tdexp.td import checked_steps
from infimum_tdexp.transitions import Array, Request

WHAT = "grid"


@dataclass(frozen=True, eq=False)
class Grid:
    """What a pass over schedules and runs gave.

    Attributes
    ----------
    names : tuple of str
        The schedules, in the order of the first axis below.
    last : array, shape (schedules, runs, d)
        Last iterates; not finite where a run has diverged.
    mean : array, shape (schedules, runs, d)
        Means of the iterates after the first `average` steps.
    lstd : array, shape (runs, d)
        What least squares make of the same transitions (`tdexp.lstd` with its default ridge).
    problem : PolicyEvaluation
    """

    names: tuple[str, ...]
    last: Array
    mean: Array
    lstd: Array
    problem: PolicyEvaluation

    def errors(self, weights: Array) -> Array:
        """Mean squared errors of values against those of the fixed point; inf where the weights are not finite.

        Parameters
        ----------
        weights : array, shape (…, d)
            Such as `last`, `mean` or `lstd`.

        Raises
        ------
        InputError
            If the fixed point is not known, or for another number of weights.
        """
        moments = self.problem.moments
        if moments is None:
            raise InputError(f"{WHAT}: the fixed point of {self.problem.describe()} is not known")
        if np.shape(weights)[-1:] != moments.b.shape:
            raise InputError(f"{WHAT}: expected weights of shape (…, {len(moments.b)}), got {np.shape(weights)}")
        sound = np.isfinite(weights).all(axis=-1) & (np.abs(weights).max(axis=-1) < kernel.LIMIT)
        found = moments.errors(np.where(sound[..., None], weights, 0.0))
        return np.where(sound, found, np.inf)


def grid(
    problem: PolicyEvaluation,
    schedules: Mapping[str, Schedule],
    *,
    steps: int,
    runs: int = 8,
    seed: int = 0,
    lam: float = 0.0,
    average: int | None = None,
) -> Grid:
    """TD(0) from zero for each schedule and run; all schedules see the same transitions.

    Parameters
    ----------
    problem : PolicyEvaluation
    schedules : mapping of str to Schedule
        Name to step sizes at k = 0, 1, …
    steps : int
        Transitions of each run.
    runs : int, default 8
    seed : int, default 0
        The same seed gives the same transitions, for any schedules.
    lam : float, default 0.0
        Regularization.
    average : int, optional
        Steps before the mean of the iterates begins; half of them by default.

    Raises
    ------
    InputError
        For numbers out of range, or a schedule that gives a step that is not finite or below 0.
    """
    if not isinstance(problem, PolicyEvaluation):
        raise InputError(f"{WHAT}: expected a PolicyEvaluation, got {checks.shown(problem)}")
    if not (isinstance(schedules, Mapping) and schedules and all(map(callable, schedules.values()))):
        raise InputError(
            f"{WHAT}: expected schedules by name, such as {{'exp': Exponential({steps})}}, got "
            f"{checks.shown(schedules)}"
        )
    steps, runs = checks.whole(steps, "steps", WHAT), checks.whole(runs, "runs", WHAT)
    seed, lam = checks.whole(seed, "seed", WHAT, least=0), checks.non_negative(lam, "lam", WHAT)
    burn_in = steps // 2 if average is None else checks.whole(average, "average", WHAT, least=0)
    if burn_in >= steps:
        raise InputError(f"{WHAT}: average={average} must be below steps={steps}")
    process = problem.process
    d, count = process.dimension, len(schedules)
    W, b = np.zeros((count, runs, d)), np.zeros((runs, d))
    A = np.tile(LSTD().ridge * np.eye(d), (runs, 1, 1))
    total, most, where, done = np.zeros_like(W), kernel.chunk(d, runs), None, 0
    with np.errstate(over="ignore", invalid="ignore"):
        while done < steps:
            take = min(most, steps - done)
            batch = process.transitions(Request(seed, done, take, runs, where))
            numbers = np.array([checked_steps(one, done, take) for one in schedules.values()])
            etas = numbers.T[:, :, None]
            kernel.learn(W, batch, etas, lam, total, max(0, burn_in - done))
            accumulate(A, b, batch)
            done, where = done + take, batch.where
    return Grid(tuple(schedules), W, total / (steps - burn_in), solved(A, b), problem)
