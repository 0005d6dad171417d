"""All hooks of infimum.

The registration hooks are called once per plugin when the registry is built; their order does not matter. The run
hooks are called once per run, in the process that solves it, never per iteration. Arguments are only ever added, so
an implementation may leave out those that it does not need; an argument with a default value is never filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import pluggy

spec = pluggy.HookspecMarker("infimum")


class Register(Protocol):
    """What a registration hook receives: a function that adds one component to the plugin's own."""

    def __call__(self, name: str, target: str, *, kind: str | None = None, summary: str = "") -> None:
        """Add a component.

        Parameters
        ----------
        name : str
            Name inside the plugin, in snake_case: `prox` of plugin `hjprox` becomes `hjprox.prox`.
        target : str
            `"package.module:attribute"`: a dataclass or a function whose fields or parameters are the options.
            Imported at first use.
        kind : str, optional
            A free label for lists ("proximal"). In `infimum_components`: the kind of the component, required.
        summary : str, default ""
            One line for lists.
        """
        ...


@spec
def infimum_problems(register: Register) -> None:
    """Register problems: classes of a problem family, or functions that return a problem."""


@spec
def infimum_oracles(register: Register) -> None:
    """Register oracles (`infimum.oracle.Oracle`)."""


@spec
def infimum_constraints(register: Register) -> None:
    """Register constraints (`infimum.constraints.Constraint`)."""


@spec
def infimum_solvers(register: Register) -> None:
    """Register solvers (`infimum.solver.Solver`)."""


@spec
def infimum_stopping_rules(register: Register) -> None:
    """Register stopping rules (`infimum.stopping.StoppingRule`)."""


@spec
def infimum_components(register: Register) -> None:
    """Register components of further kinds (`kind="schedule"`, `"topology"`, …); `kind` is required here.

    A `converter` is a function of an object of another library: `infimum.NAME` finds it.
    """


@spec
def infimum_run_started(run: Any) -> None:
    """A run is about to make its first step. Called in the process that solves it."""


@spec
def infimum_run_finished(run: Any, result: Any) -> None:
    """A run has ended, whatever its status. Called in the process that solved it."""


@spec
def infimum_observers(run: Any) -> Iterable[tuple[int, Callable[[Any], object]]]:  # type: ignore[empty-body]
    """Plain callables that watch a run: pairs `(every, callable(progress))`, called every `every` iterations.

    One that raises is logged and told nothing more; the run goes on. `run.closing` takes callables for its end.
    """


@spec
def infimum_report_sections(result: Any) -> Iterable[Any]:  # type: ignore[empty-body]
    """Sections (`infimum.reporting.Section`) for the report of one result; called once for each result in it.

    Look into `result.extras`, which holds what solvers and rules left there; return nothing where it is not yours.
    """


@spec
def infimum_report_source(source: str) -> Iterable[tuple[str, Any]] | None:
    """Results behind a text given to a report that is no folder, such as the address of a study.

    Pairs `(label, Result)`; None where the text is not yours.
    """


REGISTRATION: dict[str, str | None] = {
    "infimum_problems": "problem",
    "infimum_oracles": "oracle",
    "infimum_constraints": "constraint",
    "infimum_solvers": "solver",
    "infimum_stopping_rules": "stopping_rule",
    "infimum_components": None,
}
"""Registration hooks and the component kind of each; None where the plugin says it."""

RUN_HOOKS = (
    "infimum_run_started",
    "infimum_run_finished",
    "infimum_observers",
    "infimum_report_sections",
    "infimum_report_source",
)
"""Hooks that are called for a run or for its report."""
