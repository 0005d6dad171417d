"""What in-control samples look like: center, scale, autocorrelation, and how far they can be trusted."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from infimum.errors import InfimumWarning, InputError
from infimum_cpd.checks import positive
from infimum_cpd.checks import samples as real

LEAST = 8
"""Fewest finite samples that make a reference."""
MAD = 1.4826
"""Standard deviations in a median absolute deviation of a normal sample."""


@dataclass(frozen=True)
class Reference:
    """center and scale against which samples are standardized.

    Parameters
    ----------
    center, scale : float
        Of the in-control samples; scale > 0. With `rho` the scale is that of x_t - center - rho (x_{t-1} - center).
    rho : float, default 0
        Coefficient of the AR(1) whitening; 0 leaves samples as they are.
    n : int, default 0
        Samples that it was estimated from; 0 when it was given.
    autocorrelation : float, default nan
        At lag 1, of those samples.
    bias : float, default 0
        How far their mean lies above the center, in scales: not 0 for the median of skewed samples, which then drift.

    Raises
    ------
    InputError
        For a center or scale that is no finite number, scale <= 0, or |rho| >= 1.
    """

    center: float
    scale: float
    rho: float = 0.0
    n: int = 0
    autocorrelation: float = math.nan
    bias: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.center):
            raise InputError(f"reference: center={self.center!r}; expected a finite number")
        if not (math.isfinite(self.scale) and self.scale > 0.0):
            raise InputError(f"reference: scale={self.scale!r}; expected a finite number > 0")
        if not -1.0 < self.rho < 1.0:
            raise InputError(f"reference: rho={self.rho!r}; expected a number between -1 and 1")

    @classmethod
    def of(
        cls, samples: ArrayLike, robust: bool = True, scale_floor: float | None = None, whiten: bool = False
    ) -> Reference:
        """Estimate it from in-control samples.

        Parameters
        ----------
        samples : array_like, shape (n,)
            In their order. NaN and inf are left out; 8 finite ones at least.
        robust : bool, default True
            Median and 1.4826 times the median absolute deviation, instead of mean and standard deviation.
        scale_floor : float, optional
            Least scale. Needed for a reference without any spread; a scale below it is raised to it.
        whiten : bool, default False
            Take out the lag-1 autocorrelation: positive autocorrelation makes false alarms more frequent than stated.

        Raises
        ------
        InputError
            For fewer than 8 finite samples, another shape, or no spread and no `scale_floor`.

        Warns
        -----
        InfimumWarning
            Where the median absolute deviation is 0 and the standard deviation or the floor stands in for it.
        """
        positive("scale_floor", scale_floor, "reference")
        x = real(samples, "reference")
        if x.ndim != 1:
            raise InputError(f"reference has shape {x.shape}; expected samples in one row, (n,)")
        x = x[np.isfinite(x)]
        if x.size < LEAST:
            raise InputError(f"reference needs >= {LEAST} finite samples, got {x.size}")
        center = float(np.median(x) if robust else x.mean())
        correlation = _autocorrelation(x - center)
        rho = min(0.99, max(-0.99, correlation)) if whiten else 0.0
        spread = x - center if not rho else (x[1:] - center) - rho * (x[:-1] - center)
        scale = _scale(spread, abs(center), robust, scale_floor)
        return cls(center, scale, rho, int(x.size), correlation, float(spread.mean()) / scale)

    def standardize(self, x: ArrayLike) -> np.ndarray:
        """`(x - center) / scale` along the last axis, whitened with `rho` (before the first: the center)."""
        deviation = np.asarray(x, dtype=np.float64) - self.center
        if self.rho:
            deviation[..., 1:] = deviation[..., 1:] - self.rho * deviation[..., :-1]
        return np.asarray(deviation / self.scale)

    @cached_property
    def error(self) -> float:
        """Standard error of the center in scales, sqrt(pi/2 / n) as of a median; 0 for numbers that were given."""
        return math.sqrt(0.5 * math.pi / self.n) if self.n else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `Reference(**data)` reads it back."""
        return {
            "center": self.center,
            "scale": self.scale,
            "rho": self.rho,
            "n": self.n,
            "autocorrelation": self.autocorrelation,
            "bias": self.bias,
        }

    def describe(self) -> str:
        """A sentence on how reliable it is."""
        if not self.n:
            return f"given: center {self.center:.6g}, scale {self.scale:.6g}"
        text = f"{self.n} samples: center {self.center:.6g}, scale {self.scale:.6g}"
        limit = 2.0 / math.sqrt(self.n)
        if self.autocorrelation > limit and not self.rho:
            text += f"; autocorrelation {self.autocorrelation:.2f} shortens the stated run length: consider whiten=True"
        elif math.isfinite(self.autocorrelation):
            text += f", autocorrelation {self.autocorrelation:.2f}" + (" (taken out)" if self.rho else "")
        if abs(self.bias) > max(0.1, limit):
            text += (
                f"; the mean lies {self.bias:+.2f} scales from the median: with skewed samples robust=False or a "
                "logarithm keeps the stated run length"
            )
        return text


def _autocorrelation(deviation: np.ndarray) -> float:
    power = float(deviation @ deviation)
    return float(deviation[1:] @ deviation[:-1]) / power if power > 0.0 else 0.0


def _scale(spread: np.ndarray, level: float, robust: bool, floor: float | None) -> float:
    tiny = 1e-15 * max(level, float(np.abs(spread).max()))  # what rounding leaves of a constant
    scale = MAD * float(np.median(np.abs(spread - np.median(spread)))) if robust else float(spread.std(ddof=1))
    if scale > tiny and scale >= (floor or 0.0):
        return scale
    if floor is not None and scale > tiny:
        return floor
    deviation = float(spread.std(ddof=1)) if robust else 0.0
    if deviation > tiny:
        chosen = max(deviation, floor or 0.0)
        message = f"reference has MAD=0; its standard deviation {deviation:.3g} is taken instead"
    elif floor is not None:
        chosen = floor
        message = f"reference has zero spread; scale_floor={floor:.3g} is taken instead"
    else:
        raise InputError(
            "reference has zero spread (MAD=0 and standard deviation 0): pass scale_floor, the least scale that matters"
        )
    warnings.warn(message, InfimumWarning, stacklevel=4)
    return chosen
