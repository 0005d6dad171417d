"""How delta and the number of samples change from prox to prox."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from infimum.errors import InputError
from infimum.schedule import Power


@dataclass(frozen=True)
class _Bounded:
    """Options that are finite numbers, and the two bounds."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value: Any = getattr(self, option.name)
            if value is None and option.name == "ceiling":
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise self._refused(option.name, "be a finite number")
            object.__setattr__(self, option.name, float(value))
        start, floor, ceiling = (getattr(self, name) for name in ("initial", "floor", "ceiling"))
        if start <= 0:
            raise self._refused("initial", "be above 0")
        if floor < 0:
            raise self._refused("floor", "be 0 or above")
        if ceiling is not None and ceiling < max(floor, 1e-300):
            raise self._refused("ceiling", f"be above 0 and at least the floor, {floor:g}")

    def _refused(self, name: str, expected: str) -> InputError:
        return InputError(f"{type(self).__name__} schedule: {name} must {expected}, got {getattr(self, name)!r}")

    def _clip(self, number: float) -> float:
        floor, ceiling = getattr(self, "floor", 0.0), getattr(self, "ceiling", None)
        return max(floor, number if ceiling is None else min(number, ceiling))


@dataclass(frozen=True)
class PowerLaw(_Bounded):
    """`initial / (k + 1) ** exponent`, kept between a floor and a ceiling.

    For delta with a fixed step, iterates converge to a minimizer if the roots of delta sum to a finite number: for an
    exponent above 2 and no floor. With a floor they converge to a point that is biased by it. With a fixed number of
    samples a floor is needed in practice, since the effective sample size falls with delta.

    Parameters
    ----------
    initial : float
        The first number, above 0.
    exponent : float
        From -10 to 10; negative for numbers that grow, such as sample counts.
    floor : float, default 0
        Smallest number, 0 or more.
    ceiling : float, optional
        Largest number.

    Raises
    ------
    InputError
        Naming the option that is out of range and its value.
    """

    initial: Annotated[float, Gt(0)]
    exponent: Annotated[float, Ge(-10), Le(10)]
    floor: Annotated[float, Ge(0)] = 0.0
    ceiling: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -10 <= self.exponent <= 10:
            raise self._refused("exponent", "lie between -10 and 10")

    def __call__(self, k: int) -> float:
        return float(self._clip(self.initial / (k + 1) ** self.exponent))


@dataclass(frozen=True)
class Geometric(_Bounded):
    """`initial * ratio ** k`, kept between a floor and a ceiling.

    Parameters
    ----------
    initial : float
        The first number, above 0.
    ratio : float
        Above 0; below 1 for numbers that fall, above for numbers that grow.
    floor : float, default 0
        Smallest number, 0 or more. Without one a falling sequence reaches 0 by underflow.
    ceiling : float, optional
        Largest number. Without one a growing sequence ends at 1e300.

    Raises
    ------
    InputError
        Naming the option that is out of range and its value.
    """

    initial: Annotated[float, Gt(0)]
    ratio: Annotated[float, Gt(0)]
    floor: Annotated[float, Ge(0)] = 0.0
    ceiling: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ratio <= 0:
            raise self._refused("ratio", "be above 0")

    def __call__(self, k: int) -> float:
        logarithm = math.log(self.initial) + k * math.log(self.ratio)
        return float(self._clip(math.exp(min(logarithm, 690.0))))


@dataclass(frozen=True)
class EssAdaptive(_Bounded):
    """Follows the effective sample size (ESS): up by `factor` when the last prox had too few, down when it had plenty.

    As delta it finds the smallest one that this number of samples can serve; as number of samples it finds how many
    this delta needs. The memory is in the oracle's part: as a function of k alone this is `initial`.

    Parameters
    ----------
    initial : float
        The first number, above 0.
    target : float, default 0.1
        Below 1 a share of the samples (for delta only), from 1 on a number of effective samples. The schedule goes up
        below the target and down above twice the target.
    factor : float, default 1.5
        Above 1.
    floor : float, default 0
        Smallest number, 0 or more.
    ceiling : float, optional
        Largest number.

    Raises
    ------
    InputError
        Naming the option that is out of range and its value.
    """

    initial: Annotated[float, Gt(0)]
    target: Annotated[float, Gt(0)] = 0.1
    factor: Annotated[float, Gt(1)] = 1.5
    floor: Annotated[float, Ge(0)] = 0.0
    ceiling: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target <= 0:
            raise self._refused("target", "be above 0")
        if self.factor <= 1:
            raise self._refused("factor", "be above 1")

    def __call__(self, k: int) -> float:
        return float(self._clip(self.initial))

    def adapt(self, number: float, ess: float, count: int) -> float:
        """The number after a prox with `ess` effective samples out of `count`."""
        goal = self.target * count if self.target < 1 else self.target
        if ess < goal:
            return self._clip(number * self.factor)
        return self._clip(number / self.factor) if ess > 2 * goal else number


def diverges(schedule: Any) -> float | None:
    """The exponent of a delta whose roots sum to infinity although it falls to 0, or None."""
    if isinstance(schedule, Power) or (isinstance(schedule, PowerLaw) and schedule.floor == 0):
        exponent = schedule.exponent
    else:
        return None
    return exponent if 0 < exponent <= 2 else None
