"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from infimum.plugins import hook

_SOLVERS = {
    "tpe": ("TPE", "model-based", "tree-structured Parzen estimator, Optuna's default"),
    "gp": ("GP", "model-based", "Gaussian process with expected improvement; needs PyTorch"),
    "cma_es": ("CmaEs", "evolutionary", "CMA-ES on numeric parameters; needs the package cmaes"),
    "random": ("Random", "sampling", "independent random parameters"),
    "qmc": ("QMC", "sampling", "a quasi-random sequence (Sobol or Halton)"),
    "grid": ("Grid", "exhaustive", "every point of a grid, in random order; ends when all are done"),
    "brute_force": ("BruteForce", "exhaustive", "every combination of a finite space; ends when all are done"),
    "nsga_ii": ("NSGAII", "evolutionary", "genetic algorithm NSGA-II, here with one objective"),
    "nsga_iii": ("NSGAIII", "evolutionary", "genetic algorithm NSGA-III, here with one objective"),
    "sampler": ("Sampler", "any", "a sampler of your own, or of another package, from a function of a seed"),
}
_PRUNERS = {
    "median_pruner": ("median", "prunes a trial that is worse than the median of the earlier ones at the same step"),
    "percentile_pruner": ("percentile", "prunes a trial that is not among the best percent at the same step"),
    "successive_halving_pruner": ("successive_halving", "asynchronous successive halving"),
    "hyperband_pruner": ("hyperband", "several brackets of successive halving"),
    "threshold_pruner": ("threshold", "prunes a trial outside of limits"),
    "patient_pruner": ("patient", "waits while a trial improves, then asks another pruner"),
    "wilcoxon_pruner": ("wilcoxon", "signed-rank test against the best trial, for means over instances"),
}


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    summary = "a function of parameters in a search space, with a cost if there is one"
    register("black_box", "infimum_optuna.problem:BlackBox", kind="black box", summary=summary)


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    for name, (target, label, summary) in _SOLVERS.items():
        register(name, f"infimum_optuna.samplers:{target}", kind=label, summary=summary)


@hook
def infimum_components(register: Callable[..., None]) -> None:
    for name, (target, summary) in _PRUNERS.items():
        register(name, f"infimum_optuna.pruners:{target}", kind="pruner", summary=summary)


@hook
def infimum_report_source(source: str) -> Iterable[tuple[str, Any]] | None:
    """Results of the studies in a storage: `sqlite:///file.db`, `postgresql://…`, or the path of a journal."""
    from infimum_optuna.storage import is_storage

    return _results(source) if is_storage(source) else None


def _results(source: str) -> Iterable[tuple[str, Any]]:
    # Lazily: what a hook itself raises is only logged, and the user should be told that there is no such study.
    from infimum_optuna.report import results_of

    yield from results_of(source)
