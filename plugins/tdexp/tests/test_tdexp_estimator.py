"""The estimator: values as those of the model, in one go and in pieces, and scikit-learn's own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infimum.errors import InputError
from infimum_tdexp import Stream, garnet
from infimum_tdexp.transitions import Request

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from infimum_tdexp.estimator import TDPolicyEvaluator


def path(steps: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Features, rewards and next features of one path of a garnet with gamma 0.9."""
    process: Any = garnet().process
    batch = process.transitions(Request(2, 0, steps, 1))
    phi = batch.phi[:, 0]
    return process, phi, batch.reward[:, 0], (batch.psi[:, 0] + phi) / 0.9


def test_values_are_those_of_the_model() -> None:
    process, phi, rewards, after = path(20_000)
    expected = process.features @ process.w_star
    for method in ("td", "lstd"):
        found = TDPolicyEvaluator(0.9, method).fit(phi, rewards, after).predict(process.features)
        assert process.mu @ (found - expected) ** 2 < 1e-2
    # Rows that follow each other say the same.
    one = TDPolicyEvaluator(0.9).fit(phi, rewards)
    other = TDPolicyEvaluator(0.9).fit(phi[:-1], rewards[:-1], phi[1:])
    assert np.array_equal(one.coef_, other.coef_)


def test_a_stream_is_its_arrays_and_scaling_changes_no_value() -> None:
    _, phi, rewards, after = path(3000)
    ended = np.arange(3000) % 50 == 49
    arrays = TDPolicyEvaluator(0.9).fit(phi, rewards, after, ended)
    record = TDPolicyEvaluator(0.9).fit(Stream(phi, rewards, after, ended, 0.9))
    np.testing.assert_allclose(arrays.coef_, record.coef_, rtol=1e-12)
    largest = np.linalg.norm(phi, axis=1).max()
    scaled = TDPolicyEvaluator(0.9).fit(40 * phi / largest, rewards, 40 * after / largest, ended)
    plain = TDPolicyEvaluator(0.9).fit(phi / largest, rewards, after / largest, ended)
    np.testing.assert_allclose(scaled.predict(40 * phi), plain.predict(phi), rtol=1e-9)


def test_pieces_add_up() -> None:
    _, phi, rewards, after = path(4000)
    for method in ("td", "lstd"):
        whole = TDPolicyEvaluator(0.9, method).partial_fit(phi, rewards, after)
        pieces = TDPolicyEvaluator(0.9, method)
        for part in np.split(np.arange(4000), [100, 101, 2500]):
            pieces.partial_fit(phi[part], rewards[part], after[part])
        # The largest norm, by which features are divided, is that of the first piece.
        pieces._scale = whole._scale
        np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-6)
        assert pieces.n_transitions_ == 4000
    again = clone(whole).fit(phi, rewards, after)
    assert np.array_equal(again.coef_, whole.fit(phi, rewards, after).coef_)


@pytest.mark.parametrize(
    ("options", "more", "said"),
    [
        ({"gamma": 1.0}, {}, "gamma must be in"),
        ({"eta0": 0.0}, {}, "eta0 must be"),
        ({"method": "q"}, {}, "expected 'td' or 'lstd'"),
        ({"lam": -1}, {}, "lam must be a finite number >= 0"),
        ({"scale_features": False}, {}, "max .* = 3 > 1"),
        ({}, {"terminated": [1, 0, 0]}, "a boolean for each of 3 rows"),
        ({}, {"terminated": "no"}, "a boolean for each of 3 rows"),
        ({}, {"next_X": np.zeros((2, 1))}, "next_X must have the shape of X"),
        ({"eta0": 1e6}, {"next_X": np.full((3, 1), 3.0)}, None),
    ],
)
def test_bad_input_is_refused(options: Any, more: Any, said: str | None) -> None:
    X, y = np.full((3, 1), 3.0), np.ones(3)
    if said is None:
        X, y, more = np.ones((9, 1)), np.ones(9), {}
        said = "weights passed 1e"
    with pytest.raises(InputError, match=said):
        TDPolicyEvaluator(**options).fit(X, y, **more)


def test_later_pieces_are_checked_like_the_first() -> None:
    X = np.eye(3)
    found = TDPolicyEvaluator(scale_features=False).partial_fit(X, np.ones(3))
    with pytest.raises(InputError, match=r"max .* = 9 > 1"):
        found.partial_fit(9 * X, np.ones(3))
    with pytest.raises(InputError, match="target y is None"):
        found.partial_fit(X)


@parametrize_with_checks([TDPolicyEvaluator(gamma=0.5)])
def test_scikit_learn_finds_nothing(estimator: Any, check: Any) -> None:
    check(estimator)
