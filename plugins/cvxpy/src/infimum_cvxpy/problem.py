"""A CVXPY problem as a composite problem: its addends as terms, its constraints as sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import cvxpy as cp
import numpy as np

from infimum import functions as fn
from infimum.constraints import Box, Constraint
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.problem import Composite
from infimum_cvxpy.proximal import installed
from infimum_cvxpy.terms import CvxFunction, CvxSet
from infimum_cvxpy.variables import Pieces, plain


def from_cvxpy(
    problem: cp.Problem,
    *,
    names: Sequence[str] | None = None,
    constraints: Literal["each", "together"] = "each",
    closed_forms: bool = True,
    solver: str = "CLARABEL",
    solver_options: Mapping[str, Any] | None = None,
) -> Composite:
    """A CVXPY problem as a `Composite`: every addend of the objective a named term, every constraint a set.

    A term has its value by evaluation and its prox by a parametrized problem that is canonicalized once; a set has its
    violation and its projection alike. Parameters of the problem count with their present values.

    Parameters
    ----------
    problem : cvxpy.Problem
        Real and continuous, convex by CVXPY's rules.
    names : sequence of str, optional
        Names of the addends, in their order; by default after their atoms (`norm1`, `quad_over_lin`, …).
    constraints : {"each", "together"}, default "each"
        Each constraint as a set of its own, or their intersection as one: two sets need a solver that takes two, and
        their intersection has a projection too. Attributes of variables (`nonneg=True`) are constraints like others.
    closed_forms : bool, default True
        Addends `c ||A x - b||^2`, `c ||x - b||_1` and bounds on entries become infimum's own functions and sets, with
        gradients and closed-form proxes; False leaves everything to CVXPY.
    solver : str, default "CLARABEL"
        For proxes and projections.
    solver_options : mapping, optional
        Passed to that solver.

    Returns
    -------
    Composite
        With one variable, `x` has its shape; with several, each is a block under its name. Values are in the sense of
        the problem.

    Raises
    ------
    InputError
        For a problem that is not convex by CVXPY's rules, or has boolean, integer or complex variables, parameters
        without a value, or no objective and no constraint.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, infimum
    >>> x = cp.Variable(3, name="x")
    >>> lasso = cp.Problem(cp.Minimize(cp.sum_squares(x - np.array([3.0, 0.1, -2.0])) + cp.norm1(x)), [x >= 0])
    >>> problem = infimum.from_cvxpy(lasso)
    >>> [term.name for term in problem.terms]
    ['quad_over_lin', 'norm1', 'nonneg']
    >>> bool(np.allclose(infimum.solve(problem, solver="splitting.davis_yin", seed=0).x, [2.5, 0, 0], atol=1e-5))
    True
    """
    if not isinstance(problem, cp.Problem):
        raise InputError(f"from_cvxpy takes a cvxpy.Problem, got {type(problem).__name__}")
    if not problem.is_dcp():
        raise InputError("the problem is not convex by CVXPY's rules (problem.is_dcp() is False); reformulate it")
    variables = sorted(problem.variables(), key=lambda one: one.id)
    if not variables:
        raise InputError("the problem has no variables; there is nothing to solve")
    return _Conversion(variables, problem, closed_forms, installed(solver), dict(solver_options or {})).composite(
        names, together=constraints == "together"
    )


class _Conversion:
    """What one conversion needs to know: the stand-ins of the variables and where they lie."""

    def __init__(
        self, variables: list[cp.Variable], problem: cp.Problem, closed: bool, solver: str, options: dict[str, Any]
    ) -> None:
        self.problem, self.closed = problem, closed
        self.settings: dict[str, Any] = {"solver": solver, "solver_options": options}
        self.stand = plain(variables, problem.parameters())
        self.variables: list[cp.Variable] = [self.stand[id(one)] for one in variables]
        self.attributes = [one for old in variables for one in _attributes(old, self.stand[id(old)])]
        self.single = len(variables) == 1 and bool(variables[0].shape)
        self.names = _unique([one.name() for one in self.variables])
        self.starts = np.cumsum([0, *(one.size for one in self.variables)])

    def composite(self, names: Sequence[str] | None, *, together: bool) -> Composite:
        maximize = isinstance(self.problem.objective, cp.Maximize)
        addends, constant = _addends(self.problem.objective.args[0].tree_copy(self.stand))
        if names is not None and len(names) != len(addends):
            raise InputError(f"names: the objective has {len(addends)} addends, got {len(names)} names")
        if maximize:
            addends = [_negated(one) for one in addends]
        labels = list(names) if names is not None else _unique([_label(one) for one in addends])
        on: dict[str, str] = {}
        terms = {name: self._term(one, name, on) for name, one in zip(labels, addends, strict=True)}
        if constant and labels:
            first = terms[labels[0]]
            shape = first.shape or (1,)
            terms[labels[0]] = first + fn.Linear(np.zeros(shape), -constant if maximize else constant)
        if maximize:
            terms = {name: -one for name, one in terms.items()}
        rows = [one.tree_copy(self.stand) for one in self.problem.constraints] + self.attributes
        if together and rows:
            sets: dict[str, Constraint] = {
                "constraints": CvxSet(rows, self._pieces(rows, "constraints", {}), **self.settings)
            }
        else:
            labels = _unique([_label(one) for one in rows], taken=list(terms))
            sets = {name: self._set(one, name, on) for name, one in zip(labels, rows, strict=True)}
        shapes = None if self.single else {n: v.shape for n, v in zip(self.names, self.variables, strict=True)}
        start = np.zeros(self.variables[0].shape) if self.single else None
        if not terms and not sets:
            raise InputError("the problem has neither an objective nor constraints; there is nothing to solve")
        return Composite(
            terms, constraints=sets, start=start, blocks=shapes, on=on, sense="max" if maximize else "min", name="cvxpy"
        )

    def _pieces(self, one: Any, name: str, on: dict[str, str]) -> Pieces:
        """Where the variables of an expression or of constraints lie; a term of one block is put on that."""
        used = {id(v) for item in (one if isinstance(one, list) else [one]) for v in item.variables()}
        if self.single:
            return Pieces(self.variables)
        mine = [k for k, v in enumerate(self.variables) if id(v) in used]
        if len(mine) == 1:
            on[name] = self.names[mine[0]]
            return Pieces([self.variables[mine[0]]])
        starts = [int(self.starts[k]) for k in mine]
        return Pieces([self.variables[k] for k in mine], starts, int(self.starts[-1]))

    def _term(self, expression: cp.Expression, name: str, on: dict[str, str]) -> Function:
        pieces = self._pieces(expression, name, on)
        found = _closed_function(expression) if self.closed and pieces.slices is None else None
        return found if found is not None else CvxFunction(expression, pieces, **self.settings)

    def _set(self, constraint: cp.Constraint, name: str, on: dict[str, str]) -> Constraint:
        pieces = self._pieces(constraint, name, on)
        found = _closed_set(constraint) if self.closed and pieces.slices is None else None
        return found if found is not None else CvxSet([constraint], pieces, **self.settings)


def _attributes(old: cp.Variable, new: cp.Variable) -> list[cp.Constraint]:
    """The attributes of a variable as constraints on its stand-in."""
    kinds = {
        "nonneg": lambda x: [x >= 0],
        "pos": lambda x: [x >= 0],
        "nonpos": lambda x: [x <= 0],
        "neg": lambda x: [x <= 0],
        "symmetric": lambda x: [x == x.T],
        "diag": lambda x: [x == cp.diag(cp.diag(x))],
        "PSD": lambda x: [x == x.T, (x + x.T) / 2 >> 0],
        "NSD": lambda x: [x == x.T, (x + x.T) / 2 << 0],
    }
    given = {name: value for name, value in old.attributes.items() if value is not None and value is not False}
    bounds = given.pop("bounds", None)
    out = [one for name in given if name in kinds for one in kinds[name](new)]
    unknown = [name for name in given if name not in kinds]
    if unknown:
        raise InputError(f"variable '{old.name()}' has attribute '{unknown[0]}'; state it as a constraint instead")
    if bounds is not None:
        out += [new >= bounds[0], new <= bounds[1]]
    return out


def _addends(expression: cp.Expression) -> tuple[list[cp.Expression], float]:
    """The addends of a sum that are not constant, and the sum of those that are."""
    found: list[cp.Expression] = []

    def collect(one: cp.Expression) -> None:
        if isinstance(one, cp.atoms.affine.add_expr.AddExpression) and one.is_scalar():
            for argument in one.args:
                collect(argument)
        else:
            found.append(one)

    collect(expression)
    constant = sum(float(one.value) for one in found if one.is_constant())
    return [one for one in found if not one.is_constant()], constant


def _negated(expression: cp.Expression) -> cp.Expression:
    negative = isinstance(expression, cp.atoms.affine.unary_operators.NegExpression)
    return expression.args[0] if negative else -expression


def _label(one: Any) -> str:
    """A name after the atom or the kind of constraint."""
    if isinstance(one, cp.constraints.constraint.Constraint):
        bound = _bounds(one)
        if bound is not None:
            return "nonneg" if _is_zero(bound[0]) and bound[1] is None else "bounds"
        return type(one).__name__.lower()
    inner = _scaled(one)[1]
    kinds = (cp.atoms.affine.add_expr.AddExpression, cp.atoms.affine.unary_operators.NegExpression)
    if isinstance(inner, kinds) or inner.is_affine():
        return "linear" if inner.is_affine() else "term"
    return type(inner).__name__.lower()


def _unique(labels: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Labels, with numbers from 2 up where one repeats."""
    from infimum.problem.composite import free_name

    out: list[str] = []
    for one in labels:
        out.append(free_name(one, {*taken, *out}))
    return out


def _scaled(expression: cp.Expression) -> tuple[float, cp.Expression]:
    """`(c, f)` of an expression `c f` with a constant scalar c."""
    scale, one = 1.0, expression
    while True:
        if isinstance(one, cp.atoms.affine.unary_operators.NegExpression):
            scale, one = -scale, one.args[0]
        elif isinstance(one, cp.atoms.affine.binary_operators.DivExpression) and one.args[1].is_constant():
            scale, one = scale / float(one.args[1].value), one.args[0]
        elif isinstance(one, cp.atoms.affine.binary_operators.MulExpression | cp.multiply) and any(
            a.is_constant() and a.is_scalar() for a in one.args
        ):
            k = 0 if one.args[0].is_constant() and one.args[0].is_scalar() else 1
            scale, one = scale * float(one.args[k].value), one.args[1 - k]
        else:
            return scale, one


def _affine(expression: cp.Expression) -> tuple[Any, np.ndarray] | None:
    """`(A, b)` of a vector `A x - b` of one vector x; None if the expression is none."""
    variables = expression.variables()
    if not expression.is_affine() or expression.ndim != 1 or len(variables) != 1 or variables[0].ndim != 1:
        return None
    variables[0].save_value(np.zeros(variables[0].shape))
    offset = -np.asarray(expression.value, dtype=np.float64)
    jacobian = expression.grad[variables[0]]
    return (jacobian.T.tocsr(), offset) if hasattr(jacobian, "tocsr") else None


def _shift(expression: cp.Expression) -> np.ndarray | None:
    """`b` of an expression `x - b` of one variable; None if it is none."""
    addends = expression.args if isinstance(expression, cp.atoms.affine.add_expr.AddExpression) else [expression]
    variables = [one for one in addends if isinstance(one, cp.Variable)]
    rest = [one for one in addends if not isinstance(one, cp.Variable)]
    if len(variables) != 1 or not all(one.is_constant() for one in rest) or expression.shape != variables[0].shape:
        return None
    offset = sum((np.asarray(one.value, dtype=np.float64) for one in rest), np.zeros(expression.shape))
    return -np.broadcast_to(offset, expression.shape)


def _closed_function(expression: cp.Expression) -> Function | None:
    """infimum's own form of `c ||A x - b||^2` and `c ||x - b||_1`, or None."""
    scale, inner = _scaled(expression)
    if scale <= 0:
        return None
    if isinstance(inner, cp.quad_over_lin) and inner.args[1].is_constant() and inner.axis is None:
        return _square(inner.args[0], 2.0 * scale / float(inner.args[1].value))
    total = isinstance(inner, cp.Sum) and inner.axis is None and isinstance(inner.args[0], cp.abs)
    if (isinstance(inner, cp.norm1) and inner.axis is None) or total:
        b = _shift(inner.args[0].args[0] if total else inner.args[0])
        if b is not None:
            return scale * (fn.L1().translate(b) if b.any() else fn.L1())
    return None


def _square(inside: cp.Expression, weight: float) -> Function | None:
    """`weight / 2 ||inside||^2`."""
    b = _shift(inside)
    if b is not None:
        return weight * (fn.SquaredL2().translate(b) if b.any() else fn.SquaredL2())
    found = _affine(inside)
    if found is None:
        return None
    A, b = found
    dense = A.nnz > 0.1 * A.shape[0] * A.shape[1]
    return weight * fn.LeastSquares(A.toarray() if dense else A, b, reduction="sum")


def _is_zero(bound: Any) -> bool:
    return bound is not None and not np.any(bound)


def _bounds(constraint: Any) -> tuple[Any, Any] | None:
    """`(lower, upper)`, one of them None, of a constraint that bounds the entries of one variable."""
    if not isinstance(constraint, cp.constraints.nonpos.Inequality):
        return None
    left, right = constraint.args
    for variable, bound, upper in ((left, right, True), (right, left, False)):
        if isinstance(variable, cp.Variable) and bound.is_constant():
            value = np.broadcast_to(np.asarray(bound.value, dtype=np.float64), variable.shape).copy()
            return (None, value) if upper else (value, None)
    return None


def _closed_set(constraint: cp.Constraint) -> Constraint | None:
    found = _bounds(constraint)
    return None if found is None else Box(lower=found[0], upper=found[1])
