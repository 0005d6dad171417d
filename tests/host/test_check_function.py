"""`check_function` and its kin: closed forms pass, every planted mistake is named with its numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from infimum import Composite, InputError
from infimum.constraints import Box, Constraint, Nonnegative
from infimum.functions import (
    KL,
    L1,
    L2,
    L21,
    TV1D,
    ElasticNet,
    Entropy,
    Function,
    GroupLasso,
    Hinge,
    Huber,
    LeastSquares,
    Linf,
    Logistic,
    Map,
    NuclearNorm,
    Quadratic,
    SquaredL2,
    finite_difference,
)
from infimum.testing import Report, check_constraint, check_function, check_map, check_problem

RNG = np.random.default_rng(11)
A = RNG.standard_normal((12, 5))
B = RNG.standard_normal(12)
SIGNS = np.where(B > 0, 1.0, -1.0)
M = RNG.standard_normal((5, 5))
P = M @ M.T + np.eye(5)
X = RNG.standard_normal(5)

CLOSED_FORMS: dict[str, tuple[Function, np.ndarray]] = {
    "least squares": (LeastSquares(A, B), X),
    "logistic": (Logistic(A, SIGNS), X),
    "quadratic": (Quadratic(P, X), X),
    "l1": (L1(0.3), X),
    "l2": (L2(), X),
    "linf": (Linf(), X),
    "elastic net": (ElasticNet(1.0, 2.0), X),
    "huber": (Huber(0.7), X),
    "squared l2": (SquaredL2(), X),
    "entropy": (Entropy(), np.ones(5)),
    "kl": (KL(np.abs(B)), np.ones(12)),
    "hinge": (Hinge(SIGNS), B),
    "tv": (TV1D(), B),
    "group lasso": (GroupLasso([[0, 1], [2, 4]]), X),
    "nuclear norm": (NuclearNorm(), RNG.standard_normal((4, 3))),
    "l21": (L21(axis=1), RNG.standard_normal((4, 3))),
    "sum": (LeastSquares(A, B) + 0.1 * SquaredL2(), X),
    "composed": (Huber() @ A, X),
    "translated": (2.0 * L1().translate(np.ones(5)), X),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms_pass(name: str, dtype: type) -> None:
    f, x = CLOSED_FORMS[name]
    report = check_function(f, x.astype(dtype))
    assert report.ok, report
    assert {"form", "purity"} < set(report.checked)


@pytest.mark.parametrize("name", ["least squares", "l1", "huber", "composed"])
def test_torch_points_are_checked_too(name: str) -> None:
    torch = pytest.importorskip("torch")
    f, x = CLOSED_FORMS[name]
    assert check_function(f, torch.as_tensor(x)).ok


class Changed(LeastSquares):
    """Least squares with one thing changed, by name."""

    def __init__(self, change: str) -> None:
        super().__init__(A, B)
        self.change = change
        self.calls = 0
        self.buffer: Any = np.zeros(5)
        if change == "strongly_convex":
            self.strongly_convex = 1.5 * float(np.linalg.eigvalsh(A.T @ A / 12)[0])

    def to(self, x: Any) -> Function:
        return self

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return super().lipschitz * {"lipschitz": 0.9, "wasteful": 50.0}.get(self.change, 1.0)

    def value(self, x: Any) -> float:
        value = super().value(x)
        if self.change == "input":
            x += 1.0
        return value

    def values(self, X: Any) -> Any:
        return super().values(X) * (1.1 if self.change == "values" and len(X) > 1 else 1.0)

    def gradient(self, x: Any) -> Any:
        g = super().gradient(x)
        self.calls += 1
        if self.change == "factor":
            return 2.0 * g
        if self.change == "coordinate":
            return g + np.array([0.0, 0.0, 0.0, 1.0, 0.0])
        if self.change == "dtype":
            return g.astype(np.float32)
        if self.change == "shape":
            return g[:, None]
        if self.change == "state":
            return g * (1.0 + 1e-6 * self.calls)
        if self.change == "buffer":
            self.buffer[:] = g
            return self.buffer
        return g

    def value_and_gradient(self, x: Any) -> Any:
        value, g = super().value_and_gradient(x)
        return (value + (0.5 if self.change == "pair" else 0.0)), g

    def hvp(self, x: Any, v: Any) -> Any:
        return super().hvp(x, v) * (0.5 if self.change == "hvp" else 1.0)

    def jvp(self, x: Any, v: Any) -> Any:
        return super().jvp(x, v) * (-1.0 if self.change == "jvp" else 1.0)

    def vjp(self, x: Any, u: Any) -> Any:
        return super().vjp(x, u) * (2.0 if self.change == "vjp" else 1.0)

    def prox(self, v: Any, t: float) -> Any:
        return super().prox(v, {"prox": 2.0, "prox half": 0.5}.get(self.change, 1.0) * t)


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        ("factor", "gradient", "off by the factor 2"),
        ("coordinate", "gradient", r"gradient\[3\] = .*, central differences"),
        ("dtype", "form", "gradient returns .*float32"),
        ("shape", "form", r"gradient returns \(5, 1\)"),
        ("state", "purity", "it keeps state"),
        ("buffer", "purity", "was changed by its next call"),
        ("input", "input unchanged", "value changed its argument"),
        ("pair", "value_and_gradient", "value differs"),
        ("values", "values", r"values\(X\)\[0\]"),
        ("hvp", "hvp", "differences"),
        ("jvp", "jvp", "differences"),
        ("vjp", "vjp", "<u, J v>"),
        ("prox", "prox", "no minimizer"),
        ("prox half", "prox", "no minimizer"),
        ("lipschitz", "lipschitz", "too small"),
        ("strongly_convex", "strongly_convex", "too large"),
    ],
)
def test_a_mistake_is_named(change: str, check: str, words: str) -> None:
    report = check_function(Changed(change), X)
    assert not report.ok
    found = report.of(check)
    assert found, report
    assert re.search(words, found[0].message), found[0].message


def test_without_a_mistake_the_same_class_passes() -> None:
    assert check_function(Changed(""), X).ok


def test_both_numbers_of_the_worst_coordinate_are_kept() -> None:
    found = check_function(Changed("coordinate"), X).of("gradient")[0]
    assert found.values["coordinate"] == "[3]"
    assert found.values["claimed"] - found.values["measured"] == pytest.approx(1.0, abs=1e-6)


def test_a_wasteful_constant_is_a_note() -> None:
    report = check_function(Changed("wasteful"), X)
    assert report.ok and [one.check for one in report.notes] == ["lipschitz"]
    assert "needlessly small" in str(report)


def test_many_coordinates_are_sampled_and_directions_see_the_rest() -> None:
    n, bad = 400, 17

    def gradient(x: np.ndarray) -> np.ndarray:
        g = 2.0 * x
        g[bad] += 50.0
        return g

    report = check_function(Function(lambda x: float(x @ x), gradient=gradient), np.ones(n))
    assert report.of("gradient")


def test_false_convexity_is_found_with_and_without_a_gradient() -> None:
    saddle = np.diag([1.0, 1.0, -0.05])
    smooth = Function(lambda x: float(x @ saddle @ x), gradient=lambda x: 2 * saddle @ x, convex=True)
    report = check_function(smooth, np.ones(3))
    assert report.of("convex") and "curvature" in report.of("convex")[0].message
    rough = Function(lambda x: float(np.sqrt(np.abs(x)).sum()), convex=True)
    assert check_function(rough, np.ones(3)).of("convex")


def test_a_modulus_is_checked_without_a_gradient() -> None:
    good = Function(lambda x: float(np.abs(x).sum() + x @ x), convex=True, strongly_convex=2.0)
    assert check_function(good, X).ok
    bad = Function(lambda x: float(np.abs(x).sum() + x @ x), convex=True, strongly_convex=2.2)
    assert check_function(bad, X).of("strongly_convex")


def test_a_wrong_conjugate_prox_is_found() -> None:
    f = Function(
        lambda x: float(np.abs(x).sum()),
        prox=lambda v, t: np.sign(v) * np.maximum(np.abs(v) - t, 0.0),
        prox_conjugate=lambda v, s: np.clip(v, -s, s),
        convex=True,
    )
    assert [one.check for one in check_function(f, X).errors] == ["prox_conjugate"]


def test_a_sampled_gradient_must_use_its_generator_and_be_unbiased() -> None:
    def biased(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return 2 * x + 1.0 + 0.1 * rng.standard_normal(x.shape)

    f = Function(lambda x: float(x @ x), gradient=lambda x: 2 * x, sample_gradient=biased)
    assert "mean of 256 samples" in check_function(f, X).of("sample_gradient")[0].message
    own = np.random.default_rng(0)
    g = Function(lambda x: 0.0, sample_gradient=lambda x, rng: own.standard_normal(x.shape))
    assert "draws elsewhere" in check_function(g, X).of("sample_gradient")[0].message


class WrongAdjoint(Map):
    """A matrix whose adjoint is that of another."""

    shape = (12, 5)

    def __init__(self, norm: float | None = None) -> None:
        self._norm = float(np.linalg.norm(A, 2)) if norm is None else norm

    def forward(self, x: Any) -> Any:
        return A @ x

    def adjoint(self, y: Any) -> Any:
        return 1.01 * (A.T @ y)

    @property
    def norm(self) -> float:
        return self._norm


class RightAdjoint(WrongAdjoint):
    def adjoint(self, y: Any) -> Any:
        return A.T @ y


def test_a_wrong_adjoint_is_found_in_the_map_and_inside_of_a_function() -> None:
    found = check_map(WrongAdjoint(), X).of("adjoint")[0]
    assert found.values["right"] == pytest.approx(1.01 * found.values["left"])
    assert check_map(RightAdjoint(), X).ok
    for f in (L1() @ WrongAdjoint(), 2.0 * (L1() @ WrongAdjoint()), Huber() @ WrongAdjoint() + SquaredL2()):
        report = check_function(f, X)
        assert report.of("adjoint"), report


def test_norms_too_small_and_too_large() -> None:
    exact = float(np.linalg.norm(A, 2))
    assert "too small" in check_map(RightAdjoint(0.9 * exact), X).of("norm")[0].message
    wide = check_map(RightAdjoint(100.0 * exact), X)
    assert wide.ok and wide.notes


@pytest.mark.parametrize("operator", [A, finite_difference(5), 3.0, np.linalg.qr(A)[0].T])
def test_right_maps_pass(operator: Any) -> None:
    x = X if getattr(operator, "shape", (0, 5))[1] == 5 else B
    assert check_map(operator, x).ok


def test_a_function_that_raises_is_a_finding() -> None:
    def gradient(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("no luck")

    report = check_function(Function(lambda x: 0.0, gradient=gradient), X)
    assert any("RuntimeError: no luck" in one.message for one in report.errors)


def test_it_raises_when_asked() -> None:
    with pytest.raises(InputError, match="off by the factor 2"):
        check_function(Changed("factor"), X, raise_=True)
    assert isinstance(check_function(Changed(""), X, raise_=True), Report)


def test_plain_callables_and_bad_points() -> None:
    assert check_function(lambda x: float(x @ x), [1.0, 2.0]).ok
    with pytest.raises(InputError, match="finite"):
        check_function(L1(), [1.0, np.nan])
    with pytest.raises(InputError, match="expected a Function"):
        check_function(3, [1.0])  # type: ignore[arg-type]
    outside = check_function(Function(lambda x: float("nan")), X)
    assert not outside.ok and "where f is finite" in str(outside)


class Disk(Constraint):
    """The unit ball, with a change."""

    provides = ("violation", "project", "step")
    convex = True

    def __init__(self, change: str = "") -> None:
        self.change = change

    def violation(self, x: Any) -> float:
        size = float(np.linalg.norm(x))
        if self.change == "violation" and size > 3.0:
            return 0.0
        return max(size - 1.0, 0.0)

    def project(self, x: Any) -> Any:
        size = float(np.linalg.norm(x))
        if self.change == "outside":
            return x / max(size / 1.1, 1.0)
        if self.change == "far":
            return -x / size if size > 1.0 else x
        if self.change == "drift":
            return 0.9 * x / max(size, 1.0)
        return x / max(size, 1.0)

    def step(self, x: Any, d: Any) -> Any:
        return x + d if self.change == "step" else self.project(x + d)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("violation", "violation"),
        ("outside", "project"),
        ("far", "nearest"),
        ("drift", "project"),
        ("step", "step"),
    ],
)
def test_a_wrong_set_is_found(change: str, check: str) -> None:
    report = check_constraint(Disk(change), X)
    assert report.of(check), report


def test_right_sets_pass() -> None:
    for c in (Disk(), Box(-1.0, 1.0), Box(upper=2.0), Nonnegative()):
        assert check_constraint(c, X).ok


class Sphere(Constraint):
    """The unit sphere with its tangent projector, or with one of another norm."""

    provides = ("violation", "project", "tangent")

    def __init__(self, tilt: float = 0.0) -> None:
        self.tilt = tilt

    def violation(self, x: Any) -> float:
        return abs(float(np.linalg.norm(x)) - 1.0)

    def project(self, x: Any) -> Any:
        return x / np.linalg.norm(x)

    def tangent(self, x: Any, g: Any) -> Any:
        normal = x + self.tilt
        return g - (g @ x) / (normal @ x) * normal


def test_a_tangent_must_be_an_orthogonal_projector() -> None:
    assert check_constraint(Sphere(), X).ok
    assert "not orthogonal" in check_constraint(Sphere(0.3), X).of("tangent")[0].message


def test_every_term_of_a_problem_is_checked_in_its_block() -> None:
    problem = Composite(
        {"fit": SquaredL2() @ {"a": A, "b": 1.0}, "penalty": L1()},
        constraints={"box": Box(-1.0, 1.0)},
        blocks={"a": (5,), "b": (12,)},
        on={"penalty": "a", "box": "b"},
    )
    reports = check_problem(problem)
    assert [one.ok for one in reports] == [True, True, True]
    assert "term 'penalty'" in str(reports[1]) and "constraint 'box'" in str(reports[2])


USERS_FILE = """
import numpy as np
from infimum import Composite
from infimum.functions import Function, L1, Map

A = np.arange(6.0).reshape(3, 2)

class Wrong(Map):
    shape = (3, 2)
    norm = 8.0
    def forward(self, x): return A @ x
    def adjoint(self, y): return -(A.T @ y)

smooth = Function(lambda x: float(x @ x), gradient=lambda x: {factor} * x, lipschitz=2.0)
good = Composite({{"f": smooth, "g": L1()}}, start=np.ones(2))
bad = Composite({{"f": smooth, "g": L1() @ Wrong()}}, start=np.ones(2))
"""


@pytest.mark.parametrize(
    ("factor", "problem", "code", "words"),
    [
        ("2.0", "good", 0, "nothing wrong"),
        ("4.0", "good", 2, "off by the factor 2"),
        ("2.0", "bad", 2, "the adjoint is not that of the map"),
    ],
)
def test_check_numerics_in_the_command_line(tmp_path: Path, factor: str, problem: str, code: int, words: str) -> None:
    from infimum.cli.app import app

    module = f"users_{problem}_{factor[0]}"
    (tmp_path / f"{module}.py").write_text(USERS_FILE.format(factor=factor), encoding="utf-8")
    file = tmp_path / "run.yaml"
    file.write_text(
        f"problem: {{use: 'python:{module}:{problem}'}}\nstopping: max_iter(5)\nseed: 1\n", encoding="utf-8"
    )
    done = CliRunner().invoke(app, ["check", "--numerics", str(file)])
    assert done.exit_code == code, done.output
    assert words in done.output


def test_the_checks_need_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import infimum.testing as t; print(sorted(t.__all__)[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
