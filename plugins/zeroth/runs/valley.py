"""Rosenbrock's valley by sums and products alone, which complex numbers go through."""

from __future__ import annotations

from typing import Any


def valley(x: Any) -> Any:
    """`sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2`, smallest at x = (1, …, 1)."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
