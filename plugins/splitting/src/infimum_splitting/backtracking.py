"""Backtracking: a step size that is made shorter until the smooth function lies below its quadratic model.

A step from y to x with step size t is accepted when

    `f(x) <= f(y) + <grad f(y), x - y> + ||x - y||^2 / (2 t)`,

which t <= 1/L always passes. Near an optimum both sides agree in all digits that f has, and the test would only see
rounding. Where the difference is that small, the slopes decide: `<grad f(x) - grad f(y), x - y> <= ||x - y||^2 / t`,
the same condition for a quadratic f, which loses far fewer digits to subtraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from infimum.arrays import Array, inner, norm
from infimum.errors import NonFiniteError
from infimum_splitting.steps import rounding

FACTOR = 2.0
"""By which a refused step is divided: 1/t exceeds the true Lipschitz constant by no more."""
HALVINGS = 40
NOISE = 1e4
"""Rounding units of f below which a difference of its values is not believed."""
PROBE = 1e-3


class Trial(NamedTuple):
    """An accepted point with its step; value and gradient of the smooth function there (None if not computed)."""

    x: Array
    t: float
    value: float
    gradient: Array | None


def first_trial(smooth: Any, x: Array, gradient: Array) -> float:
    """A first step from the curvature along the gradient: at least 1/L, and no L is needed.

    `||grad f(x) - grad f(x + d)|| / ||d||` is at most L for every d. Where f does not curve it is 1/L if L is known,
    else the step that moves x by its own length (by 1 for a short x); and 1 where there is no slope either.
    """
    slope, size = norm(gradient), max(1.0, norm(x))
    if 0 < slope < math.inf:
        length = PROBE * size
        _, ahead = smooth.value_and_gradient(x - (length / slope) * gradient)
        change = norm(ahead - gradient)
        if NOISE * rounding(x) * slope < change < math.inf:
            return length / change
    if smooth.lipschitz:
        return 1.0 / float(smooth.lipschitz)
    return size / slope if 0 < slope < math.inf else 1.0


def backtrack(
    smooth: Any,
    prox: Callable[[Array, float], Array] | None,
    y: Array,
    value: float,
    gradient: Array,
    t: float,
    reuse: bool,
) -> Trial:
    """The step `x = prox(y - t grad f(y), t)` with the first t, t/2, t/4, … that is accepted.

    Parameters
    ----------
    smooth : part
        Offers `value_and_gradient`, and `value` unless `reuse`.
    prox : callable or None
        None for a plain gradient step.
    value, gradient
        Of the smooth function at `y`.
    reuse : bool
        Whether the gradient at the new point is wanted as well, because the next step starts there.

    Raises
    ------
    ArithmeticError
        If no step is accepted: value and gradient do not belong together.
    """
    last = t
    for _ in range(HALVINGS):
        last = t
        x = (-t) * gradient
        x += y
        if prox is not None:
            x = prox(x, t)
        try:
            new, slope = smooth.value_and_gradient(x) if reuse else (smooth.value(x), None)
        except NonFiniteError as error:
            # Too far out: f overflows there. NaN is no matter of length and ends the run.
            if error.kind != "inf":
                raise
        else:
            new = float(new)
            move = x - y
            square = inner(move, move)
            excess = new - value - inner(gradient, move) - square / (2.0 * t)
            if excess <= 0.0:
                return Trial(x, t, new, slope)
            # The slopes carry rounding as well: of their own size, of that of the residuals behind f (for least squares
            # a slope is a product of at most sqrt(2 f L)), and of x.
            if excess <= NOISE * rounding(x) * max(abs(new), abs(value)):
                slope = smooth.value_and_gradient(x)[1] if slope is None else slope
                size = norm(gradient) + math.sqrt(2.0 * max(abs(new), abs(value)) / t) + norm(y) / t
                slack = 100.0 * rounding(x) * size * math.sqrt(square)
                if inner(slope - gradient, move) <= square / t + slack:
                    return Trial(x, t, new, slope)
        t /= FACTOR
    raise ArithmeticError(
        f"backtracking found no step with sufficient decrease down to t = {last:.4g}, at value {value:.6g} and "
        f"gradient norm {norm(gradient):.3g}: the gradient does not fit the value, or its error is larger than what "
        "is left of it; check the gradient, or give a step size and turn backtracking off"
    )
