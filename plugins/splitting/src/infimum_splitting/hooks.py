"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

SOLVERS = (
    ("gradient_descent", "GradientDescent", "first-order", "gradient steps on a smooth function"),
    ("proximal_point", "ProximalPoint", "proximal", "prox of one function, again and again"),
    (
        "proximal_gradient",
        "ProximalGradient",
        "proximal",
        "gradient step on the smooth terms, prox of the rest; FISTA with acceleration",
    ),
    ("douglas_rachford", "DouglasRachford", "proximal", "proxes of two functions in turn; no smoothness needed"),
    ("davis_yin", "DavisYin", "proximal", "gradient of the smooth terms, proxes of two others"),
    ("pdhg", "PDHG", "primal-dual", "prox of one term, and of any number under linear maps that are not inverted"),
    ("condat_vu", "CondatVu", "primal-dual", "gradient of smooth terms, prox of one, and of any number under maps"),
    ("admm", "ADMM", "primal-dual", "two blocks, x and A x: prox of one term, and of any number under linear maps"),
)


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    for name, target, kind, summary in SOLVERS:
        register(name, f"infimum_splitting.{name}:{target}", kind=kind, summary=summary)
