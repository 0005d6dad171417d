"""The run file of the pairing: values only, CoCD for the loss and HJ-Prox for the penalty, against CVXPY."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from infimum.runfile import RunFile

FILE = Path(__file__).resolve().parents[1] / "runs" / "black-box-logistic.yaml"

pytestmark = pytest.mark.skipif(
    find_spec("infimum_hjprox") is None, reason="infimum-hjprox, whose prox the run file names, is not installed"
)


def reference(problem):
    """The optimal value, from data and formulas that the run never sees."""
    cvxpy = pytest.importorskip("cvxpy")
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    A = (2.0 * y - 1.0)[:, None] * (X - X.mean(axis=0)) / X.std(axis=0)
    w = cvxpy.Variable(A.shape[1])
    loss = cvxpy.sum(cvxpy.logistic(-A @ w)) / len(A)
    model = cvxpy.Problem(cvxpy.Minimize(loss + 0.02 * cvxpy.sum_largest(cvxpy.abs(w), 5)))
    model.solve()
    assert problem.value(w.value) == pytest.approx(model.value, rel=1e-4)
    return model.value


def test_values_alone_come_within_a_hundredth_of_the_reference():
    run = RunFile.load(FILE).prepare()
    best = reference(run.problem)
    assert all(term.body.capabilities == {"value", "values"} for term in run.problem.terms)
    text = str(run.plan)
    assert "cocd.coherent" in text and "hjprox.prox" in text
    result = run.solve()
    assert result.exactness == "stochastic"
    assert 0 <= result.value - best <= 1e-2 * best
    assert 0 <= result.tail_value - best <= 1e-2 * best
    assert np.count_nonzero(result.x) == 30
