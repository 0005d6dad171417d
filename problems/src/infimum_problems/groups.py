"""The lasso with overlapping groups: a penalty without a closed-form prox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.functions import Function, LeastSquares
from infimum.problem import Composite
from infimum_problems.data import Data, check_penalty, load, numbers, standardized

NAME = "problems.overlapping_group_lasso"
WIDTH, STRIDE = 4, 2


class OverlappingGroupNorm(Function):
    """`x -> sum_g ||x_g||_2` over groups of indices that may overlap. Offers its value, at one point or at many,
    and its form in CVXPY.

    Parameters
    ----------
    groups : sequence of sequence of int
        Indices from 0, at least one a group.
    size : int
        Number of entries of x.

    Raises
    ------
    InputError
        For no groups, an empty group or an index outside of 0 to size - 1.
    """

    provides = ("value", "values", "expression")
    data = ("members",)
    convex = True

    def __init__(self, groups: Sequence[Sequence[int]], size: int) -> None:
        if not groups or not all(len(group) for group in groups):
            raise InputError(f"groups={groups!r}: expected at least one group, and one index in each")
        for group in groups:
            for i in group:
                if not 0 <= i < size:
                    raise InputError(f"groups: index {i} in {list(group)} is no entry of x; expected 0 to {size - 1}")
        self.groups = tuple(tuple(group) for group in groups)
        self.shape, self.shape_source = (size,), f"the groups index {size} entries"
        self.members = np.zeros((size, len(groups)))
        for j, group in enumerate(self.groups):
            self.members[list(group), j] = 1.0

    def value(self, x: Array) -> float:
        xp = namespace(x)
        return float(xp.sum(xp.sqrt((x * x) @ self.members)))

    def values(self, X: Array) -> Array:
        xp = namespace(X)
        return xp.sum(xp.sqrt((X * X) @ self.members), axis=1)

    def expression(self, x: Any) -> Any:
        """The same of a CVXPY expression."""
        import cvxpy

        return cvxpy.sum([cvxpy.norm(x[list(group)], 2) for group in self.groups])

    def __repr__(self) -> str:
        return f"OverlappingGroupNorm({len(self.groups)} groups)"


def overlapping_group_lasso(
    data: Data = "diabetes",
    penalty: Annotated[float, Ge(0)] = 0.15,
    groups: list[list[int]] | None = None,
) -> Composite:
    """Least squares with overlapping groups: minimize `||A x - b||^2 / (2 n) + penalty sum_g ||x_g||_2`.

    The columns of A and b are standardized (mean 0, standard deviation 1). The penalty has no closed-form prox and
    offers its value only, so most solvers need an oracle for it. diabetes is the set of 442 patients and 10
    measurements of Efron et al. (2004), as shipped with scikit-learn.

    Parameters
    ----------
    data : {"diabetes", "breast_cancer"} or mapping, default "diabetes"
        A data set that comes with scikit-learn, or your own: `{file: X.csv, target: column}`.
    penalty : float, default 0.15
        Weight of the sum of norms, at least 0.
    groups : list of list of int, optional
        Column numbers from 0. None means windows of 4 neighbors, each shifted by 2: 0-3, 2-5, 4-7, 6-9 for 10 columns.

    Returns
    -------
    Composite
        Terms `loss` (gradient, prox) and `penalty` (value only); x has shape (d,), one coefficient a feature.

    Raises
    ------
    InputError
        For data or groups that cannot be used, or a negative penalty.
    """
    check_penalty(penalty, NAME)
    features, target = load(data)
    b = numbers(target, NAME)
    d = features.shape[1]
    if groups is None:
        groups = [list(range(i, min(i + WIDTH, d))) for i in range(0, max(1, d - STRIDE), STRIDE)]
    loss = LeastSquares(standardized(features), standardized(b[:, None])[:, 0])
    terms = {"loss": loss, "penalty": penalty * OverlappingGroupNorm(groups, d)}
    return Composite(terms, name="overlapping group lasso")
