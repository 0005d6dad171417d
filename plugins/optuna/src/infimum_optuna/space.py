"""Search spaces: from a plain dict or Optuna's distributions, with conditions on earlier parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from infimum.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

_KEYS = ("low", "high", "step", "log", "type", "choices", "when")
_CHOICES = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Parameter:
    """One parameter: its distribution, and the values of earlier parameters under which it exists."""

    name: str
    distribution: BaseDistribution
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def exists(self, params: Mapping[str, Any]) -> bool:
        return all(name in params and params[name] in values for name, values in self.when.items())


class Space:
    """A search space, in the order in which parameters are asked for.

    Parameters
    ----------
    space : mapping
        Name to one of: an `optuna.distributions` object; a list of choices (None, bool, int, float, str);
        `{"low": 1, "high": 9}`, with `step`, `log` and `type` ("int" or "float"; integer bounds without it mean
        "int"); `{"choices": […]}`. A mapping may hold `when: {name: value or list of values}`: the parameter exists
        only where the earlier parameter `name` has such a value.

    Raises
    ------
    InputError
        Naming the parameter and what was expected.
    """

    def __init__(self, space: Mapping[str, Any]) -> None:
        if not isinstance(space, Mapping) or not space:
            raise InputError(f"space: expected a mapping of names to ranges or choices, not empty; got {space!r}")
        self.parameters: dict[str, Parameter] = {}
        for name, given in space.items():
            if not isinstance(name, str):
                raise InputError(f"space: the name of a parameter is a string, got {name!r}")
            self.parameters[name] = self._parameter(name, given)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters.values())

    def __len__(self) -> int:
        return len(self.parameters)

    def __repr__(self) -> str:
        return f"Space({', '.join(self.parameters)})"

    @property
    def conditional(self) -> bool:
        return any(one.when for one in self)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {one.name: one.distribution for one in self}

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """Ask a trial for every parameter that exists; the parameters so far decide which do."""
        params: dict[str, Any] = {}
        for one in self:
            if one.exists(params):
                params[one.name] = suggest(trial, one.name, one.distribution)
        return params

    def check_some(self, params: Mapping[str, Any], who: str) -> None:
        """Refuse a name that the space does not have, or a value outside of its range.

        Raises
        ------
        InputError
        """
        for name, value in params.items():
            if name not in self.parameters:
                raise InputError(f"{who}: the space has no parameter '{name}'; it has {', '.join(self.parameters)}")
            distribution = self.parameters[name].distribution
            if not contains(distribution, value):
                raise InputError(f"{who}: {name} = {value!r} is not in {distribution}")

    def check(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a point in the order of the space.

        Raises
        ------
        InputError
            If a name is unknown or missing, or a value lies outside of its range.
        """
        for name in params:
            if name not in self.parameters:
                raise InputError(f"x0: the space has no parameter '{name}'; {did_you_mean(name, self.parameters)}")
        out: dict[str, Any] = {}
        for one in self:
            if not one.exists(out):
                if one.name in params:
                    raise InputError(f"x0: parameter '{one.name}' exists only when {_said(one.when)}; leave it out")
                continue
            if one.name not in params:
                raise InputError(f"x0: parameter '{one.name}' is missing; a point has all that exist there")
            if not contains(one.distribution, params[one.name]):
                raise InputError(f"x0: {one.name} = {params[one.name]!r} is not in {one.distribution}")
            out[one.name] = params[one.name]
        return out

    def _parameter(self, name: str, given: Any) -> Parameter:
        from optuna.distributions import BaseDistribution, CategoricalDistribution

        when: dict[str, tuple[Any, ...]] = {}
        if isinstance(given, BaseDistribution):
            made = given
        elif isinstance(given, list | tuple):
            made = _categorical(name, given)
        elif isinstance(given, Mapping):
            for key in given:
                if key not in _KEYS:
                    raise InputError(f"space: '{name}' has no key '{key}'; {did_you_mean(str(key), _KEYS)}")
            when = self._when(name, given.get("when", {}))
            made = _categorical(name, given["choices"]) if "choices" in given else _range(name, given)
        else:
            raise InputError(
                f"space: '{name}' is {given!r}; expected a list of choices, {{low: …, high: …}} or a distribution"
            )
        if isinstance(made, CategoricalDistribution):
            _check_choices(name, made.choices)
        return Parameter(name, made, when)

    def _when(self, name: str, given: Any) -> dict[str, tuple[Any, ...]]:
        if not isinstance(given, Mapping):
            raise InputError(f"space: when of '{name}' is {given!r}; expected {{earlier parameter: value}}")
        for other in given:
            if other not in self.parameters:
                known = did_you_mean(str(other), self.parameters)
                raise InputError(f"space: when of '{name}' names '{other}', which stands not before it; {known}")
        when = {other: tuple(v) if isinstance(v, list | tuple) else (v,) for other, v in given.items()}
        for other, values in when.items():
            distribution = self.parameters[other].distribution
            if never := [one for one in values if not contains(distribution, one)]:
                raise InputError(f"space: when of '{name}': '{other}' is never {never[0]!r}; it is {distribution}")
        return when


def _said(when: Mapping[str, tuple[Any, ...]]) -> str:
    return " and ".join(f"{name} is {' or '.join(map(repr, values))}" for name, values in when.items())


def _categorical(name: str, choices: Any) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution

    if not isinstance(choices, list | tuple) or not choices:
        raise InputError(f"space: choices of '{name}' are {choices!r}; expected a list, not empty")
    _check_choices(name, choices)
    return CategoricalDistribution(tuple(choices))


def _check_choices(name: str, choices: Any) -> None:
    for one in choices:
        if not isinstance(one, _CHOICES):
            raise InputError(
                f"space: choice {one!r} of '{name}' is a {type(one).__name__}, which no storage keeps; expected None, "
                "bool, int, float or str (give names, and look the objects up in the function)"
            )


def _range(name: str, given: Mapping[str, Any]) -> BaseDistribution:
    from optuna.distributions import FloatDistribution, IntDistribution

    for key in ("low", "high"):
        if key not in given:
            raise InputError(f"space: '{name}' needs '{key}', or a list of choices")
    low, high, step, log = given["low"], given["high"], given.get("step"), given.get("log", False)
    numbers = {"low": low, "high": high} | ({} if step is None else {"step": step})
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not _is_finite(value):
            raise InputError(f"space: {key} of '{name}' is {value!r:.60}; expected a finite number")
    if not isinstance(log, bool):
        raise InputError(f"space: log of '{name}' is {log!r}; expected true or false")
    whole = all(isinstance(value, Integral) for value in numbers.values())
    kind = given.get("type", "int" if whole else "float")
    if kind not in ("int", "float") or (kind == "int" and not all(float(v).is_integer() for v in numbers.values())):
        expected = "'int' or 'float'" if kind not in ("int", "float") else "whole numbers, or type: float"
        raise InputError(f"space: '{name}' has type {kind!r} with {numbers}; expected {expected}")
    try:
        if kind == "int":
            return IntDistribution(int(low), int(high), log=log, step=1 if step is None else int(step))
        return FloatDistribution(float(low), float(high), log=log, step=None if step is None else float(step))
    except ValueError as error:
        raise InputError(f"space: '{name}': {error}") from None


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the floats
        return False


def suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for a parameter by Optuna's public calls."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    d = distribution
    if isinstance(d, FloatDistribution):
        return trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
    if isinstance(d, IntDistribution):
        return trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
    if isinstance(d, CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    raise InputError(f"space: '{name}' is a {type(d).__name__}, which is none of Optuna's distributions")


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a value is one that the distribution can give."""
    choices = getattr(distribution, "choices", None)
    if choices is not None:
        return any(type(value) is type(one) and value == one for one in choices) or (
            not isinstance(value, bool) and value in [one for one in choices if not isinstance(one, bool)]
        )
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    low, high, step = distribution.low, distribution.high, distribution.step  # type: ignore[attr-defined]
    if not low <= value <= high:
        return False
    steps = 0.0 if step is None else (value - low) / step
    return bool(abs(steps - round(steps)) < 1e-8)


def enumerated(distribution: BaseDistribution) -> list[Any] | None:
    """All values of a parameter, or None where there are infinitely many."""
    choices = getattr(distribution, "choices", None)
    if choices is not None:
        return list(choices)
    low, high, step = distribution.low, distribution.high, distribution.step  # type: ignore[attr-defined]
    if low == high:
        return [low]
    if step is None:
        return None
    count = math.floor((high - low) / step + 1e-8) + 1
    return [low + k * step if isinstance(low, int) else min(high, low + k * step) for k in range(count)]
