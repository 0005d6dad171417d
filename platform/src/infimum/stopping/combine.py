"""Combinations of stopping rules: `|`, `&` and `~`, with every child updated at every check.

Answers have three values: a reason (true), None (false) and `UNKNOWN`. `a & b` is true only when both are at the same
check; `~a` is true while `a` answers None, and unknown while `a` is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from infimum.errors import InputError
from infimum.status import Status
from infimum.stopping.base import UNKNOWN, Progress, Reason, StoppingRule, Tracker, Unknown
from infimum.stopping.trackers import IterationTracker, TimeTracker


@dataclass(frozen=True, repr=False)
class _Combination(StoppingRule):
    rules: tuple[StoppingRule, ...]
    key: ClassVar[str]
    sign: ClassVar[str]

    def __post_init__(self) -> None:
        flat: list[StoppingRule] = []
        for rule in self.rules:
            if not isinstance(rule, StoppingRule):
                raise InputError(
                    f"{type(self).__name__} takes stopping rules, got {rule!r}; write rules such as max_iter(1000)"
                )
            flat.extend(rule.rules if isinstance(rule, type(self)) else (rule,))
        if len(flat) < 2:
            raise InputError(f"{type(self).__name__} takes two rules or more, got {len(flat)}; use a single rule as is")
        object.__setattr__(self, "rules", tuple(flat))

    def metrics(self) -> frozenset[str]:
        return frozenset().union(*(rule.metrics() for rule in self.rules))

    def to_mapping(self) -> dict[str, Any]:
        return {self.key: [rule.to_mapping() for rule in self.rules]}

    def __str__(self) -> str:
        return self.sign.join(f"({rule})" if isinstance(rule, _Combination) else str(rule) for rule in self.rules)


@dataclass(frozen=True, repr=False)
class AnyOf(_Combination):
    """Stops when any of `rules` does; all that fire at the same check are reported.

    Parameters
    ----------
    rules : sequence of StoppingRule
        Two or more; nested `AnyOf` are flattened.

    Raises
    ------
    InputError
        On fewer than two rules, or on a `~` among them.
    """

    key = "any"
    sign = " | "

    def __post_init__(self) -> None:
        super().__post_init__()
        for rule in self.rules:
            require_positive(rule)

    def start(self) -> Tracker:
        return _AnyTracker([rule.start() for rule in self.rules])


@dataclass(frozen=True, repr=False)
class AllOf(_Combination):
    """Stops when all of `rules` are true at the same check.

    Parameters
    ----------
    rules : sequence of StoppingRule
        Two or more; nested `AllOf` are flattened. At least one without `~`, checked when the rule is started or
        becomes part of another (so that `~a & ~b & c` can be written).
    """

    key = "all"
    sign = " & "

    def start(self) -> Tracker:
        require_positive(self)
        trackers = [_NotTracker(rule) if isinstance(rule, Not) else rule.start() for rule in self.rules]
        return _AllTracker(str(self), trackers, [isinstance(rule, Not) for rule in self.rules])


@dataclass(frozen=True, repr=False)
class Not(StoppingRule):
    """True while `rule` gives no reason to stop. May stand only inside `&`, beside a rule without `~`.

    Parameters
    ----------
    rule : StoppingRule
        The rule to negate; not itself a `Not`.

    Raises
    ------
    InputError
        When `rule` is no rule, or is a negation.
    """

    rule: StoppingRule

    def __post_init__(self) -> None:
        if not isinstance(self.rule, StoppingRule):
            raise InputError(f"Not takes a stopping rule, got {self.rule!r}; write a rule such as max_iter(1000)")
        require_positive(self.rule)

    def start(self) -> Tracker:
        raise InputError(alone(self))

    def metrics(self) -> frozenset[str]:
        return self.rule.metrics()

    def to_mapping(self) -> dict[str, Any]:
        return {"not": self.rule.to_mapping()}

    def __str__(self) -> str:
        return f"~({self.rule})" if isinstance(self.rule, _Combination) else f"~{self.rule}"

    def __invert__(self) -> StoppingRule:
        return self.rule


def negative(rule: StoppingRule) -> bool:
    """True for a rule that says only when not to stop: `~a`, or `~a & ~b`."""
    return isinstance(rule, Not) or (isinstance(rule, AllOf) and all(isinstance(child, Not) for child in rule.rules))


def require_positive(rule: StoppingRule) -> None:
    """Refuse a rule in which `~` stands alone.

    Raises
    ------
    InputError
        Naming the part and where it may stand.
    """
    if negative(rule):
        raise InputError(alone(rule))


def alone(rule: StoppingRule | str) -> str:
    """The message about a `~` that stands alone."""
    return (
        f"'{rule}' cannot stand alone: it says when not to stop; put it inside '&' beside a rule without '~', "
        "as in grad_norm(1e-6) & ~max_iter(10)"
    )


def unconditional_limit(rule: StoppingRule) -> bool:
    """Whether the rule ends every run: a limit (max_iter, max_time, max_calls) that is reached through `|` only."""
    return any(map(unconditional_limit, rule.rules)) if isinstance(rule, AnyOf) else rule.limit


def leaf_trackers(rule: StoppingRule, tracker: Tracker) -> Iterator[tuple[StoppingRule, Tracker]]:
    """Every simple rule of a combination with its tracker, in the order of the rule's text."""
    if isinstance(tracker, _Trackers) and isinstance(rule, _Combination):
        for one, below in zip(rule.rules, tracker.children, strict=True):
            yield from leaf_trackers(one, below)
    elif isinstance(tracker, _NotTracker) and isinstance(rule, Not):
        yield from leaf_trackers(rule.rule, tracker.child)
    else:
        yield rule, tracker


def _joined(rule: str, reasons: Sequence[Reason], messages: Sequence[str], sign: str) -> Reason:
    values = {name: value for reason in reasons for name, value in reason.values.items()}
    status = min((reason.status for reason in reasons), key=lambda status: status.rank)
    return Reason(rule, status, sign.join(messages), values, tuple(reasons))


class _Trackers:
    """Children of a combination; their `update` methods are bound once, since every check calls them all."""

    __slots__ = ("_trackers", "_updates")

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = tuple(trackers)
        self._updates = tuple(tracker.update for tracker in trackers)

    @property
    def children(self) -> tuple[Tracker, ...]:
        return self._trackers

    def state_dict(self) -> dict[str, Any]:
        return {"rules": [tracker.state_dict() for tracker in self._trackers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        saved = state.get("rules", ())
        if len(saved) != len(self._trackers):
            raise InputError(
                f"the saved state is of {len(saved)} stopping rules, this combination has {len(self._trackers)}; "
                "continue with the stopping rule that the state was saved with"
            )
        for tracker, child in zip(self._trackers, saved, strict=True):
            tracker.load_state_dict(child)


class _AnyTracker(_Trackers):
    """Limits have no memory: while none of them is reached they need not be asked, and the others always are."""

    __slots__ = ("_iterations", "_others", "_seconds")

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        super().__init__(trackers)
        self._iterations = min((one.n for one in trackers if isinstance(one, IterationTracker)), default=math.inf)
        self._seconds = min((one.seconds for one in trackers if isinstance(one, TimeTracker)), default=math.inf)
        self._others = tuple(one.update for one in trackers if not isinstance(one, IterationTracker | TimeTracker))

    def update(self, progress: Progress) -> Reason | Unknown | None:
        fired: list[Reason] | None = None
        unknown = None
        below = progress.iteration < self._iterations and progress.elapsed < self._seconds
        for update in self._others if below else self._updates:
            answer = update(progress)
            if answer is None:
                continue
            if answer is UNKNOWN:
                unknown = UNKNOWN
            else:
                fired = [*(fired or ()), answer]  # type: ignore[list-item]
        if fired is None:
            return unknown
        if len(fired) == 1:
            return fired[0]
        rule = " | ".join(f"({reason.rule})" if reason.parts else reason.rule for reason in fired)
        return _joined(rule, fired, [reason.message for reason in fired], "; ")


class _AllTracker(_Trackers):
    __slots__ = ("_negated", "_rule")

    def __init__(self, rule: str, trackers: Sequence[Tracker], negated: Sequence[bool]) -> None:
        super().__init__(trackers)
        self._rule = rule
        self._negated = tuple(negated)

    def update(self, progress: Progress) -> Reason | Unknown | None:
        reasons: list[Reason] | None = None
        unknown = refused = False
        for update in self._updates:
            answer = update(progress)
            if answer is None:
                refused = True
            elif answer is UNKNOWN:
                unknown = True
            else:
                reasons = [*(reasons or ()), answer]  # type: ignore[list-item]
        if refused or reasons is None:
            return None if refused else UNKNOWN
        if unknown:
            return UNKNOWN
        positive = [reason for reason, negated in zip(reasons, self._negated, strict=True) if not negated]
        return _joined(self._rule, positive, [reason.message for reason in reasons], " and ")


class _NotTracker:
    """Swaps yes and no of its child. Made by `&` alone, which leaves its reason out of the rules that fired."""

    __slots__ = ("_reason", "_tracker", "_update")

    def __init__(self, rule: Not) -> None:
        self._tracker = rule.rule.start()
        self._update = self._tracker.update
        self._reason = Reason(str(rule), Status.limit, f"not {rule.rule}")

    @property
    def child(self) -> Tracker:
        return self._tracker

    def update(self, progress: Progress) -> Reason | Unknown | None:
        answer = self._update(progress)
        if answer is None:
            return self._reason
        return UNKNOWN if answer is UNKNOWN else None

    def state_dict(self) -> dict[str, Any]:
        return {"rule": self._tracker.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._tracker.load_state_dict(state["rule"])
