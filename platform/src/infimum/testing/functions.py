"""`check_function`: everything that a function says of itself, against numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infimum.arrays import describe
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.testing.derivatives import (
    check_gradient,
    check_hessian,
    check_hvp,
    check_jacobian,
    check_jvp,
    check_pair,
    check_sample_gradient,
    check_values,
    check_vjp,
)
from infimum.testing.facts import check_facts
from infimum.testing.maps import check_map, maps_inside
from infimum.testing.proximal import check_prox, check_prox_conjugate, check_subgradient
from infimum.testing.purity import check_form, check_purity
from infimum.testing.report import Report
from infimum.testing.subject import Check, Subject, as_point

CHECKS: tuple[tuple[str, tuple[str, ...], Check], ...] = (
    ("form", (), check_form),
    ("purity", (), check_purity),
    ("value_and_gradient", ("value_and_gradient",), check_pair),
    ("values", ("values", "value"), check_values),
    ("hvp", ("hvp", "gradient"), check_hvp),
    ("hessian", ("hessian", "gradient"), check_hessian),
    ("jvp", ("jvp", "residual"), check_jvp),
    ("jacobian", ("jacobian", "residual"), check_jacobian),
    ("vjp", ("vjp", "residual"), check_vjp),
    ("sample_gradient", ("sample_gradient",), check_sample_gradient),
    ("subgradient", ("subgradient", "value"), check_subgradient),
    ("prox", ("prox",), check_prox),
    ("prox_conjugate", ("prox_conjugate",), check_prox_conjugate),
    ("facts", (), check_facts),
)


def check_function(
    f: Any,
    x: Any,
    *,
    rng: np.random.Generator | int | None = None,
    tolerance: float | None = None,
    name: str = "",
    raise_: bool = False,
) -> Report:
    """Check a function's capabilities and declared facts against each other and against differences.

    - the gradient against central differences of the value, coordinate by coordinate (of more than 64, so many drawn
      at random and random directions); `hvp`, `hessian`, `jvp`, `jacobian`, `vjp` likewise; `value_and_gradient` and
      `values` against `value` and `gradient`;
    - the prox against its definition at points near and far, `prox_conjugate` by Moreau, subgradients by their
      inequality;
    - the linear maps inside: `<A x, y> = <x, A' y>` and the norm;
    - `lipschitz`, `strongly_convex`, `convex` against slopes of the gradient that power iterations find, and on pairs
      of points;
    - shapes and dtype kept, inputs unchanged, the same result for the same input.

    Parameters
    ----------
    f : Function or callable
        A plain callable is a value.
    x : array_like
        A point where f is finite; its dtype and namespace are those of the check. Further points are drawn around it.
    rng : numpy.random.Generator or int, default 0
        For the random points.
    tolerance : float, optional
        Relative error that counts as rounding where two results should be equal; 1e-9 in float64, 2e-3 in float32.
        Raise it for a function that is computed to a tolerance of its own.
    name : str, optional
        What the report calls the function.
    raise_ : bool, default False
        Raise `InputError` with the report if something is wrong.

    Returns
    -------
    Report
        Prints well; `.ok`, `.findings`. Samples can prove a mistake, never its absence.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum.functions import Function
    >>> from infimum.testing import check_function
    >>> report = check_function(Function(lambda x: float(x @ x), gradient=lambda x: x), np.ones(3))
    >>> report.ok, report.findings[0].check
    (False, 'gradient')
    """
    if not hasattr(f, "capabilities"):
        if not callable(f):
            raise InputError(f"check_function: expected a Function or a callable, got {type(f).__name__}")
        f = Function(f)
    point = as_point(x)
    if hasattr(f, "check"):
        f.check(point)
    body = f.to(point) if hasattr(f, "to") else f
    subject = Subject(body, point, np.random.default_rng(0 if rng is None else rng), tolerance)
    if name:
        subject.report.subject = f"{name} at x {describe(point)}"
    if _start_is_fit(subject):
        subject.run(CHECKS)
        if subject.has_value and subject.has_gradient:
            subject.run([("gradient", (), check_gradient)])
        elif subject.has_gradient:
            subject.skip("gradient", "no value is offered to take differences of")
        _maps(subject)
    report = subject.report
    report.checked = [one for one in dict.fromkeys(report.checked) if one != "facts"]
    return report.require() if raise_ else report


def _start_is_fit(subject: Subject) -> bool:
    """Whether the value at x is finite; what is defined elsewhere only is looked at from its prox."""
    if not subject.has_value:
        return True
    try:
        with np.errstate(all="ignore"):
            value = subject.value(subject.x)
            if math.isfinite(value):
                return True
            if value == math.inf and subject.can("prox"):
                subject.x = subject.thing.prox(subject.x, 1.0)
                value = subject.value(subject.x)
                if math.isfinite(value):
                    return True
    except Exception as error:
        subject.report.checked.append("value")
        subject.wrong("value", f"raised {type(error).__name__} at x: {error}")
        return False
    subject.report.checked.append("value")
    subject.wrong("value", f"f(x) = {value:g}; give a point x where f is finite")
    return False


def _maps(subject: Subject) -> None:
    for map_, point in maps_inside(subject.thing, subject.x):
        subject.report.include(check_map(map_, point, rng=subject.rng), repr(map_))
