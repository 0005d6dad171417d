"""The run file that takes a constraint, a gradient and two stopping rules from four plugins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from infimum.runfile import RunFile
from infimum.status import Status

FILE = Path(__file__).resolve().parents[1] / "runs" / "components-from-values.yaml"


def test_four_plugins_serve_one_run() -> None:
    for one in ("pogo", "cocd", "cpd", "costbo"):
        pytest.importorskip(f"infimum_{one}")
    run = RunFile.load(FILE).prepare()
    plan = str(run.describe())
    for said in ("pogo.pogo", "by oracle cocd.coherent", "stiefel", "cpd.cusum(", "costbo.gss("):
        assert said in plan, plan
    result = run.solve()
    assert result.status is Status.stalled and "the mean of change of value has risen" in result.message
    assert 160 < result.extras["cpd.cusum"]["alarms"][0][0] == result.iterations
    pixels = load_digits().data - load_digits().data.mean(axis=0)
    spectrum = np.linalg.svd(pixels, compute_uv=False) ** 2
    assert result.value == pytest.approx(-0.5 * spectrum[:4].sum() / spectrum[0], rel=1e-4)
    np.testing.assert_allclose(result.x @ result.x.T, np.eye(4), atol=1e-9)
