"""A search space of Optuna distributions as a table of units: one column a parameter, and features for the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from infimum.errors import InputError
from infimum_costbo.normal import Array

_LARGEST_LIST: Final = 4096
"""Finite spaces up to this many points are searched completely."""
_LINE: Final = 24
"""Most alternatives along one discrete parameter that a local search looks at."""


@dataclass(frozen=True)
class Column:
    """One parameter: units are [0, 1] for numbers and the number of the choice for categories."""

    name: str
    distribution: BaseDistribution

    @cached_property
    def choices(self) -> int | None:
        """How many values there are; None on a continuum."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return len(d.choices)
        if isinstance(d, FloatDistribution | IntDistribution) and d.step is not None:
            return 1 + math.floor((d.high - d.low) / d.step + 1e-9)
        return None

    @property
    def is_category(self) -> bool:
        return isinstance(self.distribution, CategoricalDistribution)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.choices or 1 if self.is_category else 1

    def _ends(self) -> tuple[float, float]:
        d: Any = self.distribution
        return (math.log(d.low), math.log(d.high)) if d.log else (d.low, d.high)

    def encode(self, value: Any) -> float:
        """A value of the parameter as a unit."""
        d: Any = self.distribution
        if self.is_category:
            return float(d.to_internal_repr(value))
        low, high = self._ends()
        at = math.log(value) if d.log else value
        return (at - low) / (high - low) if high > low else 0.5

    def snap(self, units: Array) -> Array:
        """Units moved to the nearest ones that are values of the parameter."""
        if self.is_category:
            return np.asarray(np.rint(units))
        units = np.clip(units, 0.0, 1.0)
        d: Any = self.distribution
        if self.choices is None:
            return units
        low, high = self._ends()
        if high <= low:
            return np.full_like(units, 0.5)
        at = low + units * (high - low)
        grid = d.low + d.step * np.rint(((np.exp(at) if d.log else at) - d.low) / d.step)
        grid = np.clip(grid, d.low, d.low + d.step * (self.choices - 1))
        return np.asarray(((np.log(grid) if d.log else grid) - low) / (high - low))

    def decode(self, unit: float) -> Any:
        """A unit as a value of the parameter."""
        d: Any = self.distribution
        if self.is_category:
            return d.choices[int(unit)]
        low, high = self._ends()
        at = low + float(unit) * (high - low)
        value = math.exp(at) if d.log else at
        if self.choices is not None:
            value = d.low + d.step * round((value - d.low) / d.step)
        return d.to_external_repr(min(max(value, d.low), d.high))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` units, uniform as Optuna's own random sampler draws them (with whole cells at both ends of a grid)."""
        if self.is_category:
            return rng.integers(self.choices or 1, size=n).astype(float)
        u = rng.random(n)
        if self.choices is None:
            return u
        d: Any = self.distribution
        low, high = self._ends()
        if high <= low:
            return np.full(n, 0.5)
        first, last = d.low - 0.5 * d.step, d.high + 0.5 * d.step
        if d.log:
            first, last = math.log(first), math.log(last)
        return self.snap((first + u * (last - first) - low) / (high - low))

    def grid(self) -> Array:
        """All units of a discrete parameter, thinned to those that a local search looks at."""
        count = self.choices or 0
        if self.is_category:
            return np.arange(count, dtype=float)
        d: Any = self.distribution
        low, high = self._ends()
        kept = np.unique(np.linspace(0, count - 1, min(count, 16 * _LINE)).astype(int))
        values = d.low + d.step * kept
        return np.asarray(((np.log(values) if d.log else values) - low) / (high - low))


class Space:
    """Parameters of a search space, those with a single value left out.

    Parameters
    ----------
    distributions : mapping of str to optuna.distributions.BaseDistribution

    Attributes
    ----------
    columns : tuple of Column
    size : int or None
        How many points there are; None when a parameter is continuous.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self.columns = tuple(Column(name, one) for name, one in sorted(distributions.items()) if not one.single())
        counts = [one.choices for one in self.columns]
        self.size = None if None in counts else math.prod(c for c in counts if c is not None)
        self.continuous = np.array([c is None for c in counts], dtype=bool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.columns)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First feature of each column."""
        return np.concatenate([[0], np.cumsum([one.width for one in self.columns])]).astype(np.int64)

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Points as units, shape (points, columns).

        Raises
        ------
        InputError
            If a point lacks a parameter.
        """
        for number, point in enumerate(points):
            if missing := [one.name for one in self.columns if one.name not in point]:
                raise InputError(f"point {number} has no parameter {missing[0]!r}; it has {sorted(point)}")
        cells = [[one.encode(point[one.name]) for one in self.columns] for point in points]
        return np.array(cells, dtype=float).reshape(len(points), len(self.columns))

    def decode(self, units: Array) -> dict[str, Any]:
        """One row of units as parameters."""
        return {one.name: one.decode(unit) for one, unit in zip(self.columns, units, strict=True)}

    def snap(self, units: Array) -> Array:
        """Rows of units moved to points of the space."""
        cells = [one.snap(units[:, j]) for j, one in enumerate(self.columns)]
        return np.stack(cells, axis=1) if cells else units

    def features(self, units: Array) -> Array:
        """Rows of units as the kernel sees them: numbers as they are, categories as sqrt(1/2) times unit vectors.

        Two different categories are then at distance 1.
        """
        out = np.zeros((len(units), self.starts[-1]))
        rows = np.arange(len(units))
        for j, (one, start) in enumerate(zip(self.columns, self.starts, strict=False)):
            if one.is_category:
                out[rows, start + units[:, j].astype(int)] = math.sqrt(0.5)
            else:
                out[:, start] = units[:, j]
        return out

    def candidates(self, rng: np.random.Generator, n: int) -> Array:
        """All points of a small finite space, else `n` random ones."""
        if self.size is not None and self.size <= _LARGEST_LIST:
            grids = [self.full_grid(one) for one in self.columns]
            return np.stack([one.ravel() for one in np.meshgrid(*grids, indexing="ij")], axis=1)
        return np.stack([one.sample(rng, n) for one in self.columns], axis=1)

    @staticmethod
    def full_grid(column: Column) -> Array:
        """Every unit of a discrete parameter."""
        count = column.choices or 0
        if column.is_category:
            return np.arange(count, dtype=float)
        d: Any = column.distribution
        values = d.low + d.step * np.arange(count)
        low, high = column._ends()
        return np.asarray(((np.log(values) if d.log else values) - low) / (high - low))

    def around(self, units: Array, rng: np.random.Generator, n: int) -> Array:
        """`n` points near the given ones: a few parameters moved a little, or drawn anew where they are discrete."""
        rows = units[rng.integers(len(units), size=n)].copy()
        width = len(self.columns)
        moved = rng.random((n, width)) < max(2.0 / width, 0.3)
        moved[np.arange(n), rng.integers(width, size=n)] = True
        scale = 10.0 ** rng.uniform(-3.0, -0.7, size=(n, 1))
        for j, one in enumerate(self.columns):
            step = one.sample(rng, n) if one.is_category else rows[:, j] + scale[:, 0] * rng.standard_normal(n)
            rows[:, j] = np.where(moved[:, j], step, rows[:, j])
        return self.snap(rows)

    def alternatives(self, row: Array) -> Array:
        """All points that differ from `row` in one discrete parameter; at most a handful along each."""
        out = []
        for j, one in enumerate(self.columns):
            if one.choices is None:
                continue
            grid = one.grid()
            nearest = grid[np.argsort(np.abs(grid - row[j]), kind="stable")[1 : _LINE + 1]]
            block = np.repeat(row[None], len(nearest), axis=0)
            block[:, j] = nearest
            out.append(block)
        return np.concatenate(out) if out else np.empty((0, len(row)))
