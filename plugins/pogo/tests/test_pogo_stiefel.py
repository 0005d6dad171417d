"""The constraint: what it offers, in all layouts, and what it refuses; without torch too."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.functions import Function
from infimum.testing import check_constraint
from infimum_pogo import Stiefel, determinant_signs
from infimum_pogo.stiefel import to_complex, to_real

LAYOUTS = {
    "rows": (Stiefel(), (3, 5)),
    "batch": (Stiefel(), (4, 2, 3)),
    "columns": (Stiefel(rows=False), (4, 5, 3)),
    "short side": (Stiefel(rows="auto"), (5, 3)),
    "square": (Stiefel(), (4, 4)),
    "packed": (Stiefel(packed=True), (2, 3, 4, 2)),
    "packed columns": (Stiefel(rows=False, packed=True), (4, 3, 2)),
    "kernel": (Stiefel(flatten=True), (4, 2, 3, 3)),
    "small kernel": (Stiefel(rows="auto", flatten=True), (16, 1, 3, 3)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_everything_it_offers_fits_together(name: str, library: str) -> None:
    constraint, shape = LAYOUTS[name]
    x: Any = np.random.default_rng(0).standard_normal(shape)
    if library == "torch":
        x = pytest.importorskip("torch").as_tensor(x)
    report = check_constraint(constraint, x)
    assert report.ok, report


@pytest.mark.parametrize("name", LAYOUTS)
def test_matrices_and_back(name: str) -> None:
    constraint, shape = LAYOUTS[name]
    x = constraint.project(np.random.default_rng(1).standard_normal(shape))
    X = constraint.matrices(x)
    assert X.ndim == 3 and X.shape[-2] <= X.shape[-1]
    assert np.allclose(X @ X.conj().mT, np.eye(X.shape[-2]), atol=1e-13)
    assert np.array_equal(constraint.assemble(X, x), x)


def test_columns_are_rows_of_the_transpose_for_complex_matrices_too() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 5, 3)) + 1j * rng.standard_normal((2, 5, 3))
    g = rng.standard_normal((2, 5, 3)) + 1j * rng.standard_normal((2, 5, 3))
    tall, wide = Stiefel(rows=False), Stiefel()
    here = tall.project(x)
    assert np.allclose(here.conj().mT @ here, np.eye(3), atol=1e-13)
    for one in ("tangent", "step"):
        assert np.allclose(getattr(tall, one)(here, g), getattr(wide, one)(here.mT, g.mT).mT, atol=1e-13)


def test_projection_is_the_nearest_of_many() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3, 5))
    best = np.linalg.norm(x - Stiefel().project(x))
    others = Stiefel().project(rng.standard_normal((500, 3, 5)))
    near = Stiefel().project(Stiefel().project(x) + 0.1 * rng.standard_normal((500, 3, 5)))
    assert best <= np.linalg.norm(others - x, axis=(1, 2)).min() + 1e-12
    assert best <= np.linalg.norm(near - x, axis=(1, 2)).min() + 1e-12


def test_steps_of_any_length_stay_on_the_set() -> None:
    rng = np.random.default_rng(4)
    x = Stiefel().project(rng.standard_normal((7, 3, 5)))
    for size in (1e-8, 1e-2, 1.0, 4.0, 1e4, 1e9):
        assert Stiefel().violation(Stiefel().step(x, size * rng.standard_normal(x.shape))) < 1e-12


def test_violation_is_zero_up_to_the_rounding_of_the_dtype() -> None:
    rng = np.random.default_rng(5)
    for kind in (np.float32, np.float64):
        x = Stiefel().project(rng.standard_normal((64, 64))).astype(kind)
        assert Stiefel().violation(x) == 0.0 and Stiefel().violation(1.01 * x) > 0.05


def test_nan_is_told_not_hidden() -> None:
    x = np.full((2, 3), np.nan)
    assert np.isnan(Stiefel().violation(x)) and np.isnan(Stiefel().project(x)).all()
    assert np.isnan(Stiefel().step(np.eye(2, 3), x)).all()


def test_packed_points_share_memory_with_complex_ones() -> None:
    x = np.zeros((2, 3, 2))
    assert np.shares_memory(x, to_complex(x)) and np.shares_memory(to_complex(x), to_real(to_complex(x)))
    x[0, 1] = (3.0, -2.0)
    assert to_complex(x)[0, 1] == 3 - 2j


def test_determinant_signs() -> None:
    signs = Stiefel().determinant_signs(np.stack([np.eye(3), -np.eye(3), np.zeros((3, 3))]))
    assert signs.tolist() == [1.0, -1.0, 0.0]
    with pytest.raises(ValueError, match="real square"):
        determinant_signs(np.eye(2, 3))


@pytest.mark.parametrize(
    ("constraint", "shape", "said"),
    [
        (Stiefel(), (5, 3), r"row-orthogonal needs p <= n, got \(…, p, n\) = \(5, 3\); pass rows=False"),
        (Stiefel(rows=False), (3, 5), r"column-orthogonal needs p >= n, .*pass rows=True"),
        (Stiefel(), (6,), r"a set of matrices \(p, n\) or \(b, p, n\), x0 is \(6,\); reshape the 6 entries"),
        (Stiefel(packed=True), (3, 4), r"\(…, p, n, 2\), x0 is \(3, 4\)"),
        (Stiefel(flatten=True), (40, 2, 3, 3), r"\(40, 18\); pass rows=False"),
    ],
)
def test_points_that_do_not_fit(constraint: Stiefel, shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        constraint.check(np.zeros(shape))


def test_options_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="rows='both'; expected rows=True"):
        Stiefel(rows="both")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="do not go together"):
        Stiefel(packed=True, flatten=True)
    with pytest.raises(InputError, match="packed points are real, x0 is complex"):
        Stiefel(packed=True).check(np.zeros((3, 4, 2), complex))


class ProjectedGradient(infimum.Solver):
    """Asks a set for `step` and nothing else; no part of this plugin."""

    lr = 0.2

    def slots(self) -> Any:
        smooth = infimum.Slot("smooth", needs=("gradient",), at_least=1)
        return smooth, infimum.Slot("set", needs=("step",), at_least=1, at_most=1, empty=None)

    def init(self, parts: Any, start: Any, rng: Any) -> Any:
        return {"x": start}

    def step(self, parts: Any, state: Any) -> Any:
        return {"x": parts.set.step(state["x"], -self.lr * parts.smooth.gradient(state["x"]))}


def test_any_solver_that_asks_for_a_feasible_step_can_use_it() -> None:
    C = np.diag([5.0, 4.0, 2.0, 1.0])
    f = Function(value=lambda X: -0.5 * float(np.sum(X * (X @ C))), gradient=lambda X: -X @ C, shape=(2, 4))
    start = Stiefel().project(np.random.default_rng(6).standard_normal((2, 4)))
    result = infimum.solve(
        infimum.Composite(f),
        start,
        constraints=[{"use": "pogo.stiefel"}],
        solver=ProjectedGradient(),
        stopping="max_iter(300)",
        seed=0,
    )
    assert result.value == pytest.approx(-4.5, abs=1e-10) and result.violation == 0.0


def test_nothing_of_it_needs_torch() -> None:
    """The constraint and the solvers by name, where importing torch fails."""
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError('no torch here', name='torch')\n"
        "sys.meta_path.insert(0, Without())\n"
        "import infimum\n"
        "problem = {'use': 'pogo.procrustes', 'batch': 2, 'p': 3, 'n': 4}\n"
        "r = infimum.solve(problem, solver={'use': 'pogo.pogo', 'lr': 0.5}, stopping='max_iter(100)', seed=0)\n"
        "assert r.metrics['value'] < 10 and r.violation < 1e-9, r\n"
        "import infimum_pogo\n"
        "try:\n"
        "    infimum_pogo.POGO\n"
        "except ImportError as error:\n"
        "    assert 'infimum-pogo[torch]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('POGO without torch')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
