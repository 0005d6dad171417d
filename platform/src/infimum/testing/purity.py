"""Form and purity of capabilities: shapes and dtypes, inputs left alone, the same result for the same input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.arrays import Array, describe, is_array, is_complex
from infimum.testing.subject import Subject, kept, same
from infimum.vocabulary import CAPABILITIES

ARGUMENTS: dict[str, Callable[[Subject, Array], tuple[Any, ...]]] = {
    "value": lambda s, x: (x,),
    "values": lambda s, x: (s.xp.stack([x, x + s.random(0.01)]),),
    "gradient": lambda s, x: (x,),
    "value_and_gradient": lambda s, x: (x,),
    "subgradient": lambda s, x: (x,),
    "hessian": lambda s, x: (x,),
    "hvp": lambda s, x: (x, s.random()),
    "residual": lambda s, x: (x,),
    "jacobian": lambda s, x: (x,),
    "jvp": lambda s, x: (x, s.random()),
    "vjp": lambda s, x: (x, s.thing.residual(x) * 0.0 + 1.0),
    "prox": lambda s, x: (x, 0.5),
    "prox_conjugate": lambda s, x: (x, 0.5),
    "violation": lambda s, x: (x,),
    "project": lambda s, x: (x,),
    "tangent": lambda s, x: (x, s.random()),
    "step": lambda s, x: (x, s.random(0.1)),
    "bounds": lambda s, x: (x,),
    "linear_minimizer": lambda s, x: (x,),
}
"""Arguments for a call of a capability at x; those without an entry are not called."""


def check_form(subject: Subject) -> None:
    """Every capability returns what the vocabulary says, in the shape and dtype of x."""
    for name in sorted(subject.offers & ARGUMENTS.keys()):
        if name == "vjp" and not subject.can("residual"):
            continue
        result = getattr(subject.thing, name)(*ARGUMENTS[name](subject, subject.x))
        said = _wrong_form(name, result, subject.x)
        if said:
            subject.wrong("form", f"{name} returns {said}")


def _wrong_form(name: str, result: Any, x: Array) -> str:
    form = CAPABILITIES[name].returns
    if form == "pair":
        if not isinstance(result, tuple) or len(result) != 2:
            return f"{describe(result)}; expected the pair (value, gradient)"
        return _wrong_scalar(result[0]) or _unlike(result[1], x)
    if form == "scalar":
        return _wrong_scalar(result)
    if form == "like x":
        return _unlike(result, x)
    if name == "bounds":
        return next((said for said in (_unlike(one, x) for one in result) if said), "")
    if form == "scalars" and (not is_array(result) or tuple(result.shape) != (2,)):
        return f"{describe(result)} for 2 points; expected shape (2,)"
    return ""


def _wrong_scalar(result: Any) -> str:
    plain = isinstance(result, int | float) or (is_array(result) and result.ndim == 0 and not is_complex(result))
    return "" if plain or isinstance(result, np.number) else f"{describe(result)}; expected one real number"


def _unlike(result: Any, x: Array) -> str:
    if not is_array(result) or tuple(result.shape) != tuple(x.shape):
        return f"{describe(result)}; expected shape {tuple(x.shape)}"
    return "" if result.dtype == x.dtype else f"{describe(result)} for x {describe(x)}; expected the dtype of x"


def check_purity(subject: Subject) -> None:
    """The same input gives the same bits, whatever was called in between; nothing given or returned changes later."""
    other = subject.near((0.05,))
    for name in sorted(subject.offers & ARGUMENTS.keys()):
        if name == "vjp" and not subject.can("residual"):
            continue
        call = getattr(subject.thing, name)
        arguments = ARGUMENTS[name](subject, subject.x)
        before = kept(arguments)
        first = call(*arguments)
        if not same(list(arguments), before):
            subject.wrong("input unchanged", f"{name} changed its argument in place; work on a copy")
            arguments = tuple(kept(before))
            first = call(*kept(before))
        remembered = kept(first)
        if other:
            call(*ARGUMENTS[name](subject, other[0]))
        if not same(kept(first), remembered):
            subject.wrong("purity", f"the array that {name} returned was changed by its next call; return a new one")
        if not same(kept(call(*arguments)), remembered):
            subject.wrong(
                "purity", f"{name} gives another result for the same input after a call elsewhere: it keeps state"
            )
