"""A CVXPY problem as a composite problem: its addends as terms, its constraints as sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import cvxpy as cp
import numpy as np

from infimum import functions as fn
from infimum.constraints import Constraint
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.problem import Composite
from infimum.problem.composite import free_name
from infimum_cvxpy.closed import bounds, closed_function, closed_set, is_nonnegative, is_variable, merged, scaled
from infimum_cvxpy.proximal import checked_options, installed
from infimum_cvxpy.terms import CvxFunction, CvxSet
from infimum_cvxpy.variables import Pieces, copied, plain

_ADD = cp.atoms.affine.add_expr.AddExpression
_HOLDS = 1e-8
"""By how much a constraint without variables may be missed."""


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
    if constraints not in ("each", "together"):
        raise InputError(f"constraints={constraints!r}: expected 'each' or 'together'")
    if not isinstance(closed_forms, bool):
        raise InputError(f"closed_forms={closed_forms!r}: expected True or False")
    options = checked_options({} if solver_options is None else solver_options)
    if not problem.is_dcp():
        raise InputError("the problem is not convex by CVXPY's rules (problem.is_dcp() is False); reformulate it")
    variables = sorted(problem.variables(), key=lambda one: one.id)
    if not variables:
        raise InputError("the problem has no variables; there is nothing to solve")
    return _Conversion(variables, problem, closed_forms, installed(solver), options).composite(
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
        self.old = variables
        self.variables: list[cp.Variable] = [self.stand[id(one)] for one in variables]
        self.single = len(variables) == 1 and bool(variables[0].shape)
        self.names = _unique([one.name() for one in self.variables])
        self.starts = np.cumsum([0, *(one.size for one in self.variables)])
        self.on: dict[str, str] = {}

    def composite(self, names: Sequence[str] | None, *, together: bool) -> Composite:
        found, within, constant = _addends(self.problem.objective.args[0])
        if names is not None:
            _check_names(names, len(found))
        maximize = isinstance(self.problem.objective, cp.Maximize)
        addends = [_negated(one) if maximize else one for one in (copied(one, self.stand) for one in found)]
        labels = list(names) if names is not None else _unique([_label(one) for one in addends])
        terms = self._terms(dict(zip(labels, addends, strict=True)), -constant if maximize else constant)
        if maximize:
            terms = {name: -one for name, one in terms.items()}
        sets = self._sets([*self.problem.constraints, *within], list(terms), together)
        if not terms and not sets:
            raise InputError("the problem has neither an objective nor constraints; there is nothing to solve")
        return Composite(
            terms,
            constraints=sets,
            start=np.zeros(self.variables[0].shape) if self.single else None,
            blocks=None if self.single else {n: v.shape for n, v in zip(self.names, self.variables, strict=True)},
            on=self.on,
            sense="max" if maximize else "min",
            name="cvxpy",
        )

    def _pieces(self, one: Any, name: str) -> Pieces:
        """Where the variables of an expression or of constraints lie; a term of one block is put on that."""
        used = {id(v) for item in (one if isinstance(one, list) else [one]) for v in item.variables()}
        if self.single:
            return Pieces(self.variables)
        mine = [k for k, v in enumerate(self.variables) if id(v) in used]
        if len(mine) == 1:
            self.on[name] = self.names[mine[0]]
            return Pieces([self.variables[mine[0]]])
        starts = [int(self.starts[k]) for k in mine]
        return Pieces([self.variables[k] for k in mine], starts, int(self.starts[-1]))

    def _terms(self, addends: dict[str, cp.Expression], constant: float) -> dict[str, Function]:
        terms = {name: self._term(one, name) for name, one in addends.items()}
        if not constant:
            return terms
        if not terms:
            whole = self.variables[0].shape if self.single else (int(self.starts[-1]),)
            return {"constant": fn.Linear(np.zeros(whole), constant)}
        # In a term that loses nothing by it, if there is one.
        free = [name for name, one in terms.items() if isinstance(one, fn.Linear | CvxFunction)]
        if free:
            return {**terms, free[0]: self._term(addends[free[0]] + constant, free[0])}
        first = next(iter(terms))
        return {**terms, first: terms[first] + fn.Linear(np.zeros(terms[first].shape or (1,)), constant)}

    def _term(self, expression: cp.Expression, name: str) -> Function:
        if not expression.is_convex():
            raise InputError(_BY_ATTRIBUTES.format(f"addend '{name}'"))
        pieces = self._pieces(expression, name)
        found = closed_function(expression, pieces) if self.closed else None
        return found if found is not None else CvxFunction(expression, pieces, **self.settings)

    def _sets(self, given: list[cp.Constraint], taken: list[str], together: bool) -> dict[str, Constraint]:
        groups = [[copied(one, self.stand)] for one in given if not _trivial(one)]
        groups += [one for old in self.old for one in _attributes(old, self.stand[id(old)])]
        for one in (one for group in groups for one in group):
            if not one.is_dcp():
                raise InputError(_BY_ATTRIBUTES.format(f"constraint '{one}'"))
        if together and groups:
            rows = [one for group in groups for one in group]
            return {"constraints": CvxSet(rows, self._pieces(rows, "constraints"), **self.settings)}
        if self.closed:
            groups = self._semidefinite(_bounds_merged(groups))
        labels = _unique([_label_of(group) for group in groups], taken=taken)
        return {name: self._set(group, name) for name, group in zip(labels, groups, strict=True)}

    def _set(self, group: list[cp.Constraint], name: str) -> Constraint:
        pieces = self._pieces(group, name)
        symmetric = all(id(v) in self._symmetric for v in pieces.variables)
        found = closed_set(group, pieces, symmetric=symmetric) if self.closed else None
        return found if found is not None else CvxSet(group, pieces, **self.settings)

    @property
    def _symmetric(self) -> set[int]:
        """Ids of the stand-ins of symmetric variables."""
        kinds = ("symmetric", "PSD")
        return {id(self.stand[id(old)]) for old in self.old if any(old.attributes.get(kind) for kind in kinds)}

    def _semidefinite(self, groups: list[list[cp.Constraint]]) -> list[list[cp.Constraint]]:
        """The groups without those that say `x == x.T` and no more where another says `x >> 0` of a symmetric x."""

        def says(group: list[cp.Constraint], kind: Any) -> set[int]:
            return {id(v) for one in group if isinstance(one, kind) for v in one.variables()} & self._symmetric

        cones = [group for group in groups if isinstance(group[0], cp.constraints.psd.PSD)]
        whole = [group for group in cones if is_variable(group[0].args[0])]
        covered = {one for group in whole for one in says(group, cp.constraints.psd.PSD)}
        return [g for g in groups if not (isinstance(g[0], _Mirrored) and says(g, _Mirrored) & covered)]


class _Mirrored(cp.constraints.zero.Equality):  # type: ignore[misc]
    """`x == x.T`, of the attribute `symmetric`."""


_BY_ATTRIBUTES = (
    "{} is convex only together with the attributes of its variables (such as nonneg=True), which become constraints "
    "of their own here; state it so that it is convex by CVXPY's rules without them"
)


def _attributes(old: cp.Variable, new: cp.Variable) -> list[list[cp.Constraint]]:
    """The attributes of a variable as constraints on its stand-in, one list for each."""
    mirrored = _Mirrored(new, new.T) if new.ndim == 2 and new.shape[0] == new.shape[1] else None
    kinds: dict[str, Any] = {
        "nonneg": lambda x: [x >= 0],
        "pos": lambda x: [x >= 0],
        "nonpos": lambda x: [x <= 0],
        "neg": lambda x: [x <= 0],
        "symmetric": lambda x: [mirrored],
        "diag": lambda x: [x == cp.diag(cp.diag(x))],
        "PSD": lambda x: [cp.constraints.psd.PSD(x), mirrored],
        "NSD": lambda x: [cp.constraints.psd.PSD(-x), mirrored],
        "bounds": lambda x: [x >= old.attributes["bounds"][0], x <= old.attributes["bounds"][1]],
    }
    given = [name for name, value in old.attributes.items() if value is not None and value is not False]
    unknown = [name for name in given if name not in kinds]
    if unknown:
        raise InputError(f"variable '{old.name()}' has attribute '{unknown[0]}'; state it as a constraint instead")
    return [kinds[name](new) for name in given]


def _trivial(one: cp.Constraint) -> bool:
    """Whether a constraint has no variables, and holds."""
    if isinstance(one, cp.constraints.FiniteSet):
        raise InputError(f"constraint '{one}' is a choice among finitely many points, no convex set")
    if one.variables():
        return False
    if np.max(one.violation()) > _HOLDS:
        raise InputError(f"constraint '{one}' has no variables and does not hold: the problem is infeasible")
    return True


def _bounds_merged(groups: list[list[cp.Constraint]]) -> list[list[cp.Constraint]]:
    """The groups, with all bounds on the entries of one variable in one, unless they leave no point."""
    out: list[list[cp.Constraint]] = []
    boxes: dict[int, list[cp.Constraint]] = {}
    for group in groups:
        pairs = [bounds(one) for one in group]
        if any(pair is None for pair in pairs):
            out.append(group)
            continue
        box = boxes.setdefault(id(group[0].variables()[0]), [])
        whole = [pair for pair in [*map(bounds, box), *pairs] if pair is not None]
        if not box:
            out.append(box)
        if box and merged(whole) is None:
            out.append(group)
        else:
            box += group
    return out


def _addends(expression: cp.Expression) -> tuple[list[cp.Expression], list[cp.Constraint], float]:
    """The addends of a sum that are not constant, constraints that stand in it as indicators, the sum of constants."""
    found: list[cp.Expression] = []
    within: list[cp.Constraint] = []

    def collect(one: cp.Expression) -> None:
        scale, inner = scaled(one)
        if isinstance(inner, _ADD) and inner.is_scalar():
            for argument in inner.args:
                collect(argument if scale == 1.0 else -argument if scale == -1.0 else scale * argument)
        elif isinstance(inner, cp.transforms.indicator):
            within.extend(inner.args)
        else:
            found.append(one)

    collect(expression)
    constant = sum(float(one.value) for one in found if one.is_constant())
    return [one for one in found if not one.is_constant()], within, constant


def _check_names(names: Any, count: int) -> None:
    if not isinstance(names, Sequence) or isinstance(names, str) or not all(isinstance(one, str) for one in names):
        raise InputError(f"names={names!r}: expected a sequence of texts, one for each addend of the objective")
    if len(names) != count:
        raise InputError(f"names: the objective has {count} addends, got {len(names)} names")
    if len(set(names)) < count:
        raise InputError(f"names={list(names)}: expected different names, one for each addend of the objective")


def _negated(expression: cp.Expression) -> cp.Expression:
    negative = isinstance(expression, cp.atoms.affine.unary_operators.NegExpression)
    return expression.args[0] if negative else -expression


def _label(one: cp.Expression) -> str:
    """A name after the atom."""
    inner = scaled(one)[1]
    if inner.is_affine():
        return "linear"
    return type(inner).__name__.lower().removesuffix("approx")


def _label_of(group: list[cp.Constraint]) -> str:
    """A name after the kind of a set."""
    pairs = [bounds(one) for one in group]
    if all(pair is not None for pair in pairs):
        return "nonneg" if all(is_nonnegative(pair) for pair in pairs if pair is not None) else "bounds"
    return "symmetric" if isinstance(group[0], _Mirrored) else type(group[0]).__name__.lower()


def _unique(labels: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Labels, with numbers from 2 up where one repeats."""
    out: list[str] = []
    for one in labels:
        out.append(free_name(one, {*taken, *out}))
    return out
