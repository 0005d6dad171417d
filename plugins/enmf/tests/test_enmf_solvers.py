"""The family in infimum: problems, solvers, stopping, bad input, the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import infimum
from infimum.errors import InputError
from infimum_enmf import HALS, NMF, Exterior, SklearnNMF, kkt_residual, recipes, save_parts
from infimum_enmf.problem import separable, synthetic

SMALL = recipes.low_rank(30, 24, 4, 15.0, 2)


def test_a_target_and_a_certificate():
    result = infimum.solve(synthetic(100, 90, 5, 40.0), solver="enmf.exterior", stopping="max_iter(300)", seed=0)
    extras = result.extras["enmf.exterior"]
    assert extras["is_global"] and extras["gap"] < 1e-8
    assert result.value == pytest.approx(extras["bound"], rel=1e-6)
    level = 1.5 * extras["bound"]
    result = infimum.solve(
        synthetic(100, 90, 5, 40.0), solver="enmf.exterior", stopping=f"target({level}) | max_iter(300)", seed=0
    )
    assert str(result.status) == "target_reached" and result.value <= level


def test_a_time_limit_holds_in_every_stage_and_leaves_feasible_factors():
    problem = separable(150, 120, 12, 0.1)
    solver = {"use": "enmf.exterior", "rotation_tol": 0.0, "window": 0, "rotation_steps": 1000000}
    result = infimum.solve(problem, solver=solver, stopping="max_time(0.3)", seed=0)
    assert result.elapsed < 5.0
    assert result.x["U"].min() >= 0.0 and result.extras["enmf.exterior"]["stage"] == "rotation"


@pytest.mark.parametrize("form", ["dense", "csr", "float32"])
@pytest.mark.parametrize("solver", ["enmf.exterior", "enmf.hals", "enmf.sklearn"])
def test_every_solver_on_every_kind_of_matrix(solver, form):
    X = {"dense": SMALL, "csr": sparse.csr_matrix(SMALL), "float32": SMALL.astype(np.float32)}[form]
    result = infimum.solve(NMF(X, 4), solver=solver, stopping="max_iter(150)", seed=3)
    assert result.x["U"].dtype == (np.float32 if form == "float32" else np.float64)
    assert min(result.x["U"].min(), result.x["V"].min()) >= 0.0
    tail = np.linalg.norm(np.linalg.svd(SMALL, compute_uv=False)[4:]) / np.linalg.norm(SMALL)
    assert tail * (1 - 1e-6) <= result.value < 1.2 * tail
    error = np.linalg.norm(SMALL - result.x["U"] @ result.x["V"].T) / np.linalg.norm(SMALL)
    assert result.value == pytest.approx(error, rel=1e-4)


def test_a_kkt_stop():
    result = infimum.solve(NMF(SMALL, 4), solver="enmf.hals", stopping="residual(1e-5) | max_iter(20000)", seed=1)
    assert str(result.status) == "converged"
    assert kkt_residual(SMALL, result.x["U"], result.x["V"]) <= 1e-5


def test_products_are_counted():
    result = infimum.solve(NMF(SMALL, 4), solver="enmf.hals", stopping="max_iter(10)", seed=1)
    assert result.evaluations["fit"]["times"] == 10
    result = infimum.solve(NMF(SMALL, 4), solver="enmf.hals", stopping="max_calls(6, of='times')", seed=1)
    assert result.iterations == 6


def test_the_exterior_start_as_a_start_of_the_problem():
    random = infimum.solve(NMF(SMALL, 4), solver="enmf.hals", stopping="max_iter(3)", seed=1)
    outside = infimum.solve(NMF(SMALL, 4, start="exterior"), solver="enmf.hals", stopping="max_iter(3)", seed=1)
    assert outside.value < random.value


def test_the_exterior_method_has_no_luck_in_it():
    values = {
        infimum.solve(NMF(SMALL, 4), solver="enmf.exterior", stopping="max_iter(60)", seed=k).value for k in (1, 2)
    }
    assert len(values) == 1


def test_sklearn_is_sklearn():
    decomposition = pytest.importorskip("sklearn.decomposition")
    problem = NMF(SMALL, 4)
    start = problem.start(np.random.default_rng(0))
    W, H, _ = decomposition.non_negative_factorization(
        SMALL, start["U"].copy(), start["V"].T.copy(), n_components=4, init="custom", tol=0.0, max_iter=20
    )
    solver = {"use": "enmf.sklearn", "chunk": 20}
    result = infimum.solve(problem, solver=solver, x0=start, stopping="max_iter(1)", seed=0)
    np.testing.assert_allclose(result.x["U"], W, rtol=1e-10)
    np.testing.assert_allclose(result.x["V"], H.T, rtol=1e-10)


def test_the_composite_of_two_blocks_is_solved_by_the_host():
    pytest.importorskip("infimum_splitting")
    problem = NMF(SMALL, 4)
    solver = {"use": "splitting.proximal_gradient", "backtracking": True}
    result = infimum.solve(problem.composite(), solver=solver, stopping="max_iter(800)", seed=1)
    assert set(result.x) == {"U", "V"} and min(result.x["U"].min(), result.x["V"].min()) >= 0.0
    hals = infimum.solve(problem, solver="enmf.hals", stopping="max_iter(300)", seed=1)
    assert problem.error(result.x) < 1.1 * hals.value


def test_a_matrix_from_a_file(tmp_path: Path):
    np.save(tmp_path / "X.npy", SMALL)
    np.savez(tmp_path / "X.npz", one=SMALL, two=SMALL[:5])
    sparse.save_npz(tmp_path / "S.npz", sparse.csr_matrix(SMALL))
    assert NMF({"file": tmp_path / "X.npy"}, 2).fit.norm == pytest.approx(np.linalg.norm(SMALL))
    assert NMF({"file": tmp_path / "X.npz", "key": "two"}, 2).fit.shape == (5, 24)
    assert NMF({"file": tmp_path / "S.npz"}, 2).fit.sparse
    for head in ("", ",".join(f"c{k}" for k in range(24)) + "\n"):
        (tmp_path / "X.csv").write_text(head + "\n".join(",".join(map(repr, row)) for row in SMALL.tolist()))
        np.testing.assert_array_equal(NMF({"file": tmp_path / "X.csv"}, 2).fit.X, SMALL)
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    (tmp_path / "bad.npy").write_bytes(b"junk")
    (tmp_path / "bad.npz").write_bytes(b"PK junk")
    np.save(tmp_path / "object.npy", np.array([None]), allow_pickle=True)
    for name in ("bad.csv", "bad.npy", "bad.npz", "object.npy"):
        with pytest.raises(InputError, match=f"file {name} cannot be read"):
            NMF({"file": tmp_path / name}, 2)
    with pytest.raises(InputError, match="one, two"):
        NMF({"file": tmp_path / "X.npz"}, 2)
    with pytest.raises(InputError, match="there is no file"):
        NMF({"file": tmp_path / "none.npy"}, 2)


@pytest.mark.parametrize(
    ("X", "rank", "said"),
    [
        (np.where(np.arange(12).reshape(3, 4) == 5, -2.0, 1.0), 2, r"1 negative entries, the first one -2 at \[1, 1\]"),
        (sparse.csr_matrix([[1.0, 0.0], [0.0, -3.0]]), 1, r"1 negative entries, the first one -3 at \[1, 1\]"),
        (np.array([[1.0, np.nan], [1.0, 1.0]]), 1, r"X\[0, 1\] is nan"),
        (np.array([[1.0, np.inf], [1.0, 1.0]]), 1, "inf"),
        (np.ones((3, 4)), 0, "rank=0: expected a whole number from 1 to"),
        (np.ones((3, 4)), 5, r"rank=5: the exterior start needs rank <= min\(m, n\) = 3"),
        (np.zeros((3, 4)), 2, "all zero"),
        (np.ones(4), 1, r"shape \(4,\); expected a matrix"),
        (np.array([["a", "b"]]), 1, "expected numbers"),
    ],
)
def test_bad_matrices_are_named(X, rank, said):
    with pytest.raises(InputError, match=said):
        NMF(X, rank)


def test_bad_starts_are_named():
    problem = NMF(SMALL, 4)
    good = problem.start(np.random.default_rng(0))
    for x0, said in [
        (np.ones(3), "expected {'U'"),
        ({**good, "U": good["U"][:, :3]}, "shape"),
        ({**good, "V": -good["V"]}, "negative"),
        ({key: 0 * one for key, one in good.items()}, "all zero"),
    ]:
        with pytest.raises(InputError, match=said):
            infimum.solve(problem, solver="enmf.hals", x0=x0, stopping="max_iter(1)")


def test_integers_become_float64():
    assert NMF(np.arange(12).reshape(3, 4), 2).fit.dtype == np.float64


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_beyond_the_floating_range_are_refused(scale):
    with pytest.raises(InputError, match="leave the range of float64"):
        NMF(SMALL * scale, 4)


def test_nan_from_a_product_ends_the_run_as_nonfinite(monkeypatch):
    problem = NMF(SMALL, 4)
    plain, calls = problem.fit.times, []

    def broken(V):
        calls.append(1)
        return plain(V) * (np.nan if len(calls) > 5 else 1.0)

    monkeypatch.setattr(problem.fit, "times", broken)
    result = infimum.solve(problem, solver="enmf.hals", stopping="max_iter(50)", seed=0)
    assert str(result.status) == "nonfinite" and "fit" in result.message
    assert np.isfinite(result.best_x["U"]).all()


def test_the_report_shows_the_certificate_and_the_parts(tmp_path: Path):
    from infimum_enmf.report import sections

    result = infimum.solve(NMF(SMALL, 4), solver="enmf.exterior", stopping="max_iter(40)", seed=0)
    (section,) = sections(result)
    assert "below" in section.text and len(section.figures[0].views["column of X"]) == 4
    loaded = infimum.Result.load(result.save(tmp_path / "kept"))
    assert next(iter(sections(loaded))).text == section.text
    early = infimum.solve(NMF(SMALL, 4), solver="enmf.exterior", stopping="max_iter(2)", seed=0)
    assert "time_budget_before_feasible" in next(iter(sections(early))).text


def test_parts_as_images(tmp_path: Path):
    pytest.importorskip("matplotlib")
    file = save_parts(np.random.default_rng(0).random((64, 5)), (8, 8), tmp_path / "parts.png")
    assert file.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="need 64 rows"):
        save_parts(np.ones((63, 5)), (8, 8), file)
    V = np.ones((64, 5))
    for arguments, said in [
        ((V, (8, "8"), file), "columns of an image='8'"),
        ((V, 64, file), "shape=64"),
        ((V, (8, 8), file, 0), "columns=0"),
        ((V, (8, 8), tmp_path / "none" / "x.png"), "a folder that exists"),
        ((V, (8, 8), tmp_path / "x.jpg"), "a .png file"),
        ((V * np.nan, (8, 8), file), "nan"),
    ]:
        with pytest.raises(InputError, match=said):
            save_parts(*arguments)


@pytest.mark.parametrize(
    ("solver", "options", "said"),
    [
        (HALS, {"passes": 0}, "passes=0"),
        (HALS, {"extrapolate": 3}, "extrapolate=3"),
        (Exterior, {"preset": "fsat"}, "preset='fsat'"),
        (Exterior, {"window": 1.5}, "window=1.5"),
        (SklearnNMF, {"method": "hals"}, "method='hals'"),
        (SklearnNMF, {"chunk": 0}, "chunk=0"),
    ],
)
def test_bad_options_are_named_when_a_solver_is_made(solver, options, said):
    with pytest.raises(InputError, match=said):
        solver(**options)
