"""Blocks as a plan sees them: what a block's function and set offer together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions import Function, Zero
from infimum.vocabulary import CAPABILITIES
from infimum_padmm.quadratics import Form

ROUNDED = 1e-9
"""Violation that a projection may leave."""


def body_of(function: Function | None, set_: Constraint | None, form: Form | None, shape: tuple[int, ...]) -> Function:
    """A block's function and set as one function of the block, with `quadratic() -> Form` where it is one."""
    f = Zero() if function is None else function
    facts: dict[str, Any] = {"convex": f.convex, "strongly_convex": f.strongly_convex, "shape": shape}
    if set_ is not None:
        assert form is not None and isinstance(form.H, float)
        values: dict[str, Any] = {"value": _inside(f, set_)} if "value" in f.capabilities else {}
        return Function(**values, prox=_restricted(form, set_, shape), extended=True, **facts)
    # Everything that the function can do: an oracle at the block may want more of it than this solver does.
    found: dict[str, Any] = {name: getattr(f, name) for name in f.capabilities if name in CAPABILITIES}
    extra: dict[str, Callable[..., Any]] = {n: getattr(f, n) for n in f.capabilities if n not in CAPABILITIES}
    if form is not None:
        extra["quadratic"] = lambda: form
    return Function(**found, extra=extra, lipschitz=f.lipschitz, extended=f.extended, **facts)


def _inside(function: Function, set_: Constraint) -> Callable[[Any], float]:
    """The value on the set, inf outside of it."""
    return lambda x: function.value(x) if set_.violation(x) <= ROUNDED else math.inf


def _restricted(form: Form, set_: Constraint, shape: tuple[int, ...]) -> Callable[[Any, float], Any]:
    """The prox of `c/2 ||x||^2 + <w, x>` on a set: the projection of the minimizer without it."""
    c, w = float(form.H), form.c.reshape(shape)
    project = set_.project
    if not c and not w.any():
        return lambda v, t: project(v)
    if not w.any():
        return lambda v, t: project(v * (1.0 / (1.0 + t * c)))
    return lambda v, t: project((v - t * w) * (1.0 / (1.0 + t * c)))


def check_fits(block: str, body: Function | Constraint, shape: tuple[int, ...]) -> None:
    """Raise `InputError` unless a function or set takes points of the block's shape."""
    try:
        body.check(np.zeros(shape))
    except InputError as error:
        raise InputError(f"block '{block}' of shape {shape}: {error}") from None


def check_set(block: str, function: Function | None, set_: Constraint, form: Form | None) -> None:
    """Raise `InputError` unless the block's function and set have a prox together."""
    if "project" not in set_.capabilities:
        raise InputError(f"block '{block}': the set {set_!r} has no projection")
    if form is None or not isinstance(form.H, float) or form.H < 0:
        raise InputError(
            f"block '{block}': {function!r} and the set {set_!r} have no prox together; give the set a block z of its "
            f"own and a row {{'{block}': 1.0, 'z': -1.0}}"
        )


def flat(call: Callable[..., np.ndarray], shape: tuple[int, ...]) -> Callable[..., np.ndarray]:
    """A call on arrays of `shape` as one on vectors."""
    if len(shape) == 1:
        return call
    return lambda x, *rest: np.asarray(call(x.reshape(shape), *rest)).reshape(-1)
