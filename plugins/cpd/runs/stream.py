"""Least squares on a stream of measurements whose noise gets somewhat worse at a known moment."""

from __future__ import annotations

import numpy as np

from infimum import Composite
from infimum.functions import Function

FEATURES, BATCH = 8, 16


def problem(change: int = 800, worse: float = 1.3, seed: int = 1) -> Composite:
    """Each gradient is of a fresh batch; from the batch number `change` on the noise is `worse` times as large."""
    rng = np.random.default_rng(seed)
    truth, seen = rng.standard_normal(FEATURES), 0

    def measure(w: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal seen
        A = rng.standard_normal((BATCH, FEATURES))
        residual = A @ (w - truth) - (worse if seen >= change else 1.0) * rng.standard_normal(BATCH)
        seen += 1
        return float(residual @ residual) / BATCH, 2.0 * A.T @ residual / BATCH

    loss = Function(value_and_gradient=measure, convex=True, lipschitz=2.0, shape=(FEATURES,))
    return Composite({"loss": loss}, start=np.zeros(FEATURES), name="least squares on a stream")
