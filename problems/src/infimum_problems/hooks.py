"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

PROBLEMS = (
    ("lasso", "regression", "regression", "least squares with an l1 penalty, on diabetes or your own data"),
    ("elastic_net", "regression", "regression", "least squares with an l1 and a squared l2 penalty"),
    ("nonnegative_least_squares", "regression", "regression", "least squares with coefficients >= 0"),
    (
        "overlapping_group_lasso",
        "groups",
        "regression",
        "least squares with overlapping groups; the penalty offers its value only",
    ),
    (
        "sparse_logistic",
        "classification",
        "classification",
        "logistic regression with an l1 penalty, on breast_cancer or your own data",
    ),
    ("svm_dual", "classification", "classification", "the dual of the support vector machine: a box and one equation"),
    ("tv_denoising_1d", "denoising", "denoising", "total variation of a signal: a row of a photograph, or your own"),
    ("tv_denoising_2d", "denoising", "denoising", "total variation of a picture, isotropic or not"),
    ("basis_pursuit", "recovery", "recovery", "least l1 norm under equations; a sparse solution is known"),
    ("robust_pca", "recovery", "recovery", "low rank plus sparse: two blocks whose sum is given"),
    ("box_qp", "quadratics", "quadratic", "a convex quadratic under bounds; the optimum is known"),
    ("ill_conditioned_quadratic", "quadratics", "quadratic", "a narrow valley; the optimum is 0"),
    ("rosenbrock", "textbook", "textbook", "a curved valley, smooth and not convex; the optimum is 0"),
    ("hs071", "textbook", "textbook", "nonlinear constraints and bounds; the optimum is 17.0140173"),
)


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    for name, module, label, summary in PROBLEMS:
        register(name, f"infimum_problems.{module}:{name}", kind=label, summary=summary)
