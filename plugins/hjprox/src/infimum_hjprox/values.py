"""What f returns for many points: checked, with the sample named that is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.arrays import Array, describe, is_array, is_complex, namespace
from infimum.errors import InfimumWarning, InputError, NonFiniteError

SHARES = "separable_values"
"""Capability `separable_values(X) -> like X`, X of shape (m, *x.shape): each coordinate's share of f at m points."""


class Values:
    """Values of f at points (m, n), of which f sees those with its own shape.

    Parameters
    ----------
    call : callable
        Points (m, *shape) to (m,) values or (m, *shape) coordinate values; one point to one value if not `batched`.
    shape : tuple of int
        Shape of one point.
    what : str
        How messages call f.
    separable, batched : bool
    infinite : bool
        Whether f may be +inf.
    """

    def __init__(
        self,
        call: Callable[[Array], Any],
        shape: tuple[int, ...],
        what: str = "f",
        *,
        separable: bool = False,
        batched: bool = True,
        infinite: bool = True,
    ) -> None:
        self.call, self.shape, self.what = call, shape, what
        self.separable, self.batched, self.infinite = separable, batched, infinite
        self.warned = False

    def __call__(self, points: Array) -> Array:
        xp, m = namespace(points), int(points.shape[0])
        seen = points if self.shape == tuple(points.shape[1:]) else xp.reshape(points, (m, *self.shape))
        out = self._form(self.call(seen), m, points) if self.batched else self._one_by_one(seen, m, points)
        self._check(out, xp)
        return xp.reshape(out, (m, -1)) if self.separable else out

    def _one_by_one(self, points: Array, m: int, like: Array) -> Array:
        call = self.call
        values = []
        for i in range(m):
            value = call(points[i])
            if is_array(value) and value.ndim > 0:
                raise InputError(
                    f"{self.what} returned {describe(value)} for one point of shape {self.shape}; expected a number"
                    + ("" if not self.separable else "s like the point")
                )
            values.append(value)
        if type(like) is np.ndarray:
            out = np.asarray(values)
            if out.dtype.kind not in "fiub":
                self._refuse_kind(out)
            return out.astype(np.float64)
        xp = namespace(like)
        return xp.asarray([float(one) for one in values], dtype=xp.float64, device=like.device)

    def _form(self, out: Any, m: int, points: Array) -> Array:
        """The result as an array of the right shape in double precision."""
        xp = namespace(points)
        if type(points) is np.ndarray:
            out = np.asarray(out)
            if out.dtype.kind not in "fiub":
                self._refuse_kind(out)
        elif not isinstance(out, type(points)):
            raise InputError(f"{self.what} returned {describe(out)} for torch points; expected a torch tensor")
        elif is_complex(out):
            self._refuse_kind(out)
        expected = (m, *self.shape) if self.separable else (m,)
        if tuple(out.shape) != expected:
            raise InputError(
                f"{self.what} returned shape {tuple(out.shape)} for {m} points of shape {self.shape}; "
                f"expected {expected}{self._hint(out, m)}"
            )
        return xp.astype(out, xp.float64, copy=False)

    def _hint(self, out: Array, m: int) -> str:
        if self.separable:
            return ": with separable=True, f gives each coordinate's share of its value"
        if out.ndim == 0:
            return ": if f takes one point at a time, pass vectorized=False"
        if tuple(out.shape) == (m, 1):
            return "; drop the last axis, as in f(Y)[:, 0]"
        if tuple(out.shape) == (m, *self.shape):
            return "; sum over the coordinates, or pass separable=True if f is that sum"
        return ""

    def _refuse_kind(self, out: Array) -> None:
        if is_complex(out):
            raise InputError(f"{self.what} returned complex numbers ({describe(out)}); expected real ones")
        raise InputError(f"{self.what} returned {describe(out)}; expected real numbers")

    def _check(self, out: Array, xp: Any) -> None:
        if bool(xp.all(xp.isfinite(out))):
            return
        flat = xp.reshape(out, (out.shape[0], -1))
        bad = ~(flat > -xp.inf)
        if bool(xp.any(bad)):
            self._blame(flat, bad, xp)
        if not self.infinite:
            self._blame(flat, flat == xp.inf, xp)
        finite = out[xp.isfinite(out)]
        if not self.warned and finite.shape[0] > 1 and bool(xp.min(finite) == xp.max(finite)):
            self.warned = True
            warnings.warn(
                f"hjprox: {self.what} takes one finite value, {float(finite[0]):g}, and +inf: it is the indicator of a "
                "set, whose prox is the exact projection on it; give the set as a constraint (such as core.box or "
                "core.nonnegative) in place of sampling",
                InfimumWarning,
                stacklevel=2,
            )

    def _blame(self, flat: Array, bad: Array, xp: Any) -> None:
        i = int(xp.argmax(xp.astype(xp.any(bad, axis=1), xp.int8)))
        j = int(xp.argmax(xp.astype(bad[i], xp.int8)))
        value = float(flat[i, j])
        kind = "NaN" if value != value else f"{value:+}".replace("+inf", "+inf")
        hint = "; declare it extended=True if f has a domain" if value == np.inf else ""
        raise NonFiniteError(self.what, "value", f"{kind} at sample {i} of {flat.shape[0]}{hint}")


class Shares:
    """Coordinate values of an f of points of any length, from its values at points of one entry.

    The first call compares the sum of the shares with the values.
    """

    def __init__(self, values: Callable[[Array], Any], what: str) -> None:
        self.values, self.what, self.fresh = values, what, True

    def __call__(self, points: Array) -> Array:
        xp = namespace(points)
        shares = xp.reshape(self.values(xp.reshape(points, (-1, 1))), tuple(points.shape))
        if self.fresh:
            few = min(3, int(points.shape[0]))
            whole, total = self.values(points[:few]), xp.sum(xp.reshape(shares[:few], (few, -1)), axis=1)
            slack = 1e3 * float(xp.finfo(points.dtype).eps) * (1 + float(xp.max(xp.abs(whole))))
            apart = xp.abs(whole - total)
            if bool(xp.any(apart > slack)):
                i = int(xp.argmax(apart))
                raise InputError(
                    f"{self.what}: separable=True, but f is no sum over its entries: f(y) = {float(whole[i]):.6g}, its "
                    f"values at the single entries add up to {float(total[i]):.6g}; leave separable out"
                )
            self.fresh = False
        return shares


def values_of(f: Any, separable: bool, what: str) -> tuple[Callable[[Array], Any], bool]:
    """What gives values of a function with capabilities, and whether it takes many points at once."""
    offers = f.capabilities
    if separable and SHARES in offers:
        return getattr(f, SHARES), True
    if separable and "values" in offers:
        return Shares(f.values, what), True
    if separable:
        raise InputError(f"{what}: separable=True needs {SHARES} or values of {f!r}; it offers {', '.join(offers)}")
    return (f.values, True) if "values" in offers else (f.value, False)
