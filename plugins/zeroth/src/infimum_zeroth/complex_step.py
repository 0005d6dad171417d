"""The gradient by complex steps, for functions that compute with complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.oracle import Oracle
from infimum_zeroth.coordinates import Coordinates, flat_size
from infimum_zeroth.queries import Queries, flat_real, on_host, precision_of, refuse_bad_eps

NAME = "zeroth.complex_step"
REMEDY = "use zeroth.central_difference"


@dataclass(frozen=True)
class ComplexStep(Oracle):
    """Gradient to machine precision from n + 1 values: `g_i = Im f(x + i h e_i) / h`.

    Nothing is subtracted, so the step can be tiny and neither truncation nor rounding is left. The function must
    compute with complex points by formulas that are analytic: sums, products, exp, sin, `x @ x`; not abs, max,
    comparisons, norms or conjugates, which lose the imaginary part or compute with it. The first gradient checks that:
    it costs two values more, whose difference must agree to a few percent. A function that is analytic only near the
    start passes this test and is wrong elsewhere.

    One of the values is that at x itself, which `value_and_gradient` gives.

    Parameters
    ----------
    eps : float, default 1e-20
        Step h, above 0; its square must vanish beside one, and h times an entry of the gradient must not underflow.

    Raises
    ------
    InputError
        For an `eps` that is not positive and finite, a function that fails on complex points or returns a real number
        for them, or one whose complex step disagrees with a difference of real values.
    """

    eps: Annotated[float, Gt(0)] = 1e-20

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient", "value_and_gradient")
    preference: ClassVar[int] = -2

    def __post_init__(self) -> None:
        refuse_bad_eps(NAME, "eps", self.eps)

    @staticmethod
    def reference_functions() -> dict[str, Callable[[], Function]]:
        """An analytic function, for the conformance kit."""
        return {"analytic": _analytic}

    def refuses(self, function: Any) -> str | None:
        if getattr(function, "real", False):
            return f"it is defined for real points only; {REMEDY}"
        return None

    def bind(self, function: Any, rng: np.random.Generator) -> ComplexStepPart:
        return ComplexStepPart(function, rng, self.eps)


def _analytic() -> Function:
    def value(x: Array) -> Any:
        return (x * x).sum() / 2 + x[0] * x[-1]

    def gradient(x: Array) -> Array:
        return x + x[0] * np.eye(len(x))[-1] + x[-1] * np.eye(len(x))[0]

    return Function(value, gradient=gradient, value_and_gradient=lambda x: (value(x), gradient(x)))


class ComplexStepPart:
    """A function with a gradient by complex steps. It remembers whether it has checked the function."""

    def __init__(self, function: Any, rng: np.random.Generator, eps: float) -> None:
        self.queries, self.rng, self.eps = Queries(function, None, rng), rng, eps
        self.checked = False

    def gradient(self, x: Array) -> Array:
        """The gradient at x, in the shape and dtype of x."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The value at x and the gradient there."""
        flat, xp = flat_real(x, NAME), namespace(x)
        value = self.queries.at(flat, x)
        steep = xp.astype(flat, xp.complex64 if xp.finfo(x.dtype).bits <= 32 else xp.complex128)
        index = np.arange(flat_size(x))
        values = self._evaluate(Coordinates(steep, steep + 1j * self.eps, index), x, len(index))
        partials = values.imag / self.eps
        if not self.checked:
            self._check(flat, partials, x)
            self.checked = True
        return value, xp.asarray(partials, dtype=x.dtype, device=x.device).reshape(tuple(x.shape))

    def _evaluate(self, points: Coordinates, x: Array, count: int) -> np.ndarray:
        try:
            values = self.queries.many(points, count, x)
        except (TypeError, ValueError, RuntimeError, np.exceptions.ComplexWarning) as error:
            if self.checked or isinstance(error, InputError):
                raise
            raise InputError(f"{NAME}: the function fails on complex points ({error}); {REMEDY}") from error
        if count and not np.iscomplexobj(values):
            raise InputError(
                f"{NAME}: the function returned a real number for a complex point: on the way it drops the imaginary "
                f"part (abs, norm, float, .real); write it with analytic formulas such as x @ x, or {REMEDY}"
            )
        return values

    def _check(self, flat: Array, partials: np.ndarray, x: Array) -> None:
        """A difference of real values along a random sign vector against what the partial derivatives predict."""
        u, xp, here = precision_of(x), namespace(x), on_host(flat)
        signs = self.rng.choice([-1.0, 1.0], len(here))
        move = math.cbrt(u) * np.maximum(1.0, np.abs(here)) * signs
        ends = [xp.asarray(here + side * move, dtype=x.dtype, device=x.device) for side in (1, -1)]
        above, below = (self.queries.at(end, x) for end in ends)
        measured, predicted = (above - below) / 2, float(partials @ move)
        allowed = 3e-2 * (float(np.abs(partials * move).sum()) + abs(measured)) + 10 * u * max(abs(above), abs(below))
        if abs(measured - predicted) > allowed:
            raise InputError(
                f"{NAME}: complex steps predict a change of {predicted:.3g} where real values change by "
                f"{measured:.3g}: the function is not analytic (abs, max, comparisons, conjugates); {REMEDY}"
            )

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng, "checked": self.checked}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng, self.checked = state["rng"], bool(state["checked"])
