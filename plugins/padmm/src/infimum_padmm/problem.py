"""The family of problems: a sum of functions of blocks under linear rows that tie the blocks together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from infimum import arrays
from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions import Function, Zero
from infimum.functions.blocks import Layout
from infimum.problem import PointMetric, Problem, Term, free_name
from infimum_padmm.bodies import body_of, check_fits, check_set
from infimum_padmm.data import mapping, number, start_of
from infimum_padmm.quadratics import Form, quadratic_form
from infimum_padmm.report import Report, report
from infimum_padmm.rows import read_rows
from infimum_padmm.stack import Stack

Blocks = Mapping[str, Function | Constraint | None]


class BlockProblem(Problem):
    """Minimize `sum_j f_j(x_j)` subject to `sum_j A_ij x_j = b_i` for every row i.

    Every row needs a last block of its own in the order of updates (its *pivot*): up to the order of rows and blocks
    the block matrix is zero below its anti-diagonal. An order that does it is found.

    Parameters
    ----------
    blocks : mapping of str to Function, Constraint or None
        f_j by name; a set stands for its indicator, None for zero.
    rows : mapping of str to mapping, or sequence of mappings
        Each row as `{block: A_ij}`: an array, a SciPy sparse matrix or LinearOperator, or a number (times the
        identity). Entries that are all zero are dropped. Rows of a sequence are called row1, row2, ….
    rhs : mapping of str to array, or sequence of arrays, optional
        b_i; zero where it is left out.
    sets : mapping of str to Constraint, optional
        Sets for blocks that have a function too: `c/2 ||x||^2 + <w, x>` at most (else give the set a copy of the block
        and a row that says so).
    shapes : mapping of str to tuple of int, optional
        Shapes of blocks, where neither function nor rows tell, or for blocks that are no vectors: rows act on them
        flattened.
    order : sequence of str, optional
        The blocks in the order of updates. By default one is found that stays as close to that of `blocks` as it can.
    start : mapping of str to array, or array, optional
        Default start; zeros otherwise. Points are NumPy float64: other real NumPy arrays are converted, arrays of other
        libraries are refused.
    reference : float, optional
        Known optimal value.
    name : str, optional

    Raises
    ------
    StructureError
        If no order gives every row a last block of its own, or the given one does not; the rows are named.
    InputError
        For shapes that do not agree, a row without entries, an unknown block, or a right-hand side that no x reaches.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum.functions import L1, SquaredL2
    >>> p = BlockProblem(
    ...     {"x": SquaredL2().translate(np.array([3.0, 0.1])), "z": L1()}, [{"x": 1.0, "z": -1.0}]
    ... )
    >>> p.report().order, p.report().rows[0].pivot
    (('x', 'z'), 'z')
    """

    family: ClassVar[str] = "block problem"

    def __init__(
        self,
        blocks: Blocks,
        rows: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]] = (),
        rhs: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        sets: Mapping[str, Constraint] | None = None,
        shapes: Mapping[str, Sequence[int] | int] | None = None,
        order: Sequence[str] | None = None,
        start: Any = None,
        reference: float | None = None,
        name: str = "",
    ) -> None:
        self.functions, self.sets = _sorted(blocks, mapping(sets, "sets", "block: Constraint"))
        read = read_rows(self.functions, self.sets, rows, rhs, shapes or {}, order)
        self.structure, self.layout = read.structure, Layout(read.shapes)
        if reference is not None:
            reference = number(reference, "reference", "a finite number", least=-math.inf)
        self.reference, self.name, self._start = reference, name, start
        for key, f in self.functions.items():
            if f is not None:
                check_fits(key, f, self.layout.shapes[key])
        for key, one in self.sets.items():
            check_fits(key, one, self.layout.shapes[key])
            check_set(key, self.functions[key], one, self.form(key))
        shapes = self.layout.shapes
        self._bodies = {
            key: body_of(f, self.sets.get(key), self.form(key), shapes[key]) for key, f in self.functions.items()
        }
        self._terms = self._made_terms()

    def _made_terms(self) -> tuple[Term, ...]:
        terms = [Term(key, body, key) for key, body in self._bodies.items()]
        rows = SimpleNamespace(capabilities=frozenset({"block_rows"}), block_rows=self._rows)
        return (*terms, Term(free_name("rows", self.functions), rows, role="constraint"))

    def _rows(self) -> BlockProblem:
        return self

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def merit(self) -> str | None:
        return "value" if all(f is None or _has_value(f) for f in self.functions.values()) else None

    def body(self, block: str) -> Function:
        """A block's function and set as one function."""
        return self._bodies[block]

    def form(self, block: str) -> Form | None:
        """Matrix and linear part of the function of a block where it is quadratic, else None; the set is left out."""
        if block not in self._forms:
            size = int(np.prod(self.layout.shapes[block], dtype=int))
            self._forms[block] = quadratic_form(self.functions[block], size)
        return self._forms[block]

    @cached_property
    def _forms(self) -> dict[str, Form | None]:
        return {}

    def smoothness(self, block: str) -> float | None:
        """A Lipschitz constant of the gradient of a block's function, None where there is none or it is not known."""
        if block in self.sets:
            return None
        form, f = self.form(block), self.functions[block]
        if form is not None:
            return max(abs(one) for one in self.spectrum(block))
        return None if f is None else f.lipschitz

    def modulus(self, block: str) -> float:
        """Strong convexity of a block's function, as far as it is known."""
        form, f = self.form(block), self.functions[block]
        if form is not None:
            low, high = self.spectrum(block)
            return low if low > 1e-10 * high else 0.0
        return 0.0 if f is None else float(f.strongly_convex)

    def curvature(self, block: str) -> float | None:
        """A lower bound of the curvature of a block's function, negative for a nonconvex one; None if unknown."""
        form, f = self.form(block), self.functions[block]
        if form is not None:
            return self.spectrum(block)[0]
        lowest = getattr(f, "lowest_curvature", None)
        if lowest is not None:
            return float(lowest)
        if f is not None and f.convex:
            return float(f.strongly_convex)
        return None if f is None or f.lipschitz is None else -float(f.lipschitz)

    def spectrum(self, block: str) -> tuple[float, float]:
        """The extreme eigenvalues of the matrix of a quadratic block."""
        spectra: dict[str, tuple[float, float]] = self.__dict__.setdefault("_spectra", {})
        if block not in spectra:
            form = self.form(block)
            if form is None:
                raise InputError(f"block '{block}' is not quadratic")
            spectra[block] = form.bounds()
        return spectra[block]

    def is_nonconvex(self, block: str) -> bool:
        """Whether a block's function is known not to be convex."""
        form, f = self.form(block), self.functions[block]
        if form is not None:
            low, high = self.spectrum(block)
            return low < -1e-10 * max(abs(low), abs(high))
        return f is not None and f.convex is False

    def penalty(self, row: int) -> float:
        """A penalty to begin with: L/||A||^2 of the row's pivot if its gradient has a constant L > 0, else 1."""
        pivot = self.structure.pivots[row]
        smooth = self.smoothness(self.structure.blocks[pivot])
        return smooth / self.structure.entries[row][pivot].norm ** 2 if smooth else 1.0

    def report(self) -> Report:
        """Order, pivots, what their images leave out row by row, and what theory asks for and is missing."""
        return self._report

    @cached_property
    def _report(self) -> Report:
        return report(self)

    def residuals(self, x: Any) -> dict[str, np.ndarray]:
        """`sum_j A_ij x_j - b_i` of every row at x, a packed vector or a mapping of blocks."""
        r = self.stack.forward(self.prepare(x)) - self.structure.b
        starts = self.structure.row_starts
        return {name: r[starts[i] : starts[i + 1]] for i, name in enumerate(self.structure.rows)}

    def value(self, x: Any) -> float:
        """The objective at x; neither sets nor rows are in it."""
        point = self.prepare(x)
        return sum(float(call(point)) for call in self._values())

    @cached_property
    def stack(self) -> Stack:
        """All rows as one map of the packed vector."""
        return Stack(self.structure)

    def start(self, rng: np.random.Generator) -> Any:
        return np.zeros(self.layout.size) if self._start is None else self._start

    def prepare(self, start: Any) -> np.ndarray:
        if isinstance(start, Mapping):
            start = self.layout.pack({key: start_of(value, f"x0['{key}']") for key, value in start.items()})
        x = start_of(start, "x0")
        self.layout.check(x)
        return x

    def copy(self, point: Any) -> Any:
        return arrays.copy(point)

    def dimension(self, term: Term | None = None) -> int | None:
        on = None if term is None else term.on
        return self.layout.size if on is None else int(np.prod(self.layout.shapes[on], dtype=int))

    def _values(self) -> list[Callable[[np.ndarray], float]]:
        view = self.layout.view
        found = [(key, f) for key, f in self.functions.items() if f is not None and not isinstance(f, Zero)]
        return [lambda x, key=key, f=f: f.value(view(x, key)) for key, f in found]  # type: ignore[misc]

    def metrics(self, point: Any) -> Mapping[str, PointMetric]:
        out: dict[str, PointMetric] = {"rel_change": _rel_change, "abs_change": _abs_change}
        view = self.layout.view
        if self.merit is not None:
            calls = self._values()
            out["value"] = lambda x, _: sum(float(call(x)) for call in calls)
            if self.reference is not None:
                known = self.reference
                out["gap"] = lambda x, _: abs(sum(float(call(x)) for call in calls) - known) / max(1.0, abs(known))
        b = self.structure.b

        def violation(x: np.ndarray, _: Any) -> float:
            rows = float(np.linalg.norm(self.stack.forward(x) - b))
            return max([rows, *(float(one.violation(view(x, key))) for key, one in self.sets.items())])

        out["violation"] = violation
        return out

    def square(self, point: Any) -> Any:
        return point.dot(point)

    def size(self, point: Any) -> float:
        return arrays.norm(point)

    def unpack(self, point: Any) -> Any:
        return self.layout.unpack(point)

    def describe(self, point: Any = None) -> str:
        n, m = len(self.structure.blocks), len(self.structure.rows)
        return f"{self.name or 'BlockProblem'} ({n} blocks, {m} rows, {self.layout.size} variables)"

    def __repr__(self) -> str:
        return self.describe()


def _sorted(blocks: Blocks, sets: Mapping[str, Constraint]) -> tuple[dict[str, Function | None], dict[str, Constraint]]:
    """Functions and sets by block."""
    if not isinstance(blocks, Mapping) or not blocks:
        raise InputError("blocks: expected {name: Function, Constraint or None} with at least one block")
    functions: dict[str, Function | None] = {}
    found: dict[str, Constraint] = {}
    for key, one in blocks.items():
        if not isinstance(key, str) or not key or key.startswith("slot:"):
            raise InputError(f"{key!r} is no name for a block: expected text that does not start with 'slot:'")
        if one is not None and not isinstance(one, Function | Constraint):
            raise InputError(f"block '{key}': expected a Function, a Constraint or None, got {type(one).__name__}")
        functions[key] = None if isinstance(one, Constraint) else one
        if isinstance(one, Constraint):
            found[key] = one
    for key, extra in sets.items():
        if key not in functions:
            raise InputError(f"sets={{'{key}': …}}: there is no such block; expected one of {', '.join(functions)}")
        if key in found or not isinstance(extra, Constraint):
            raise InputError(f"sets={{'{key}': {extra!r}}}: expected one Constraint for the block")
        found[key] = extra
    return functions, found


def _has_value(function: Function) -> bool:
    return "value" in function.capabilities


def _rel_change(x: np.ndarray, previous: np.ndarray | None) -> float | None:
    if previous is None:
        return None
    return float(np.linalg.norm(x - previous)) / max(1.0, float(np.linalg.norm(x)))


def _abs_change(x: np.ndarray, previous: np.ndarray | None) -> float | None:
    return None if previous is None else float(np.linalg.norm(x - previous))
