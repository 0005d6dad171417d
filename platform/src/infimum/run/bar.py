"""A progress bar on a terminal, as an observer; nothing anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from infimum.run.monitor import Observer
from infimum.stopping.base import Progress, StoppingRule
from infimum.stopping.combine import AnyOf
from infimum.stopping.rules import MaxIter

if TYPE_CHECKING:
    from infimum.run.run import Run

REFRESH = 0.1
"""Seconds between updates of the bar."""


def progress_bar(run: Run) -> list[Observer]:
    """The bar's observer for `run`, or nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        return []
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[metrics]}"),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(run.plan.solver_name, total=iteration_limit(run.rule), metrics="")
    due = 0.0

    def show(progress: Progress) -> None:
        nonlocal due
        if progress.elapsed >= due:
            due = progress.elapsed + REFRESH
            bar.update(task, completed=progress.iteration, metrics=_text(progress.metrics))

    run.started.append(lambda _: bar.start())
    run.finished.append(lambda _, __: bar.stop())
    return [Observer(show, name="progress bar")]


def iteration_limit(rule: StoppingRule) -> int | None:
    """The number of iterations after which the rule surely ends the run, or None."""
    if isinstance(rule, MaxIter):
        return rule.n
    found = [iteration_limit(one) for one in rule.rules] if isinstance(rule, AnyOf) else []
    return min((one for one in found if one is not None), default=None)


def _text(metrics: Any) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items() if isinstance(value, float))
