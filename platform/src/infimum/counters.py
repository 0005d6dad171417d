"""Exact counts of evaluations, first-call checks of what users' functions return, and NaN at the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from infimum.arrays import Array, copy, describe, is_array, namespace
from infimum.errors import InputError, NonFiniteError
from infimum.vocabulary import CAPABILITIES, counts_as

INF = float("inf")


class Cell:
    """One count: of a capability, of a term (evaluations) or of a slot (calls by the solver)."""

    __slots__ = ("capability", "label", "last", "n", "owner")

    def __init__(self, owner: str, capability: str, label: str) -> None:
        self.owner, self.capability, self.label = owner, capability, label
        self.n = 0
        self.last: Any = None
        """What the last evaluation returned; looked at only when something is not finite."""


class Counters:
    """Evaluations of the user's functions, calls that the solver makes, and evaluations by the monitor."""

    def __init__(self) -> None:
        self.evaluations: dict[tuple[str, str], Cell] = {}
        self.calls: dict[tuple[str, str], Cell] = {}
        self.monitor: dict[tuple[str, str], Cell] = {}
        self._totals: dict[str, tuple[Cell, ...]] = {}

    def total(self, of: str) -> int:
        """Evaluations of capability `of`, in points, summed over all terms; the monitor's own are not in it."""
        cells = self._totals.get(of)
        if cells is None:
            cells = tuple(cell for cell in self.evaluations.values() if cell.capability == of)
            self._totals[of] = cells
        return sum(cell.n for cell in cells)

    def evaluation(self, term: str, capability: str) -> Cell:
        self._totals.clear()
        return _cell(self.evaluations, term, capability, f"term '{term}'")

    def call(self, slot: str, capability: str, label: str) -> Cell:
        return _cell(self.calls, slot, capability, label)

    def watch(self, owner: str, capability: str) -> Cell:
        return _cell(self.monitor, owner, capability, owner)

    def culprit(self) -> str | None:
        """Where a non-finite number was seen last, as a clause, or None."""
        for cell in (*self.evaluations.values(), *self.calls.values()):
            if is_array(cell.last) and not bool(namespace(cell.last).all(namespace(cell.last).isfinite(cell.last))):
                return f"{cell.capability} of {cell.label} returned NaN or inf at its evaluation {cell.n}"
        return None

    def table(self) -> dict[str, dict[str, dict[str, int]]]:
        """`{"evaluations": {term: {capability: n}}, "calls": {slot: …}, "monitor": {…}}`, without zeros."""
        out: dict[str, dict[str, dict[str, int]]] = {}
        for name in ("evaluations", "calls", "monitor"):
            rows: dict[str, dict[str, int]] = {}
            for (owner, capability), cell in getattr(self, name).items():
                if cell.n:
                    rows.setdefault(owner, {})[capability] = cell.n
            out[name] = rows
        return out

    def state_dict(self) -> dict[str, Any]:
        return self.table()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("evaluations", "calls", "monitor"):
            cells: dict[tuple[str, str], Cell] = getattr(self, name)
            for (owner, capability), cell in cells.items():
                cell.n = int(state[name].get(owner, {}).get(capability, 0))


def _cell(cells: dict[tuple[str, str], Cell], owner: str, capability: str, label: str) -> Cell:
    return cells.setdefault((owner, capability), Cell(owner, capability, label))


def counting(call: Callable[..., Any], cell: Cell) -> Callable[..., Any]:
    """`call`, counted by one a call (calls that the solver makes)."""

    def counted(*args: Any) -> Any:
        cell.n += 1
        cell.last = out = call(*args)
        return out

    return counted


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
    cells = [counters.evaluation(term, name) for name in counts_as(capability)]
    points = known.points if known else None
    form = known.returns if known else None
    if points is not None:
        return _batched(call, cells, points)
    if form == "scalar":
        return _scalar(call, cells[0], term, capability, extended)
    if form == "pair":
        return _pair(call, cells, term, capability, extended)
    return _plain(call, cells[0], term, capability, form == "like x")


def _scalar(call: Callable[..., Any], cell: Cell, term: str, capability: str, extended: bool) -> Callable[..., Any]:
    fresh = True

    def evaluate(x: Array) -> Any:
        nonlocal fresh
        cell.n += 1
        if fresh:
            fresh = False
            out = _first(call, term, capability, (x,))
            _check_scalar(out, term, capability)
        else:
            out = call(x)
        if isinstance(out, float) and not -INF < out < INF and not (extended and out == INF):
            raise NonFiniteError(cell.label, capability, "NaN" if out != out else f"{out}", cell.n)
        return out

    return evaluate


def _pair(
    call: Callable[..., Any], cells: Sequence[Cell], term: str, capability: str, extended: bool
) -> Callable[..., Any]:
    value_cell, slope_cell = cells
    fresh = True

    def evaluate(x: Array) -> Any:
        nonlocal fresh
        value_cell.n += 1
        slope_cell.n += 1
        if fresh:
            fresh = False
            out = _first(call, term, capability, (x,))
            if not isinstance(out, tuple) or len(out) != 2:
                raise InputError(f"{capability} of term '{term}' must return (value, gradient), got {describe(out)}")
            _check_scalar(out[0], term, capability)
            _check_like(out[1], x, term, capability)
        else:
            out = call(x)
        value, slope_cell.last = out
        if isinstance(value, float) and not -INF < value < INF and not (extended and value == INF):
            raise NonFiniteError(value_cell.label, "value", "NaN" if value != value else f"{value}", value_cell.n)
        return out

    return evaluate


def _plain(call: Callable[..., Any], cell: Cell, term: str, capability: str, check: bool) -> Callable[..., Any]:
    fresh = True

    def evaluate(*args: Any) -> Any:
        nonlocal fresh
        cell.n += 1
        if fresh:
            fresh = False
            out = _first(call, term, capability, args)
            if check:
                _check_like(out, args[0], term, capability)
        else:
            out = call(*args)
        cell.last = out
        return out

    return evaluate


def _batched(call: Callable[..., Any], cells: Iterable[Cell], points: Callable[[Any], int]) -> Callable[..., Any]:
    (cell,) = cells

    def evaluate(points_in: Array) -> Any:
        m = points(points_in)
        cell.n += m
        out = call(points_in)
        if not is_array(out) or tuple(out.shape) != (m,):
            raise InputError(f"values of {cell.label} must return shape ({m},) for {m} points, got {describe(out)}")
        cell.last = out
        return out

    return evaluate


def _first(call: Callable[..., Any], term: str, capability: str, args: tuple[Any, ...]) -> Any:
    """The first call: made on the real arguments, which must come out unchanged."""
    before = [copy(one) if is_array(one) else None for one in args]
    out = call(*args)
    for one, old in zip(args, before, strict=True):
        if old is not None and not _same(one, old):
            raise InputError(
                f"{capability} of term '{term}' changed its argument in place; work on a copy (x = x.copy()), "
                "since the solver goes on with that array"
            )
    return out


def _same(one: Array, other: Array) -> bool:
    xp = namespace(one)
    return bool(xp.all((one == other) | ((one != one) & (other != other))))


def _check_scalar(out: Any, term: str, capability: str) -> None:
    if isinstance(out, complex):
        raise InputError(f"{capability} of term '{term}' returned a complex number, {out}; expected a real one")
    if isinstance(out, float | int) or (is_array(out) and out.ndim == 0):
        return
    raise InputError(
        f"{capability} of term '{term}' must return one number, got {describe(out)}"
        + ("; sum it or take its only entry" if is_array(out) else "")
    )


def _check_like(out: Any, x: Array, term: str, capability: str) -> None:
    if not is_array(out):
        raise InputError(f"{capability} of term '{term}' must return an array like x, got {describe(out)}")
    if tuple(out.shape) != tuple(x.shape):
        raise InputError(f"{capability} of term '{term}' returned shape {tuple(out.shape)} for x of {tuple(x.shape)}")
    if out.dtype != x.dtype:
        raise InputError(
            f"{capability} of term '{term}' returned {describe(out)} for x of {describe(x)}; return the dtype of x, "
            "or start from an x0 of the dtype that your function uses"
        )
