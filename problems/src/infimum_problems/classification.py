"""Sparse logistic regression."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge

from infimum.functions import L1, Logistic
from infimum.problem import Composite
from infimum_problems.data import Data, check_penalty, load, signs, standardized


def sparse_logistic(
    data: Data = "breast_cancer", penalty: Annotated[float, Ge(0)] = 1e-2, intercept: bool = True
) -> Composite:
    """Logistic regression with an l1 penalty: minimize `mean(log(1 + exp(-y_i <a_i, w>))) + penalty ||w||_1`.

    The features are standardized (mean 0, standard deviation 1); the intercept, the last entry of w, is not penalized.
    breast_cancer is the Wisconsin diagnostic set of 569 tumors and 30 measurements (Street, Wolberg, Mangasarian,
    1993), as shipped with scikit-learn; +1 is benign.

    Parameters
    ----------
    data : {"breast_cancer", "diabetes"} or mapping, default "breast_cancer"
        A data set that comes with scikit-learn, or your own: `{file: X.csv, target: column}`. The target must have two
        different values, numbers or text; the larger one in sorted order is +1.
    penalty : float, default 1e-2
        Weight of the l1 norm, at least 0.
    intercept : bool, default True
        Append a column of ones to the features.

    Returns
    -------
    Composite
        Terms `loss` (gradient) and `penalty` (prox); w has shape (d + 1,), or (d,) without intercept.

    Raises
    ------
    InputError
        For data that cannot be used, or a negative penalty.
    """
    check_penalty(penalty, "problems.sparse_logistic")
    features, target = load(data)
    y = signs(target, "problems.sparse_logistic")
    A, weights = standardized(features), np.ones(features.shape[1])
    if intercept:
        A, weights = np.column_stack([A, np.ones(len(y))]), np.append(weights, 0.0)
    return Composite({"loss": Logistic(A, y), "penalty": L1(penalty * weights)}, name="sparse logistic regression")
