"""What an evaluation costs: where it is read, and whether it is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from infimum.errors import InputError

Cost = str | Callable[[dict[str, Any]], float] | None
"""How users say it: `"user_attr:NAME"`, `"duration"`, a function of the parameters, or None for one unit each."""

_ATTRIBUTE: Final = "user_attr:"


def check_lam(lam: float) -> float:
    """The trade-off constant as a float.

    Raises
    ------
    InputError
        If it is not a positive finite number.
    """
    number = _real(lam)
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"lam is objective units per cost unit, a positive number; got {lam!r}")
    return number


def _real(value: Any) -> float:
    """A number as a float; NaN for booleans, texts and what is no number."""
    if isinstance(value, bool | np.bool_ | str | bytes):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


@dataclass(frozen=True)
class CostSource:
    """Where the cost of an evaluation comes from.

    Parameters
    ----------
    given : str, callable or None
        See `Cost`.

    Raises
    ------
    InputError
        If it is none of these.
    """

    given: Cost

    def __post_init__(self) -> None:
        given = self.given
        named = isinstance(given, str) and (
            given == "duration" or (given.startswith(_ATTRIBUTE) and len(given) > len(_ATTRIBUTE))
        )
        if not (given is None or named or callable(given)):
            raise InputError(
                f"cost={given!r}; expected 'user_attr:NAME', 'duration', a function of the parameters, "
                "or None for one unit per trial"
            )

    @property
    def known(self) -> bool:
        """True when the cost of a point is known before it is evaluated."""
        return self.given is None or callable(self.given)

    def of_point(self, params: Mapping[str, Any]) -> float:
        """The known cost of a point.

        Raises
        ------
        InputError
            If the user's function gives something that is not positive.
        """
        if not callable(self.given):
            return 1.0
        return positive(self.given(dict(params)), f"the cost function at {dict(params)}")

    def of_trial(self, trial: Any) -> float:
        """What a finished Optuna trial has cost.

        Raises
        ------
        InputError
            Naming the trial, if the cost is missing or not positive.
        """
        if self.known:
            return self.of_point(trial.params)
        if self.given == "duration":
            if trial.duration is None:
                raise InputError(f"trial {trial.number} has no duration: it was added without its times")
            return positive(
                trial.duration.total_seconds(),
                f"the duration of trial {trial.number}",
                " (a cached objective takes no time; store the true cost and name it, cost='user_attr:NAME')",
            )
        name = str(self.given)[len(_ATTRIBUTE) :]
        if name not in trial.user_attrs:
            raise InputError(
                f"trial {trial.number} has no user attribute {name!r}, where its cost is expected; call "
                f"trial.set_user_attr({name!r}, cost) in the objective, or say cost=None (of a rule: cost='uniform') "
                "where all cost the same"
            )
        return positive(trial.user_attrs[name], f"user attribute {name!r} of trial {trial.number}")


def positive(value: Any, who: str, remark: str = "") -> float:
    """A cost as a float.

    Raises
    ------
    InputError
        If it is not a positive finite number.
    """
    number = _real(value)
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"{who} is {value!r}; a cost must be a positive finite number{remark}")
    return number
