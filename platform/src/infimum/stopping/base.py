"""The contract of stopping rules: frozen options, a tracker per run, a reason with its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Final, Protocol

from infimum.errors import InputError
from infimum.status import Status


class Unknown:
    """The answer of a tracker that cannot tell yet (a metric is missing or NaN). False, and so is its negation."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class Calls(Protocol):
    """Evaluation counts as rules see them."""

    def total(self, of: str) -> int:
        """Evaluations of capability `of`, summed over the user's functions, in points."""
        ...


class NoCalls:
    """What stands for counts in a foreign loop that has none."""

    def total(self, of: str) -> int:
        return 0


@dataclass(slots=True)
class Progress:
    """What every rule sees at a check. One object a run, reused: copy what you keep.

    Attributes
    ----------
    iteration : int
        Steps done; 0 at the start.
    elapsed : float
        Seconds of wall clock since the run began, summed over resumed pieces.
    observed : float
        Seconds of these that went into evaluations for the record and into observers.
    calls : Calls
        Evaluation counts.
    metrics : mapping of str to float (or an object, for rules that know it)
        In the user's sense. A metric that is not computed at this check is absent or None.
    maximize : bool
        True when larger values are better.
    point : object
        The iterate as the solver sees it, for callbacks; not to be changed.
    """

    iteration: int = 0
    elapsed: float = 0.0
    calls: Calls = field(default_factory=NoCalls)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    maximize: bool = False
    point: Any = None
    observed: float = 0.0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule fired.

    Attributes
    ----------
    rule : str
        The rule as text.
    status : Status
        The status that it declares; of a combination the first (by `Status.rank`) among its parts.
    message : str
        A sentence with the numbers.
    values : mapping of str to float
        The numbers that decided; of a combination the merged numbers of its parts.
    parts : tuple of Reason
        The reasons that a combination is made of; empty for a simple rule.
    """

    rule: str
    status: Status
    message: str
    values: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[Reason, ...] = ()

    def leaves(self) -> tuple[Reason, ...]:
        """Every simple rule that fired, each with its own status and values, in the order of the rule's text."""
        return tuple(leaf for part in self.parts for leaf in part.leaves()) if self.parts else (self,)


class Tracker(Protocol):
    """The memory of one rule in one run.

    A tracker may bring `extras() -> dict`, a plain tree that stands in `result.extras` under the rule's name.
    """

    def update(self, progress: Progress) -> Reason | Unknown | None:
        """A reason to stop, None for "no", `UNKNOWN` for "cannot tell yet"."""
        ...

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class StoppingRule:
    """Base of all rules: combine them with `|`, `&` and `~`.

    A rule is a frozen dataclass of options. `start()` makes a fresh tracker, so one rule object serves many runs.
    An option whose field has a `check` in its metadata (see `infimum.stopping.options`) is checked and converted when
    the rule is made. `str(rule)` is text that `infimum.stopping.parse` reads back.
    """

    word: ClassVar[str] = ""
    """Name in the grammar; empty means the class name in snake case."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics that the rule reads."""
    status: ClassVar[Status] = Status.stalled
    limit: ClassVar[bool] = False
    """True for rules that end every run sooner or later (max_iter, max_time, max_calls)."""

    def __post_init__(self) -> None:
        for option in _options(self):
            check = option.metadata.get("check")
            if check is None:
                continue
            try:
                value = check(getattr(self, option.name))
            except ValueError as error:
                raise InputError(f"{self.grammar_name()}: {option.name} {error}") from None
            object.__setattr__(self, option.name, value)

    @classmethod
    def grammar_name(cls) -> str:
        """The name under which text and mappings know this rule."""
        return cls.word or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def start(self) -> Tracker:
        """A fresh tracker: the rule's memory for one run."""
        raise NotImplementedError(f"{type(self).__name__} has no start()")

    def metrics(self) -> frozenset[str]:
        """Names of all metrics that this rule and its children read."""
        return frozenset(self.needs)

    def to_mapping(self) -> dict[str, Any]:
        """The rule as plain data; `infimum.stopping.from_mapping` reads it back."""
        first, named = self._changed_options()
        if first and not named and not isinstance(first[0], Mapping):
            return {self.grammar_name(): first[0]}
        options = {next(option.name for option in _options(self) if not option.kw_only): first[0]} if first else {}
        return {self.grammar_name(): options | named}

    def _changed_options(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What text must say: the first option by position, the others by name, defaults left out."""
        changed = {
            option.name: getattr(self, option.name)
            for option in _options(self)
            if option.default is MISSING or getattr(self, option.name) != option.default
        }
        first = next((option for option in _options(self) if not option.kw_only), None)
        return ((changed.pop(first.name),) if first and first.name in changed else ()), changed

    def __str__(self) -> str:
        first, named = self._changed_options()
        options = (*map(literal, first), *(f"{name}={literal(value)}" for name, value in named.items()))
        return f"{self.grammar_name()}({', '.join(options)})"

    def __repr__(self) -> str:
        return str(self)

    def __or__(self, other: object) -> StoppingRule:
        from infimum.stopping.combine import AnyOf

        return AnyOf((self, other)) if isinstance(other, StoppingRule) else NotImplemented

    def __and__(self, other: object) -> StoppingRule:
        from infimum.stopping.combine import AllOf

        return AllOf((self, other)) if isinstance(other, StoppingRule) else NotImplemented

    def __invert__(self) -> StoppingRule:
        from infimum.stopping.combine import Not

        return Not(self)

    def __bool__(self) -> bool:
        raise InputError(
            f"the stopping rule {self} is neither true nor false: write '|' for 'or', '&' for 'and', "
            "'~' for 'not', and 'rule is None' to ask whether there is one"
        )


def _options(rule: Any) -> list[Field[Any]]:
    return [option for option in fields(rule) if option.init] if is_dataclass(rule) else []


def literal(value: object) -> str:
    """An option as the grammar writes it: whole floats without the point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
