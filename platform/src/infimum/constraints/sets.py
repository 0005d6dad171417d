"""Simple sets with closed-form projections: boxes and the nonnegative orthant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from infimum.arrays import Array, clip, entry, is_array, norm, to_numpy
from infimum.constraints.base import ConvexSet
from infimum.errors import InputError

if TYPE_CHECKING:
    Bound = Any
else:
    # What a run file can hold; arrays are welcome from Python.
    Bound = float | list


class Interval(ConvexSet):
    """What boxes share: projection by clipping between `_limits`."""

    provides = ("violation", "project", "step", "bounds")

    def _limits(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def project(self, x: Array) -> Array:
        lower, upper = self._limits()
        return clip(x, lower, upper)

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """`(lower, upper)` as arrays like x, with -inf and inf where there is no bound."""
        lower, upper = self._limits()
        free = 0.0 * x
        return free + (-np.inf if lower is None else lower), free + (np.inf if upper is None else upper)


@dataclass(frozen=True, eq=False)
class Box(Interval):
    """`lower <= x <= upper`, entry by entry.

    Parameters
    ----------
    lower, upper : float, list or array of the shape of x, optional
        Bounds; None (and infinite entries) leave a side free.

    Raises
    ------
    InputError
        If both are missing, a bound is NaN, shapes do not agree, or lower exceeds upper anywhere.
    """

    data = ("lower", "upper")
    examples = ({"lower": -0.5, "upper": 0.5}, {"lower": [0.0, -1.0, 0.0], "upper": [1.0, 1.0, 0.0]})

    lower: Bound | None = None
    upper: Bound | None = None

    def __post_init__(self) -> None:
        if self.lower is None and self.upper is None:
            raise InputError("Box() bounds nothing: give lower, upper or both")
        for name in ("lower", "upper"):
            object.__setattr__(self, name, bound(getattr(self, name), name, "the box"))
        check_order(self.lower, self.upper, "the box")

    def __repr__(self) -> str:
        given = {"lower": self.lower, "upper": self.upper}
        shown = [
            f"{name} is {tuple(one.shape)}" if is_array(one) else f"{name}={one:g}"
            for name, one in given.items()
            if one is not None
        ]
        return f"Box({', '.join(shown)})"

    def _limits(self) -> tuple[Any, Any]:
        return self.lower, self.upper

    def check(self, x: Array) -> None:
        super().check(x)
        for name in ("lower", "upper"):
            one = getattr(self, name)
            if is_array(one) and tuple(one.shape) != tuple(x.shape):
                raise InputError(f"{name} of the box is {tuple(one.shape)}, x0 is {tuple(x.shape)}; shapes must agree")


def bound(given: Any, name: str, owner: str) -> Any:
    """A bound as None, a float or a floating array."""
    if given is None:
        return None
    if not is_array(given):
        given = np.asarray(given)
    host = to_numpy(given)
    if host.dtype.kind not in "fiub":
        raise InputError(f"{name} of {owner} holds {host.dtype} entries; expected real numbers")
    if not host.size:
        raise InputError(f"{name} of {owner} is empty: its shape is {host.shape}")
    wrong = np.isnan(host) | (host == (np.inf if name == "lower" else -np.inf))
    if wrong.any():
        index, where = entry(np.argmax(wrong), wrong.shape)
        expected = "a number or -inf" if name == "lower" else "a number or inf"
        raise InputError(f"{name} of {owner}{where} is {host[index]}; expected {expected}")
    if host.ndim == 0:
        return float(host)
    return given if host.dtype.kind == "f" else host.astype(np.float64)


def check_order(lower: Any, upper: Any, owner: str) -> None:
    """Raise `InputError` where two bounds cross or do not agree in shape."""
    if lower is None or upper is None:
        return
    low, high = np.asarray(to_numpy(lower)), np.asarray(to_numpy(upper))
    if low.ndim and high.ndim and low.shape != high.shape:
        raise InputError(f"lower of {owner} is {low.shape}, upper is {high.shape}; shapes must agree")
    crossed = np.asarray(low > high)
    if crossed.any():
        index, where = entry(np.argmax(crossed), crossed.shape)
        shown = [float(np.broadcast_to(one, crossed.shape)[index]) for one in (low, high)]
        raise InputError(
            f"the bounds of {owner} cross: lower{where} = {shown[0]:g} > upper{where} = {shown[1]:g}; "
            "expected lower <= upper"
        )


@dataclass(frozen=True)
class Nonnegative(Interval):
    """`x >= 0`, entry by entry."""

    def _limits(self) -> tuple[Any, Any]:
        return 0.0, None

    def violation(self, x: Array) -> float:
        """Euclidean distance to the set."""
        return norm(clip(x, None, 0.0))
