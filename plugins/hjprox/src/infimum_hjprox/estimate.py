"""The plain function `hj_prox`, for a user who wants nothing else."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from infimum.arrays import Array, all_finite, describe, is_array, is_complex, namespace
from infimum.errors import InfimumWarning, InputError
from infimum_hjprox.checks import positive, rules, samples
from infimum_hjprox.noise import normals
from infimum_hjprox.sampling import Evaluate, Rules, Sample, sample
from infimum_hjprox.values import SHARES, Values, values_of

NAME = "hj_prox"


@dataclass(frozen=True)
class Estimate:
    """An estimated prox and what is known of it.

    Numbers are floats for one point and arrays (B,) for a batch of B; with `separable`, `ess` and `delta` are arrays of
    the shape of x.

    Attributes
    ----------
    point : array
        The estimate, like x.
    standard_error : float or array
        Monte Carlo standard error, in Euclidean norm. It knows nothing of the bias of delta (at most sqrt(n t delta)
        for convex f), and says little where `ess` is below 5.
    ess : float or array
        Effective number of samples.
    delta : float or array
        The delta used, after widening.
    widenings, recenterings : int
        How often the fullest row or coordinate was sampled again with twice the delta, or around its estimate.
    evaluations : int
        Points at which f was evaluated.
    """

    point: Array
    standard_error: Any
    ess: Any
    delta: Any
    widenings: int
    recenterings: int
    evaluations: int
    _sample: Sample = field(repr=False, compare=False)
    _rules: Rules = field(repr=False, compare=False)
    _count: int = field(repr=False, compare=False)

    def jvp(self, u: Array) -> Array:
        """The Jacobian of the smoothed prox times `u`, from the samples, without forming it.

        It is Cov(y) / (delta t): symmetric, with eigenvalues between 0 and 1 for convex f. The noise is drawn again
        from its seed, so no samples are kept.

        Raises
        ------
        InputError
            For a batch of points, or a `u` of another shape than x.
        """
        last, shape = self._sample.last, tuple(self.point.shape)
        if self._sample.point.shape[0] != 1:
            raise InputError(f"jvp: x is a batch of {shape[0]} points; call hj_prox with one of them")
        if tuple(u.shape) != shape:
            raise InputError(f"jvp: u is {describe(u)}, x is {describe(self.point)}; expected equal shapes")
        xp = namespace(self.point)
        flat, mean = xp.reshape(u, (-1,)), last.mean[0]
        if last.second is not None:
            return xp.reshape((last.second[0] - mean * mean) * flat, shape)
        top = max(float(xp.max(one)) for one in last.logs)
        total, out = 0.0, xp.zeros_like(flat)
        noise = normals(last.seed, self._count, last.center, self._rules.antithetic)
        for z, log in zip(noise, last.logs, strict=True):
            e = xp.astype(xp.exp(log - top), z.dtype)
            total += float(xp.sum(e))
            out = out + (e * (z @ flat)) @ z
        return xp.reshape(out / total - mean * (mean @ flat), shape)

    def covariance(self, u: Array) -> Array:
        """The weighted covariance of the samples times `u`: `delta t` times `jvp(u)`."""
        xp, scale = namespace(self.point), self._sample.last.scale
        apart, square = self._rules.separable, scale * scale
        return (xp.reshape(square, tuple(self.point.shape)) if apart else float(square[0, 0])) * self.jvp(u)


def hj_prox(
    f: Callable[[Array], Any],
    x: Array,
    t: float,
    *,
    delta: float = 0.1,
    n_samples: int = 1000,
    rng: np.random.Generator | int | None = None,
    preset: str | None = None,
    ess_min: float | None = None,
    recenter: int | None = None,
    separable: bool = False,
    antithetic: bool = False,
    vectorized: bool = True,
    full_output: bool = False,
) -> Array | Estimate:
    """Estimate `prox_{t f}(x) = argmin_y f(y) + ||y - x||^2 / (2 t)` from values of f alone.

    Samples `y ~ N(x, delta t I)` are averaged with weights proportional to `exp(-f(y)/delta)`. For convex f the limit
    of many samples is within `sqrt(n t delta)` of the prox; how many samples are enough grows like `exp(c t / delta)`
    with the steepness of f, so short steps and mild functions are easy, and long steps want a large delta.

    Parameters
    ----------
    f : callable, or an object with `values` or `value`
        Takes points of shape (m, n) and returns (m,) values. +inf is allowed and means "outside".
    x : array, shape (n,) or (B, n)
        One point, or a batch of B. NumPy, or torch on any device. Integers become float64.
    t : float
        Step size, above 0.
    delta : float, default 0.1
        Smoothing, above 0.
    n_samples : int, default 1000
        Samples a round, at least 2; made even with `antithetic`. All points of a batch share their random numbers, so
        a row equals a call with that row alone and the same seed.
    rng : numpy.random.Generator or int, optional
        Generator or seed; by default different numbers at each call. No global generator is used.
    preset : {"paper"}, optional
        The plain method: no ESS rule, no recentering.
    ess_min : float, optional
        Share of the samples that must be effective, else delta is doubled and the samples are drawn again, at most 30
        times; default 0.05 (0 with the preset). Samples that are all +inf are always widened.
    recenter : int, optional
        How often to draw again around the estimate, with importance weights, while less than a tenth of the samples
        is effective; before any widening. Default 2 (0 with the preset).
    separable : bool, default False
        f is a sum over coordinates and returns (m, n): each coordinate's share. Every coordinate is then weighted by
        itself, which removes the curse of dimension.
    antithetic : bool, default False
        Draw pairs z, -z. Helps a smooth f at short steps, is neutral otherwise.
    vectorized : bool, default True
        False: f takes one point of shape (n,) and returns a number, which costs a Python call a sample.
    full_output : bool, default False
        Return an `Estimate` in place of the point.

    Returns
    -------
    array or Estimate
        The estimate in the shape, dtype and device of x.

    Raises
    ------
    InputError
        For options out of range, a wrong shape or complex values.
    NonFiniteError
        For NaN or -inf, naming the sample.
    ProxSamplingError
        If no samples are usable however wide they are spread.

    Warns
    -----
    InfimumWarning
        If f is the indicator of a set: project exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum_hjprox import hj_prox
    >>> p = hj_prox(lambda Y: np.linalg.norm(Y, axis=1), np.array([3.0, 4.0]), t=1.0, delta=0.01, rng=0)
    >>> bool(np.linalg.norm(p - np.array([2.4, 3.2])) < 0.1)
    True
    """
    step = positive(t, "t", NAME)
    chosen = rules(preset, ess_min, recenter, separable, antithetic, NAME)
    smoothing, count = positive(delta, "delta", NAME), samples(n_samples, NAME)
    points, single = _points(x)
    n = int(points.shape[1])
    call, batched = _callable(f, vectorized, separable)
    values = Values(call, (n,), separable=separable, batched=batched)
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    found = estimate(values, points, step, smoothing, count, chosen, generator, single=single)
    return found if full_output else found.point


def estimate(
    values: Evaluate,
    points: Array,
    t: float,
    delta: float,
    count: int,
    chosen: Rules,
    rng: np.random.Generator,
    *,
    single: bool,
    shape: tuple[int, ...] | None = None,
) -> Estimate:
    """The estimate at rows of `points`, with the numbers of one point as floats if `single`."""
    count += count % 2 if chosen.antithetic else 0
    with _no_grad(points):
        got = sample(values, points, t, delta, count, chosen, lambda: int(rng.integers(2**63)))
    n = int(points.shape[1])
    error = np.sqrt(got.variance.sum(axis=1))
    ess, used = (got.ess, got.delta) if chosen.separable else (got.ess[:, 0], got.delta[:, 0])
    point = got.point
    if single:
        shape = (n,) if shape is None else shape
        point = namespace(point).reshape(point[0], shape)
        error, ess, used = (_first(one, shape) for one in (error, ess, used))
    most = (int(got.widened.max()), int(got.recentered.max()))
    return Estimate(point, error, ess, used, *most, got.evaluations, got, chosen, count)


def _first(numbers: np.ndarray, shape: tuple[int, ...]) -> Any:
    return float(numbers[0]) if numbers.ndim == 1 else numbers[0].reshape(shape)


def _no_grad(x: Array) -> Any:
    if not is_torch_array(x):
        return contextlib.nullcontext()
    import torch

    return torch.no_grad()


def _points(x: Any) -> tuple[Array, bool]:
    """Rows of real floating points, and whether there was only one point."""
    if not is_array(x):
        x = np.asarray(x)
    if is_complex(x):
        raise InputError(f"{NAME}: x is complex ({describe(x)}); expected real numbers")
    xp = namespace(x)
    if is_torch_array(x):
        x = x.detach()
    if isinstance(x.dtype, np.dtype) and x.dtype.kind not in "fiub":
        raise InputError(f"{NAME}: x holds {x.dtype} entries; expected real numbers")
    if not xp.isdtype(x.dtype, "real floating"):
        x = xp.astype(x, xp.float64)
    if x.ndim not in (1, 2) or not math.prod(x.shape):
        raise InputError(f"{NAME}: x is {describe(x)}; expected shape (n,), or (B, n) for a batch, with entries")
    if not all_finite(x):
        raise InputError(f"{NAME}: x holds NaN or inf; expected finite numbers")
    return (x[None, :], True) if x.ndim == 1 else (x, False)


def _callable(f: Any, vectorized: bool, separable: bool) -> tuple[Callable[[Array], Any], bool]:
    """What gives values of f, and whether it takes many points at once."""
    offers = getattr(f, "capabilities", None)
    if offers is None:
        if not callable(f):
            raise InputError(f"{NAME}: f is a {type(f).__name__}; expected a callable f(Y) -> values")
        return f, vectorized
    if "project" in offers:
        said = f"{NAME}: f = {f!r} is a set: its prox is the exact projection, f.project(x); use that"
        if not {"value", "values"} & offers:
            raise InputError(said)
        warnings.warn(said, InfimumWarning, stacklevel=3)
    if not {"value", "values", SHARES} & offers:
        raise InputError(f"{NAME}: {f!r} offers no value; it offers {', '.join(sorted(offers))}")
    return values_of(f, separable, NAME)
