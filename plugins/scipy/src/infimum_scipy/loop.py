"""One of SciPy's loops under our monitor: evaluations that count and can end it, ticks, and why it ended."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from infimum.arrays import is_sparse
from infimum.errors import NonFiniteError
from infimum.solver import Ticker
from infimum.status import Status
from infimum_scipy.form import Form, matrix
from infimum_scipy.limits import Bounds, Rows


class Halt(Exception):
    """Ends a loop of SciPy from inside of a function that it calls."""


class Evaluated:
    """A point with what is known there; nobody changes `x`."""

    __slots__ = ("gradient", "value", "x")

    def __init__(self, x: np.ndarray) -> None:
        self.x = x
        self.value: float | None = None
        self.gradient: np.ndarray | None = None


class Guard:
    """Stands before every evaluation: ends the loop when a stop is there, and keeps errors that SciPy swallows."""

    def __init__(self, monitor: Ticker) -> None:
        self.monitor = monitor
        self.error: BaseException | None = None

    def __call__(self, call: Callable[..., Any], *args: Any) -> Any:
        if self.error is not None:
            raise self.error
        if self.monitor.poll() is not None:
            raise Halt
        try:
            return call(*args)
        except BaseException as error:
            self.error = error
            raise


class Loop:
    """The functions that SciPy gets, and the state of one run.

    Parameters
    ----------
    name : str
        The solver, for messages.
    part : object
        The objective, with `value` and perhaps derivatives.
    sets : namespace
        Parts of the slots `bounds`, `linear` and `nonlinear`, where the solver has them.
    joint : bool
        Whether value and gradient are always asked for together, so that sharing work pays.
    """

    def __init__(self, name: str, part: Any, sets: Any, start: Any, monitor: Ticker, joint: bool = False) -> None:
        self.form = Form(start, name)
        self.part, self.monitor, self.joint = part, monitor, joint
        self.call = Guard(monitor)
        self.extended = bool(part.extended)
        self.bounds = Bounds(getattr(sets, "bounds", ()), start, self.form)
        found = (*getattr(sets, "linear", ()), *getattr(sets, "nonlinear", ()))
        self.rows = [Rows(one, start, self.form, self.call) for one in found]
        self.best: Evaluated | None = None
        self.first: float | None = None
        """Size of the slope at the start."""
        self._last: Evaluated | None = None
        self._held: Evaluated | None = None
        self._slopes = 0
        if self.form.note is not None:
            monitor.note(self.form.note)
        self.x0 = self.form.flat(start)
        if self.bounds.violation(self.x0):
            monitor.note("x0 lies outside of the bounds: the run starts at the nearest point within them")
            self.x0 = self.bounds.clip(self.x0)

    def at(self, v: np.ndarray) -> Evaluated:
        """What is known at `v`: at the last evaluated point, the last reported one, or nothing yet."""
        for one in (self._last, self._held):
            if one is not None and np.array_equal(one.x, v):
                return one
        self._last = Evaluated(np.array(v, dtype=np.float64))
        return self._last

    def value(self, v: np.ndarray) -> float:
        one = self.at(v)
        if one.value is None:
            if self.joint or "value" not in self.part.native:
                self._both(one)
            else:
                one.value = self._number(self.call(self.part.value, self.form.point(one.x)))
                self._rank(one)
        assert one.value is not None
        return one.value

    def gradient(self, v: np.ndarray) -> np.ndarray:
        one = self.at(v)
        if one.gradient is None:
            if self.joint or "gradient" not in self.part.native:
                self._both(one)
            else:
                one.gradient = self._vector(self.call(self.part.gradient, self.form.point(one.x)))
        assert one.gradient is not None
        return one.gradient.copy()

    def hessian(self, v: np.ndarray) -> Any:
        out = matrix(self.call(self.part.hessian, self.form.point(np.array(v))))
        self._finite(out.data if is_sparse(out) else out, "hessian")
        return out

    def hvp(self, v: np.ndarray, p: np.ndarray) -> np.ndarray:
        x, d = self.form.point(np.array(v)), self.form.point(np.array(p, dtype=np.float64).reshape(-1))
        out = self.form.flat(self.call(self.part.hvp, x, d))
        self._finite(out, "hvp")
        return out

    def _both(self, one: Evaluated) -> None:
        if not self.part.offers("value_and_gradient"):
            one.value = self._number(self.call(self.part.value, self.form.point(one.x)))
        else:
            value, gradient = self.call(self.part.value_and_gradient, self.form.point(one.x))
            one.value, one.gradient = self._number(value), self._vector(gradient)
        self._rank(one)

    def _number(self, value: Any) -> float:
        number = float(value)
        if not math.isfinite(number) and not (self.extended and number == math.inf):
            self._refuse("value", "NaN" if number != number else f"{number}")
        return number

    def _vector(self, gradient: Any) -> np.ndarray:
        out = self.form.flat(gradient)
        self._slopes += 1
        self._finite(out, "gradient")
        return out

    def _finite(self, data: np.ndarray, capability: str) -> None:
        if not self.extended and not np.isfinite(data).all():
            self._refuse(capability, "NaN" if np.isnan(data).any() else "inf")

    def _refuse(self, capability: str, kind: str) -> None:
        self.call.error = NonFiniteError("slot 'objective'", capability, kind, self._slopes)
        raise self.call.error

    def _rank(self, one: Evaluated) -> None:
        assert one.value is not None
        if not self.rows and one.value < math.inf:
            best = self.best
            if best is None or best.value is None or one.value < best.value:
                self.best = one

    def slope(self, one: Evaluated, *, ask: bool) -> np.ndarray | None:
        """The gradient (mapping, under bounds) at a point, evaluated only if `ask`; None under other sets."""
        if self.rows or not self.part.offers("value_and_gradient"):
            return None
        if one.gradient is None and ask:
            self._held, held = one, self._held
            self.gradient(one.x)
            self._held = held
        return None if one.gradient is None else self.bounds.slope(one.x, one.gradient)

    def metrics(self, one: Evaluated, *, ask: bool = False, **more: Any) -> dict[str, Any]:
        """What is known of a point, as a tick takes it."""
        out: dict[str, Any] = {"value": one.value, **more}
        slope = self.slope(one, ask=ask)
        if slope is not None:
            out["grad_norm"] = float(np.linalg.norm(slope))
        if self.rows or self.bounds.given:
            out["violation"] = max([self.bounds.violation(one.x), *(row.violation(one.x) for row in self.rows)])
        return out

    def tick(self, v: np.ndarray, value: float | None = None, *, ask: bool = False, **more: Any) -> None:
        """One iteration; ends the loop when a rule says so.

        `value` is SciPy's own, used where the point is none of the last ones. `ask` evaluates a missing gradient: for
        methods that need it next anyway, and then find it here.
        """
        one = self.at(v)
        if one.value is None:
            one.value = self.value(v) if value is None else float(value)
        metrics = self.metrics(one, ask=ask, **more)
        self._held = one
        if self.monitor.tick(metrics, self.form.point(one.x)) is not None:
            raise Halt

    def begin(self, *, ask: bool = True) -> None:
        """Iteration 0."""
        self.value(self.x0)
        if ask:
            slope = self.bounds.slope(self.x0, self.gradient(self.x0))
            self.first = float(np.max(np.abs(slope), initial=0.0))
        self.tick(self.x0)

    def run(self, solve: Callable[[], Any], conclude: Callable[[Any, Evaluated], tuple[Status, str]]) -> dict[str, Any]:
        """Call SciPy, then say why it ended; the state of a run, whichever way it ends."""
        try:
            with quiet():
                out = solve()
            if self.call.error is not None:
                raise self.call.error
            self._conclude(out, conclude)
        except Halt:
            pass
        finally:
            self._offer()
        assert self._held is not None
        return {"x": self.form.point(self._held.x)}

    def end(self, one: Evaluated, status: Status, message: str, **more: Any) -> None:
        """End the loop here, with one more iteration, for a reason that SciPy does not have."""
        if one.value is None:
            self.value(one.x)
        self._held = one
        self.monitor.tick(self.metrics(one, **more), self.form.point(one.x))
        self.monitor.finish(status, message)
        raise Halt

    def _conclude(self, out: Any, conclude: Callable[[Any, Evaluated], tuple[Status, str]]) -> None:
        one = self.at(np.asarray(out.x, dtype=np.float64).reshape(-1))
        if one.value is None:
            one.value = float(out.fun) if np.isfinite(out.fun) else self.value(one.x)
        status, message = conclude(out, one)
        self._held = one
        self.monitor.finish(status, message, self.metrics(one), self.form.point(one.x))

    def _offer(self) -> None:
        """The best point of an iteration that did not end."""
        if self.best is not None:
            inside = {"violation": self.bounds.violation(self.best.x)}
            self.monitor.seen({"value": self.best.value, **inside}, self.form.point(self.best.x))


@contextmanager
def quiet() -> Iterator[None]:
    """What SciPy warns of stands in its message, and in ours."""
    from scipy.optimize import OptimizeWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimizeWarning)
        warnings.filterwarnings("ignore", message="delta_grad == 0.0")
        warnings.filterwarnings("ignore", message="Singular Jacobian matrix")
        yield
