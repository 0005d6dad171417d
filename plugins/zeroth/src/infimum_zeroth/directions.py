"""Differences along random directions: the part behind the random directions and SPSA."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.arrays import Array, like, namespace, norm
from infimum_zeroth.coordinates import flat_size
from infimum_zeroth.queries import Queries, batch_rows, default_eps, flat_real, precision_of, vanished, warn_if_drowned

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
"""`draw(rng, m, n)`: m directions u of n entries with `E u u^T = I`."""


def gaussian(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    return rng.standard_normal((m, n))


def sphere(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    """Uniform on the sphere of radius sqrt(n)."""
    u = rng.standard_normal((m, n))
    u *= math.sqrt(n) / np.linalg.norm(u, axis=1, keepdims=True)
    return u


def signs(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    return 2.0 * rng.integers(0, 2, (m, n)) - 1.0


class DirectionsPart:
    """A function with a gradient from directional differences.

    It holds its generator, the number k of estimates so far, and |f| as it last was, for the default step.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        rng: np.random.Generator,
        draw: Draw,
        *,
        directions: int,
        eps: float | None,
        decay: float = 0.0,
        two_sided: bool,
        common: bool | None,
        option: str = "eps",
    ) -> None:
        self.name, self.rng, self.draw, self.option = name, rng, draw, option
        self.directions, self.eps, self.decay, self.two_sided = directions, eps, decay, two_sided
        self.queries = Queries(function, common, rng)
        self.k = 0
        self.size: float | None = None
        self._watch = True

    def gradient(self, x: Array) -> Array:
        """Estimate of the gradient at x, in the shape and dtype of x."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The value at x (near it if two-sided), and the estimate of the gradient there."""
        flat, xp, n = flat_real(x, self.name), namespace(x), flat_size(x)
        self.queries.start()
        value = math.nan
        if not self.two_sided or (self.eps is None and self.size is None):
            value = self.queries.at(flat, x)
            self.size = abs(value)
        h = self._step(flat, n)
        total, slopes, rows = xp.zeros_like(flat), [], batch_rows(x)
        for start in range(0, self.directions, rows):
            # The numbers are drawn by NumPy for every namespace, so that a seed means the same directions.
            u = like(self.draw(self.rng, min(rows, self.directions - start), n), x)
            found, near = self._slopes(flat, u, h, value, x)
            total = total + xp.asarray(found, dtype=x.dtype, device=x.device) @ u
            value = value if not self.two_sided else near
            slopes.append(found)
        if self.two_sided:
            self.size = abs(value)
        self.k += 1
        if self._watch:
            self._watch_noise(np.concatenate(slopes), value, h, precision_of(x))
        return value, (total / self.directions).reshape(tuple(x.shape))

    def _step(self, flat: Array, n: int) -> float:
        """The length h of a step along directions whose entries are of order one."""
        if self.eps is None:
            assert self.size is not None
            eps = default_eps(precision_of(flat), self.size, 3 if self.two_sided else 2)
            eps *= max(1.0, norm(flat) / math.sqrt(n))
        else:
            eps = self.eps
        return float(eps / (self.k + 1) ** self.decay)

    def _slopes(self, flat: Array, u: Array, h: float, value: float, x: Array) -> tuple[np.ndarray, float]:
        """Slopes along the rows of u, and a value near x."""
        moved = flat + h * u[0]
        if bool(namespace(x).all(moved == flat)):
            largest = float(namespace(x).max(namespace(x).abs(flat)))
            raise vanished(
                f"{self.name}: a step of {h:g} vanishes beside entries of x as large as {largest:g} in {_name(x)}; "
                f"give a larger {self.option}",
                first=self.k == 0,
            )
        m = int(u.shape[0])
        with np.errstate(invalid="ignore", over="ignore"):
            above = self.queries.many(lambda a, b: flat + h * u[a:b], m, x)
            if not self.two_sided:
                return (above - value) / h, value
            below = self.queries.many(lambda a, b: flat - h * u[a:b], m, x)
            return (above - below) / (2 * h), float(above[-1] + below[-1]) / 2

    def _watch_noise(self, slopes: np.ndarray, value: float, h: float, precision: float) -> None:
        order = 3 if self.two_sided else 2
        noise, size = 2.0 * precision * abs(value) / h, float(np.sqrt(np.mean(slopes**2)))
        drowned = warn_if_drowned(self.name, value, precision, h, noise / (order - 1), size, order, self.option)
        self._watch = not drowned and self.eps is not None and self.eps < precision ** (1.0 / order)

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng, "k": self.k, "size": self.size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng = self.queries.rng = state["rng"]
        self.k, self.size = int(state["k"]), state["size"]


def _name(x: Array) -> str:
    """The dtype of x as NumPy calls it."""
    return str(x.dtype).rpartition(".")[2]
