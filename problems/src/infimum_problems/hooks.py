"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    register(
        "lasso",
        "infimum_problems.regression:lasso",
        kind="regression",
        summary="least squares with an l1 penalty, on diabetes or your own data",
    )
    register(
        "sparse_logistic",
        "infimum_problems.classification:sparse_logistic",
        kind="classification",
        summary="logistic regression with an l1 penalty, on breast_cancer or your own data",
    )
    register(
        "overlapping_group_lasso",
        "infimum_problems.groups:overlapping_group_lasso",
        kind="regression",
        summary="least squares with overlapping groups; the penalty offers its value only",
    )
