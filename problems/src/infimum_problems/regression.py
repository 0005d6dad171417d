"""The lasso."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

from infimum.functions import L1, LeastSquares
from infimum.problem import Composite
from infimum_problems.data import Data, check_penalty, load, numbers, standardized


def lasso(data: Data = "diabetes", penalty: Annotated[float, Ge(0)] = 1.0) -> Composite:
    """Least squares with an l1 penalty: minimize `||A x - b||^2 / (2 n) + penalty ||x||_1`.

    The columns of A are standardized (mean 0, standard deviation 1) and b is centered, so there is no intercept.
    diabetes is the set of 442 patients and 10 measurements of Efron et al. (2004), as shipped with scikit-learn.

    Parameters
    ----------
    data : {"diabetes", "breast_cancer"} or mapping, default "diabetes"
        A data set that comes with scikit-learn, or your own: `{file: X.csv, target: column}`.
    penalty : float, default 1.0
        Weight of the l1 norm, at least 0.

    Returns
    -------
    Composite
        Terms `loss` (gradient, prox) and `penalty` (prox); x has shape (d,), one coefficient a feature.

    Raises
    ------
    InputError
        For data that cannot be used, or a negative penalty.
    """
    check_penalty(penalty, "problems.lasso")
    features, target = load(data)
    b = numbers(target, "problems.lasso")
    terms = {"loss": LeastSquares(standardized(features), b - b.mean()), "penalty": L1(penalty)}
    return Composite(terms, name="lasso")
