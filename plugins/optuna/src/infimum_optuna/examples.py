"""Two small black boxes that the conformance tests run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def quadratic(params: Mapping[str, Any]) -> float:
    """The square of `x - 0.5`."""
    return float((params["x"] - 0.5) ** 2)


def priced(params: Mapping[str, Any]) -> dict[str, float]:
    """A concave function of `x`, a little lower where `kind` is "flat"; its cost grows with |x|."""
    value = -((params["x"] - 0.5) ** 2) - (0.1 if params["kind"] == "flat" else 0.0)
    return {"value": value, "cost": 1.0 + abs(params["x"]), "double": 2.0 * value}


def random_sampler(seed: int) -> Any:
    """Optuna's random sampler."""
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)
