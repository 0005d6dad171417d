"""The family of black boxes: a function of parameters in a search space, of which only values and costs are known."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from infimum.errors import InputError
from infimum.problem.base import Problem, Sense, Term
from infimum.vocabulary import CAPABILITIES, Capability
from infimum_optuna.history import checked_cost
from infimum_optuna.space import Space

if TYPE_CHECKING:
    from optuna.trial import Trial

EVALUATE = "evaluate_params"
"""The capability of a black box. An evaluation counts as `evaluate` and as `value`."""

CAPABILITIES.setdefault(
    EVALUATE,
    Capability("evaluate_params(trial or params, asked=None) -> Outcome: value, cost and more", ("evaluate", "value")),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one evaluation gave.

    Attributes
    ----------
    value : float
        In the user's sense; NaN for a failed evaluation.
    cost : float
        0 or more; NaN where there is none.
    more : mapping of str to object
        Further numbers that the function returned; kept as user attributes of the trial.
    """

    value: float
    cost: float = math.nan
    more: Mapping[str, Any] = field(default_factory=dict)


class BlackBox(Problem):
    """Minimize or maximize a function of parameters that tells its value, and perhaps what it cost.

    Parameters
    ----------
    evaluate : callable
        `evaluate(params)` with a dict of parameters, or `evaluate(trial)` (the parameter is called `trial`, or there
        is no `space`) with an `optuna.Trial`, which asks for its parameters itself, reports intermediate values and
        may raise `optuna.TrialPruned`; `evaluate(params, trial)` gets both. Returns the value, `(value, cost)`, or a
        mapping with `value`, perhaps `cost`, and further numbers. In a run file: `"python:module:function"`.
    space : mapping, optional
        Name to an Optuna distribution, a list of choices, or `{low: 1, high: 9}` with `step`, `log`, `type` and
        `when` (see `infimum_optuna.Space`). Without it the function defines its space as it runs.
    cost : callable or "seconds", optional
        Cost of an evaluation, 0 or more: a function of the parameters that is known beforehand, or the measured
        seconds of wall clock. By default what `evaluate` returns as cost, if it does.
    direction : {"minimize", "maximize"}, default "minimize"
        What to do with the value.
    name : str, default ""
        For plans and results; the function's own name without it.

    Notes
    -----
    A value of NaN makes the trial FAIL in Optuna and ends the run as `nonfinite`, unless the solver says
    `on_failure: continue`; so does infinity in the better direction. Infinity in the worse direction is a value like
    any other ("as bad as can be").

    Examples
    --------
    >>> import infimum
    >>> from infimum_optuna import BlackBox
    >>> box = BlackBox(lambda p: (p["x"] - 2) ** 2, {"x": {"low": -5.0, "high": 5.0}})
    >>> result = infimum.solve(box, solver="optuna.tpe", stopping="max_iter(40)", seed=0)
    >>> result.best_value < 0.1, sorted(result.best_x)
    (True, ['x'])
    """

    family: ClassVar[str] = "black box"
    reference: float | None = None
    """The best value, where somebody knows it."""
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"evaluate": "python:infimum_optuna.examples:quadratic", "space": {"x": {"low": -2.0, "high": 2.0}}},
        {
            "evaluate": "python:infimum_optuna.examples:priced",
            "space": {"x": {"low": -2.0, "high": 2.0}, "kind": ["round", "flat"]},
            "direction": "maximize",
        },
    )

    def __init__(
        self,
        evaluate: Callable[..., Any],
        space: Mapping[str, Any] | None = None,
        cost: Callable[..., Any] | Literal["seconds"] | None = None,
        direction: Literal["minimize", "maximize"] = "minimize",
        name: str = "",
    ) -> None:
        if direction not in ("minimize", "maximize"):
            raise InputError(f"direction={direction!r}: expected 'minimize' or 'maximize'")
        self.body = Objective(evaluate, None if space is None else Space(space), cost, direction)
        self.sense: Sense = "max" if direction == "maximize" else "min"
        self.name = name or _name_of(evaluate)

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term("objective", self.body),)

    @property
    def merit(self) -> str:
        return "value"

    @property
    def space(self) -> Space | None:
        """The search space; None where the function defines it as it runs."""
        return self.body.space

    def start(self, rng: np.random.Generator) -> None:
        """None: the solver chooses the first point."""
        return None

    def prepare(self, start: Any) -> Any:
        if start is None:
            return None
        if not isinstance(start, Mapping):
            raise InputError(f"x0: a point of a black box is a mapping of parameters to values, got {start!r}")
        return dict(start) if self.space is None else self.space.check(start)

    def copy(self, point: Any) -> Any:
        return None if point is None else dict(point)

    def dimension(self, term: Term | None = None) -> int | None:
        return None if self.space is None else len(self.space)

    def describe(self, point: Any = None) -> str:
        size = "a space defined by run" if self.space is None else f"{len(self.space)} parameters"
        return f"{self.name or 'black box'} over {size}"


class Objective:
    """The term of a black box: `evaluate_params`."""

    capabilities: ClassVar[frozenset[str]] = frozenset({EVALUATE})

    def __init__(self, evaluate: Callable[..., Any], space: Space | None, cost: Any, direction: str) -> None:
        if not callable(evaluate):
            raise InputError(f"evaluate={evaluate!r}: expected a function of the parameters, or of a trial")
        if not (cost is None or callable(cost) or cost == "seconds"):
            raise InputError(f"cost={cost!r}: expected a function of the parameters, 'seconds' or None")
        self.evaluate, self.space, self.cost, self.direction = evaluate, space, cost, direction
        self.takes = _takes(evaluate, space)

    def __repr__(self) -> str:
        return f"{_name_of(self.evaluate) or 'objective'}({', '.join(self.takes)})"

    def evaluate_params(self, trial: Trial | Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> Outcome:
        """Evaluate at the parameters of a trial, which must have been asked for where there is a space, or at a dict.

        `asked` are the trial's parameters where the caller has them, since Optuna copies them deeply at every look.

        Raises
        ------
        InputError
            If the function returns something else than a value, a pair or a mapping with a value.
        """
        if isinstance(trial, Mapping):
            from optuna.trial import FixedTrial

            params, trial = dict(trial), FixedTrial(dict(trial))  # type: ignore[assignment]
        else:
            params = dict(trial.params if asked is None else asked)
        given = [params if one == "params" else trial for one in self.takes]
        began = time.perf_counter()
        out = self.evaluate(*given)
        seconds = time.perf_counter() - began
        outcome = as_outcome(out)
        if self.cost is None:
            return outcome
        # A function that defines its space as it runs has asked for its parameters by now.
        known = params or dict(trial.params)  # type: ignore[union-attr]
        return Outcome(outcome.value, self.paid(known, seconds), outcome.more)

    def paid(self, params: Mapping[str, Any], seconds: float) -> float:
        """The cost by the problem's own rule; NaN where the function itself has to tell it."""
        if self.cost is None:
            return math.nan
        if self.cost == "seconds":
            return seconds
        return checked_cost(self.cost(dict(params)), f"parameters {dict(params)}", "the cost function")


def as_outcome(out: Any) -> Outcome:
    """What a function returned, as an `Outcome`."""
    if isinstance(out, Outcome):
        return out
    if isinstance(out, Mapping):
        if "value" not in out:
            raise InputError(f"evaluate returned the keys {', '.join(map(repr, out)) or 'none'}; 'value' is missing")
        more = {str(key): one for key, one in out.items() if key not in ("value", "cost")}
        return Outcome(_number(out["value"]), _cost(out.get("cost")), more)
    if isinstance(out, tuple | list):
        if len(out) != 2:
            raise InputError(
                f"evaluate returned {len(out)} numbers; expected the value, (value, cost) or a mapping. A problem with "
                "several objectives has no best point: return one of them, or a weighted sum"
            )
        return Outcome(_number(out[0]), _cost(out[1]))
    return Outcome(_number(out))


def _number(value: Any) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise InputError("evaluate returned an integer beyond 1e308 as the value; expected a float") from None
    if getattr(value, "ndim", None) == 0 and getattr(getattr(value, "dtype", None), "kind", "f") in "fiu":
        return float(value)
    raise InputError(f"evaluate returned {value!r} as the value; expected a number, (value, cost) or a mapping")


def _cost(cost: Any) -> float:
    return math.nan if cost is None else checked_cost(cost, "evaluate", "its second result")


def _takes(evaluate: Callable[..., Any], space: Space | None) -> tuple[str, ...]:
    """What the function wants, in the order of its parameters: "params", "trial" or both."""
    if space is None:
        return ("trial",)
    try:
        found = inspect.signature(evaluate).parameters.values()
    except (TypeError, ValueError):  # some built-in callables do not tell their signature
        return ("params",)
    wanted = [one for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if not wanted:
        return ("params",)
    if len(wanted) > 1 and "trial" in [one.name for one in wanted[:2]]:
        return tuple("trial" if one.name == "trial" else "params" for one in wanted[:2])
    return ("trial",) if wanted[0].name == "trial" else ("params",)


def _name_of(call: Any) -> str:
    name = getattr(call, "__name__", "")
    return "" if name.startswith("<") else name
