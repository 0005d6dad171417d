"""Partial derivatives from values, for some coordinates at one point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.arrays import Array, copy, namespace
from infimum.errors import InputError, NonFiniteError
from infimum_cocd.checks import NonFiniteQuery, at_coordinate

BATCH_BYTES = 32 * 2**20
"""Bound on the bytes of the points of one batch; one point is always allowed."""


@dataclass(slots=True)
class Query:
    """Points of one step: the coordinate that each moves (-1: none), which way, and where to."""

    coordinates: np.ndarray
    signs: np.ndarray
    entries: Array


def partials(
    function: Any,
    x: Array,
    coordinates: np.ndarray,
    eps: float,
    difference: str,
    with_value: bool,
    what: str,
    *,
    first: bool = True,
) -> tuple[Array, float | None, float]:
    """Difference quotients of `function` at x in some coordinates of its flattened form, the value at x, and a level.

    Central: `(f(x + eps e_i) - f(x - eps e_i)) / (2 eps)`, two values each, and one more if the value at x is wanted.
    Forward: `(f(x + eps e_i) - f(x)) / eps`, one value each and the shared one at x. What is divided by is the
    distance of the points after rounding. The value is None where it was not computed; the level is the value at one of
    the points, for the size of rounding.

    Raises
    ------
    InputError
        If eps vanishes beside an entry of x, unless `first` is False.
    ArithmeticError
        In place of it: no mistake of the input then, but points that have run away, which ends a run as `failed`.
    NonFiniteQuery
        If a value is NaN or infinite.
    """
    xp = namespace(x)
    flat = xp.reshape(copy(x), (-1,))
    here = flat[_index(coordinates, flat, xp)]
    up, down = here + eps, here - eps if difference == "central" else here
    width = up - down
    _refuse_vanished(width, here, coordinates, eps, what, xp, first)
    base = difference == "forward" or with_value
    count = len(coordinates)
    moved = [np.full(1 if base else 0, -1), coordinates, *([coordinates] if difference == "central" else [])]
    signs = [np.zeros(1 if base else 0, dtype=np.int64), np.ones(count, dtype=np.int64)]
    entries = [flat[: 1 if base else 0], up]
    if difference == "central":
        signs.append(-np.ones(count, dtype=np.int64))
        entries.append(down)
    query = Query(np.concatenate(moved).astype(np.int64), np.concatenate(signs), xp.concat(entries))
    values = _values(function, flat, tuple(x.shape), query, xp)
    value = float(values[0]) if base else None
    ahead = values[1 : 1 + count] if base else values[:count]
    behind = values[-count:] if difference == "central" else values[:1]
    return (ahead - behind) / width, value, float(values[0])


def _index(coordinates: np.ndarray, flat: Array, xp: Any) -> Any:
    return coordinates if xp is np else xp.asarray(coordinates, device=flat.device)


def _refuse_vanished(
    width: Array, here: Array, coordinates: np.ndarray, eps: float, what: str, xp: Any, first: bool
) -> None:
    lost = xp.nonzero(width == 0)[0]
    if lost.shape[0]:
        k = int(lost[0])
        said = (
            f"{what}: eps={eps:g} vanishes beside x[{int(coordinates[k])}] = {float(here[k]):g} in "
            f"{str(here.dtype).rpartition('.')[2]}; give a larger eps"
        )
        raise InputError(said) if first else ArithmeticError(f"{said}, or, if the points run away, shorter steps")


def _values(function: Any, flat: Array, shape: tuple[int, ...], query: Query, xp: Any) -> Array:
    """Values at the points of a query, in batches where the function offers them."""
    if "values" in getattr(function, "capabilities", ()):
        return _batched(function, flat, shape, query, xp)
    found = []
    for i, sign, entry in zip(query.coordinates.tolist(), query.signs.tolist(), query.entries, strict=True):
        point = copy(flat)
        if sign:
            point[i] = entry
        found.append(_checked(function, xp.reshape(point, shape), i, sign))
    return xp.asarray(found, dtype=flat.dtype, device=flat.device)


def _checked(function: Any, point: Array, i: int, sign: int) -> float:
    try:
        value = float(function.value(point))
    except NonFiniteError as error:
        what = f"{error.capability} of {error.what}"
        raise NonFiniteQuery(what, math.nan, at_coordinate(i, sign), error.kind) from error
    if not math.isfinite(value):
        raise NonFiniteQuery("the function", value, at_coordinate(i, sign))
    return value


def _batched(function: Any, flat: Array, shape: tuple[int, ...], query: Query, xp: Any) -> Array:
    n, total = flat.shape[0], len(query.coordinates)
    rows = max(1, BATCH_BYTES // max(1, n * int(xp.finfo(flat.dtype).bits) // 8))
    found = []
    for start in range(0, total, rows):
        coordinates = query.coordinates[start : start + rows]
        m = len(coordinates)
        points = xp.zeros((m, 1), dtype=flat.dtype, device=flat.device) + flat[None, :]
        # A query that moves no coordinate is the first of all, and writes the entry that is there anyway.
        points[_index(np.arange(m), flat, xp), _index(np.maximum(coordinates, 0), flat, xp)] = query.entries[
            start : start + m
        ]
        found.append(xp.astype(function.values(xp.reshape(points, (m, *shape))), flat.dtype))
    values = xp.concat(found)
    bad = xp.nonzero(~xp.isfinite(values))[0]
    if bad.shape[0]:
        k = int(bad[0])
        where = at_coordinate(int(query.coordinates[k]), int(query.signs[k]))
        raise NonFiniteQuery("the function", float(values[k]), where)
    return values
