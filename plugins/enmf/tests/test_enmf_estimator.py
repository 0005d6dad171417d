"""The scikit-learn estimator."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from infimum.errors import InputError
from infimum_enmf import ExteriorNMF, estimator, recipes
from infimum_enmf.stages import Machine

X = recipes.low_rank(60, 40, 5, 20.0, 1)


@pytest.fixture
def spy(monkeypatch):
    """(stage, relative error) of every step of the machine, with a clock that can be put forward."""
    seen, plain = [], Machine.advance

    class Clock:
        now, late_in = 0.0, None

        def perf_counter(self):
            return self.now

    clock = Clock()

    def advance(self, at):
        after = plain(self, at)
        seen.append((at.stage, after.error / self.data.norm))
        clock.now = 100.0 if at.stage == clock.late_in else clock.now
        return after

    monkeypatch.setattr(Machine, "advance", advance)
    monkeypatch.setattr(estimator, "time", clock)
    return seen, clock


@parametrize_with_checks([ExteriorNMF(max_iter=50)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_what_it_tells():
    model = ExteriorNMF(5).fit(X)
    W = model.transform(X)
    error = np.linalg.norm(X - model.inverse_transform(W))
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-8)
    assert model.svd_lower_bound_ <= model.relative_error_ * (1 + 1e-12)
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


@pytest.mark.parametrize("stage", ["start", "rotation", "mapping", "entry", "descent"])
def test_a_time_budget_bounds_all_stages(spy, stage):
    seen, clock = spy
    clock.late_in = stage
    model = ExteriorNMF(8, time_budget=50.0).fit(recipes.digits()[:200])
    assert [one for one, _ in seen].count(stage) == 1 and seen[-1][0] == stage
    assert model.status_ == ("time_budget" if stage == "descent" else "time_budget_before_feasible")
    assert model.components_.min() >= 0.0 and model.relative_error_ < 1.0
    # The weights are cut short too, and transform is not.
    finished = np.linalg.norm(recipes.digits()[:200] - model.inverse_transform(model.transform(recipes.digits()[:200])))
    assert finished < (1 - 1e-10) * model.reconstruction_err_


def test_a_time_budget_leaves_no_stage_out():
    assert ExteriorNMF(8, preset="paper", time_budget=0.0).fit(recipes.digits()[:300]).stage_times_.keys() == {
        "svd",
        "weights",
    }


def test_the_descent_goes_on_to_a_stationary_point():
    short, long = (ExteriorNMF(8, tol=tol).fit(recipes.digits()[:300]) for tol in (1e-6, 0.0))
    assert short.n_iter_ > 20 and short.kkt_residual_ < 1e-2
    assert long.relative_error_ <= short.relative_error_ < 1.001 * long.relative_error_


def test_a_target_error_ends_every_stage(spy):
    seen, _ = spy
    A = recipes.digits()[:200]
    ExteriorNMF(8, max_iter=5).fit(A)
    whole = list(seen)
    assert {stage for stage, _ in whole} == {"start", "rotation", "mapping", "entry", "descent"}
    for k in (0, len(whole) // 3, len(whole) - 1):
        seen.clear()
        target = whole[k][1] * (1 + 1e-9)
        model = ExteriorNMF(8, max_iter=5, target_error=target).fit(A)
        first = next(j for j, (_, error) in enumerate(whole) if error <= target)
        assert model.status_ == "target" and seen == whole[: first + 1]
        assert model.relative_error_ <= target


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_agree(dtype):
    A = np.where(np.median(X) > X, 0.0, X).astype(dtype)
    one, other = ExteriorNMF(4).fit(A), ExteriorNMF(4).fit(sparse.csr_matrix(A))
    assert one.components_.dtype == other.components_.dtype == dtype
    assert one.relative_error_ == pytest.approx(other.relative_error_, rel=2e-2)
    assert one.svd_lower_bound_ == pytest.approx(other.svd_lower_bound_, rel=1e-4)


def test_in_a_pipeline_and_a_search():
    model = make_pipeline(MinMaxScaler(clip=True), clone(ExteriorNMF(3, max_iter=20)), KNeighborsClassifier())
    labels = (X[:, 0] > np.median(X[:, 0])).astype(int)
    search = GridSearchCV(model, {"exteriornmf__n_components": [2, 4]}, cv=2, error_score="raise").fit(X, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.best_estimator_[1].components_) == search.best_params_["exteriornmf__n_components"]


def test_weights_of_a_row_do_not_depend_on_the_others():
    model = ExteriorNMF(5).fit(X)
    together = model.transform(X)
    for k in (0, 17, 59):
        np.testing.assert_allclose(model.transform(X[k : k + 1])[0], together[k], rtol=1e-10, atol=1e-12)


def test_other_shapes_are_refused_on_the_way_back():
    with pytest.raises(InputError, match="X has 4 columns; expected one for each of 3 components"):
        ExteriorNMF(3, max_iter=2).fit(X).inverse_transform(np.ones((2, 4)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_components": 41}, "n_components=41"),
        ({"n_components": 0}, "n_components=0"),
        ({"preset": "no"}, "preset='no'"),
        ({"time_budget": -1.0}, "time_budget=-1.0"),
        ({"time_budget": np.nan}, "time_budget=nan"),
        ({"time_budget": True}, "time_budget=True"),
        ({"target_error": "small"}, "target_error='small'"),
        ({"max_iter": "many"}, "max_iter='many'"),
        ({"max_iter": 2.5}, "max_iter=2.5: expected a whole number"),
        ({"tol": None}, "tol=None"),
        ({"kkt_tol": -1.0}, "kkt_tol=-1.0"),
        ({"rotation_steps": "many"}, "rotation_steps='many'"),
        ({"rotation_tol": np.nan}, "rotation_tol=nan"),
        ({"rho": np.inf}, "rho=inf"),
        ({"inner": 1.5}, "inner=1.5: expected a whole number >= 1"),
        ({"entry_steps": -1}, "entry_steps=-1"),
        ({"mapping_steps": True}, "mapping_steps=True"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(InputError, match=said):
        ExteriorNMF(**options).fit(X)


def test_negative_data_is_refused_in_transform():
    with pytest.raises(ValueError, match="1 negative"):
        ExteriorNMF(2).fit(X).transform(np.where(np.arange(40) == 3, -1.0, 1.0)[None])
