"""Norms that look at many entries at once: the largest entry, singular values, vectors along an axis, groups."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from infimum.arrays import Array, all_finite, as_data, clip, is_array, like, namespace, to_numpy
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.functions.projections import l1_ball_projection


class Linf(Function):
    """The largest absolute value `max_i |x_i|`, for real x of any shape."""

    provides = ("value", "values", "prox", "prox_conjugate")
    real = True
    convex = True

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "Linf()"

    def value(self, x: Array) -> float:
        return float(abs(x).max())

    def values(self, X: Array) -> Array:
        return namespace(X).max(abs(X.reshape((X.shape[0], -1))), axis=1)

    def prox(self, v: Array, t: float) -> Array:
        """`v` minus its projection on the l1 ball of radius t, by Moreau."""
        return v - l1_ball_projection(v, t)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return l1_ball_projection(v, 1.0)


class NuclearNorm(Function):
    """The sum of the singular values of a matrix x.

    Each prox takes one singular value decomposition. A matrix that holds NaN or inf gives NaN.
    """

    provides = ("value", "values", "prox", "prox_conjugate")
    convex = True

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "NuclearNorm()"

    def check(self, x: Array) -> None:
        if x.ndim != 2:
            raise InputError(f"{self!r} is a function of matrices, x0 is {tuple(x.shape)}; expected two axes")
        super().check(x)

    def value(self, x: Array) -> float:
        return float(namespace(x).linalg.svdvals(x).sum()) if all_finite(x) else float("nan")

    def values(self, X: Array) -> Array:
        xp = namespace(X)
        return xp.sum(xp.linalg.svdvals(X), axis=1)

    def prox(self, v: Array, t: float) -> Array:
        return _spectral(v, lambda s: clip(s - t, 0.0, None))

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return _spectral(v, lambda singular: clip(singular, None, 1.0))


def _spectral(v: Array, change: Any) -> Array:
    """`v` with its singular values changed."""
    if not all_finite(v):
        return v * float("nan")
    left, singular, right = namespace(v).linalg.svd(v, full_matrices=False)
    return (left * change(singular)) @ right


class L21(Function):
    """The sum of the Euclidean norms of the vectors along one axis of x: each vector is zero or not as a whole.

    Parameters
    ----------
    axis : int, default 0
        Axis along which the norms are taken: 1 for the rows of a matrix (a multi-task lasso), 0 for the directions of
        `finite_difference(shape)` (isotropic total variation).
    """

    provides = ("value", "values", "prox", "prox_conjugate")
    convex = True

    def __init__(self, axis: int = 0) -> None:
        if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
            raise InputError(f"L21: axis is {axis!r}; expected an integer")
        self.axis = int(axis)

    def __repr__(self) -> str:
        return f"L21(axis={self.axis})"

    def check(self, x: Array) -> None:
        if not -x.ndim <= self.axis < x.ndim:
            raise InputError(f"{self!r}: x0 is {tuple(x.shape)}; expected an array with axis {self.axis}")
        super().check(x)

    def _sizes(self, x: Array) -> Array:
        return namespace(x).linalg.vector_norm(x, axis=self.axis, keepdims=True)

    def value(self, x: Array) -> float:
        return float(self._sizes(x).sum())

    def values(self, X: Array) -> Array:
        xp = namespace(X)
        sizes = xp.linalg.vector_norm(X, axis=self.axis + 1 if self.axis >= 0 else self.axis)
        return xp.sum(sizes.reshape((X.shape[0], -1)), axis=1)

    def prox(self, v: Array, t: float) -> Array:
        return (1.0 - _share(self._sizes(v), t)) * v

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return _share(self._sizes(v), 1.0) * v


def _share(size: Array, bound: Array | float) -> Array:
    """`bound / max(size, bound)`, and 0 where both are 0."""
    largest = clip(size, bound, None)
    return bound / namespace(size).where(largest == 0, 1.0 + 0.0 * largest, largest)


class GroupLasso(Function):
    """`sum_g w_g ||x_g||` over disjoint groups g of entries: each group is zero or not as a whole.

    Parameters
    ----------
    groups : list of lists of int, or array of int
        Either the indices (from 0) of each group, for a vector x, or one label per entry of x, in the shape of x.
        Entries in no group, or with a negative label, are not penalized.
    weights : float or array of one number >= 0 per group, default 1
        In the order of the lists, or of the labels from the smallest. `[len(g) ** 0.5 for g in groups]` treats groups
        of different sizes alike.
    size : int, optional
        Number of entries of x where groups are lists; by default the largest index plus one.

    Raises
    ------
    InputError
        If groups overlap or repeat an index, are empty, an index or label is no integer or out of range, or weights
        do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> f = GroupLasso([[0, 1], [2]])
    >>> f.value(np.array([3.0, 4.0, 1.0])), f.prox(np.array([3.0, 4.0, 1.0]), 2.5).tolist()
    (6.0, [1.5, 2.0, 0.0])
    """

    provides = ("value", "values", "prox", "prox_conjugate")
    data = ("labels", "weights")
    convex = True

    def __init__(self, groups: Any, weights: Any = None, size: int | None = None) -> None:
        if not is_array(groups) and not isinstance(groups, Sequence):
            raise InputError(
                f"GroupLasso: groups is {groups!r}; expected lists of indices or one integer label per entry of x"
            )
        if not is_array(groups) and any(isinstance(one, Sequence) or is_array(one) for one in groups):
            labels, count = _from_lists(groups, size)
            self.shape_source = f"the groups index {labels.size} entries"
        else:
            labels, count = _from_labels(groups, size)
            self.shape_source = f"the group labels are {labels.shape}"
        self.shape = labels.shape
        self.count = count
        # Entries in no group form one more, of weight 0.
        self.labels: Array = labels.reshape(-1)
        self.weights: Array = np.append(_group_weights(weights, count), 0.0)

    def __repr__(self) -> str:
        return f"GroupLasso({self.count} groups, x is {self.shape})"

    def _sizes(self, X: Array) -> Array:
        """Norms of the groups, (m, groups + 1), of m flat points (m, n)."""
        size = abs(X)
        top = float(size.max())
        top = top if 0.0 < top < float("inf") else 1.0
        size = size / top
        squares = size * size
        m, groups = X.shape[0], self.count + 1
        if is_torch_array(X):
            sums = namespace(X).zeros((m, groups), dtype=squares.dtype, device=X.device)
            sums.index_add_(1, self.labels, squares)
        else:
            slots = self.labels + groups * np.arange(m)[:, None]
            host = np.bincount(slots.reshape(-1), weights=to_numpy(squares).reshape(-1), minlength=m * groups)
            sums = like(host.reshape((m, groups)), size)
        return top * sums**0.5

    def value(self, x: Array) -> float:
        return float((self.weights * self._sizes(x.reshape((1, -1)))[0]).sum())

    def values(self, X: Array) -> Array:
        return self._sizes(X.reshape((X.shape[0], -1))) @ self.weights

    def _scaled(self, v: Array, factors: Array) -> Array:
        return v * factors[self.labels].reshape(v.shape)

    def prox(self, v: Array, t: float) -> Array:
        return self._scaled(v, 1.0 - _share(self._sizes(v.reshape((1, -1)))[0], t * self.weights))

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return self._scaled(v, _share(self._sizes(v.reshape((1, -1)))[0], self.weights))


def _from_lists(groups: Any, size: int | None) -> tuple[np.ndarray, int]:
    """Labels of the entries from lists of indices, and the number of groups."""
    members = [to_numpy(one) if is_array(one) else np.asarray(one) for one in groups]
    for g, one in enumerate(members):
        if one.ndim != 1 or not one.size:
            raise InputError(f"GroupLasso: group {g} is {groups[g]!r}; expected a list of at least one index")
        if one.dtype.kind not in "iu":
            raise InputError(f"GroupLasso: group {g} holds {one.dtype} entries; expected indices, integers from 0")
    indices = np.concatenate(members).astype(np.int64)
    owners = np.repeat(np.arange(len(members)), [one.size for one in members])
    n = int(indices.max()) + 1 if size is None else int(size)
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        k = int(np.argmax(outside))
        raise InputError(f"GroupLasso: group {owners[k]} holds index {indices[k]}; expected indices from 0 to {n - 1}")
    order = np.argsort(indices, kind="stable")
    shared = np.flatnonzero(np.diff(indices[order]) == 0)
    if shared.size:
        first, second = owners[order[shared[0]]], owners[order[shared[0] + 1]]
        index = int(indices[order[shared[0]]])
        if first == second:
            raise InputError(f"GroupLasso: group {first} holds index {index} twice")
        raise InputError(
            f"GroupLasso: groups {first} and {second} share index {index}; expected disjoint groups. Overlapping "
            "groups have no closed-form prox: add one term per group, `w * L2() @ np.eye(n)[group]`"
        )
    labels = np.full(n, len(members), dtype=np.int64)
    labels[indices] = owners
    return labels, len(members)


def _from_labels(groups: Any, size: int | None) -> tuple[np.ndarray, int]:
    """Labels 0, 1, … (negative ones last) from labels of any numbering, and the number of groups."""
    given = to_numpy(groups) if is_array(groups) else np.asarray(groups)
    if not given.size:
        raise InputError("GroupLasso: groups is empty; expected lists of indices or one label per entry of x")
    if given.dtype.kind not in "iu":
        raise InputError(
            f"GroupLasso: groups holds {given.dtype} entries; expected lists of indices or one integer label per entry"
        )
    if size is not None and size != given.size:
        raise InputError(f"GroupLasso: there are {given.size} labels, size is {size}; leave size out beside labels")
    found, labels = np.unique(given, return_inverse=True)
    free = int(np.count_nonzero(found < 0))
    count = found.size - free
    if not count:
        raise InputError("GroupLasso: every label is negative, which leaves no group; expected labels from 0")
    labels = labels.reshape(given.shape).astype(np.int64) - free
    return np.where(labels < 0, count, labels), count


def _group_weights(weights: Any, count: int) -> np.ndarray:
    if weights is None or isinstance(weights, Real):
        host = np.full(count, 1.0 if weights is None else float(weights))
    else:
        host = to_numpy(as_data(weights, "weights"))
        if host.shape != (count,):
            raise InputError(f"GroupLasso: weights is {host.shape}; expected one number, or ({count},), one per group")
    wrong = ~((host >= 0) & np.isfinite(host))
    if wrong.any():
        g = int(np.argmax(wrong))
        raise InputError(f"GroupLasso: weights[{g}] is {host[g]}; expected finite numbers >= 0")
    return host
