"""Problems on real data: their formulas, their optima against CVXPY, and what is said of unusable data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from infimum.errors import InputError, PlanError
from infimum.functions import Function
from infimum.runfile import RunFile, RunFileError
from infimum_problems import OverlappingGroupNorm, lasso, overlapping_group_lasso, sparse_logistic
from infimum_problems.data import load, numbers, signs, standardized

RUNS = Path(__file__).parents[1] / "runs"
RNG = np.random.default_rng(0)
EXACT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def bodies(problem):
    return {term.name: term.body for term in problem.terms}


def raw(name):
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


# The problems.


def test_lasso_is_its_formula():
    A, b = raw("diabetes")
    A, b = (A - A.mean(0)) / A.std(0), b - b.mean()
    problem, x = lasso(penalty=0.7), RNG.standard_normal(10)
    assert problem.value(x) == pytest.approx(((A @ x - b) ** 2).sum() / (2 * 442) + 0.7 * np.abs(x).sum(), rel=1e-12)
    assert {name: sorted(body.capabilities & {"gradient", "prox"}) for name, body in bodies(problem).items()} == {
        "loss": ["gradient", "prox"],
        "penalty": ["prox"],
    }


@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_logistic_is_its_formula_and_spares_the_intercept(intercept):
    A, y = raw("breast_cancer")
    A, y = (A - A.mean(0)) / A.std(0), 2.0 * y - 1.0
    problem = sparse_logistic(penalty=0.3, intercept=intercept)
    w = RNG.standard_normal(31 if intercept else 30)
    margin = A @ w[:30] + (w[30] if intercept else 0.0)
    expected = np.log1p(np.exp(-y * margin)).mean() + 0.3 * np.abs(w[:30]).sum()
    assert problem.value(w) == pytest.approx(expected, rel=1e-12)
    assert "prox" in bodies(problem)["penalty"].capabilities


def test_overlapping_group_lasso_is_its_formula():
    A, b = raw("diabetes")
    A, b = (A - A.mean(0)) / A.std(0), (b - b.mean()) / b.std()
    problem, x = overlapping_group_lasso(), RNG.standard_normal(10)
    norms = sum(np.linalg.norm(x[i : i + 4]) for i in (0, 2, 4, 6))
    assert problem.value(x) == pytest.approx(((A @ x - b) ** 2).mean() / 2 + 0.15 * norms, rel=1e-12)
    assert bodies(problem)["penalty"].capabilities == {"value", "values"}


def test_overlapping_group_lasso_has_the_published_optimum():
    cp = pytest.importorskip("cvxpy")
    loss = bodies(overlapping_group_lasso())["loss"]
    x = cp.Variable(10)
    norms = sum(cp.norm(x[i : i + 4]) for i in (0, 2, 4, 6))
    optimum = cp.Problem(cp.Minimize(cp.sum_squares(loss.A @ x - loss.b) / 884 + 0.15 * norms)).solve(**EXACT)
    assert optimum == pytest.approx(0.384565, abs=5e-7)
    assert overlapping_group_lasso().value(x.value) == pytest.approx(optimum, rel=1e-7)


def test_a_zero_penalty_keeps_the_prox():
    for problem in (lasso(penalty=0.0), sparse_logistic(penalty=0)):
        body, v = bodies(problem)["penalty"], RNG.standard_normal(problem.start(RNG).shape)
        np.testing.assert_array_equal(body.prox(v, 0.5), v)


@pytest.mark.parametrize("make", [lasso, sparse_logistic, overlapping_group_lasso])
@pytest.mark.parametrize("penalty", [-0.1, float("nan"), float("inf")])
def test_a_penalty_out_of_range_is_refused(make, penalty):
    with pytest.raises(InputError, match=rf"problems\.\w+: penalty={penalty}; expected a finite number >= 0"):
        make(penalty=penalty)


# The norm of overlapping groups.


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_group_norm_of_many_points_in_numpy_and_torch(dtype):
    torch = pytest.importorskip("torch")
    norm = OverlappingGroupNorm([[0, 1, 2], [2, 3], [4]], 5)
    X = RNG.standard_normal((6, 5)).astype(dtype)
    expected = [sum(np.linalg.norm(x[list(g)]) for g in norm.groups) for x in X]
    assert isinstance(norm, Function)
    for points in (X, torch.as_tensor(X)):
        here = norm.to(points)
        found = here.values(points)
        assert found.dtype == points.dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5 if dtype == "float32" else 1e-13)
        assert here.value(points[0]) == pytest.approx(expected[0], rel=1e-5)


def test_groups_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"index 10 in \[9, 10\] is no entry of x; expected 0 to 9"):
        overlapping_group_lasso(groups=[[0, 1], [9, 10]])
    with pytest.raises(InputError, match="at least one group"):
        overlapping_group_lasso(groups=[])
    with pytest.raises(InputError, match="one index in each"):
        overlapping_group_lasso(groups=[[0], []])


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 9, 10])
def test_default_groups_cover_every_column(columns, tmp_path):
    np.save(tmp_path / "a.npy", RNG.standard_normal((8, columns + 1)))
    data = {"file": str(tmp_path / "a.npy"), "target": -1}
    groups = bodies(overlapping_group_lasso(data))["penalty"].function.groups
    assert set().union(*groups) == set(range(columns))
    assert max(map(len, groups)) <= 4


# The user's own data.

TABLE = "age,bmi,y\n1,10,0.5\n2,20,0.25\n3,35,4\n"


def write(folder, text, name="own.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (TABLE, "y"),
        (TABLE, 2),
        (TABLE, -1),
        (TABLE.partition("\n")[2], 2),
        (TABLE.replace(",", ";"), "y"),
        ("\ufeff" + TABLE.replace(",", "\t") + "\n\n", "y"),
        ('"age", "bmi", "y"\n1, 10, 0.5\n2, 20, 0.25\n3, 35, 4\n', "y"),
    ],
    ids=["name", "number", "negative", "no header", "semicolons", "tabs and a mark", "quotes and spaces"],
)
def test_csv(tmp_path, text, target):
    A, b = load({"file": write(tmp_path, text), "target": target})
    np.testing.assert_array_equal(A, [[1, 10], [2, 20], [3, 35]])
    np.testing.assert_array_equal(b, [0.5, 0.25, 4])


def test_npy_and_npz(tmp_path):
    table = RNG.standard_normal((5, 3))
    np.save(tmp_path / "own.npy", table)
    np.savez(tmp_path / "own.npz", features=table[:, 1:], target=table[:, 0])
    np.savez(tmp_path / "one.npz", table=table)
    found = [
        load({"file": str(tmp_path / "own.npy"), "target": 0}),
        load({"file": str(tmp_path / "own.npz"), "target": "target"}),
        load({"file": str(tmp_path / "one.npz"), "target": 0}),
    ]
    for A, b in found:
        np.testing.assert_array_equal(A, table[:, 1:])
        np.testing.assert_array_equal(b, table[:, 0])


def test_relative_paths_start_at_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path, TABLE)
    monkeypatch.chdir(tmp_path)
    problem = lasso({"file": "own.csv", "target": "y"}, penalty=0.0)
    assert problem.start(RNG).shape == (2,)
    assert problem.value(np.zeros(2)) == pytest.approx(np.var([0.5, 0.25, 4]) / 2)


def test_text_labels_serve_classification_only(tmp_path):
    data = {"file": write(tmp_path, "size,kind\n1,benign\n2,malign\n4,benign\n"), "target": "kind"}
    loss = bodies(sparse_logistic(data))["loss"]
    np.testing.assert_array_equal(loss.y, [-1, 1, -1])
    with pytest.raises(InputError, match=r"problems\.lasso: the target holds text, such as 'benign'; regression needs"):
        lasso(data)


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (TABLE, "yy", r"'.*own\.csv' has no column 'yy'; did you mean 'y'\?"),
        (TABLE.partition("\n")[2], "y", r"has no column 'y'; its first line is no header, so give a number from 0"),
        (TABLE, 3, r"has 3 columns; target 3 is none of them"),
        (TABLE.replace("20", "NaN"), "y", r"line 3, column 'bmi' holds 'NaN'; expected a finite number"),
        (TABLE.replace("20", ""), "y", r"line 3, column 'bmi' is empty; expected a finite number"),
        (TABLE.replace("20", "tall"), "y", r"line 3, column 'bmi' holds 'tall'; .*encode text as numbers"),
        (TABLE.replace("0.25", "-inf"), "y", r"line 3, column 'y' holds '-inf'"),
        (TABLE.replace("0.25", "low"), "y", r"line 3, column 'y' holds 'low'"),
        (TABLE.replace("2,20,", "2,"), "y", r"line 3: 2 cells; expected 3 as in line 1"),
        ("", "y", r"'.*own\.csv' is empty"),
        ("age,y\n", "y", r"is empty: 0 rows and 1 features beside the target"),
        ("y\n1\n2\n", "y", r"is empty: 2 rows and 0 features beside the target"),
    ],
)
def test_an_unusable_table_is_refused_with_the_place(tmp_path, text, target, message):
    with pytest.raises(InputError, match=message):
        load({"file": write(tmp_path, text), "target": target})


def test_unusable_arrays_are_refused_with_the_place(tmp_path):
    def refused(message, target, **arrays):
        np.savez(tmp_path / "own.npz", **arrays)
        with pytest.raises(InputError, match=message):
            load({"file": str(tmp_path / "own.npz"), "target": target})

    A = RNG.standard_normal((4, 2))
    hole = A.copy()
    hole[3, 1] = np.nan
    refused(r"row 3, column 1 holds nan; counted from 0", "b", A=hole, b=np.ones(4))
    refused(r"has no array 'target'; did you mean 'targets'\?", "target", A=A, targets=np.ones(4))
    refused(r"'A' is \(4, 2\), 'b' is \(3,\)", "b", A=A, b=np.ones(3))
    refused(r"one array of features beside 'b', it holds: \['A', 'C'\]", "b", A=A, C=A, b=np.ones(4))
    refused(r"holds \(4, 2\) of complex128; expected a table of real numbers", "b", A=A + 1j, b=np.ones(4))
    refused(r"cannot be read: Object arrays", "b", A=np.array([[None]]), b=np.ones(1))


def test_a_missing_file_names_the_folder_and_the_nearest_file(tmp_path):
    write(tmp_path, TABLE, "patients.csv")
    with pytest.raises(InputError, match=r"data file '.*patient\.csv' is not in .*; did you mean 'patients\.csv'\?"):
        load({"file": str(tmp_path / "patient.csv"), "target": "y"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("diabets", r"data 'diabets' is not known \(did you mean 'diabetes'\?\)"),
        ({"file": "x.csv"}, r"expected \{file: X\.csv, target: column name or number\}"),
        ({"file": "x.csv", "target": 0, "sep": ","}, r"expected \{file: X\.csv, target: column name or number\}"),
    ],
)
def test_an_unknown_way_to_name_data_is_refused(data, message):
    with pytest.raises(InputError, match=message):
        lasso(data)


def test_an_unknown_file_format_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends in '\.xlsx'; expected one of \.csv, \.npy, \.npz"):
        load({"file": write(tmp_path, "", "own.xlsx"), "target": 0})


def test_helpers():
    np.testing.assert_array_equal(signs(np.array([3.0, 1.0, 3.0]), "p"), [1, -1, 1])
    with pytest.raises(InputError, match=r"p: the target has 3 different values \(1\.0, 2\.0, 3\.0\); expected two"):
        signs(np.array([1.0, 2.0, 3.0]), "p")
    A = np.column_stack([RNG.standard_normal(7), np.full(7, 0.1)])
    B = standardized(A)
    np.testing.assert_allclose([B[:, 0].mean(), B[:, 0].std()], [0, 1], atol=1e-12)
    np.testing.assert_array_equal(B[:, 1], 0)
    assert numbers(np.ones(2), "p").tolist() == [1.0, 1.0]


# The ready run files.


@pytest.mark.parametrize(
    ("file", "problem", "exactness"),
    [
        ("sparse-logistic.yaml", "problems.sparse_logistic", "exact"),
        ("lasso.yaml", "problems.lasso", "exact"),
        ("lasso-zeroth.yaml", "problems.lasso", "approximate"),
    ],
)
def test_a_ready_run_reaches_the_optimum_of_cvxpy(file, problem, exactness, references):
    run = RunFile.load(RUNS / file).prepare()
    result = run.solve()
    reference = references.reference(problem, run.problem)
    assert str(result.status) == "converged"
    assert abs(result.value - reference) <= 1e-6 * max(1.0, abs(reference))
    assert str(result.exactness) == exactness


def test_the_zeroth_order_run_counts_eleven_values_a_gradient():
    result = RunFile.load(RUNS / "lasso-zeroth.yaml").prepare().solve()
    assert result.evaluations["loss"] == {"value": 11 * result.iterations}
    assert result.evaluations["penalty"] == {"prox": result.iterations}


def test_no_splitting_solver_takes_the_overlapping_groups_and_the_reason_is_told():
    explanation = RunFile.load(RUNS / "overlapping-group-lasso.yaml").explain()
    splitting = {row.solver: row.verdict for row in explanation.rows if row.solver.startswith("splitting.")}
    assert splitting
    assert "as it is" not in splitting.values()
    named = RunFile.load(RUNS / "overlapping-group-lasso.yaml", ["solver=splitting.douglas_rachford"])
    reason = r"douglas_rachford needs prox (\(slot first\) )?of term 'penalty', which offers only value"
    with pytest.raises((PlanError, RunFileError), match=reason):
        named.prepare()


def test_the_overlapping_groups_run_with_a_gradient_oracle_for_the_penalty():
    solver = "solver={use: splitting.gradient_descent, step: 0.1}"
    overrides = [solver, "oracles.penalty=zeroth.forward_difference", "stopping=max_iter(500)"]
    result = RunFile.load(RUNS / "overlapping-group-lasso.yaml", overrides).prepare(x0=np.full(10, 0.1)).solve()
    assert str(result.exactness) == "approximate"
    assert result.value == pytest.approx(0.384565, abs=1e-3)


def test_a_relative_data_file_lies_beside_the_run_file(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    write(tmp_path / "there", TABLE)
    text = """
        problem: {use: problems.lasso, data: {file: own.csv, target: y}, penalty: 0.1}
        solver: {use: splitting.proximal_gradient}
        stopping: "max_iter(100)"
    """
    monkeypatch.chdir(tmp_path)
    loaded = RunFile.load(write(tmp_path / "there", text, "own.yaml"))
    assert loaded.prepare().solve().x.shape == (2,)
