"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

SOLVERS = (
    ("pogo", "Pogo", "leap along the relative gradient and land: products of matrices only, orthonormal at all times"),
    ("landing", "LandingSolver", "rival: the landing flow of Ablin and others, which approaches the set over time"),
    ("riemannian", "RiemannianSolver", "rival: Riemannian gradient descent with QR retraction"),
)

PROBLEMS = (
    ("procrustes", "procrustes", "Procrustes", "orthogonal or unitary Procrustes problems, one or thousands"),
    ("pca", "digits", "PCA", "principal components of digits, with exact gradients or from batches"),
    ("dictionary", "digits", "dictionary", "an orthogonal dictionary, or independent components, of digits' patches"),
)


@hook
def infimum_constraints(register: Callable[..., None]) -> None:
    register(
        "stiefel",
        "infimum_pogo.stiefel:Stiefel",
        kind="manifold",
        summary="matrices with orthonormal rows or columns, one or a batch; orthogonal and unitary groups",
    )


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    for name, target, summary in SOLVERS:
        register(name, f"infimum_pogo.solver:{target}", kind="manifold", summary=summary)
    register(
        "optimizer",
        "infimum_pogo.training:PogoOptimizer",
        kind="torch optimizer",
        summary="POGO for the parameters of a module that a Stiefel constraint holds",
    )


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    for name, module, label, summary in PROBLEMS:
        register(name, f"infimum_pogo.problems.{module}:{name}", kind=label, summary=summary)
