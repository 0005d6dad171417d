"""The scikit-learn estimator."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from infimum.errors import InputError
from infimum_enmf import ExteriorNMF, recipes

X = recipes.low_rank(60, 40, 5, 20.0, 1)


@parametrize_with_checks([ExteriorNMF(max_iter=200)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_what_it_tells():
    model = ExteriorNMF(5).fit(X)
    W = model.transform(X)
    error = np.linalg.norm(X - model.inverse_transform(W))
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-8)
    assert model.svd_lower_bound_ <= model.relative_error_
    assert model.kkt_residual_ < 1e-3 and model.status_ in ("kkt", "stalled", "global")
    assert {"svd", "rotation"} <= set(model.stage_times_)
    assert list(model.get_feature_names_out()) == [f"exteriornmf{k}" for k in range(5)]


def test_fit_and_transform_agree():
    model = ExteriorNMF(5)
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X), rtol=1e-10)


def test_a_certificate():
    model = ExteriorNMF(6).fit(recipes.low_rank(120, 120, 6, 40.0, 1))
    assert model.is_global_ and model.status_ == "global"
    assert not ExteriorNMF(8).fit(recipes.digits()[:100]).is_global_


def test_a_time_budget_bounds_all_stages():
    model = ExteriorNMF(8, preset="paper", time_budget=0.0).fit(recipes.digits()[:300])
    assert model.status_ == "time_budget_before_feasible"
    assert set(model.stage_times_) == {"svd"} and model.components_.min() >= 0.0


def test_the_descent_goes_on_to_a_stationary_point():
    short, long = (ExteriorNMF(8, tol=tol).fit(recipes.digits()[:300]) for tol in (1e-6, 0.0))
    assert short.n_iter_ > 20 and short.kkt_residual_ < 1e-2
    assert long.relative_error_ <= short.relative_error_ < 1.001 * long.relative_error_


def test_a_target_error():
    model = ExteriorNMF(5, target_error=0.5).fit(X)
    assert model.status_ == "target" and model.n_iter_ == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_agree(dtype):
    A = np.where(np.median(X) > X, 0.0, X).astype(dtype)
    one, other = ExteriorNMF(4).fit(A), ExteriorNMF(4).fit(sparse.csr_matrix(A))
    assert one.components_.dtype == other.components_.dtype == dtype
    assert one.relative_error_ == pytest.approx(other.relative_error_, rel=2e-2)
    assert one.svd_lower_bound_ == pytest.approx(other.svd_lower_bound_, rel=1e-4)


def test_in_a_pipeline():
    model = make_pipeline(MinMaxScaler(), clone(ExteriorNMF(3)))
    assert model.fit_transform(X).shape == (60, 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_components": 41}, "rank=41"),
        ({"n_components": 0}, "rank=0"),
        ({"preset": "no"}, "preset='no'"),
        ({"time_budget": -1.0}, "time_budget=-1.0"),
        ({"max_iter": "many"}, "max_iter='many'"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(InputError, match=said):
        ExteriorNMF(**options).fit(X)


def test_negative_data_is_refused_in_transform():
    with pytest.raises(ValueError, match="1 negative"):
        ExteriorNMF(2).fit(X).transform(np.where(np.arange(40) == 3, -1.0, 1.0)[None])
