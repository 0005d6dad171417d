"""Linear maps: adjoint, linearity, norm, tightness, and the maps inside a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from infimum.arrays import Array, describe, inner, is_complex, norm
from infimum.functions.base import Function
from infimum.functions.maps import BlockMap, Map, ScaledIdentity, as_map
from infimum.testing.report import Report
from infimum.testing.subject import Subject, as_point


def check_map(operator: Any, x: Any, *, rng: np.random.Generator | int | None = None, raise_: bool = False) -> Report:
    """Check a linear map: `<A x, y> = <x, A' y>`, linearity, its norm, `rows`, and `tight` where declared.

    Parameters
    ----------
    operator : Map, array, sparse matrix or operator
        Anything that `f @ A` takes.
    x : array_like
        A point that the map can be applied to.
    rng : numpy.random.Generator or int, default 0
        For the random vectors.
    raise_ : bool, default False
        Raise `InputError` with the report if something is wrong.

    Returns
    -------
    Report
    """
    map_ = as_map(operator)
    point = as_point(x)
    subject = Subject(_Shown(map_), point, np.random.default_rng(0 if rng is None else rng))
    subject.run(
        [
            ("adjoint", (), lambda s: _adjoint(s, map_)),
            ("linear", (), lambda s: _linear(s, map_)),
            ("rows", (), lambda s: _rows(s, map_)),
            ("norm", (), lambda s: _norm(s, map_)),
            ("tight", (), lambda s: _tight(s, map_)),
        ]
    )
    return subject.report.require() if raise_ else subject.report


class _Shown:
    """A map without capabilities, under its own name."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self, map_: Map) -> None:
        self.map = map_

    def __repr__(self) -> str:
        return repr(self.map)


def _like_image(subject: Subject, image: Array) -> Array:
    y = subject.random(shape=tuple(image.shape))
    return y + 1j * subject.random(shape=tuple(image.shape)) if is_complex(image) else y


def _adjoint(subject: Subject, map_: Map) -> None:
    for _ in range(3):
        x = subject.random()
        image = map_.forward(x)
        y = _like_image(subject, image)
        back = map_.adjoint(y)
        if tuple(back.shape) != tuple(x.shape):
            subject.wrong("adjoint", f"A' y is {describe(back)} for x {describe(x)}")
            return
        left, right = inner(image, y), inner(x, back)
        if not abs(left - right) <= 10.0 * subject.tolerance * (norm(image) * norm(y) + norm(x) * norm(back)):
            subject.wrong(
                "adjoint",
                f"<A x, y> = {left:.10g}, <x, A' y> = {right:.10g}: the adjoint is not that of the map",
                left=left,
                right=right,
            )


def _linear(subject: Subject, map_: Map) -> None:
    x, y = subject.random(), subject.random()
    together, apart = map_.forward(2.0 * x - 3.0 * y), 2.0 * map_.forward(x) - 3.0 * map_.forward(y)
    if not norm(together - apart) <= 10.0 * subject.tolerance * (norm(apart) + 1e-12):
        subject.wrong("linear", f"A(2 x - 3 y) is {norm(together - apart):.3g} away from 2 A x - 3 A y")


def _rows(subject: Subject, map_: Map) -> None:
    points = [subject.random(), subject.random()]
    found = map_.rows(subject.xp.stack(points))
    for row, point in enumerate(points):
        alone = map_.forward(point)
        if not norm(found[row] - alone) <= 10.0 * subject.tolerance * (norm(alone) + 1e-12):
            subject.wrong("rows", f"rows(X)[{row}] differs from forward(X[{row}])")


def _norm(subject: Subject, map_: Map) -> None:
    declared = float(map_.norm)
    x, seen = subject.direction(), 0.0
    for _ in range(30):
        image = map_.forward(x)
        seen = max(seen, norm(image))
        x = map_.adjoint(image)
        size = norm(x)
        if not size > 0.0:
            break
        x = x / size
    slack = 1e-6 if subject.eps < 1e-12 else 1e-2
    if seen > declared * (1.0 + slack):
        subject.wrong(
            "norm", f"norm = {declared:.10g} is too small: ||A x|| = {seen:.10g} for one x of norm 1", declared=declared
        )
    elif declared > 10.0 * seen:
        subject.report.add(
            "norm",
            f"norm = {declared:.6g} is allowed, but {seen:.6g} was the largest ||A x|| for x of norm 1",
            severity="note",
            declared=declared,
            seen=seen,
        )


def _tight(subject: Subject, map_: Map) -> None:
    c = map_.tight
    if c is None:
        subject.skip("tight", "not declared")
        return
    y = map_.forward(subject.random())
    image = map_.forward(map_.adjoint(y))
    if not norm(image - c * y) <= 100.0 * subject.tolerance * (norm(image) + c * norm(y)):
        subject.wrong("tight", f"A A' y is {norm(image - c * y):.3g} away from c y with the declared c = {c:.6g}")


def maps_inside(function: Any, x: Array) -> Iterator[tuple[Map, Any]]:
    """The maps in a function, each once, with a point that it can be applied to."""
    seen: set[int] = set()

    def walk(thing: Any, depth: int) -> Iterator[Map]:
        if id(thing) in seen or depth > 6:
            return
        seen.add(id(thing))
        if isinstance(thing, Map):
            yield thing
        elif isinstance(thing, Function):
            for one in vars(thing).values():
                yield from walk(one, depth + 1)
        elif isinstance(thing, tuple | list) and len(thing) <= 32:
            for one in thing:
                yield from walk(one, depth + 1)

    for map_ in walk(function, 0):
        if isinstance(map_, ScaledIdentity | BlockMap):
            continue
        if map_ is getattr(function, "map", None):
            yield map_, x
        elif map_.shape is not None:
            yield map_, x.reshape((-1,))[:1].repeat(map_.shape[1]) if map_.shape[1] != x.shape[0] else x
