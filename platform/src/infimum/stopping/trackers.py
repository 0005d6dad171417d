"""Trackers of the built-in rules. `update` runs at every check: attributes are cached, nothing is made until it fires.

Comparisons ask first for the common answer, then for the other; what satisfies neither is NaN, hence `UNKNOWN`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infimum.errors import InputError
from infimum.stopping.base import UNKNOWN, Progress, Reason, StoppingRule, Unknown, literal

if TYPE_CHECKING:
    from infimum.stopping.rules import MaxCalls, MaxIter, MaxTime, Stall, Target


class _Memory:
    """State as plain data; `_remembers` names the slots that are saved, without their underscore."""

    __slots__ = ("_rule",)
    _remembers: tuple[str, ...] = ()

    def __init__(self, rule: StoppingRule) -> None:
        self._rule = rule

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, f"_{name}") for name in self._remembers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if set(state) != set(self._remembers):
            raise InputError(
                f"the saved state of {self._rule} holds {sorted(state)}, expected {sorted(self._remembers)}; "
                "continue with the stopping rule that the state was saved with"
            )
        for name, value in state.items():
            setattr(self, f"_{name}", value)

    def _reason(self, message: str, **values: float) -> Reason:
        return Reason(str(self._rule), self._rule.status, message, values)


class IterationTracker(_Memory):
    """Fires from iteration n on."""

    __slots__ = ("n",)

    def __init__(self, rule: MaxIter) -> None:
        super().__init__(rule)
        self.n = rule.n

    def update(self, progress: Progress) -> Reason | None:
        if progress.iteration < self.n:
            return None
        return self._reason(f"iteration {progress.iteration} >= {self.n}", iteration=progress.iteration)


class TimeTracker(_Memory):
    """Fires once the run has taken its seconds."""

    __slots__ = ("seconds",)

    def __init__(self, rule: MaxTime) -> None:
        super().__init__(rule)
        self.seconds = rule.seconds

    def update(self, progress: Progress) -> Reason | None:
        if progress.elapsed < self.seconds:
            return None
        return self._reason(f"elapsed {progress.elapsed:.6g} s >= {literal(self.seconds)} s", elapsed=progress.elapsed)


class SolverTimeTracker(_Memory):
    """Fires once the solver itself has taken its seconds."""

    __slots__ = ("_seconds",)

    def __init__(self, rule: MaxTime) -> None:
        super().__init__(rule)
        self._seconds = rule.seconds

    def update(self, progress: Progress) -> Reason | None:
        spent = progress.elapsed - progress.observed
        if spent < self._seconds:
            return None
        return self._reason(f"the solver took {spent:.6g} s >= {literal(self._seconds)} s", solver_time=spent)


class CallsTracker(_Memory):
    """Fires once a capability was evaluated n times, and says by how many it went over."""

    __slots__ = ("_n", "_of")

    def __init__(self, rule: MaxCalls) -> None:
        super().__init__(rule)
        self._n, self._of = rule.n, rule.of

    def update(self, progress: Progress) -> Reason | None:
        total = progress.calls.total(self._of)
        if total < self._n:
            return None
        over = f" ({total - self._n} over)" if total > self._n else ""
        return self._reason(f"evaluations of {self._of} {total} >= {self._n}{over}", **{f"{self._of}_calls": total})


class TargetTracker(_Memory):
    """Fires when the value is as good as the target, in the user's sense."""

    __slots__ = ("_target",)

    def __init__(self, rule: Target) -> None:
        super().__init__(rule)
        self._target = rule.value

    def update(self, progress: Progress) -> Reason | Unknown | None:
        value = progress.metrics.get("value")
        if value is None:
            return UNKNOWN
        if progress.maximize:
            if value < self._target:
                return None
            met = value >= self._target
        else:
            if value > self._target:
                return None
            met = value <= self._target
        if not met:
            return UNKNOWN
        sign = ">=" if progress.maximize else "<="
        return self._reason(f"value {float(value):.6g} {sign} {literal(self._target)}", value=float(value))


class ThresholdTracker(_Memory):
    """Fires when a metric is at or below its tolerance."""

    __slots__ = ("_metric", "_tol")

    def __init__(self, rule: StoppingRule, metric: str, tol: float) -> None:
        super().__init__(rule)
        self._metric, self._tol = metric, tol

    def update(self, progress: Progress) -> Reason | Unknown | None:
        value = progress.metrics.get(self._metric)
        if value is None:
            return UNKNOWN
        if value > self._tol:
            return None
        if value <= self._tol:
            shown = f"{self._metric} {float(value):.6g} <= {literal(self._tol)}"
            return self._reason(shown, **{self._metric: float(value)})
        return UNKNOWN


class WindowTracker(_Memory):
    """Fires when a metric has been at or below its tolerance for `patience` iterations in a row.

    A check without the metric neither adds to the row nor breaks it; a NaN breaks it.
    """

    __slots__ = ("_metric", "_patience", "_since", "_tol")
    _remembers = ("since",)

    def __init__(self, rule: StoppingRule, metric: str, tol: float, patience: int) -> None:
        super().__init__(rule)
        self._metric, self._tol, self._patience = metric, tol, patience
        self._since: int | None = None

    def update(self, progress: Progress) -> Reason | Unknown | None:
        value = progress.metrics.get(self._metric)
        if value is None:
            return UNKNOWN
        if value > self._tol:
            self._since = None
            return None
        if value <= self._tol:
            if self._since is None:
                self._since = progress.iteration
            lasted = progress.iteration - self._since + 1
            return self._fired(float(value), lasted) if lasted >= self._patience else None
        self._since = None
        return UNKNOWN

    def _fired(self, value: float, lasted: int) -> Reason:
        span = f" for {lasted} iterations" if self._patience > 1 else ""
        return self._reason(f"{self._metric} {value:.6g} <= {literal(self._tol)}{span}", **{self._metric: value})


class StallTracker(_Memory):
    """Fires when the value has not improved by more than `min_delta` for `patience` iterations.

    The best value moves only by an improvement that counts, so many small ones add up to one that does.
    """

    __slots__ = ("_at", "_best", "_min_delta", "_patience")
    _remembers = ("best", "at")

    def __init__(self, rule: Stall) -> None:
        super().__init__(rule)
        self._patience, self._min_delta = rule.patience, rule.min_delta
        self._best: float | None = None
        self._at = 0

    def update(self, progress: Progress) -> Reason | Unknown | None:
        value = progress.metrics.get("value")
        if value is None or value != value:
            return UNKNOWN
        best = self._best
        if best is None:
            improved = True
        elif progress.maximize:
            improved = value > best + self._min_delta
        else:
            improved = value < best - self._min_delta
        if improved:
            self._best, self._at = float(value), progress.iteration
            return None
        lasted = progress.iteration - self._at
        return self._fired(float(value), lasted) if lasted >= self._patience else None

    def _fired(self, value: float, lasted: int) -> Reason:
        assert self._best is not None
        amount = f" by more than {literal(self._min_delta)}" if self._min_delta else ""
        message = f"value {value:.6g} has not improved on {self._best:.6g}{amount} for {lasted} iterations"
        return self._reason(message, value=value, best=self._best, iterations_without_improvement=lasted)
