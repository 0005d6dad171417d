"""Reading blocks, rows and right-hand sides: shapes made out, mistakes named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from infimum.constraints.base import Constraint
from infimum.errors import InputError, did_you_mean
from infimum.functions import Function
from infimum.functions.maps import BlockMap, Map, ScaledIdentity, as_map
from infimum_padmm.data import mapping, real_map, vector, whole
from infimum_padmm.structure import LARGEST_DENSE, Structure, dense_of, ordered

FEASIBLE = 1e-8
"""Relative residual up to which a right-hand side counts as reachable."""


@dataclass(frozen=True, slots=True)
class Read:
    """The rows made out, and the shape of every block."""

    structure: Structure
    shapes: dict[str, tuple[int, ...]]


def read_rows(
    functions: Mapping[str, Function | None],
    sets: Mapping[str, Constraint],
    rows: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    rhs: Mapping[str, Any] | Sequence[Any] | None,
    shapes: Mapping[str, Sequence[int] | int],
    order: Sequence[str] | None,
) -> Read:
    """Structure and shapes; raises `InputError` or `StructureError` with names."""
    blocks = list(functions)
    named = _named_rows(rows)
    maps = {name: _maps(name, row, blocks) for name, row in named.items()}
    right = _named_rhs(rhs, list(named))
    known = _known_shapes(functions, sets, shapes)
    _copied_shapes(maps, known)
    sizes = {name: math.prod(shape) for name, shape in known.items()}
    lengths = {name: b.size for name, b in right.items()}
    _spread(maps, sizes, lengths)
    for name in blocks:
        if name not in sizes:
            raise InputError(f"nothing says the size of block '{name}': give shapes={{'{name}': (n,)}}")
        known.setdefault(name, (sizes[name],))
    _check_shapes(maps, sizes, lengths)
    index = {name: j for j, name in enumerate(blocks)}
    members = [frozenset(index[key] for key in row) for row in maps.values()]
    found, pivots = ordered(blocks, list(maps), members, order)
    structure = Structure(
        tuple(blocks),
        tuple(maps),
        tuple(sizes[name] for name in blocks),
        tuple(lengths[name] for name in maps),
        tuple({index[key]: one for key, one in row.items()} for row in maps.values()),
        tuple(right.get(name, np.zeros(lengths[name])) for name in maps),
        found,
        pivots,
    )
    for i in range(len(structure.rows)):
        _check_reachable(structure, i)
    return Read(structure, {name: known[name] for name in blocks})


def _named_rows(rows: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(rows, Mapping):
        if isinstance(rows, str) or not isinstance(rows, Sequence):
            raise InputError(f"rows: expected a sequence of {{block: matrix}}, got {type(rows).__name__}")
        rows = {f"row{i + 1}": row for i, row in enumerate(rows)}
    named = mapping(rows, "rows", "row: {block: matrix}")
    return {name: mapping(row, f"row '{name}'", "block: matrix") for name, row in named.items()}


def _maps(name: str, row: Mapping[str, Any], blocks: Sequence[str]) -> dict[str, Map]:
    out: dict[str, Map] = {}
    for key, A in row.items():
        if key not in blocks:
            raise InputError(f"row '{name}': there is no block '{key}'; {did_you_mean(key, blocks)}")
        try:
            map_ = ScaledIdentity(float(A)) if isinstance(A, Real) else as_map(real_map(A))
        except InputError as error:
            raise InputError(f"row '{name}', block '{key}': {error}") from None
        if isinstance(map_, BlockMap):
            raise InputError(f"row '{name}', block '{key}': expected a matrix, an operator or a number")
        if not _is_zero(map_):
            out[key] = map_
    if not out:
        raise InputError(f"row '{name}' has no entries" + (" but zeros; leave it out" if row else "; leave it out"))
    return out


def _is_zero(map_: Map) -> bool:
    if isinstance(map_, ScaledIdentity):
        return map_.scale == 0.0
    operator: Any = getattr(map_, "operator", None)
    if sparse.issparse(operator):
        return bool(abs(operator).sum() == 0)
    return isinstance(operator, np.ndarray) and not operator.any()


def _named_rhs(rhs: Any, rows: Sequence[str]) -> dict[str, np.ndarray]:
    if rhs is None:
        return {}
    if not isinstance(rhs, Mapping):
        if isinstance(rhs, str) or not isinstance(rhs, Sequence | np.ndarray):
            raise InputError(f"rhs: expected {{row: array}} or a sequence of arrays, got {type(rhs).__name__}")
        given = list(rhs)
        if len(given) != len(rows):
            raise InputError(f"rhs has {len(given)} entries, there are {len(rows)} rows: {', '.join(rows)}")
        rhs = dict(zip(rows, given, strict=True))
    out = {}
    for name, b in rhs.items():
        if name not in rows:
            raise InputError(f"rhs={{'{name}': …}}: there is no such row; {did_you_mean(name, rows)}")
        if b is None or (isinstance(b, Real) and b == 0):
            continue
        out[name] = vector(b, f"rhs of row '{name}'")
    return out


def _known_shapes(
    functions: Mapping[str, Function | None], sets: Mapping[str, Constraint], shapes: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    out: dict[str, tuple[int, ...]] = {}
    for name, given in mapping(shapes, "shapes", "block: tuple of int").items():
        if name not in functions:
            raise InputError(f"shapes={{'{name}': …}}: there is no such block; {did_you_mean(name, list(functions))}")
        sides = (given,) if isinstance(given, Integral) else given
        if isinstance(sides, str) or not isinstance(sides, Sequence):
            raise InputError(f"shapes={{'{name}': {given!r}}}: expected a whole number or a tuple of them")
        out[name] = tuple(whole(n, f"shapes={{'{name}': {given!r}}}: a side", 1) for n in sides)
    for name, f in functions.items():
        for one in (f, sets.get(name)):
            shape = getattr(one, "shape", None)
            if shape is None:
                continue
            if name in out and out[name] != tuple(shape):
                raise InputError(f"block '{name}': {one!r} takes x of shape {tuple(shape)}, expected {out[name]}")
            out[name] = tuple(shape)
    return out


def _copied_shapes(maps: Mapping[str, Mapping[str, Map]], known: dict[str, tuple[int, ...]]) -> None:
    """Give blocks of unknown shape that of the block beside them, in rows of multiples of the identity."""
    copies = [row for row in maps.values() if all(isinstance(one, ScaledIdentity) for one in row.values())]
    moving = True
    while moving:
        moving = False
        for row in copies:
            found, unknown = {known[key] for key in row if key in known}, [key for key in row if key not in known]
            if len(found) == 1 and unknown:
                known.update(dict.fromkeys(unknown, next(iter(found))))
                moving = True


def _spread(maps: Mapping[str, Mapping[str, Map]], sizes: dict[str, int], lengths: dict[str, int]) -> None:
    """Fill in sizes of blocks and lengths of rows that matrices and multiples of the identity tell."""
    for name, row in maps.items():
        for key, map_ in row.items():
            if map_.shape is not None:
                sizes.setdefault(key, map_.shape[1])
                lengths.setdefault(name, map_.shape[0])
    moving = True
    while moving:
        moving = False
        for name, row in maps.items():
            for key, map_ in row.items():
                if map_.shape is None and (key in sizes) != (name in lengths):
                    sizes[key] = lengths[name] = sizes.get(key, lengths.get(name, 0))
                    moving = True


def _check_shapes(maps: Mapping[str, Mapping[str, Map]], sizes: Mapping[str, int], lengths: Mapping[str, int]) -> None:
    for name, row in maps.items():
        for key, map_ in row.items():
            shape = (sizes[key], sizes[key]) if map_.shape is None else tuple(map_.shape)
            if shape != (lengths[name], sizes[key]):
                what = f"{map_.scale:g} times the identity" if isinstance(map_, ScaledIdentity) else "the matrix"
                raise InputError(
                    f"row '{name}', block '{key}': {what} is {shape}; expected {(lengths[name], sizes[key])}, since "
                    f"the row has {lengths[name]} entries and the block {sizes[key]}"
                )


def _check_reachable(structure: Structure, i: int) -> None:
    """Raise `InputError` if no x at all fulfills row i."""
    b, row = structure.rhs[i], structure.entries[i]
    columns = sum(structure.sizes[j] for j in row)
    simple = any(isinstance(one, ScaledIdentity) for one in row.values())
    if not b.any() or simple or structure.lengths[i] * columns > LARGEST_DENSE or structure.has_operators:
        return
    A = np.hstack([dense_of(one, structure.sizes[j]) for j, one in row.items()])
    left = float(np.linalg.norm(b - A @ np.linalg.lstsq(A, b, rcond=None)[0]))
    if left > FEASIBLE * float(np.linalg.norm(b)):
        raise InputError(
            f"row '{structure.rows[i]}' cannot be fulfilled: its right-hand side lies outside of the image of its "
            f"blocks, by {left:.3g} of {float(np.linalg.norm(b)):.3g}"
        )
