"""A progress bar on a terminal, as an observer; nothing anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from infimum.run.monitor import Observer, iteration_limit
from infimum.stopping.base import Progress

if TYPE_CHECKING:
    from infimum.run.run import Run

REFRESH = 0.1
"""Seconds between updates of the bar."""


def progress_bar(run: Run) -> list[Observer]:
    """The bar's observer for `run`, or nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        return []
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

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
    run.closing.append(bar.stop)
    return [Observer(show, name="progress bar")]


def _text(metrics: Any) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items() if isinstance(value, float))
