"""Functions and sets of infimum as CVXPY expressions and constraints."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from infimum import constraints as sets
from infimum import functions as fn
from infimum.arrays import is_sparse, to_numpy
from infimum.errors import InputError
from infimum.functions.algebra import Scaled, Sum, Translated
from infimum.functions.base import Zero
from infimum.functions.blocks import OnBlock, Separable
from infimum.functions.derived import Composed
from infimum.functions.maps import LinearMap, Map, ScaledIdentity
from infimum.problem import Composite
from infimum_cvxpy.variables import flat

_CHUNK = 2**22
"""Entries of the dense block in which a map that is no matrix is turned into one."""


class Untranslatable(InputError):
    """A function or set that has no known form in CVXPY."""


def express(body: Any, x: Any) -> Any:
    """The function `body` of the CVXPY expression `x`, which has the shape of a point.

    Raises
    ------
    Untranslatable
        If `body` is a user's own function that does not offer `expression`.
    """
    origin = _origin(body)
    return origin.expression(x) if _says(origin) else _express(origin, x)


def restrict(body: Any, x: Any) -> list[cp.Constraint]:
    """The set `body` as CVXPY constraints on the expression `x`.

    Raises
    ------
    Untranslatable
        If `body` is a set of the user's own that does not offer `expression`.
    """
    origin = _origin(body)
    return list(origin.expression(x)) if _says(origin) else _restrict(origin, x)


def _origin(body: Any) -> Any:
    """The function or set behind a part of a run."""
    while hasattr(body, "origin"):
        body = body.origin
    return body


def _says(body: Any) -> bool:
    """Whether it says itself what it is in CVXPY."""
    return "expression" in getattr(body, "capabilities", ())


def untranslatable(body: Any) -> str | None:
    """Why a function or set has no form in CVXPY, or None. Nothing is evaluated or built."""
    origin = _origin(body)
    if _says(origin):
        return None
    if isinstance(origin, fn.Quadratic) and not origin.convex:
        return "it is not convex"
    inner = [getattr(origin, "function", None), *getattr(origin, "functions", ()), *getattr(origin, "parts", ())]
    for one in inner:
        if one is not None and (why := untranslatable(one)):
            return why
    known = _restrict if isinstance(origin, sets.Constraint) else _express
    if known.dispatch(type(origin)) is known.dispatch(object):
        return f"{origin!r} has no known form in CVXPY; give it expression=…, a function of a CVXPY variable"
    return None


@singledispatch
def _express(body: Any, x: Any) -> Any:
    raise Untranslatable(untranslatable(body) or f"{body!r} has no known form in CVXPY")


@singledispatch
def _restrict(body: Any, x: Any) -> list[cp.Constraint]:
    raise Untranslatable(untranslatable(body) or f"{body!r} has no known form in CVXPY")


def _data(value: Any) -> Any:
    """Data of a function as CVXPY takes it: NumPy or SciPy sparse, float64."""
    if is_sparse(value):
        return value.astype(np.float64)
    return np.asarray(to_numpy(value), dtype=np.float64) if hasattr(value, "shape") else value


def matrix(map_: Map, shape: tuple[int, ...]) -> Any:
    """A linear map of points of `shape` as a matrix on their entries in C order."""
    size = math.prod(shape)
    if isinstance(map_, LinearMap) and hasattr(map_.operator, "dtype") and not hasattr(map_.operator, "matvec"):
        A = _data(map_.operator)
        return A if len(shape) == 1 else sp.kron(sp.csr_matrix(A), sp.identity(math.prod(shape[1:])), format="csr")
    step = max(1, _CHUNK // size)
    blocks = []
    for first in range(0, size, step):
        rows = np.zeros((min(step, size - first), size))
        rows[np.arange(len(rows)), first + np.arange(len(rows))] = 1.0
        image = np.asarray(map_.rows(rows.reshape((len(rows), *shape))))
        blocks.append(sp.csr_matrix(image.reshape((len(rows), -1))))
    return sp.vstack(blocks).T.tocsr()


def _image(map_: Map, x: Any) -> Any:
    """A linear map of an expression."""
    if isinstance(map_, ScaledIdentity):
        return map_.scale * x
    if isinstance(map_, LinearMap) and x.ndim <= 2 and not hasattr(map_.operator, "matvec"):
        return _data(map_.operator) @ x
    probe = np.asarray(map_.rows(np.zeros((1, *x.shape)))).shape[1:]
    image = matrix(map_, x.shape) @ flat(x)
    return image if len(probe) == 1 else cp.reshape(image, probe, order="C")


@_express.register
def _(body: Zero, x: Any) -> Any:
    return cp.Constant(0.0)


@_express.register
def _(body: Sum, x: Any) -> Any:
    return sum((express(one, x) for one in body.functions), cp.Constant(0.0))


@_express.register
def _(body: Scaled, x: Any) -> Any:
    return body.scale * express(body.function, x)


@_express.register
def _(body: Translated, x: Any) -> Any:
    return express(body.function, x - _data(body.b))


@_express.register
def _(body: Composed, x: Any) -> Any:
    return express(body.function, _image(body.map, x))


def _block(body: OnBlock, x: Any) -> Any:
    return cp.reshape(x[body.layout.slices[body.block]], body.layout.shapes[body.block], order="C")


@_express.register
def _(body: OnBlock, x: Any) -> Any:
    return express(body.function, _block(body, x))


@_express.register
def _(body: Separable, x: Any) -> Any:
    return sum((express(one, x) for one in body.parts), cp.Constant(0.0))


@_express.register
def _(body: fn.L1, x: Any) -> Any:
    return cp.sum(cp.multiply(_data(body.weights), cp.abs(x)))


@_express.register
def _(body: fn.ElasticNet, x: Any) -> Any:
    return body.l1 * cp.sum(cp.abs(x)) + 0.5 * body.l2 * cp.sum_squares(x)


@_express.register
def _(body: fn.Huber, x: Any) -> Any:
    return 0.5 * cp.sum(cp.huber(x, body.delta))


@_express.register
def _(body: fn.L2, x: Any) -> Any:
    return cp.norm(flat(x), 2)


@_express.register
def _(body: fn.SquaredL2, x: Any) -> Any:
    return 0.5 * cp.sum_squares(x)


@_express.register
def _(body: fn.Linf, x: Any) -> Any:
    return cp.max(cp.abs(x))


@_express.register
def _(body: fn.NuclearNorm, x: Any) -> Any:
    return cp.normNuc(x)


@_express.register
def _(body: fn.L21, x: Any) -> Any:
    order = np.moveaxis(np.arange(math.prod(x.shape)).reshape(x.shape), body.axis, 0)
    columns = cp.reshape(flat(x)[order.reshape(-1)], (order.shape[0], -1), order="C")
    return cp.sum(cp.norm(columns, 2, axis=0))


@_express.register
def _(body: fn.GroupLasso, x: Any) -> Any:
    entries, labels, weights = flat(x), to_numpy(body.labels), to_numpy(body.weights)
    return sum(weights[g] * cp.norm(entries[np.flatnonzero(labels == g)], 2) for g in range(body.count))


@_express.register
def _(body: fn.Quadratic, x: Any) -> Any:
    if not body.convex:
        raise Untranslatable("it is not convex")
    return 0.5 * cp.quad_form(x, cp.psd_wrap(_data(body.P))) + _data(body.q) @ x + body.r


@_express.register
def _(body: fn.LeastSquares, x: Any) -> Any:
    return 0.5 * body.weight * cp.sum_squares(_data(body.A) @ x - _data(body.b))


@_express.register
def _(body: fn.Logistic, x: Any) -> Any:
    return body.weight * cp.sum(cp.logistic(-cp.multiply(_data(body.y), _data(body.A) @ x)))


@_express.register
def _(body: fn.Hinge, x: Any) -> Any:
    return body.weight * cp.sum(cp.pos(1.0 - cp.multiply(_data(body.y), x)))


@_express.register
def _(body: fn.Entropy, x: Any) -> Any:
    return -cp.sum(cp.entr(x))


@_express.register
def _(body: fn.KL, x: Any) -> Any:
    return cp.sum(cp.kl_div(_data(body.b), x))


@_express.register
def _(body: fn.TV1D, x: Any) -> Any:
    return cp.sum(cp.abs(cp.diff(x)))


@_express.register
def _(body: fn.Linear, x: Any) -> Any:
    return cp.sum(cp.multiply(_data(body.c), x)) + body.r


@_restrict.register(sets.Box)
@_restrict.register(sets.Nonnegative)
@_restrict.register(sets.LinfBall)
def _(body: Any, x: Any) -> list[cp.Constraint]:
    entries = flat(x)
    lower, upper = (one.reshape(-1) for one in body.to(np.zeros(x.shape)).bounds(np.zeros(x.shape)))
    low, high = np.isfinite(lower), np.isfinite(upper)
    out = [entries[low] >= lower[low]] if low.any() else []
    return [*out, entries[high] <= upper[high]] if high.any() else out


@_restrict.register
def _(body: sets.Simplex, x: Any) -> list[cp.Constraint]:
    return [x >= 0, cp.sum(x) == body.radius]


def _offset(body: Any, x: Any) -> Any:
    return x if body.center is None else x - _data(body.center)


@_restrict.register
def _(body: sets.L1Ball, x: Any) -> list[cp.Constraint]:
    return [cp.sum(cp.abs(_offset(body, x))) <= body.radius]


@_restrict.register
def _(body: sets.L2Ball, x: Any) -> list[cp.Constraint]:
    return [cp.norm(flat(_offset(body, x)), 2) <= body.radius]


@_restrict.register
def _(body: sets.Affine, x: Any) -> list[cp.Constraint]:
    return [_data(body.A) @ x == _data(body.b)]


@_restrict.register
def _(body: sets.LinearConstraint, x: Any) -> list[cp.Constraint]:
    A = _data(body.A)
    lower, upper = (
        np.broadcast_to(np.asarray(missing if one is None else to_numpy(one), dtype=np.float64), (A.shape[0],))
        for one, missing in ((body.lower, -np.inf), (body.upper, np.inf))
    )
    equal = lower == upper
    low, high = np.isfinite(lower) & ~equal, np.isfinite(upper) & ~equal
    rows: list[tuple[np.ndarray, Callable[[Any], cp.Constraint]]] = [
        (equal, lambda e: e == lower[equal]),
        (low, lambda e: e >= lower[low]),
        (high, lambda e: e <= upper[high]),
    ]
    return [make(A[mask] @ x) for mask, make in rows if mask.any()]


@_restrict.register
def _(body: sets.SecondOrderCone, x: Any) -> list[cp.Constraint]:
    return [cp.norm(x[1:], 2) <= x[0]]


@_restrict.register
def _(body: sets.PSD, x: Any) -> list[cp.Constraint]:
    return [x == x.T, (x + x.T) / 2 >> 0]


@_restrict.register(OnBlock)
def _(body: OnBlock, x: Any) -> list[cp.Constraint]:
    return restrict(body.function, _block(body, x))


@_restrict.register(Separable)
def _(body: Separable, x: Any) -> list[cp.Constraint]:
    return [one for part in body.parts for one in restrict(part, x)]


def to_cvxpy(problem: Composite, x0: Any = None) -> tuple[cp.Problem, cp.Variable]:
    """A composite problem as a CVXPY problem, for its own tools and solvers.

    Parameters
    ----------
    problem : Composite
        Of functions that are convex, and known to this plugin or given with `expression=`.
    x0 : array, optional
        Any point, for the shape; the problem's own start by default.

    Returns
    -------
    cvxpy.Problem, cvxpy.Variable
        The problem, to be minimized (its objective is negated where `problem` is a maximization), and the variable
        that stands for the point; with blocks, the packed vector.

    Raises
    ------
    Untranslatable
        Naming the term that has no form in CVXPY.
    """
    if not isinstance(problem, Composite):
        raise InputError(f"expected a Composite, got {type(problem).__name__}")
    point = problem.prepare(problem.start(np.random.default_rng(0)) if x0 is None else x0)
    x = cp.Variable(tuple(point.shape))
    objective, constraints = cp.Constant(0.0), []
    for term in problem.terms:
        body = problem.view(term, point)
        placed = problem.embed(body, term) if problem.embeds(term) else body
        try:
            if term.role == "constraint":
                constraints += restrict(placed, x)
            else:
                objective += express(placed, x)
        except Untranslatable as error:
            raise Untranslatable(f"term '{term.name}': {error}") from None
    return cp.Problem(cp.Minimize(objective), constraints), x
