"""Exact counts of evaluations, first-call checks of what users' functions return, and NaN at the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.arrays import Array, all_finite, copy, describe, is_array, is_complex, namespace
from infimum.errors import InputError, NonFiniteError
from infimum.vocabulary import CAPABILITIES, counts_as, returns

INF = float("inf")
_FLOATS = (float, np.floating)


class Cell:
    """One count: of calls of a capability, of a term (evaluations) or of a slot (calls by the solver).

    A cell counts what was called; what a call counts as (`value_and_gradient` is one of each) is looked up when
    totals are asked for, so that a call costs one increment.
    """

    __slots__ = ("before", "capability", "extended", "label", "last", "n", "owner")

    def __init__(self, owner: str, capability: str, label: str) -> None:
        self.owner, self.capability, self.label = owner, capability, label
        self.n = 0
        self.last: Any = None
        """What the last evaluation returned; looked at only when something is not finite."""
        self.before: Any = None
        """What the one before it returned: what was not finite first is to blame."""
        self.extended = False
        """Whether a value of +inf is one of the function's own."""

    def broken(self, out: Any) -> bool:
        """Whether a result holds NaN or inf where none may be."""
        if not is_array(out):
            return False
        xp = namespace(out)
        own = self.extended and returns(self.capability) in ("scalar", "scalars")
        return not bool(xp.all(xp.isfinite(out) | (out == INF))) if own else not all_finite(out)


Cells = dict[tuple[str, str], Cell]


class Counters:
    """Evaluations of the user's functions, calls that the solver makes, and evaluations by the monitor."""

    def __init__(self) -> None:
        self.evaluations: Cells = {}
        self.calls: Cells = {}
        self.monitor: Cells = {}
        self._totals: dict[str, tuple[Cell, ...]] = {}

    def cells(self, of: str) -> tuple[Cell, ...]:
        """The cells of evaluations that count as `of`."""
        return tuple(cell for cell in self.evaluations.values() if of in counts_as(cell.capability))

    def total(self, of: str) -> int:
        """Evaluations of capability `of`, in points, summed over all terms; the monitor's own are not in it."""
        cells = self._totals.get(of)
        if cells is None:
            cells = self._totals[of] = self.cells(of)
        return sum([cell.n for cell in cells])

    def evaluation(self, term: str, capability: str) -> Cell:
        """The cell that counts evaluations of a term's capability, in points."""
        self._totals.clear()
        return _cell(self.evaluations, term, capability, f"term '{term}'")

    def call(self, owner: str, capability: str, slot: str, same: Cell | None = None) -> Cell:
        """The cell that counts a solver's calls; `same` where each of them is one evaluation and counted as such."""
        if same is not None:
            return self.calls.setdefault((owner, capability), same)
        return _cell(self.calls, owner, capability, f"slot '{slot}'")

    def watch(self, owner: str, capability: str) -> Cell:
        """The cell that counts evaluations for the record."""
        return _cell(self.monitor, owner, capability, owner)

    def culprit(self) -> str | None:
        """Which evaluation was the first, of the last two of each kind, to return NaN or inf; a clause, or None."""
        cells = (*self.evaluations.values(), *self.calls.values())
        for cell in cells:
            if cell.broken(cell.before):
                last = cell.last.shape[0] if returns(cell.capability) == "scalars" else 1
                return f"{_named(cell)} returned NaN or inf at its evaluation {cell.n - last}"
        for cell in cells:
            if cell.broken(cell.last):
                return f"{_named(cell)} returned NaN or inf at its evaluation {cell.n}"
        return None

    def table(self) -> dict[str, dict[str, dict[str, int]]]:
        """`{"evaluations": {term: {capability: n}}, "calls": {slot: …}, "monitor": {…}}`, without zeros."""
        out = {"evaluations": _rows(self.evaluations, expand=True)}
        return {**out, "calls": _rows(self.calls), "monitor": _rows(self.monitor)}

    def state_dict(self) -> dict[str, Any]:
        return {name: _rows(getattr(self, name)) for name in ("evaluations", "calls", "monitor")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("evaluations", "calls", "monitor"):
            for (owner, capability), cell in getattr(self, name).items():
                cell.n = int(state[name].get(owner, {}).get(capability, 0))


def _cell(cells: Cells, owner: str, capability: str, label: str) -> Cell:
    return cells.setdefault((owner, capability), Cell(owner, capability, label))


def _rows(cells: Cells, *, expand: bool = False) -> dict[str, dict[str, int]]:
    rows: dict[str, dict[str, int]] = {}
    for (owner, capability), cell in cells.items():
        for name in counts_as(capability) if expand else (capability,):
            if cell.n:
                row = rows.setdefault(owner, {})
                row[name] = row.get(name, 0) + cell.n
    return rows


def counting(call: Callable[..., Any], cell: Cell) -> Callable[..., Any]:
    """`call`, counted by one a call (calls that the solver makes)."""

    def counted(*args: Any) -> Any:
        cell.n += 1
        out = call(*args)
        cell.before, cell.last = cell.last, out
        return out

    return counted


def checked(
    call: Callable[[Array], Any], term: str, capability: str, *, extended: bool = False
) -> Callable[[Array], float]:
    """A user's function of a point that gives a number, uncounted, checked like a counted one.

    Raises
    ------
    InputError, NonFiniteError
        As in `evaluating`.
    """
    cell, fresh = Cell(term, capability, f"term '{term}'"), True

    def measure(x: Array) -> float:
        nonlocal fresh
        if fresh:
            out = _first(call, cell, (x,))
            _check_scalar(out, cell)
            fresh = False
        else:
            out = call(x)
        value = float(out)
        if not -INF < value < INF and not (extended and value == INF):
            raise NonFiniteError(cell.label, capability, "NaN" if value != value else f"{value}")
        return value

    return measure


def evaluating(
    call: Callable[..., Any], term: str, capability: str, counters: Counters, *, extended: bool
) -> Callable[..., Any]:
    """A user's function, counted in points, checked at its first call and for NaN in scalar results.

    Raises
    ------
    InputError
        At the first call, if the result has the wrong form or `x` was changed in place.
    NonFiniteError
        When a scalar result is NaN or -inf, or +inf from a function that is not declared extended-valued.
    """
    known = CAPABILITIES.get(capability)
    cell = counters.evaluation(term, capability)
    cell.extended = extended
    form = returns(capability)
    if known is not None and known.points is not None:
        return _batched(call, cell, known.points)
    if form == "scalar":
        return _scalar(call, cell, extended)
    if form == "pair":
        return _pair(call, cell, extended)
    return _plain(call, cell, form == "like x")


def _scalar(call: Callable[..., Any], cell: Cell, extended: bool) -> Callable[..., Any]:
    fresh = True

    def evaluate(x: Array) -> Any:
        nonlocal fresh
        cell.n += 1
        if fresh:
            out = _first(call, cell, (x,))
            _check_scalar(out, cell)
            fresh = False
        else:
            out = call(x)
        if isinstance(out, _FLOATS):
            if not -INF < out < INF and not (extended and out == INF):
                raise NonFiniteError(cell.label, cell.capability, "NaN" if out != out else f"{out}", cell.n)
        else:
            # Not compared here: on a device that would wait for the number.
            cell.before, cell.last = cell.last, out
        return out

    return evaluate


def _pair(call: Callable[..., Any], cell: Cell, extended: bool) -> Callable[..., Any]:
    fresh, plain = True, True

    def evaluate(x: Array) -> Any:
        nonlocal fresh, plain
        cell.n += 1
        if fresh:
            out = _first(call, cell, (x,))
            if not isinstance(out, tuple) or len(out) != 2:
                raise InputError(f"{_named(cell)} must return (value, gradient), got {describe(out)}")
            _check_scalar(out[0], cell)
            _check_like(out[1], x, cell)
            fresh, plain = False, isinstance(out[0], _FLOATS)
        else:
            out = call(x)
        value, slope = out
        cell.before, cell.last = cell.last, slope
        if plain and not -INF < value < INF and not (extended and value == INF):
            cell.last = None
            raise NonFiniteError(cell.label, "value", "NaN" if value != value else f"{value}", cell.n)
        return out

    return evaluate


def _plain(call: Callable[..., Any], cell: Cell, check: bool) -> Callable[..., Any]:
    fresh = True

    def evaluate(*args: Any) -> Any:
        nonlocal fresh
        cell.n += 1
        if fresh:
            out = _first(call, cell, args)
            if check:
                _check_like(out, args[0], cell)
            fresh = False
        else:
            out = call(*args)
        cell.before, cell.last = cell.last, out
        return out

    return evaluate


def _batched(call: Callable[..., Any], cell: Cell, points: Callable[[Any], int]) -> Callable[..., Any]:
    if returns(cell.capability) != "scalars":

        def counted(*args: Any) -> Any:
            cell.n += points(args[0])
            return call(*args)

        return counted

    def evaluate(points_in: Array) -> Any:
        m = points(points_in)
        cell.n += m
        out = call(points_in)
        if not is_array(out) or tuple(out.shape) != (m,):
            raise InputError(f"{_named(cell)} must return shape ({m},) for {m} points, got {describe(out)}")
        cell.before, cell.last = cell.last, out
        return out

    return evaluate


def _named(cell: Cell) -> str:
    return f"{cell.capability} of {cell.label}"


def _first(call: Callable[..., Any], cell: Cell, args: tuple[Any, ...]) -> Any:
    """The first call: made on the real arguments, which must come out unchanged."""
    before = [copy(one) if is_array(one) else None for one in args]
    out = call(*args)
    for one, old in zip(args, before, strict=True):
        if old is not None and not _same(one, old):
            raise InputError(
                f"{_named(cell)} changed its argument in place; work on a copy (x = x.copy()), "
                "since the solver goes on with that array"
            )
    return out


def _same(one: Array, other: Array) -> bool:
    xp = namespace(one)
    return bool(xp.all((one == other) | ((one != one) & (other != other))))


def _check_scalar(out: Any, cell: Cell) -> None:
    if isinstance(out, complex) or (is_array(out) and is_complex(out)):
        raise InputError(f"{_named(cell)} returned a complex number, {out}; expected a real one")
    if isinstance(out, float | int) or (is_array(out) and out.ndim == 0):
        return
    raise InputError(
        f"{_named(cell)} must return one number, got {describe(out)}"
        + ("; sum it or take its only entry" if is_array(out) else "")
    )


def _check_like(out: Any, x: Array, cell: Cell) -> None:
    if not is_array(out):
        raise InputError(f"{_named(cell)} must return an array like x, got {describe(out)}")
    if tuple(out.shape) != tuple(x.shape):
        raise InputError(f"{_named(cell)} returned shape {tuple(out.shape)} for x of {tuple(x.shape)}")
    if out.dtype != x.dtype:
        raise InputError(
            f"{_named(cell)} returned {describe(out)} for x of {describe(x)}; return the dtype of x, "
            "or start from an x0 of the dtype that your function uses"
        )
