"""The host's own capability names: what each means, how it is counted and what it must return.

Capability names are an open vocabulary. Plugins use names of their own freely; a name that is not listed here is
counted as one call and its result is not checked. The host never branches on a name: it reads this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["term", "constraint"]
"""What has a capability: a function, which stands in a problem as a term, or a set, which stands as a constraint."""

SETS: tuple[Role, ...] = ("constraint",)
BOTH: tuple[Role, ...] = ("term", "constraint")


Form = Literal["scalar", "scalars", "like x", "pair"]
"""One number, one for each of several points, an array like x, or (number, array like x)."""


@dataclass(frozen=True, slots=True)
class Capability:
    """What the host knows of a capability name.

    Attributes
    ----------
    meaning : str
        Signature and meaning in one line.
    counts : tuple of str
        Capability names under which an evaluation is counted (`value_and_gradient` is one of each).
    points : callable, optional
        Number of points in one call, from the call's first argument; None means one.
    returns : {"scalar", "scalars", "like x", "pair", None}
        Form of the result, checked at the first call; that of several points at every call.
    roles : tuple of {"term", "constraint"}
        Whether functions, sets or both can have it. A refusal speaks only of slots that the refused one could fill.
    """

    meaning: str
    counts: tuple[str, ...]
    points: Callable[[Any], int] | None = None
    returns: Form | None = None
    roles: tuple[Role, ...] = ("term",)


def _rows(points: Any) -> int:
    return int(points.shape[0])


CAPABILITIES: dict[str, Capability] = {
    "value": Capability("value(x) -> float", ("value",), returns="scalar"),
    "values": Capability(
        "values(X), X of shape (m, *x.shape) -> (m,): f at m points", ("value",), points=_rows, returns="scalars"
    ),
    "gradient": Capability("gradient(x) -> array like x", ("gradient",), returns="like x"),
    "value_and_gradient": Capability(
        "value_and_gradient(x) -> (float, array like x), sharing work", ("value", "gradient"), returns="pair"
    ),
    "hessian": Capability("hessian(x) -> (n, n)", ("hessian",)),
    "hvp": Capability("hvp(x, v) -> Hessian times v", ("hvp",), returns="like x"),
    "residual": Capability(
        "residual(x) -> (m,), the r of 1/2 ||r(x)||^2, or of the set lower <= r(x) <= upper", ("residual",), roles=BOTH
    ),
    "jacobian": Capability("jacobian(x) -> (m, n)", ("jacobian",), roles=BOTH),
    "jvp": Capability("jvp(x, v) -> Jacobian times v", ("jvp",), roles=BOTH),
    "vjp": Capability("vjp(x, u) -> transposed Jacobian times u", ("vjp",), returns="like x", roles=BOTH),
    "prox": Capability("prox(v, t) -> argmin_u f(u) + ||u - v||^2 / (2 t)", ("prox",), returns="like x", roles=BOTH),
    "prox_conjugate": Capability(
        "prox_conjugate(v, s) -> argmin_u f*(u) + ||u - v||^2 / (2 s)",
        ("prox_conjugate",),
        returns="like x",
        roles=BOTH,
    ),
    "sample_gradient": Capability(
        "sample_gradient(x, rng) -> unbiased gradient estimate", ("sample_gradient",), returns="like x"
    ),
    "subgradient": Capability("subgradient(x) -> one subgradient", ("subgradient",), returns="like x"),
    "linear_minimizer": Capability(
        "linear_minimizer(g) -> argmin over the set of <g, u>", ("linear_minimizer",), returns="like x", roles=SETS
    ),
    "expression": Capability("expression(x) -> a CVXPY expression", ("expression",), roles=BOTH),
    "violation": Capability(
        "violation(x) -> distance-like number, 0 on the set", ("violation",), returns="scalar", roles=SETS
    ),
    "project": Capability("project(x) -> nearest point of the set", ("project",), returns="like x", roles=SETS),
    "tangent": Capability(
        "tangent(x, g) -> g projected on the tangent space at x", ("tangent",), returns="like x", roles=SETS
    ),
    "step": Capability(
        "step(x, d) -> feasible update from x along d, stateless", ("step",), returns="like x", roles=SETS
    ),
    "bounds": Capability("bounds(x) -> (lower, upper) arrays like x", ("bounds",), roles=SETS),
    "rows": Capability("rows(x) -> (A, lower, upper) of the set lower <= A x <= upper", ("rows",), roles=SETS),
    "coefficients": Capability("coefficients(x) -> (c, r) of the function <c, x> + r", ("coefficients",)),
    "linear_system": Capability("linear_system(x) -> (A, b) of the residual A x - b", ("linear_system",)),
}


def counts_as(capability: str) -> tuple[str, ...]:
    """Names under which one evaluation of `capability` is counted."""
    known = CAPABILITIES.get(capability)
    return known.counts if known else (capability,)


def returns(capability: str) -> Form | None:
    """The form of what `capability` returns; None where nothing is known of it."""
    known = CAPABILITIES.get(capability)
    return known.returns if known else None
