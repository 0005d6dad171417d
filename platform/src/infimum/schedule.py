"""Schedules: a number, usually a step size, as a function of the iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Protocol, runtime_checkable

from infimum.errors import InputError


@runtime_checkable
class Schedule(Protocol):
    """Anything that maps the iteration k = 0, 1, 2, … to a number, without memory of its own."""

    def __call__(self, k: int) -> float:
        """The number for iteration `k`, counted from 0."""
        ...


@dataclass(frozen=True)
class _Finite:
    """Options of a schedule are finite numbers, kept as floats."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value: object = getattr(self, option.name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise self._refused(option.name, "be a finite number")
            object.__setattr__(self, option.name, float(value))

    def _refused(self, name: str, expected: str) -> InputError:
        return InputError(f"{type(self).__name__} schedule: {name} must {expected}, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class Constant(_Finite):
    """The same number at every iteration.

    Parameters
    ----------
    value : float
        The number, above 0.

    Raises
    ------
    InputError
        When `value` is not a finite number above 0.
    """

    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value <= 0:
            raise self._refused("value", "be above 0")

    def __call__(self, k: int) -> float:
        return self.value


@dataclass(frozen=True)
class Power(_Finite):
    """Falls like a power of the iteration: ``initial / (k + offset) ** exponent``.

    With an exponent above 0.5 and at most 1 the numbers sum to infinity and their squares do not, which stochastic
    gradient methods ask for.

    Parameters
    ----------
    initial : float
        Numerator, above 0; the first number when `offset` is 1.
    exponent : float
        From 0 (constant) to 10.
    offset : float, default 1.0
        Added to the iteration, above 0; a large one keeps the first steps alike.

    Raises
    ------
    InputError
        Naming the option that is out of range and its value.
    """

    initial: float
    exponent: float
    offset: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial <= 0:
            raise self._refused("initial", "be above 0")
        if not 0 <= self.exponent <= 10:
            raise self._refused("exponent", "lie between 0 and 10")
        if self.offset <= 0:
            raise self._refused("offset", "be above 0")
        try:
            first = self(0)
        except ArithmeticError:
            first = math.inf
        if not math.isfinite(first):
            raise self._refused("offset", "leave the first number, initial / offset ** exponent, finite")

    def __call__(self, k: int) -> float:
        return float(self.initial / (k + self.offset) ** self.exponent)
