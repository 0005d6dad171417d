"""Named blocks packed into one flat vector, and functions, sets and maps placed on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from infimum.arrays import Array, copy, describe, is_array, namespace, zeros_like
from infimum.errors import InputError, UnknownNameError, did_you_mean
from infimum.functions.algebra import Scaled, Sum, Translated
from infimum.functions.base import FACTS, Function, Zero
from infimum.functions.derived import Composed, Derived
from infimum.functions.maps import BlockMap, Map, Product

PLACED = frozenset(
    {"value", "values", "gradient", "subgradient", "value_and_gradient", "hvp", "prox", "prox_conjugate"}
    | {"sample_gradient", "coefficients"}
    | {"violation", "project", "tangent", "step", "bounds"}
)
"""Capabilities of a function or set of one block that carry over to the packed vector."""


class Layout:
    """How named blocks lie in one flat vector, in the order given.

    Parameters
    ----------
    shapes : mapping of str to tuple of int
        Shape of each block; `()` is a number.

    Attributes
    ----------
    size : int
        Entries of the packed vector.
    slices : dict of str to slice
        Where each block lies.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int] | int]) -> None:
        if not shapes:
            raise InputError("blocks are empty: give at least one, such as blocks={'x': (10,)}")
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.slices: dict[str, slice] = {}
        self.size = 0
        for name, given in shapes.items():
            shape = (int(given),) if isinstance(given, int) else tuple(int(n) for n in given)
            if any(n < 1 for n in shape):
                raise InputError(f"block '{name}' has shape {shape}; expected positive sizes")
            self.shapes[name] = shape
            self.slices[name] = slice(self.size, self.size + math.prod(shape))
            self.size += math.prod(shape)

    def __repr__(self) -> str:
        return f"Layout({', '.join(f'{name}: {shape}' for name, shape in self.shapes.items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and list(self.shapes.items()) == list(other.shapes.items())

    def __hash__(self) -> int:
        return hash(tuple(self.shapes.items()))

    def require(self, name: str) -> None:
        """Raise `UnknownNameError` unless there is a block `name`."""
        if name not in self.shapes:
            raise UnknownNameError(f"there is no block '{name}'; {did_you_mean(name, self.shapes)}")

    def pack(self, blocks: Mapping[str, Array]) -> Array:
        """One flat vector from all blocks, which must agree in namespace, dtype and device."""
        for name in blocks:
            self.require(name)
        missing = [name for name in self.shapes if name not in blocks]
        if missing:
            raise InputError(f"no array for block '{missing[0]}'; expected {', '.join(self.shapes)}")
        first = next(iter(self.shapes))
        for name, shape in self.shapes.items():
            block = blocks[name]
            if not is_array(block) or tuple(block.shape) != shape:
                raise InputError(f"block '{name}' is {describe(block)}; expected an array of shape {shape}")
            if type(block) is not type(blocks[first]) or block.dtype != blocks[first].dtype:
                raise InputError(
                    f"block '{name}' is {describe(block)}, block '{first}' is {describe(blocks[first])}; "
                    "blocks are packed into one array and must have one dtype and one kind of array"
                )
        return namespace(blocks[first]).concat([blocks[name].reshape(-1) for name in self.shapes])

    def unpack(self, flat: Array) -> dict[str, Array]:
        """Views of the blocks in their shapes, by name."""
        return {name: flat[self.slices[name]].reshape(shape) for name, shape in self.shapes.items()}

    def view(self, flat: Array, name: str) -> Array:
        """The view of one block in its shape."""
        return flat[self.slices[name]].reshape(self.shapes[name])

    def rows(self, X: Array, name: str) -> Array:
        """One block of every packed point stacked in `X`, shape (m, size) to (m, *shape)."""
        return X[:, self.slices[name]].reshape((X.shape[0], *self.shapes[name]))

    def check(self, x: Array) -> None:
        if tuple(x.shape) != (self.size,):
            blocks = ", ".join(f"{name} {shape}" for name, shape in self.shapes.items())
            raise InputError(f"the blocks ({blocks}) pack into ({self.size},), x0 is {tuple(x.shape)}")


class Placed(Derived):
    """What stands on one block and what stands on several disjoint ones share: they write into slices of the vector."""

    layout: Layout

    def _parts(self) -> tuple[OnBlock, ...]:
        raise NotImplementedError

    def _fill(self, out: Array, name: str, x: Array, *args: Any) -> Array:
        """`out` with the blocks replaced by what capability `name` gives on them."""
        view = self.layout.view
        for part in self._parts():
            view(out, part.block)[...] = getattr(part.function, name)(view(x, part.block), *args)
        return out

    def value(self, x: Array) -> float:
        view = self.layout.view
        first, *rest = self._parts()
        total: float = first.function.value(view(x, first.block))
        for part in rest:
            total = total + part.function.value(view(x, part.block))
        return total

    def values(self, X: Array) -> Array:
        first, *rest = self._parts()
        total = first.function.values(self.layout.rows(X, first.block))
        for part in rest:
            total = total + part.function.values(self.layout.rows(X, part.block))
        return total

    def gradient(self, x: Array) -> Array:
        return self._fill(zeros_like(x), "gradient", x)

    def subgradient(self, x: Array) -> Array:
        return self._fill(zeros_like(x), "subgradient", x)

    def sample_gradient(self, x: Array, rng: Any) -> Array:
        return self._fill(zeros_like(x), "sample_gradient", x, rng)

    def coefficients(self, x: Array) -> tuple[Array, float]:
        view, out, constant = self.layout.view, zeros_like(x), 0.0
        for part in self._parts():
            view(out, part.block)[...], r = part.function.coefficients(view(x, part.block))
            constant += r
        return out, constant

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        view, out, total = self.layout.view, zeros_like(x), None
        for part in self._parts():
            value, slope = part.function.value_and_gradient(view(x, part.block))
            total = value if total is None else total + value
            view(out, part.block)[...] = slope
        return total, out  # type: ignore[return-value]

    def hvp(self, x: Array, v: Array) -> Array:
        view, out = self.layout.view, zeros_like(v)
        for part in self._parts():
            view(out, part.block)[...] = part.function.hvp(view(x, part.block), view(v, part.block))
        return out

    def prox(self, v: Array, t: float) -> Array:
        return self._fill(copy(v), "prox", v, t)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        """Zero on blocks that the function does not see: its conjugate is infinite elsewhere."""
        return self._fill(zeros_like(v), "prox_conjugate", v, s)

    def violation(self, x: Array) -> float:
        view = self.layout.view
        return math.hypot(*(float(part.function.violation(view(x, part.block))) for part in self._parts()))

    def project(self, x: Array) -> Array:
        return self._fill(copy(x), "project", x)

    def tangent(self, x: Array, g: Array) -> Array:
        return self._move(copy(g), "tangent", x, g)

    def step(self, x: Array, d: Array) -> Array:
        return self._move(x + d, "step", x, d)

    def _move(self, out: Array, name: str, x: Array, d: Array) -> Array:
        view = self.layout.view
        for part in self._parts():
            view(out, part.block)[...] = getattr(part.function, name)(view(x, part.block), view(d, part.block))
        return out

    def bounds(self, x: Array) -> tuple[Array, Array]:
        view = self.layout.view
        lower, upper = zeros_like(x) - math.inf, zeros_like(x) + math.inf
        for part in self._parts():
            view(lower, part.block)[...], view(upper, part.block)[...] = part.function.bounds(view(x, part.block))
        return lower, upper

    def check(self, x: Array) -> None:
        self.layout.check(x)
        for part in self._parts():
            try:
                part.function.check(self.layout.view(x, part.block))
            except InputError as error:
                raise InputError(f"block '{part.block}': {error}") from error


class OnBlock(Placed):
    """A function or set of one block as one of the packed vector; a set leaves all other blocks free.

    Parameters
    ----------
    function : Function, Constraint or part of one
        Sees a view of the block in its shape.
    layout : Layout
        Where the blocks lie.
    block : str
        Name of the block.
    """

    def __init__(self, function: Any, layout: Layout, block: str) -> None:
        layout.require(block)
        self.function, self.layout, self.block = function, layout, block
        self._offers = function.capabilities & PLACED
        self._how = {name: rule for name, rule in getattr(function, "how", {}).items() if name in self._offers}
        self.convex, self.extended = self._fact("convex"), self._fact("extended")
        self.strongly_convex = self._fact("strongly_convex") if len(layout.shapes) == 1 else 0.0
        self.shape, self.shape_source = (layout.size,), f"{layout!r} packs into ({layout.size},)"

    def _fact(self, name: str) -> Any:
        return getattr(self.function, name, FACTS[name])

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        constant: float | None = self._fact("lipschitz")
        return constant

    def _parts(self) -> tuple[OnBlock, ...]:
        return (self,)

    def to(self, x: Array) -> Function:
        return OnBlock(self.function.to(x), self.layout, self.block)

    def __repr__(self) -> str:
        return f"{self.function!r} on {self.block}"


class Separable(Placed):
    """The sum of functions on disjoint blocks, or the product of sets: gradient, prox, projection go block by block.

    Parameters
    ----------
    parts : sequence of OnBlock
        On different blocks of one layout.
    """

    def __init__(self, parts: Sequence[OnBlock]) -> None:
        if not parts:
            raise InputError("a separable function needs at least one part")
        self.parts = tuple(parts)
        self.layout = self.parts[0].layout
        seen: set[str] = set()
        for part in self.parts:
            if part.layout != self.layout:
                raise InputError(f"{part!r} has another layout of blocks: {part.layout!r} instead of {self.layout!r}")
            if part.block in seen:
                raise InputError(f"two functions are on block '{part.block}'; a separable function takes one a block")
            seen.add(part.block)
        self._offers = frozenset.intersection(*(part.capabilities for part in self.parts))
        self._how = dict.fromkeys(self._offers - {"value", "values"}, "separable")
        self.convex = True if all(part.convex for part in self.parts) else None
        whole = len(seen) == len(self.layout.shapes)
        self.strongly_convex = min(part._fact("strongly_convex") for part in self.parts) if whole else 0.0
        self.extended = any(part.extended for part in self.parts)
        self.shape, self.shape_source = self.parts[0].shape, self.parts[0].shape_source

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        constants = [part.lipschitz for part in self.parts]
        return None if None in constants else max(one for one in constants if one is not None)

    def _parts(self) -> tuple[OnBlock, ...]:
        return self.parts

    def to(self, x: Array) -> Function:
        return Separable([part.to(x) for part in self.parts])  # type: ignore[misc]

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class PlacedMap(Map):
    """A map from named blocks as a map on the packed vector: `x -> sum_b A_b x_b`."""

    def __init__(self, blocks: BlockMap, layout: Layout) -> None:
        self.blocks, self.layout = blocks, layout
        rows: tuple[str, int] | None = None
        for name, one in blocks.maps.items():
            layout.require(name)
            shape = layout.shapes[name]
            if one.shape is None:
                continue
            if shape[:1] != (one.shape[1],):
                raise InputError(
                    f"the linear map of block '{name}' is {one.shape}, the block is {shape}; "
                    f"expected {one.shape[1]} entries along its first axis"
                )
            rows = rows or (name, one.shape[0])
            if one.shape[0] != rows[1]:
                raise InputError(
                    f"the maps of blocks '{rows[0]}' and '{name}' give {rows[1]} and {one.shape[0]} rows; "
                    "their images are added and must agree"
                )
        if rows is not None and all(len(layout.shapes[name]) == 1 for name in blocks.maps):
            self.shape = (rows[1], layout.size)

    def __repr__(self) -> str:
        return repr(self.blocks)

    def forward(self, x: Array) -> Array:
        view = self.layout.view
        total = None
        for name, one in self.blocks.maps.items():
            image = one.forward(view(x, name))
            total = image if total is None else total + image
        return total

    def check(self, x: Array) -> None:
        self.layout.check(x)

    def rows(self, X: Array) -> Array:
        total = None
        for name, one in self.blocks.maps.items():
            image = one.rows(self.layout.rows(X, name))
            total = image if total is None else total + image
        return total

    def adjoint(self, y: Array) -> Array:
        xp, pieces, dtype = namespace(y), [], y.dtype
        for name, shape in self.layout.shapes.items():
            one = self.blocks.maps.get(name)
            pieces.append(
                xp.zeros((math.prod(shape),), dtype=dtype, device=y.device)
                if one is None
                else one.adjoint(y).reshape(-1)
            )
        return xp.concat(pieces)

    def to(self, x: Array) -> PlacedMap:
        return PlacedMap(self.blocks.to(x), self.layout)

    @property
    def norm(self) -> float:
        """An upper bound (see `BlockMap.norm`)."""
        return self.blocks.norm

    @property
    def tight(self) -> float | None:
        return self.blocks.tight


def place_map(map_: Map, layout: Layout) -> Map:
    """`map_` on the packed vector; a map that names no blocks stays as it is."""
    if isinstance(map_, BlockMap):
        return PlacedMap(map_, layout)
    if isinstance(map_, Product):
        return Product(map_.outer, place_map(map_.inner, layout))
    return map_


def block_names(body: Any) -> list[str]:
    """Names of the blocks that the maps inside a function ask for."""
    if isinstance(body, Composed):
        map_ = body.map
        while isinstance(map_, Product):
            map_ = map_.inner
        return list(map_.maps) if isinstance(map_, BlockMap) else []
    if isinstance(body, Zero):
        return [] if body.like is None else block_names(body.like)
    if isinstance(body, Scaled | Translated):
        return block_names(body.function)
    return list(dict.fromkeys(n for one in body.functions for n in block_names(one))) if isinstance(body, Sum) else []


def place(function: Function, layout: Layout) -> Function:
    """`function` with its maps from named blocks put on the packed vector, inside sums, scalings and shifts too."""
    if isinstance(function, Composed):
        return Composed(function.function, place_map(function.map, layout))
    if isinstance(function, Sum):
        return Sum([place(one, layout) for one in function.functions])
    if isinstance(function, Scaled):
        return Scaled(place(function.function, layout), function.scale)
    if isinstance(function, Translated):
        return Translated(place(function.function, layout), function.b)
    if isinstance(function, Zero) and function.like is not None:
        return Zero(place(function.like, layout))
    return function
