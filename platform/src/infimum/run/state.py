"""The state of a run between two steps, as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from infimum.checkpoint import freeze, thaw
from infimum.errors import InputError
from infimum.trace import scalars

if TYPE_CHECKING:
    from infimum.run.run import Run

FORMAT = 1


def dump_run(run: Run) -> dict[str, Any]:
    """What `Run.state_dict` gives."""
    if run.unclosed is not None:
        return run.unclosed
    if run.plan.resume == "none" or run.solver.drives:
        raise InputError(f"{run.plan.solver_name}: this run cannot be resumed (resume = none), so it has no state")
    if run.state is None:
        raise InputError("the run has not started; call advance() or solve() first")
    dump = run.problem.dump
    best = run.keeper.best.point
    state: dict[str, Any] = freeze(
        {
            "format": FORMAT,
            **_identity(run),
            "solver": run.solver.dump(run.state),
            "bound": run.bound.state_dict(),
            "counters": run.counters.state_dict(),
            "monitor": run.monitor.state_dict(),
            "best": None if best is None else dump(best),
            "previous": None if run.previous is None else dump(run.previous),
            "metrics": scalars(run.metrics),
            "spent": run.sampler.spent,
            "tail": None if run.tail is None else run.tail.state_dict(),
            "ahead": run.ahead,
        }
    )
    return state


def load_run(run: Run, state: Mapping[str, Any]) -> None:
    """What `Run.load_state_dict` does."""
    if state.get("format") != FORMAT:
        raise InputError(f"state format {state.get('format')!r}: this version of infimum reads {FORMAT}")
    for what, mine in _identity(run).items():
        if state.get(what) != mine:
            raise InputError(f"the state belongs to another {what}:\n{state.get(what)}\nthis run has:\n{mine}")
    tree = thaw(state)
    load = run.problem.load
    run.bound.load_state_dict(tree["bound"])
    run.counters.load_state_dict(tree["counters"])
    run.monitor.load_state_dict(tree["monitor"])
    run.keeper.best.point = None if tree["best"] is None else load(tree["best"])
    run.previous = None if tree["previous"] is None else load(tree["previous"])
    run.metrics, run.sampler.spent = tree["metrics"], tree["spent"]
    if run.tail is not None and tree["tail"] is not None:
        run.tail.load_state_dict(tree["tail"])
    run.ahead = int(tree["ahead"])
    run.state = run.solver.load(tree["solver"], run.problem.copy(run.point))


def _identity(run: Run) -> dict[str, Any]:
    """What a state must share with the run that takes it up."""
    lifts = (*run.plan.assignment.lifts.values(), *run.plan.assignment.slot_lifts.values())
    options = [run.solver, *(one.choice.oracle for one in lifts if one.choice is not None)]
    return {
        "plan": str(run.plan),
        "start": run.problem.describe(run.point),
        # Addresses of functions among the options differ from process to process.
        "options": re.sub(r" at 0x[0-9a-f]+", "", "; ".join(map(repr, options))),
        "rule": str(run.rule),
        "seed": run.seed,
        "repetition": run.repetition,
    }
