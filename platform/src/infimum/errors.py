"""Errors and warnings that users see. Every one names the thing, the value, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MANY = 25
"""Names up to which a message lists all of them."""
_SHOWN = 5


class InfimumError(Exception):
    """Base class of every error that infimum raises on purpose."""


class InputError(InfimumError, ValueError):
    """A value given from Python does not fit: a shape, a range, a dtype, a missing piece."""


class UnknownNameError(InputError):
    """A name that no installed component, option or term carries."""


class PlanError(InfimumError):
    """The parts of a problem do not fit the slots of a solver.

    Attributes
    ----------
    reason : str
        One line: what the solver needs and what is missing.
    remedies : tuple of str
        What would help, one line each.
    """

    def __init__(self, reason: str, remedies: Iterable[str] = ()) -> None:
        self.reason = reason
        self.remedies = tuple(remedies)
        super().__init__("\n  ".join((reason, *self.remedies)))


class PluginError(InfimumError):
    """A plugin could not be used. Raised only under strict loading or when its component is asked for by name."""


class NonFiniteError(InfimumError):
    """A function or an oracle returned NaN, or inf where inf is not allowed. The run loop turns it into a status."""

    def __init__(self, what: str, capability: str, kind: str, count: int | None = None) -> None:
        self.what, self.capability, self.kind, self.count = what, capability, kind, count
        where = "" if count is None else f" at its evaluation {count}"
        super().__init__(f"{capability} of {what} returned {kind}{where}")


class InfimumWarning(UserWarning):
    """Something is allowed but probably not what was meant, such as a step beyond its convergence bound."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice that looks most like `name`, or None when nothing comes close."""
    choices = list(choices)
    found = difflib.get_close_matches(name, choices, n=1, cutoff=0.6)
    if found:
        return found[0]
    tails = {choice.rpartition(".")[2]: choice for choice in choices}
    found = difflib.get_close_matches(name.rpartition(".")[2], tails, n=1, cutoff=0.6)
    return tails[found[0]] if found else None


def did_you_mean(name: str, choices: Iterable[str], *, where: str = "") -> str:
    """A clause to end a message with: the nearest name, else the names there are.

    Of many names only those that look most alike stand there; `where` says what lists all of them.
    """
    choices = sorted(set(choices))
    near = nearest(name, choices)
    if near is not None:
        return f"did you mean '{near}'?"
    if len(choices) <= MANY:
        return f"there are: {', '.join(choices)}" if choices else "there is none"
    alike = difflib.get_close_matches(name, choices, n=_SHOWN, cutoff=0.0)
    return f"the nearest of {len(choices)} are: {', '.join(alike)}" + (f"; {where} lists all" if where else "")
