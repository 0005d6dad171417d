"""Step sizes: what a user may write, what `auto` means, and the bounds that convergence asks for."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from annotated_types import Gt

from infimum.arrays import Array, namespace, norm
from infimum.errors import InfimumWarning, InputError
from infimum.schedule import Schedule
from infimum.solver import Solver

Step = Annotated[float, Gt(0)] | Literal["auto"] | Schedule
FixedStep = Annotated[float, Gt(0)] | Literal["auto"]


class Stepping(Solver):
    """A solver with an option `step`, kept as `step_size`: the attribute `step` is the method."""

    def __repr__(self) -> str:
        options = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}  # type: ignore[arg-type]
        shown = ", ".join(f"{'step' if name == 'step_size' else name}={value!r}" for name, value in options.items())
        return f"{type(self).__name__}({shown})"


def refuse_bad(step: Any, what: str, schedules: bool = True, option: str = "step") -> None:
    """Raise `InputError` unless `step` is "auto", a positive finite number or (if allowed) a schedule."""
    if step == "auto" or (schedules and callable(step)):
        return
    number = isinstance(step, int | float) and not isinstance(step, bool)
    if not number or not 0 < step < math.inf:
        others = "'auto' or a schedule" if schedules else "or 'auto'"
        raise InputError(f"{what}: {option}={step!r}; expected a positive finite number, {others}")


def refuse_relaxation(relaxation: float, what: str) -> None:
    """Raise `InputError` unless `relaxation` lies in (0, 2)."""
    if not 0 < relaxation < 2:
        raise InputError(f"{what}: relaxation={relaxation!r}; expected a number above 0 and below 2")


def scheduled(schedule: Schedule, k: int, what: str) -> float:
    """The step of iteration k, tested."""
    t = float(schedule(k))
    if not 0 < t < math.inf:
        # Later on the run ends with what it has.
        error = InputError if k == 0 else ArithmeticError
        raise error(f"{what}: schedule {schedule!r} gave step {t:g} at k = {k}; expected a positive finite number")
    return t


def first_step(step: Any, lipschitz: float | None, what: str, *, backtracks: bool = False) -> float:
    """The step of iteration 0 as a number; `backtracks` says whether the solver could do without L.

    "auto" is 1/L. For L = 0 it is 1.0: f is linear, its gradient never changes, and every step size is safe.
    """
    if callable(step):
        return scheduled(step, 0, what)
    if step != "auto":
        return float(step)
    if lipschitz is None:
        others = ", give a number as step, or set backtracking: true" if backtracks else " or give a number as step"
        raise InputError(
            f"{what}: step='auto' is 1/L, but no Lipschitz constant L of the gradient of what stands in slot 'smooth' "
            f"is known; declare it on the function (lipschitz=L){others}"
        )
    return 1.0 / lipschitz if lipschitz > 0 else 1.0


def check_step(step: Any, lipschitz: float | None, factor: float, what: str, why: str) -> None:
    """Refuse "auto" without L; warn, in numbers, if the first step exceeds `factor / L`. For solvers that backtrack."""
    first = first_step(step, lipschitz, what, backtracks=True)
    if lipschitz and step != "auto" and first * lipschitz > factor * (1 + 1e-9):
        bound = factor / lipschitz
        warnings.warn(f"{what}: step {first:.4g} > {factor:g}/L = {bound:.4g}: {why}", InfimumWarning, stacklevel=3)


def prox_step(step: Any, parts: Iterable[Any], factor: float = 1.0) -> float:
    """The step of a method that converges with every one.

    "auto" is `factor / L` with the first Lipschitz constant L > 0 that a part declares: the curvature sets the scale
    of the proxes. It is 1.0 where nothing is known that could set one.
    """
    if step != "auto":
        return float(step)
    constants = map(curvature, parts)
    return next((factor / constant for constant in constants if constant), 1.0)


def rounding(x: Array) -> float:
    """The distance from 1 to the next number in the precision of x."""
    return float(namespace(x).finfo(x.dtype).eps)


def moved(before: Array, after: Array, t: float) -> float:
    """`||before - after|| / t`, and no less than the rounding of `after` makes of it: see `certain`."""
    return certain(norm(before - after) / t, after, t)


def certain(size: float, after: Array, t: float) -> float:
    """A residual `size` that rests on how far a step of length t moved, at least `eps/2 ||after|| / t`.

    A step that is lost to rounding moves nothing, and then certifies nothing: a short step far from an optimum would
    look like an optimum.
    """
    return max(size, 0.5 * rounding(after) * norm(after) / t)


def curvature(part: Any) -> float | None:
    """The declared Lipschitz constant of the gradient, or None; a set has none."""
    constant: float | None = getattr(part, "lipschitz", None)
    return constant
