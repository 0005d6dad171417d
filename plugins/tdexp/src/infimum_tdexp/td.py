"""TD(0) with linear features as a solver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.errors import InputError
from infimum.schedule import Constant, Schedule
from infimum.solver import Finished, Metric, Slot, Solver
from infimum.status import Status
from infimum_tdexp import checks, kernel
from infimum_tdexp.schedules import Theory, usual
from infimum_tdexp.transitions import TRANSITIONS, Array, Request

NAME = "tdexp.td0"
Step = Annotated[float, Gt(0)] | Literal["auto", "theory"] | Schedule
Lam = Annotated[float, Ge(0)] | Literal["1/sqrt(T)"]


@dataclass(slots=True)
class TDState:
    """Weights, the sum of the averaged ones, and where the chains stand."""

    w: Array
    total: Array | None
    k: int
    seed: int
    where: Array | None
    lr: float
    error: float | None


@dataclass(frozen=True, init=False, repr=False)
class TD0(Solver):
    """TD(0): at each transition `w += eta_k ((r + gamma phi'w - phi w) phi - lam w)`.

    A start of shape (runs, d) learns that many times at once, each from transitions of its own: one iteration is one
    transition of every run. Between two checks (`check_every`) all steps are taken in one loop over arrays. Reports
    the last iterate, or with `average` the mean of the late ones.

    Metrics: `step` (the step size taken last), `td_error` (root mean square over the runs of the last temporal
    differences). The run ends as `diverged` when ||w|| of a run passes 1e8.

    Parameters
    ----------
    step : float, "auto", "theory" or a schedule, default "auto"
        "auto" is `tdexp.exponential` with eta0 = 1 and beta = 10 over the horizon, and without a horizon
        `tdexp.doubling`. "theory" is `tdexp.theory` with what is known of the process: far too small in practice. A
        number is kept constant. A schedule is asked at k = 0, 1, …
    horizon : int, optional
        T, the number of steps that are planned; of the schedule, where that has one.
    lam : float or "1/sqrt(T)", default 0.0
        Regularization. It moves the fixed point to `(A + lam I)^-1 b`, a bias that no number of steps removes, and
        which is large unless lam is far below omega (1 - gamma). `problem.moments.bias(lam)` says how large, where
        the model is known.
    average : int, optional
        Report the mean of the iterates after the first so many steps: 0 for Polyak-Ruppert averaging, T/2 for the
        last half. Until then, and without it, the last iterate.

    Raises
    ------
    InputError
        Naming the option that does not fit; for "theory" without a horizon, or on one trajectory without
        regularization where omega is not known.

    References
    ----------
    Li, Schmidt, Babanezhad, Vaswani, "Towards parameter-free temporal difference learning", arXiv 2603.02577.
    """

    step_size: Step
    horizon: int | None
    lam: Lam
    average: int | None

    families: ClassVar[tuple[str, ...]] = ("policy evaluation",)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "step": Metric(attrgetter("lr")),
        "td_error": Metric(attrgetter("error")),
    }
    State: ClassVar[type] = TDState
    preference: ClassVar[int] = 1
    examples: ClassVar[Sequence[Any]] = (
        {"horizon": 12},
        {"step": 0.1, "average": 4},
        {"step": {"use": "core.power", "initial": 0.5, "exponent": 0.5}, "lam": 0.01},
        {"step": "theory", "horizon": 12, "lam": "1/sqrt(T)"},
    )
    reference_problems: ClassVar[Sequence[Any]] = (
        {"use": "tdexp.garnet", "runs": 3},
        {"use": "tdexp.boyan_chain", "sampling": "iid"},
    )

    def __init__(
        self,
        step: Step = "auto",
        horizon: Annotated[int, Ge(1)] | None = None,
        lam: Lam = 0.0,
        average: Annotated[int, Ge(0)] | None = None,
    ) -> None:
        if not callable(step) and step not in ("auto", "theory"):
            try:
                step = Constant(step).value  # type: ignore[arg-type]
            except InputError:
                raise InputError(
                    f"{NAME}: step={step!r}; expected a number > 0, 'auto', 'theory' or a schedule"
                ) from None
        if not (isinstance(lam, str) and lam == "1/sqrt(T)"):
            lam = checks.number(lam, "lam", NAME, "a finite number >= 0 or '1/sqrt(T)'", lambda x: x >= 0)
        if average is not None:
            average = checks.whole(average, "average", NAME, least=0)
        if horizon is None:
            horizon = getattr(step, "horizon", None)
        elif getattr(step, "horizon", horizon) != horizon:
            raise InputError(f"{NAME}: horizon={horizon}, but that of the schedule is {step.horizon}")  # type: ignore[union-attr]
        if horizon is not None:
            horizon = checks.whole(horizon, "horizon", NAME)
        for option, given in (("step", step), ("lam", lam)):
            if isinstance(given, str) and given != "auto" and horizon is None:
                raise InputError(f"{NAME}: {option}={given!r} needs horizon=T, the number of steps that are planned")
        values = {"step_size": step, "horizon": horizon, "lam": lam, "average": average}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"TD0(step={self.step_size!r}, horizon={self.horizon}, lam={self.lam!r}, average={self.average})"

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("process", needs=(TRANSITIONS,), at_least=1, at_most=1, empty=None),)

    def check(self, parts: Any) -> None:
        self._schedule(parts)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> TDState:
        total = None if self.average is None else np.zeros_like(start)
        return TDState(start.copy(), total, 0, int(rng.integers(2**63)), None, self._schedule(parts)(0), None)

    def step(self, parts: Any, state: TDState) -> TDState:
        return self.advance(parts, state, 1)

    def advance(self, parts: Any, state: TDState, steps: int) -> TDState:
        shape = state.w.shape
        W = state.w.reshape(-1, shape[-1]).copy()
        total = None if state.total is None else state.total.reshape(W.shape).copy()
        runs, d = W.shape
        schedule, lam, done, where = self._schedule(parts), self.strength, state.k, state.where
        most, end = kernel.chunk(d, runs), state.k + steps
        while done < end:
            take = min(most, end - done)
            batch = parts.process.transitions(Request(state.seed, done, take, runs, where))
            etas = checked_steps(schedule, done, take)
            skip = max(0, (self.average or 0) - done)
            delta = kernel.learn(W, batch, etas, lam, total, skip)
            done, where, eta = done + take, batch.where, etas[-1]
            _guard(W, done, eta)
        error = math.sqrt(float(np.vdot(delta, delta)) / delta.size)
        held = None if total is None else total.reshape(shape)
        return TDState(W.reshape(shape), held, done, state.seed, where, eta, error)

    def solution(self, state: TDState) -> Array:
        """The last iterate; with `average`, from its step on, the mean."""
        if self.average is None or state.total is None or state.k <= self.average:
            return state.w
        mean: Array = state.total / (state.k - self.average)
        return mean

    def extras(self, state: TDState) -> dict[str, Any]:
        """The last iterate and the transitions of each run."""
        return {"last": state.w, "steps": state.k, "lam": self.strength}

    @property
    def strength(self) -> float:
        """The regularization as a number."""
        return 1.0 / math.sqrt(self.horizon or 1) if isinstance(self.lam, str) else self.lam

    def _schedule(self, parts: Any) -> Schedule:
        step, T = self.step_size, self.horizon
        if callable(step):
            return step
        if not isinstance(step, str):
            return Constant(step)
        if step == "auto":
            return usual(T)
        process, regularized = parts.process, self.lam == "1/sqrt(T)"
        if process.sampling == "markov" and not regularized and not process.omega:
            raise InputError(
                f"{NAME}: step='theory' on one trajectory needs omega, the smallest eigenvalue of E[phi phi'], which "
                "is not known here (or 0); take lam='1/sqrt(T)', whose step needs T only, or step='auto'"
            )
        return Theory(T or 1, process.gamma, process.sampling, process.omega or None, regularized)


def checked_steps(schedule: Schedule, first: int, steps: int) -> list[float]:
    """The numbers that a schedule gives for some steps, which must be finite and not below 0."""
    try:
        etas = [float(schedule(k)) for k in range(first, first + steps)]
    except (TypeError, ValueError) as error:
        raise InputError(f"{NAME}: the schedule {schedule!r} gave no number: {error}") from error
    low, high = min(etas), max(etas)
    if not (low >= 0 and high < math.inf and math.isfinite(sum(etas))):
        at = next(k for k, eta in enumerate(etas) if not 0 <= eta < math.inf)
        raise InputError(
            f"{NAME}: the schedule {schedule!r} gave {etas[at]:g} at k = {first + at}; expected a finite number >= 0"
        )
    return etas


def _guard(W: Array, done: int, eta: float) -> None:
    largest = float(np.abs(W).max())
    if not largest <= kernel.LIMIT:
        raise Finished(
            f"||w|| passed {kernel.LIMIT:g} within {done} transitions (last step size {eta:.3g}): the step size is too "
            "large for these features, or the states are not drawn under the policy that is evaluated",
            Status.diverged,
        )
