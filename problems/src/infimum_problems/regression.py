"""Linear regression: the lasso, the elastic net, nonnegative least squares."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from infimum.constraints import Nonnegative
from infimum.errors import InputError
from infimum.functions import L1, ElasticNet, LeastSquares
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
    terms = {"loss": _loss(data, "problems.lasso"), "penalty": L1(penalty)}
    return Composite(terms, name="lasso")


def elastic_net(
    data: Data = "diabetes", penalty: Annotated[float, Ge(0)] = 1.0, l1_ratio: Annotated[float, Ge(0), Le(1)] = 0.5
) -> Composite:
    """Least squares with the elastic net: minimize `||A x - b||^2 / (2 n) + penalty (r ||x||_1 + (1-r)/2 ||x||^2)`.

    r is `l1_ratio`. The columns of A are standardized (mean 0, standard deviation 1) and b is centered, so there is no
    intercept. diabetes is the set of 442 patients and 10 measurements of Efron et al. (2004), as shipped with
    scikit-learn, whose `ElasticNet(alpha=penalty, l1_ratio=r)` solves the same problem.

    Parameters
    ----------
    data : {"diabetes", "breast_cancer"} or mapping, default "diabetes"
        A data set that comes with scikit-learn, or your own: `{file: X.csv, target: column}`.
    penalty : float, default 1.0
        Weight of the penalty, at least 0.
    l1_ratio : float, default 0.5
        Share of the l1 norm, from 0 (ridge regression) to 1 (the lasso).

    Returns
    -------
    Composite
        Terms `loss` (gradient, prox) and `penalty` (prox); x has shape (d,), one coefficient a feature.

    Raises
    ------
    InputError
        For data that cannot be used, a negative penalty or a share outside of 0 to 1.
    """
    check_penalty(penalty, "problems.elastic_net")
    if not 0 <= l1_ratio <= 1:
        raise InputError(f"problems.elastic_net: l1_ratio={l1_ratio!r}; expected a number from 0 to 1")
    net = ElasticNet(l1=penalty * l1_ratio, l2=penalty * (1.0 - l1_ratio))
    return Composite({"loss": _loss(data, "problems.elastic_net"), "penalty": net}, name="elastic net")


def nonnegative_least_squares(data: Data = "diabetes") -> Composite:
    """Least squares with coefficients that are not negative: minimize `||A x - b||^2 / (2 n)` over `x >= 0`.

    The columns of A are standardized (mean 0, standard deviation 1) and b is centered, so there is no intercept.
    diabetes is the set of 442 patients and 10 measurements of Efron et al. (2004), as shipped with scikit-learn.

    Parameters
    ----------
    data : {"diabetes", "breast_cancer"} or mapping, default "diabetes"
        A data set that comes with scikit-learn, or your own: `{file: X.csv, target: column}`.

    Returns
    -------
    Composite
        Term `loss` (gradient, prox) and constraint `nonnegative` (project); x has shape (d,), one coefficient a
        feature.

    Raises
    ------
    InputError
        For data that cannot be used.
    """
    loss = _loss(data, "problems.nonnegative_least_squares")
    return Composite({"loss": loss}, constraints={"nonnegative": Nonnegative()}, name="nonnegative least squares")


def _loss(data: Data, what: str) -> LeastSquares:
    features, target = load(data)
    b = numbers(target, what)
    return LeastSquares(standardized(features), b - b.mean())
