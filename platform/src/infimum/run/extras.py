"""What solvers and stopping rules have to tell beyond numbers, gathered when a run has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from infimum.checkpoint import freeze
from infimum.errors import InputError
from infimum.plugins.registry import get_registry
from infimum.stopping.base import StoppingRule
from infimum.stopping.combine import leaf_trackers

if TYPE_CHECKING:
    from infimum.run.run import Run

log = logging.getLogger("infimum")


def collect_extras(run: Run) -> dict[str, Any]:
    """Component name to what it gave; components that give nothing are left out."""
    found: dict[str, Any] = {}
    if run.state is not None:
        _add(found, run.plan.solver_name, lambda: run.solver.extras(run.state))
    for rule, tracker in leaf_trackers(run.rule, run.monitor.tracker):
        tell = getattr(tracker, "extras", None)
        if callable(tell):
            _add(found, rule_name(rule), tell)
    return found


def _add(found: dict[str, Any], name: str, tell: Callable[[], Any]) -> None:
    """One component's extras; what it raises, or gives that is no plain data, must not cost the result."""
    try:
        given = freeze(tell(), f"extras of {name}")
        if not isinstance(given, dict):
            raise InputError(f"extras of {name}: expected a dict, got {type(given).__name__}")
    except Exception as error:
        log.warning("%s has no extras: %s: %s", name, type(error).__name__, error)
        return
    if given:
        free = (one for one in (name, *(f"{name} {k}" for k in range(2, 1000))) if one not in found)
        found[next(free)] = given


def rule_name(rule: StoppingRule) -> str:
    """The component name of a rule, or its name in the grammar where it is no registered one."""
    word, package = rule.grammar_name(), type(rule).__module__.partition(".")[0]
    for one in get_registry().components("stopping_rule"):
        if one.bare == word and one.target.partition(":")[0].partition(".")[0] == package:
            return one.name
    return word
