"""Problems of the usual shapes: chains, optimal control, splittings of penalties of linear maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from infimum.constraints import Affine
from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions import Function, SquaredL2
from infimum.functions.algebra import Sum
from infimum.functions.derived import Composed
from infimum.functions.maps import BlockMap
from infimum.problem import Composite, free_name
from infimum_padmm.data import array, mapping, vector, whole
from infimum_padmm.problem import BlockProblem
from infimum_padmm.quadratics import quadratic_form

Grouping = Literal["stages", "inputs", "joint"]


def chain(maps: Sequence[Any], functions: Sequence[Function | Constraint | None], **options: Any) -> BlockProblem:
    """Minimize `sum_j f_j(x_j)` with `x_{j+1} = K_j x_j`: blocks x1, x2, …, rows row1, row2, ….

    Parameters
    ----------
    maps : sequence of matrices, operators or numbers
        K_1, …, K_{n-1}.
    functions : sequence of Function, Constraint or None
        f_1, …, f_n.
    **options
        Further arguments of `BlockProblem`.

    Raises
    ------
    InputError
        If there is not one function more than maps, or shapes do not agree.
    """
    for name, given in (("maps", maps), ("functions", functions)):
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InputError(f"{name}: expected a sequence, got {type(given).__name__}")
    if len(functions) != len(maps) + 1:
        raise InputError(f"a chain of {len(maps)} maps has {len(maps) + 1} blocks, got {len(functions)} functions")
    blocks = {f"x{j + 1}": f for j, f in enumerate(functions)}
    rows = [{f"x{j + 1}": K, f"x{j + 2}": -1.0} for j, K in enumerate(maps)]
    return BlockProblem(blocks, rows, **options)


def control(
    A: np.ndarray,
    B: np.ndarray,
    horizon: int,
    state: np.ndarray,
    *,
    state_cost: float = 1.0,
    input_cost: float = 0.1,
    inputs: Constraint | None = None,
    grouping: Grouping = "inputs",
    **options: Any,
) -> BlockProblem:
    """Linear-quadratic control with a set for the inputs: `s_{k+1} = A s_k + B u_k` from a given state.

    Minimize `state_cost/2 sum_k ||s_k||^2 + input_cost/2 sum_k ||u_k||^2` over k = 1 … horizon and 0 … horizon - 1.

    Parameters
    ----------
    A, B : array, shape (n, n) and (n, m)
    horizon : int
        Number of stages.
    state : array, shape (n,)
        The state s_0, in the right-hand side of row `dynamics0` as `A s_0`.
    state_cost, input_cost : float, default 1 and 0.1
    inputs : Constraint, optional
        Set of each u_k; free by default.
    grouping : {"stages", "inputs", "joint"}, default "inputs"
        Which blocks: u0, s1, u1, s2, … updated in this order; u0, …, s1, … with all inputs first, whose updates then go
        together; or two blocks `u` and `s`, with all stages of the states solved at once.
    **options
        Further arguments of `BlockProblem`.

    Raises
    ------
    InputError
        If shapes do not agree or the horizon is not at least 1.
    """
    A, B = dynamics(A, B)
    s0, horizon = vector(state, "state", A.shape[0]), whole(horizon, "horizon", 1)
    if grouping not in get_args(Grouping):
        raise InputError(f"grouping={grouping!r}: expected one of {', '.join(map(repr, get_args(Grouping)))}")
    u, s = input_cost * SquaredL2(), state_cost * SquaredL2()
    if grouping == "joint":
        return _joint(A, B, horizon, s0, u, s, inputs, options)
    names = {"u": [f"u{k}" for k in range(horizon)], "s": [f"s{k + 1}" for k in range(horizon)]}
    pairs = list(zip(names["u"], names["s"], strict=True))
    order = [*names["u"], *names["s"]] if grouping == "inputs" else [name for pair in pairs for name in pair]
    rows: dict[str, dict[str, Any]] = {}
    for k, (uk, sk) in enumerate(pairs):
        before = {names["s"][k - 1]: -A} if k else {}
        rows[f"dynamics{k}"] = {**before, uk: -B, sk: 1.0}
    return BlockProblem(
        {name: u if name.startswith("u") else s for name in order},
        rows,
        {"dynamics0": A @ s0},
        sets=dict.fromkeys(names["u"], inputs) if inputs is not None else None,
        **{"order": order, **options},
    )


def dynamics(A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
    """A and B as float64 arrays of shapes (n, n) and (n, m)."""
    A, B = array(A, "A"), array(B, "B")
    if A.ndim != 2 or A.shape[0] != A.shape[1] or B.ndim != 2 or B.shape[0] != A.shape[0]:
        raise InputError(f"A is {A.shape}, B is {B.shape}; expected (n, n) and (n, m)")
    return A, B


def _joint(
    A: np.ndarray,
    B: np.ndarray,
    horizon: int,
    s0: np.ndarray,
    u: Function,
    s: Function,
    inputs: Constraint | None,
    options: dict[str, Any],
) -> BlockProblem:
    shift = sparse.eye_array(horizon, k=-1)
    n = A.shape[0]
    states = sparse.csr_array(sparse.eye_array(horizon * n) - sparse.kron(shift, A))
    b = np.concatenate([A @ s0, np.zeros((horizon - 1) * n)])
    return BlockProblem(
        {"u": u, "s": s},
        {"dynamics": {"u": sparse.csr_array(sparse.kron(sparse.eye_array(horizon), -B)), "s": states}},
        {"dynamics": b},
        sets=None if inputs is None else {"u": inputs},
        **options,
    )


def split(
    blocks: Mapping[str, Function | Constraint | None],
    penalties: Mapping[str, tuple[Function | Constraint, Mapping[str, Any]]],
    **options: Any,
) -> BlockProblem:
    """Minimize `sum_j f_j(x_j) + sum_i g_i(sum_j A_ij x_j)`: each g_i gets a block z and a row `A x - z = 0`.

    The pivots z have images that reach everything.

    Parameters
    ----------
    blocks : mapping of str to Function, Constraint or None
        f_j by name.
    penalties : mapping of str to (Function or Constraint, mapping of str to matrix)
        g_i and A_ij by the name that block and row get.
    **options
        Further arguments of `BlockProblem`.
    """
    mapping(blocks, "blocks", "name: Function, Constraint or None")
    for name, pair in mapping(penalties, "penalties", "name: (function, {block: matrix})").items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], Mapping):
            raise InputError(f"penalty '{name}': expected (function, {{block: matrix}}), got {pair!r}")
    if clash := set(blocks) & set(penalties):
        raise InputError(f"'{min(clash)}' names a block and a penalty; rename one")
    rows = {name: {**maps, name: -1.0} for name, (_, maps) in penalties.items()}
    return BlockProblem({**blocks, **{name: g for name, (g, _) in penalties.items()}}, rows, **options)


def from_composite(problem: Composite, **options: Any) -> BlockProblem:
    """A `Composite` as a block problem.

    Functions of one block stay on it, as long as all but one are quadratic; functions of linear maps, further ones and
    sets beside them get blocks of their own (`split`), named like the term. `Affine` sets become rows.

    Parameters
    ----------
    problem : Composite
        With named blocks, or without: then the block is called x.
    **options
        Further arguments of `BlockProblem`.

    Raises
    ------
    InputError
        For `sense="max"`, or a function of the whole packed vector beside named blocks.
    """
    if not isinstance(problem, Composite):
        raise InputError(f"expected a Composite, got {type(problem).__name__}")
    if problem.sense == "max":
        raise InputError("from_composite takes problems that minimize; change the signs of the terms")
    return _Conversion(problem).result(options)


class _Conversion:
    """Functions, sets, rows and right-hand sides as they come together."""

    def __init__(self, problem: Composite) -> None:
        self.problem = problem
        layout = problem.layout
        size = problem.dimension()
        self.shapes: dict[str, tuple[int, ...]] = (
            dict(layout.shapes) if layout is not None else {"x": (size,)} if size is not None else {}
        )
        self.plain: dict[str, list[tuple[str, Function]]] = {name: [] for name in (layout.shapes if layout else ("x",))}
        self.copies: dict[str, tuple[Function | Constraint, dict[str, Any]]] = {}
        self.sets: dict[str, Constraint] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.rhs: dict[str, Any] = {}

    def result(self, options: dict[str, Any]) -> BlockProblem:
        for term in self.problem.terms:
            if term.role == "term":
                self._function(term.name, term.body, term.on)
        for block in self.plain:
            self._settle(block)
        for term in self.problem.terms:
            if term.role == "constraint":
                self._set(term.name, term.body, term.on)
        blocks: dict[str, Any] = {name: _summed([body for _, body in found]) for name, found in self.plain.items()}
        rows = {**self.rows, **{name: {**maps, name: -1.0} for name, (_, maps) in self.copies.items()}}
        return BlockProblem(
            {**blocks, **{name: body for name, (body, _) in self.copies.items()}},
            rows,
            self.rhs,
            sets=self.sets,
            shapes=self.shapes,
            **{"reference": self.problem.reference, "name": self.problem.name, **options},
        )

    def _block(self, name: str, on: str | None) -> str:
        if on is not None:
            return on
        if self.problem.layout is None:
            return "x"
        raise InputError(f"term '{name}' is on the whole packed vector; place it on one block, or map named blocks")

    def _function(self, name: str, body: Function, on: str | None) -> None:
        if isinstance(body, Composed):
            maps = dict(body.map.maps) if isinstance(body.map, BlockMap) else {self._block(name, on): body.map}
            self._copied(name, body.function, maps)
            return
        self.plain[self._block(name, on)].append((name, body))

    def _settle(self, block: str) -> None:
        """Leave on the block what it can solve: all that is quadratic, or one other function beside `c/2 ||x||^2`."""
        size = int(np.prod(self.shapes.get(block, (1,)), dtype=int))
        forms = [quadratic_form(body, size) for _, body in self.plain[block]]
        simple = all(form is None or isinstance(form.H, float) for form in forms)
        kept, room = [], 1 if simple else 0
        for (name, body), form in zip(self.plain[block], forms, strict=True):
            if form is not None or room:
                kept.append((name, body))
                room -= form is None
            else:
                self._copied(name, body, {block: 1.0})
        self.plain[block] = kept

    def _copied(self, name: str, body: Function | Constraint, maps: dict[str, Any]) -> None:
        self.copies[free_name(name, {*self.plain, *self.copies})] = body, maps

    def _set(self, name: str, body: Constraint, on: str | None) -> None:
        block = self._block(name, on)
        if isinstance(body, Affine):
            self.rows[name], self.rhs[name] = {block: body.A}, body.b
            return
        size = int(np.prod(self.shapes.get(block, (1,)), dtype=int))
        forms = [quadratic_form(body, size) for _, body in self.plain[block]]
        simple = all(form is not None and isinstance(form.H, float) for form in forms)
        if simple and block not in self.sets:
            self.sets[block] = body
        else:
            self._copied(name, body, {block: 1.0})


def _summed(functions: Sequence[Function]) -> Function | None:
    if len(functions) < 2:
        return functions[0] if functions else None
    return Sum(functions)
