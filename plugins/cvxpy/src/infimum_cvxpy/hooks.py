"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    register("prox", "infimum_cvxpy.prox:Prox", kind="proximal", summary="prox or projection by a conic solver")


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register("solve", "infimum_cvxpy.solve:Solve", kind="convex", summary="Clarabel, SCS, OSQP, HiGHS, … in one call")


@hook
def infimum_components(register: Callable[..., None]) -> None:
    register(
        "from_cvxpy",
        "infimum_cvxpy.problem:from_cvxpy",
        kind="converter",
        summary="a CVXPY problem as a Composite; infimum.from_cvxpy",
    )
