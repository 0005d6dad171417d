"""The simplex and the balls of the l1, Euclidean and largest-entry norms, over all entries of a point."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

from infimum.arrays import Array, as_data, is_array, norm
from infimum.constraints.base import ConvexSet
from infimum.constraints.sets import Bound, Interval
from infimum.errors import InputError
from infimum.functions.projections import l1_ball_projection, simplex_projection


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """`x >= 0` with entries that sum to `radius`; radius 1 is the set of probability vectors.

    Parameters
    ----------
    radius : float, default 1
        The sum, >= 0.

    Raises
    ------
    InputError
        If radius is negative (no such point exists), NaN or inf.
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _radius(self.radius, "Simplex", "entries >= 0 have no negative sum"))

    def project(self, x: Array) -> Array:
        return simplex_projection(x, self.radius)


@dataclass(frozen=True, eq=False)
class _Ball(ConvexSet):
    """Radius and center, as all balls take them."""

    data = ("center",)

    radius: float = 1.0
    center: Bound | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "radius", _radius(self.radius, name, "no point is that near to the center"))
        if isinstance(self.center, Real) and not isinstance(self.center, bool):
            center: Any = float(as_data([self.center], f"center of {name}")[0])
        else:
            center = None if self.center is None else as_data(self.center, f"center of {name}")
        object.__setattr__(self, "center", center)

    def __repr__(self) -> str:
        name, at = type(self).__name__, cast("Any", self.center)
        where = "" if at is None else f", center is {tuple(at.shape)}" if is_array(at) else f", center={at:g}"
        return f"{name}(radius={self.radius:g}{where})"

    def check(self, x: Array) -> None:
        super().check(x)
        at: Any = self.center
        if is_array(at) and tuple(at.shape) != tuple(x.shape):
            raise InputError(
                f"center of {type(self).__name__} is {tuple(at.shape)}, x0 is {tuple(x.shape)}; shapes must agree"
            )


@dataclass(frozen=True, eq=False, repr=False)
class L1Ball(_Ball):
    """`sum_i |x_i - center_i| <= radius`.

    Parameters
    ----------
    radius : float, default 1
        At least 0.
    center : float, list or array of the shape of x, optional
        The origin by default.

    Raises
    ------
    InputError
        If radius is negative (no such point exists), NaN or inf, or center is not finite.
    """

    def project(self, x: Array) -> Array:
        if self.center is None:
            return l1_ball_projection(x, self.radius)
        return self.center + l1_ball_projection(x - self.center, self.radius)


@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(_Ball):
    """`||x - center|| <= radius`, the Euclidean norm over all entries.

    Parameters
    ----------
    radius : float, default 1
        At least 0.
    center : float, list or array of the shape of x, optional
        The origin by default.

    Raises
    ------
    InputError
        If radius is negative (no such point exists), NaN or inf, or center is not finite.
    """

    real = False

    def project(self, x: Array) -> Array:
        offset = x if self.center is None else x - self.center
        size = norm(offset)
        if size <= self.radius:
            return 1.0 * x
        inside = (self.radius / size) * offset
        return inside if self.center is None else self.center + inside

    def violation(self, x: Array) -> float:
        """Euclidean distance to the set."""
        excess = norm(x if self.center is None else x - self.center) - self.radius
        return 0.0 if excess <= 0 else excess  # NaN passes


@dataclass(frozen=True, eq=False, repr=False)
class LinfBall(_Ball, Interval):
    """`|x_i - center_i| <= radius` for every entry: a box.

    Parameters
    ----------
    radius : float, default 1
        At least 0.
    center : float, list or array of the shape of x, optional
        The origin by default.

    Raises
    ------
    InputError
        If radius is negative (no such point exists), NaN or inf, or center is not finite.
    """

    def _limits(self) -> tuple[Any, Any]:
        center: Any = 0.0 if self.center is None else self.center
        return center - self.radius, center + self.radius


def _radius(given: Any, owner: str, why: str) -> float:
    number = float(given) if isinstance(given, Real) and not isinstance(given, bool) else float("nan")
    if 0 <= number < float("inf"):
        return number
    empty = f" (the set is empty: {why})" if number < 0 else ""
    raise InputError(f"radius of {owner} is {given!r}{empty}; expected a finite number >= 0")
