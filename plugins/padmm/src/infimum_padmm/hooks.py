"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

PROBLEMS = (
    ("chain", "four blocks in a chain of maps, with chosen strong convexity"),
    ("robust_chain", "a sparse signal through three maps under Cauchy's loss: not convex"),
    ("control", "optimal control with box-constrained inputs, stage by stage"),
    ("fused_logistic", "logistic regression on breast_cancer with a fused penalty: three blocks, two rows"),
    ("chen", "the example of Chen, He, Ye and Yuan, on which a sweep over three blocks diverges"),
)


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register(
        "padmm",
        "infimum_padmm.solver:PADMM",
        kind="proximal",
        summary="proximal ADMM over many blocks, one multiplier and one penalty a row, rows with pivots of their own",
    )


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    for name, summary in PROBLEMS:
        register(name, f"infimum_padmm.problems:{name}", kind="block problem", summary=summary)
