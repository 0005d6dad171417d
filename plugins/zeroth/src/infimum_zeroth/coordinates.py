"""Differences along coordinates, all of them or some: the part behind three oracles."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum.arrays import Array, copy, namespace
from infimum_zeroth.queries import (
    Queries,
    default_eps,
    flat_real,
    on_host,
    precision_of,
    vanished,
    warn_if_drowned,
)


class Coordinates:
    """Points that differ from x in one coordinate each."""

    def __init__(self, flat: Array, shifted: Array, index: np.ndarray) -> None:
        self.flat, self.shifted, self.index = flat, shifted, index
        self.xp = namespace(flat)

    def __call__(self, a: int, b: int) -> Array:
        if b == a + 1:
            i = int(self.index[a])
            point = copy(self.flat)
            point[i] = self.shifted[i]
            return point[None, :]
        xp, device = self.xp, self.flat.device
        rows = xp.asarray(self.index[a:b], device=device)
        moved = xp.arange(self.flat.shape[0], device=device)[None, :] == rows[:, None]
        return xp.where(moved, self.shifted[None, :], self.flat[None, :])


class CoordinatePart:
    """A function with partial derivatives by differences. It remembers whether it has warned, and its generator."""

    def __init__(
        self,
        name: str,
        function: Any,
        rng: np.random.Generator,
        *,
        eps: float | None,
        relative: bool,
        central: bool,
        common: bool | None,
    ) -> None:
        self.name, self.rng, self.eps, self.relative, self.central = name, rng, eps, relative, central
        self.queries = Queries(function, common, rng)
        self._watch = self._first = True

    def gradient(self, x: Array) -> Array:
        """Estimate of the gradient at x, in the shape and dtype of x."""
        return self._estimate(x, False)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The value at x and the estimate of the gradient there."""
        return self._estimate(x, True)

    def _estimate(self, x: Array, valued: bool) -> tuple[float, Array]:
        value, partials = self.partials(x, np.arange(flat_size(x)), valued)
        xp = namespace(x)
        return value, xp.asarray(partials, dtype=x.dtype, device=x.device).reshape(tuple(x.shape))

    def partials(self, x: Array, index: np.ndarray, valued: bool = False) -> tuple[float, np.ndarray]:
        """Partial derivatives in the coordinates `index`, with a value at x (or near it, unless `valued`)."""
        flat = flat_real(x, self.name)
        queries, order = self.queries, 3 if self.central else 2
        queries.start()
        value = np.nan
        if valued or self.eps is None or not self.central:
            value = queries.at(flat, x)
        eps = default_eps(precision_of(x), value, order) if self.eps is None else self.eps
        up, h = self._shift(flat, eps, index)
        with np.errstate(invalid="ignore", over="ignore"):
            above = queries.many(Coordinates(flat, up, index), len(index), x)
            if self.central:
                down, back = self._shift(flat, -eps, index)
                below = queries.many(Coordinates(flat, down, index), len(index), x)
                h = h - back
                partials = (above - below) / h
                if not (valued or self.eps is None):
                    value = float(above[0] + below[0]) / 2
            else:
                partials = (above - value) / h
        self._first = False
        if self._watch:
            self._watch_noise(value, partials, h, precision_of(x), order)
        return value, partials

    def _shift(self, flat: Array, eps: float, index: np.ndarray) -> tuple[Array, np.ndarray]:
        """`x + eps`, and in the coordinates `index` what this sum really adds."""
        xp = namespace(flat)
        size = xp.abs(flat)
        shifted = flat + (eps * xp.where(size > 1, size, xp.ones_like(size)) if self.relative else eps)
        h = on_host(shifted - flat)[index]
        lost = index[h == 0]
        if lost.size:
            i = int(lost[0])
            raise vanished(
                f"{self.name}: eps={abs(eps):g} vanishes beside x[{i}] = {float(flat[i]):g} in "
                f"{str(flat.dtype).rpartition('.')[2]}; give a larger eps"
                + ("" if self.relative else " or relative=True"),
                first=self._first,
            )
        return shifted, h

    def _watch_noise(self, value: float, partials: np.ndarray, h: np.ndarray, precision: float, order: int) -> None:
        """Two values, each wrong by u |f|, over what lies between them, against the estimate, in 2-norm."""
        noise = 2.0 * precision * abs(value) * float(np.linalg.norm(1.0 / h))
        size, step = float(np.linalg.norm(partials)), float(np.abs(h).min()) / (2 if self.central else 1)
        drowned = warn_if_drowned(self.name, value, precision, step, noise, size, order)
        self._watch = not drowned and self.eps is not None and self.eps < precision ** (1.0 / order)

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng = self.queries.rng = state["rng"]


def flat_size(x: Array) -> int:
    """The number of entries of x."""
    return int(np.prod(tuple(x.shape), dtype=np.int64))
