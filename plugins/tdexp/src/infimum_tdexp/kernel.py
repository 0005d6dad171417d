"""The loop of TD(0) over a batch of transitions, for any number of runs (and schedules) at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum_tdexp.transitions import Array, Batch

LIMIT = 1e8
"""Norm of the weights beyond which a run has diverged."""
_NUMBERS = 1 << 16
"""Feature entries that are looked up at once: two tables of 512 KiB, which stay in a core's cache."""


def chunk(dimension: int, runs: int) -> int:
    """How many steps to ask for at once."""
    return max(1, min(1024, _NUMBERS // (dimension * runs)))


def learn(W: Array, batch: Batch, steps: Any, lam: float = 0.0, total: Array | None = None, skip: int = 0) -> Array:
    """Take the steps of a batch in place: `W += eta (delta phi - lam W)` with `delta = reward + psi'W`.

    Parameters
    ----------
    W : array, shape (runs, d) or (schedules, runs, d)
    batch : Batch
        Shared by all schedules.
    steps : sequence of float, or of arrays of shape (schedules, 1)
        Step sizes.
    lam : float
    total : array like W, optional
        The iterates after the first `skip` steps of the batch are added to it, in place.

    Returns
    -------
    array, shape (runs,) or (schedules, runs)
        The last temporal differences; those of several schedules times their step sizes.
    """
    extended = np.concatenate([W, np.ones_like(W[..., :1])], axis=-1)
    inner = extended[..., :-1]
    change, delta = np.empty_like(extended), np.empty(W.shape[:-1])
    flat, sums, ones = change.reshape(-1, change.shape[-1]), delta.reshape(-1), np.ones(change.shape[-1])
    many, column = W.ndim == 3, delta[..., None]
    # One number for all runs goes into the features beforehand, numbers by schedule into the error at each step.
    updates = batch.update if many else batch.update * np.asarray(steps)[:, None, None]
    multiply, add, dot = np.multiply, np.add, np.dot
    for k, (eta, update, error) in enumerate(zip(steps, updates, batch.error, strict=True)):
        multiply(error, extended, change)
        dot(flat, ones, sums)
        if many:
            multiply(delta, eta, delta)
        multiply(update, column, change)
        if lam:
            multiply(inner, 1.0 - (eta[..., None] if many else eta) * lam, inner)
        add(extended, change, extended)
        if total is not None and k >= skip:
            add(total, inner, total)
    W[...] = inner
    return delta
