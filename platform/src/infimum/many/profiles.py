"""Performance profiles (Dolan and Moré 2002) and data profiles (Moré and Wild 2009) from a table of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Profile:
    """A step function: the share of problems that a method solved within `x`.

    Attributes
    ----------
    solver : str
    x : ndarray, shape (steps,)
        For a performance profile the ratio to the best method, from 1; for a data profile the cost.
    y : ndarray, shape (steps,)
        Shares from 0 to 1; constant between steps and after the last.
    """

    solver: str
    x: Array
    y: Array

    def at(self, x: float) -> float:
        """The share within `x`."""
        place = int(np.searchsorted(self.x, x, side="right")) - 1
        return float(self.y[place]) if place >= 0 else 0.0


def performance_profiles(costs: Mapping[str, Sequence[float]]) -> list[Profile]:
    """`rho_s(a)`: the share of instances on which method s cost at most `a` times what the best method cost.

    Parameters
    ----------
    costs : mapping of str to sequence of float
        Method to its cost on each instance, in the same order; inf where it did not solve it.

    Returns
    -------
    list of Profile
        An instance that nobody solved counts for nobody. A cost of 0 (solved at the start) has ratio 1.

    References
    ----------
    E. D. Dolan, J. J. Moré, Benchmarking optimization software with performance profiles, Mathematical Programming 91
    (2002), equations (1.1)–(1.2).
    """
    table = _table(costs)
    best = table.min(axis=0, initial=np.inf)
    ratios = np.full(table.shape, np.inf)
    solved = np.isfinite(table)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = np.where(table == best, 1.0, table / best)
    ratios[solved] = quotient[solved]
    return _profiles(costs, ratios, start=1.0)


def data_profiles(costs: Mapping[str, Sequence[float]], scales: Sequence[float]) -> list[Profile]:
    """`d_s(k)`: the share of instances that method s solved within k units.

    Parameters
    ----------
    costs : mapping of str to sequence of float
        As in `performance_profiles`.
    scales : sequence of float, one an instance
        What one unit costs: n + 1 for evaluations of a function of n variables (a simplex gradient), else 1.

    References
    ----------
    J. J. Moré, S. M. Wild, Benchmarking derivative-free optimization algorithms, SIAM Journal on Optimization 20
    (2009), equation (2.8).
    """
    return _profiles(costs, _table(costs) / np.asarray(scales, dtype=float), start=0.0)


def _table(costs: Mapping[str, Sequence[float]]) -> Array:
    return np.array([list(row) for row in costs.values()], dtype=float).reshape(len(costs), -1)


def _profiles(names: Mapping[str, Any], table: Array, start: float) -> list[Profile]:
    count = table.shape[1]
    profiles = []
    for name, row in zip(names, table, strict=True):
        reached = np.sort(row[np.isfinite(row)])
        steps = np.unique(np.concatenate([[start], reached]))
        shares = np.searchsorted(reached, steps, side="right") / max(count, 1)
        profiles.append(Profile(name, steps, shares))
    return profiles
