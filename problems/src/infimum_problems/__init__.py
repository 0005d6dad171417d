"""Problem instances on real data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_problems.classification import sparse_logistic, svm_dual
    from infimum_problems.denoising import tv_denoising_1d, tv_denoising_2d
    from infimum_problems.groups import OverlappingGroupNorm, overlapping_group_lasso
    from infimum_problems.quadratics import box_qp, ill_conditioned_quadratic
    from infimum_problems.recovery import basis_pursuit, robust_pca
    from infimum_problems.regression import elastic_net, lasso, nonnegative_least_squares
    from infimum_problems.textbook import Rosenbrock, hs071, rosenbrock

__all__ = [
    "OverlappingGroupNorm",
    "Rosenbrock",
    "basis_pursuit",
    "box_qp",
    "elastic_net",
    "hs071",
    "ill_conditioned_quadratic",
    "lasso",
    "nonnegative_least_squares",
    "overlapping_group_lasso",
    "robust_pca",
    "rosenbrock",
    "sparse_logistic",
    "svm_dual",
    "tv_denoising_1d",
    "tv_denoising_2d",
]

_HOMES = {
    "classification": ("sparse_logistic", "svm_dual"),
    "denoising": ("tv_denoising_1d", "tv_denoising_2d"),
    "groups": ("OverlappingGroupNorm", "overlapping_group_lasso"),
    "quadratics": ("box_qp", "ill_conditioned_quadratic"),
    "recovery": ("basis_pursuit", "robust_pca"),
    "regression": ("elastic_net", "lasso", "nonnegative_least_squares"),
    "textbook": ("Rosenbrock", "hs071", "rosenbrock"),
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
