"""Sets: `violation(x)`, and what a set can of `project`, `tangent`, `step`, `bounds`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from infimum.arrays import Array, describe, is_complex, norm
from infimum.errors import InputError
from infimum.functions.fit import fitted


class Constraint:
    """A closed set of points; a named term of a problem like any other.

    Subclasses list in `provides` which of these they have:

    - `violation(x) -> float`: 0 on the set, else how far outside (the Euclidean distance where that is known in
      closed form, else the norm of the violated residual);
    - `project(x)`: the nearest point; `tangent(x, g)`: `g` projected on the tangent space at `x`;
    - `step(x, d)`: a feasible update from `x` along `d`, stateless; `bounds(x)`: `(lower, upper)` arrays like `x`.
    """

    provides: ClassVar[tuple[str, ...]] = ("violation",)
    data: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that hold arrays; `to` converts them."""
    convex: bool | None = None

    project: Callable[[Array], Array]
    tangent: Callable[[Array, Array], Array]
    step: Callable[[Array, Array], Array]
    bounds: Callable[[Array], tuple[Array, Array]]

    @property
    def capabilities(self) -> frozenset[str]:
        """Names of what this set can do, known without calling it."""
        return frozenset(self.provides)

    @property
    def how(self) -> dict[str, str]:
        """For capabilities that follow from others: by which exact rule, for the plan to print."""
        return {}

    def violation(self, x: Array) -> float:
        raise NotImplementedError

    def check(self, x: Array) -> None:
        """Raise `InputError` if a point of the shape of `x` does not fit."""

    def to(self, x: Array) -> Constraint:
        """This set with its data in the namespace, dtype and device of `x`."""
        return fitted(self, self.data, x)


class ConvexSet(Constraint):
    """Base of convex sets with a closed-form projection, from which distance and step follow."""

    provides: ClassVar[tuple[str, ...]] = ("violation", "project", "step")
    convex = True
    real: ClassVar[bool] = True
    """True for sets of real points only."""

    def violation(self, x: Array) -> float:
        """Euclidean distance to the set."""
        return norm(x - self.project(x))

    def step(self, x: Array, d: Array) -> Array:
        """`project(x + d)`."""
        return self.project(x + d)

    def check(self, x: Array) -> None:
        if self.real and is_complex(x):
            raise InputError(f"{self!r} is a set of real points, x0 is complex ({describe(x)})")
