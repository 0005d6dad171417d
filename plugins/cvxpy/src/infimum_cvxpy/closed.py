"""Expressions and constraints of CVXPY that infimum has functions and sets for: gradients, closed-form proxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from infimum import constraints as sets
from infimum import functions as fn
from infimum.constraints import Box, Constraint
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum_cvxpy.terms import Flat
from infimum_cvxpy.variables import Pieces

_AFFINE = cp.atoms.affine
_POWER: Any = getattr(cp, "Power", cp.power)  # A class of this name since CVXPY 1.8, `power` itself before.
_DENSE = 0.1
"""Share of entries from which a matrix is stored densely."""


def scaled(expression: cp.Expression) -> tuple[float, cp.Expression]:
    """`(c, f)` of an expression `c f` with a constant scalar c."""
    scale, one = 1.0, expression
    while True:
        if isinstance(one, _AFFINE.unary_operators.NegExpression):
            scale, one = -scale, one.args[0]
        elif isinstance(one, _AFFINE.binary_operators.DivExpression) and _number(one.args[1]):
            scale, one = scale / float(one.args[1].value), one.args[0]
        elif isinstance(one, _AFFINE.binary_operators.MulExpression | cp.multiply) and any(map(_number, one.args)):
            k = 0 if _number(one.args[0]) else 1
            scale, one = scale * float(one.args[k].value), one.args[1 - k]
        else:
            return scale, one


def _number(one: cp.Expression) -> bool:
    return bool(one.is_constant() and one.is_scalar() and not one.is_complex())


def closed_function(expression: cp.Expression, pieces: Pieces) -> Function | None:
    """infimum's own form of a convex expression, or None.

    Known are affine expressions, `c ||A x - b||^2` in its spellings, `c x^T P x` and `c ||w (x - b)||_1`, the first two
    also of several variables.
    """
    scale, inner = scaled(expression)
    if expression.is_affine():
        return _linear(expression, pieces)
    if scale <= 0:
        return None
    inside, factor = _squared(inner)
    if inside is not None:
        return _square(inside, 2.0 * scale * factor, pieces)
    if isinstance(inner, cp.QuadForm) and isinstance(inner.args[0], cp.Variable) and inner.args[1].is_constant():
        return _quadratic(inner, scale) if pieces.slices is None else None
    inside = _absolute(inner)
    return None if inside is None else _l1(inside, scale)


def _linear(expression: cp.Expression, pieces: Pieces) -> Function | None:
    found = _affine(expression, pieces)
    if found is None:
        return None
    A, b = found
    return fn.Linear(A.toarray().reshape(pieces.shape), -float(b[0]))


def _squared(inner: cp.Expression) -> tuple[cp.Expression | None, float]:
    """`(e, c)` of an expression `c ||e||^2`, or `(None, 1)`."""
    if isinstance(inner, cp.quad_over_lin) and inner.axis is None and _number(inner.args[1]):
        return inner.args[0], 1.0 / float(inner.args[1].value)
    if isinstance(inner, cp.Sum) and inner.axis is None and _is_square(inner.args[0]):
        return inner.args[0].args[0], 1.0
    if _is_square(inner):
        base = inner.args[0]
        norm = isinstance(base, cp.Pnorm) and float(base.p) == 2.0 and base.axis is None
        return (base.args[0], 1.0) if norm else (base, 1.0)
    return None, 1.0


def _is_square(one: cp.Expression) -> bool:
    return isinstance(one, _POWER) and _number(one.p) and float(one.p.value) == 2.0


def _absolute(inner: cp.Expression) -> cp.Expression | None:
    """`e` of `||e||_1`; None for anything else."""
    if isinstance(inner, cp.norm1) and inner.axis is None:
        return inner.args[0]
    if isinstance(inner, cp.Sum) and inner.axis is None and isinstance(inner.args[0], cp.abs):
        return inner.args[0].args[0]
    return inner.args[0] if isinstance(inner, cp.abs) and inner.ndim == 0 else None


def _square(inside: cp.Expression, weight: float, pieces: Pieces) -> Function | None:
    """`weight / 2 ||inside||^2`."""
    found = _diagonal(inside)
    if found is not None and np.ndim(found[0]) == 0 and found[0]:
        w, b = float(found[0]), -np.asarray(found[1] / found[0])
        return (weight * w * w) * (fn.SquaredL2().translate(b) if b.any() else fn.SquaredL2())
    system = _affine(inside, pieces)
    if system is None:
        return None
    f = weight * fn.LeastSquares(_stored(system[0]), system[1], reduction="sum")
    return f if len(pieces.shape) == 1 else Flat(f, pieces.shape)


def _quadratic(inner: cp.QuadForm, scale: float) -> Function | None:
    P = inner.args[1].value
    if np.iscomplexobj(P) or inner.args[0].ndim != 1:
        return None
    found = fn.Quadratic(scale * (P + P.T))
    return found if found.convex else None


def _l1(inside: cp.Expression, scale: float) -> Function | None:
    found = _diagonal(inside)
    if found is None or not np.all(found[0]):
        return None
    w, b = np.abs(found[0]) * scale, -np.asarray(found[1] / found[0])
    f = float(w) * fn.L1() if np.ndim(w) == 0 else fn.L1(w)
    return f.translate(b) if b.any() else f


def _diagonal(expression: cp.Expression) -> tuple[Any, Any] | None:
    """`(w, o)` of an expression `w x + o` of one variable x, entry by entry; w is a number where all are equal."""
    variables = expression.variables()
    if len(variables) != 1 or expression.shape != variables[0].shape or expression.is_complex():
        return None
    found = _entrywise(expression)
    return None if found is None else (found[0], np.broadcast_to(found[1], expression.shape))


def _entrywise(one: cp.Expression) -> tuple[Any, Any] | None:
    if isinstance(one, cp.Variable):
        return 1.0, 0.0
    if isinstance(one, _AFFINE.add_expr.AddExpression):
        moving = [a for a in one.args if not a.is_constant()]
        found = _entrywise(moving[0]) if len(moving) == 1 else None
        return None if found is None else (found[0], found[1] + sum(a.value for a in one.args if a.is_constant()))
    factor, inner = _factor(one)
    found = None if inner is None else _entrywise(inner)
    return None if found is None else (factor * found[0], factor * found[1])


def _factor(one: cp.Expression) -> tuple[Any, cp.Expression | None]:
    """`(k, e)` of `k e`, entry by entry, with a constant k; e is None if the expression is nothing like that."""
    if isinstance(one, _AFFINE.unary_operators.NegExpression):
        return -1.0, one.args[0]
    if isinstance(one, _AFFINE.binary_operators.DivExpression) and one.args[1].is_constant():
        return 1.0 / _value(one.args[1]), one.args[0]
    if isinstance(one, _AFFINE.binary_operators.MulExpression) and any(map(_number, one.args)):
        k = 0 if _number(one.args[0]) else 1
        return float(one.args[k].value), one.args[1 - k]
    if isinstance(one, cp.multiply) and any(a.is_constant() for a in one.args):
        k = 0 if one.args[0].is_constant() else 1
        return _value(one.args[k]), one.args[1 - k]
    return None, None


def _value(constant: cp.Expression) -> Any:
    """Its value; a number where all entries are equal."""
    value = constant.value
    dense = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    return float(dense.flat[0]) if dense.size and (dense == dense.flat[0]).all() else dense


def _affine(expression: cp.Expression, pieces: Pieces) -> tuple[Any, np.ndarray] | None:
    """`(A, b)` of an expression `A x - b` on the entries x of a point in C order; None for anything else."""
    if not expression.is_affine() or expression.is_complex() or max(v.ndim for v in pieces.variables) > 2:
        return None
    for variable in pieces.variables:
        variable.save_value(np.zeros(variable.shape))
    offset = -np.asarray(expression.value, dtype=np.float64).reshape(-1, order="F")
    starts = [0] if pieces.slices is None else [one.start for one in pieces.slices]
    gradients, blocks = expression.grad, []
    for variable, start in zip(pieces.variables, starts, strict=True):
        found = gradients.get(variable, 0.0)  # A number where both are scalar.
        one = sp.coo_array(found if sp.issparse(found) else np.full((variable.size, offset.size), found))
        places = np.arange(variable.size).reshape(variable.shape).reshape(-1, order="F")
        blocks.append((one.data, one.coords[1], start + places[one.coords[0]]))
    data, rows, columns = (np.concatenate(many) for many in zip(*blocks, strict=True))
    return sp.csr_array((data, (rows, columns)), shape=(offset.size, math.prod(pieces.shape))), offset


def is_variable(expression: cp.Expression) -> bool:
    """Whether an expression is a variable itself, also as `x - 0`."""
    found = _diagonal(expression)
    return found is not None and np.ndim(found[0]) == 0 and found[0] == 1.0 and not np.any(found[1])


def _stored(A: Any) -> Any:
    return A.toarray() if A.nnz > _DENSE * A.shape[0] * A.shape[1] else A


def bounds(constraint: Any) -> tuple[Any, Any] | None:
    """`(lower, upper)`, one of them None, of a constraint that bounds the entries of one variable."""
    if not isinstance(constraint, cp.constraints.nonpos.Inequality):
        return None
    left, right = constraint.args
    for variable, bound, upper in ((left, right, True), (right, left, False)):
        if isinstance(variable, cp.Variable) and bound.is_constant() and not bound.is_complex():
            if np.broadcast_shapes(variable.shape, bound.shape) != variable.shape:
                return None
            value = np.broadcast_to(np.asarray(bound.value, dtype=np.float64), variable.shape).copy()
            return (None, value) if upper else (value, None)
    return None


def is_nonnegative(pair: tuple[Any, Any]) -> bool:
    """Whether bounds say `x >= 0`."""
    return pair[0] is not None and pair[1] is None and not np.any(pair[0])


def merged(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    """Several bounds on one variable as one pair; None where they leave no point."""
    lower, upper = zip(*pairs, strict=True)
    lowers, uppers = ([one for one in many if one is not None] for many in (lower, upper))
    low: Any = np.maximum.reduce(lowers) if lowers else None
    high: Any = np.minimum.reduce(uppers) if uppers else None
    return None if lowers and uppers and np.any(low > high) else (low, high)


def closed_set(constraints: Sequence[cp.Constraint], pieces: Pieces, *, symmetric: bool = False) -> Constraint | None:
    """infimum's own form of constraints, or None.

    Known are bounds on entries, linear equations, and `x >> 0` on a variable that is `symmetric`.
    """
    found = [bounds(one) for one in constraints]
    if all(one is not None for one in found):
        pair = merged([one for one in found if one is not None])
        return None if pair is None else Box(lower=pair[0], upper=pair[1])
    only = constraints[0]
    if isinstance(only, cp.constraints.psd.PSD):
        return sets.PSD() if symmetric and is_variable(only.args[0]) else None
    if len(constraints) != 1:
        return None
    if isinstance(only, cp.constraints.zero.Equality | cp.constraints.zero.Zero):
        return _equations(only, pieces)
    return None


def _equations(constraint: Any, pieces: Pieces) -> Constraint | None:
    system = _affine(constraint.expr, pieces) if len(pieces.shape) == 1 else None
    if system is None:
        return None
    try:
        return sets.Affine(_stored(system[0]), system[1])
    except InputError:  # No point fits them, or sparse rows depend on each other: the conic solver takes those too.
        return None
