"""What all methods of `scipy.optimize.minimize` share: slots, the call, and what SciPy's own ending means."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from infimum.arrays import is_sparse
from infimum.errors import InputError
from infimum.oracle import Resume
from infimum.solver import Metric, Slot, Solver, Ticker
from infimum.status import Status
from infimum_scipy.loop import Evaluated, Loop

UNLIMITED = 2**31 - 1
"""Where SciPy wants a limit of its own: the largest that its compiled methods take."""
LEAST_FALL = 1e-3
"""Share to which the gradient must have fallen for a small change of the value to mean a minimum."""
FREE = {"linear": ("unconstrained",), "nonlinear": ("unconstrained",)}
"""For metrics that mean nothing under constraints other than bounds: no set offers this."""
SLOPE = {"value": Metric(), "grad_norm": Metric(requires=FREE)}


Derivatives = Literal["none", "gradient", "hessian or hvp", "hessian"]


class Minimize(Solver):
    """Base of the methods of `scipy.optimize.minimize`.

    The options are SciPy's own, under SciPy's names. Those that limit a run (`maxiter`, `maxfev`, `f_target`, …) are
    left to the stopping rules, `disp` and `return_all` to the record, finite differences to an oracle.
    """

    method: ClassVar[str]
    """SciPy's name."""
    unlimited: ClassVar[Mapping[str, Any]] = {"maxiter": UNLIMITED}
    """SciPy's own limits, out of the way of the stopping rules."""
    derivatives: ClassVar[Derivatives] = "gradient"
    bounded: ClassVar[bool] = False
    constrained: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    """Whether the method asks for value and gradient at every point, so that they may share work."""
    asks: ClassVar[bool] = False
    """Whether the method needs the gradient of every iterate, but only after it was reported."""
    repeats_start: ClassVar[bool] = False
    """Whether the method reports the start as an iterate."""

    metrics: ClassVar[Mapping[str, Metric]] = SLOPE
    resume: ClassVar[Resume] = "none"
    stops: ClassVar[Literal["evaluation", "iteration", "never"]] = "evaluation"

    def slots(self) -> tuple[Slot, ...]:
        found = [self._objective()]
        if self.bounded:
            found.append(Slot("bounds", needs=("bounds",), each=True))
        if self.constrained:
            # `violation` keeps out functions that have a residual too.
            jacobian = ("jacobian",) if self.derivatives != "none" else ()
            found.append(Slot("linear", needs=("violation", "rows"), each=True))
            found.append(Slot("nonlinear", needs=("violation", "residual", *jacobian), each=True))
        return tuple(found)

    def _objective(self) -> Slot:
        if self.derivatives == "none":
            return Slot("objective", needs=("value",), at_least=1)
        more = {"gradient": (), "hessian": ("hessian",), "hessian or hvp": ("hvp",)}[self.derivatives]
        wants = ("value", "gradient", "hessian") if self.derivatives == "hessian or hvp" else ("value", "gradient")
        return Slot("objective", needs=("value_and_gradient", *more), wants=wants, at_least=1)

    def check(self, parts: Any) -> None:
        whole(parts, self.slots(), f"scipy.{self.method}")

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        loop = Loop(f"scipy.{self.method}", parts.objective, parts, start, monitor, self.joint)
        return loop.run(lambda: self._solve(loop), lambda out, one: self._conclude(loop, out, one))

    def _solve(self, loop: Loop) -> Any:
        from scipy.optimize import minimize

        loop.begin(ask=self.derivatives != "none")
        return minimize(loop.value, loop.x0, method=self.method, **self._arguments(loop))

    def _arguments(self, loop: Loop) -> dict[str, Any]:
        """Everything of SciPy's call but the function, the start and the method."""
        from scipy.optimize import Bounds

        out: dict[str, Any] = {"options": self._options(loop), "callback": self._callback(loop)}
        if self.derivatives != "none":
            out["jac"] = loop.gradient
            out |= self._curvature(loop)
        if loop.bounds.given:
            out["bounds"] = Bounds(loop.bounds.lower, loop.bounds.upper)
        if loop.rows:
            out["constraints"] = self._constraints(loop)
        return out

    def _options(self, loop: Loop) -> dict[str, Any]:
        given = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {**self.unlimited, **{name: value for name, value in given.items() if value is not None}}

    def _curvature(self, loop: Loop) -> dict[str, Any]:
        if self.derivatives == "gradient":
            return {}
        dense = loop.part.offers("hessian") and (self.derivatives == "hessian" or "hvp" not in loop.part.native)
        return {"hess": loop.hessian} if dense else {"hessp": loop.hvp}

    def _constraints(self, loop: Loop) -> Any:
        """General constraints as SciPy's objects."""
        from scipy.optimize import LinearConstraint, NonlinearConstraint

        out: list[Any] = []
        for one in loop.rows:
            lower, upper = one.limits(loop.x0)
            if one.linear:
                dense = self.derivatives == "none" and is_sparse(one.A)
                out.append(LinearConstraint(one.A.toarray() if dense else one.A, lower, upper))
            elif self.derivatives == "none":
                out.append(NonlinearConstraint(one.value, lower, upper))
            else:
                out.append(NonlinearConstraint(one.value, lower, upper, jac=one.jacobian))
        return out

    def _callback(self, loop: Loop) -> Any:
        fresh = self.repeats_start

        def tell(intermediate_result: Any) -> None:
            nonlocal fresh
            if fresh and np.array_equal(intermediate_result.x, loop.x0):
                fresh = False
                return
            fresh = False
            self._tick(loop, intermediate_result)

        return tell

    def _tick(self, loop: Loop, report: Any) -> None:
        loop.tick(report.x, report.get("fun"), ask=self.asks)

    def _conclude(self, loop: Loop, out: Any, one: Evaluated) -> tuple[Status, str]:
        """What SciPy's ending means: `converged` only with a first-order certificate."""
        message = str(out.message).strip()
        if not out.success:
            return Status.stalled, message
        found = self._certificate(loop, out, one)
        if found is None:
            return Status.stalled, f"{message} (small steps: no derivative says that this is a minimum)"
        what, size, share = found
        return certified(message, what, size, getattr(self, "gtol", 0.0), share, loop.first or 0.0)

    def _certificate(self, loop: Loop, out: Any, one: Evaluated) -> tuple[str, float, float] | None:
        """What measures optimality, its size at the end, and the share of that at the start that certifies."""
        slope = loop.slope(one, ask=True)
        if slope is None:
            return None
        what = "projected gradient" if loop.bounds.given else "gradient"
        return what, self._size(slope), self._share()

    def _size(self, slope: np.ndarray) -> float:
        return float(np.max(np.abs(slope), initial=0.0))

    def _share(self) -> float:
        """To what share of that at the start the gradient must have fallen; 0 where `gtol` alone decides."""
        return 0.0


def fall(tolerance: float) -> float:
    """The share of the first gradient that certifies an ending by a small relative change of the value.

    At the accuracy `tolerance` of the value, a gradient that has fallen to its cube root (and at least a
    thousandfold) is the usual companion test (Gill, Murray, Wright, "Practical Optimization", 1981, section 8.2.3).
    """
    return float(min(tolerance ** (1 / 3), LEAST_FALL))


def certified(message: str, what: str, size: float, gtol: float, share: float, first: float) -> tuple[Status, str]:
    """`converged` if the gradient is below `gtol`, or has fallen to its `share` of the first one; else `stalled`."""
    if size <= gtol:
        return Status.converged, f"{message} ({what} {size:.3g} <= {gtol:.3g})"
    if not share or not first:
        return Status.stalled, f"{message} (but {what} {size:.3g} > {gtol:.3g})"
    good = size <= share * first
    status, sign = (Status.converged, "<=") if good else (Status.stalled, ">")
    return status, f"{message} ({what} {size:.3g} is {size / first:.0e} of that at the start {sign} {share:.1g})"


def whole(parts: Any, slots: Sequence[Slot], name: str) -> None:
    """Refuse general constraints on a block of x."""
    for slot in slots:
        for part in getattr(parts, slot.name) if slot.each else ():
            if not all(part.offers(one) for one in slot.needs):
                raise InputError(
                    f"{name}: the constraint on block '{part.on}' has no {' and '.join(slot.needs)} as a set of the "
                    "whole x; state it for the whole x"
                )


def ordered(name: str, **numbers: float) -> None:
    """Raise `InputError` unless the numbers grow, within 0 and 1."""
    values = list(numbers.values())
    if not all(a < b for a, b in itertools.pairwise((0.0, *values, 1.0))):
        shown = ", ".join(f"{key}={value:g}" for key, value in numbers.items())
        raise InputError(f"{name}: {shown}; expected 0 < {' < '.join(numbers)} < 1")
