"""Classification: sparse logistic regression, the dual of the support vector machine."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.constraints import Affine, Box
from infimum.errors import InputError
from infimum.functions import L1, Logistic, Quadratic
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


def svm_dual(
    data: Data = "breast_cancer",
    C: Annotated[float, Gt(0)] = 1.0,
    kernel: Literal["rbf", "linear"] = "rbf",
    gamma: Annotated[float, Gt(0)] | None = None,
) -> Composite:
    """The dual of the support vector machine: minimize `a^T Q a / 2 - sum(a)` over `0 <= a <= C`, `<y, a> = 0`.

    `Q_ij = y_i y_j k(x_i, x_j)` with the kernel `exp(-gamma ||x - z||^2)` or `<x, z>`. The features are standardized
    (mean 0, standard deviation 1). breast_cancer is the Wisconsin diagnostic set of 569 tumors and 30 measurements
    (Street, Wolberg, Mangasarian, 1993), as shipped with scikit-learn, whose `SVC(C=C, kernel=kernel, gamma=gamma)`
    solves the same problem.

    Parameters
    ----------
    data : {"breast_cancer", "diabetes"} or mapping, default "breast_cancer"
        A data set that comes with scikit-learn, or your own: `{file: X.csv, target: column}`. The target must have two
        different values, numbers or text; the larger one in sorted order is +1.
    C : float, default 1.0
        Upper bound of every multiplier: the weight of the hinge loss of one sample.
    kernel : {"rbf", "linear"}, default "rbf"
        The two kernels above.
    gamma : float, optional
        Of the kernel "rbf". None means 1 / d for d features.

    Returns
    -------
    Composite
        Term `dual` (gradient, prox), constraints `box` and `balance` (project); a has shape (n,), one multiplier a
        sample.

    Raises
    ------
    InputError
        For data that cannot be used, or C or gamma not positive and finite.
    """
    what = "problems.svm_dual"
    for name, number in (("C", C), ("gamma", 1.0 if gamma is None else gamma)):
        if not 0 < number < float("inf"):
            raise InputError(f"{what}: {name}={number!r}; expected a finite number > 0")
    features, target = load(data)
    y, X = signs(target, what), standardized(features)
    Q = (y[:, None] * y) * _kernel(X, kernel, gamma)
    n = len(y)
    return Composite(
        {"dual": Quadratic(Q, -np.ones(n), convex=True)},
        constraints={"box": Box(lower=0.0, upper=C), "balance": Affine(y[None, :], np.zeros(1))},
        name="SVM dual",
    )


def _kernel(X: np.ndarray, kernel: str, gamma: float | None) -> np.ndarray:
    """The symmetric matrix of `k(x_i, x_j)`."""
    gram: np.ndarray = X @ X.T
    gram = 0.5 * (gram + gram.T)
    if kernel == "linear":
        return gram
    if kernel != "rbf":
        raise InputError(f"problems.svm_dual: kernel={kernel!r}; expected 'rbf' or 'linear'")
    square = np.diag(gram)
    distance = np.maximum(square[:, None] + square - 2.0 * gram, 0.0)
    similar: np.ndarray = np.exp(-(1.0 / X.shape[1] if gamma is None else gamma) * distance)
    return similar
