"""The other problems: formulas, optima against CVXPY, scikit-learn, SciPy or mathematics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.plugins.registry import get_registry
from infimum.runfile import RunFile
from infimum_problems import (
    Rosenbrock,
    basis_pursuit,
    box_qp,
    elastic_net,
    hs071,
    ill_conditioned_quadratic,
    nonnegative_least_squares,
    robust_pca,
    rosenbrock,
    svm_dual,
    tv_denoising_1d,
    tv_denoising_2d,
)
from infimum_problems.pictures import load_picture

RUNS = Path(__file__).parents[1] / "runs"


def bodies(problem):
    return {term.name: term.body for term in problem.terms}


def rng():
    return np.random.default_rng(5)


def diabetes():
    from sklearn.datasets import load_diabetes

    A, b = load_diabetes(return_X_y=True)
    return (A - A.mean(0)) / A.std(0), b - b.mean()


# Formulas.


def test_elastic_net_is_its_formula_and_that_of_scikit_learn():
    from sklearn.linear_model import ElasticNet

    (A, b), x = diabetes(), rng().standard_normal(10)
    expected = ((A @ x - b) ** 2).mean() / 2 + 0.7 * (0.4 * np.abs(x).sum() + 0.3 * x @ x)
    assert elastic_net(penalty=0.7, l1_ratio=0.4).value(x) == pytest.approx(expected, rel=1e-12)
    fit = ElasticNet(alpha=0.7, l1_ratio=0.4, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, b)
    result = infimum.solve(
        elastic_net(penalty=0.7, l1_ratio=0.4), solver="splitting.proximal_gradient", stopping="grad_norm(1e-8)", seed=0
    )
    np.testing.assert_allclose(result.x, fit.coef_, atol=1e-6)


def test_nonnegative_least_squares_has_the_solution_of_scipy():
    from scipy.optimize import nnls

    (A, b), problem = diabetes(), nonnegative_least_squares()
    x, miss = nnls(A, b)
    assert problem.value(x) == pytest.approx(miss**2 / (2 * 442), rel=1e-12)
    assert problem.violation(-x) == pytest.approx(np.linalg.norm(x))
    result = infimum.solve(problem, solver="splitting.proximal_gradient", stopping="grad_norm(1e-8)", seed=0)
    np.testing.assert_allclose(result.x, x, atol=1e-6)


def test_svm_dual_has_the_optimum_and_multipliers_of_scikit_learn():
    from sklearn.datasets import load_breast_cancer
    from sklearn.svm import SVC

    X, labels = load_breast_cancer(return_X_y=True)
    X, y = (X - X.mean(0)) / X.std(0), 2.0 * labels - 1.0
    problem = svm_dual()
    fit = SVC(C=1.0, kernel="rbf", gamma=1 / 30, tol=1e-6).fit(X, y)
    a = np.zeros(569)
    a[fit.support_] = np.abs(fit.dual_coef_[0])
    assert problem.violation(a) <= 1e-8
    result = RunFile.load(RUNS / "svm-dual.yaml").prepare().solve()
    assert result.value == pytest.approx(problem.value(a), rel=1e-6)
    np.testing.assert_allclose(result.x, a, atol=2e-3)
    linear, x = svm_dual(kernel="linear", C=2.0), rng().uniform(0, 2, 569)
    assert linear.value(x) == pytest.approx(0.5 * np.sum(((x * y) @ X) ** 2) - x.sum(), rel=1e-10)


@pytest.mark.parametrize("isotropic", [True, False])
def test_tv_denoising_is_its_formula(isotropic):
    problem = tv_denoising_2d("digits", penalty=0.3, isotropic=isotropic, size=24, noise=0.1, seed=4)
    clean, x = load_picture("digits", 24, "p"), rng().standard_normal((24, 24))
    b = clean + 0.1 * np.random.default_rng(4).standard_normal((24, 24))
    down, right = np.zeros((24, 24)), np.zeros((24, 24))
    down[:-1], right[:, :-1] = np.diff(x, axis=0), np.diff(x, axis=1)
    total = np.hypot(down, right).sum() if isotropic else np.abs(down).sum() + np.abs(right).sum()
    assert problem.value(x) == pytest.approx(0.5 * ((x - b) ** 2).sum() + 0.3 * total, rel=1e-12)
    np.testing.assert_array_equal(problem.start(rng()), b)


def test_anisotropic_tv_denoising_has_the_optimum_of_cvxpy(references):
    problem = tv_denoising_2d("digits", isotropic=False, size=24)
    result = infimum.solve(
        problem, solver={"use": "splitting.pdhg", "ratio": 10}, stopping="max_iter(20000) | residual(1e-7)", seed=0
    )
    optimum = references.REFERENCES["problems.tv_denoising_2d"](bodies(problem))
    assert result.success
    assert result.value == pytest.approx(optimum, rel=1e-7)


def test_robust_pca_takes_a_matrix_apart(tmp_path):
    # Of known rank and support: the two are found.
    draw = rng()
    low = draw.standard_normal((40, 2)) @ draw.standard_normal((2, 40))
    sparse = np.where(draw.random((40, 40)) < 0.03, 5.0, 0.0)
    np.save(tmp_path / "m.npy", low + sparse)
    problem = robust_pca({"file": str(tmp_path / "m.npy")})
    result = infimum.solve(
        problem, solver={"use": "splitting.douglas_rachford", "step": 5.0}, stopping="residual(1e-6)", seed=0
    )
    np.testing.assert_allclose(result.x["low_rank"], low, atol=1e-4)
    np.testing.assert_allclose(result.x["sparse"], sparse, atol=1e-4)
    blocks = {"low_rank": low, "sparse": sparse}
    expected = np.linalg.norm(low, "nuc") + 40**-0.5 * np.abs(sparse).sum()
    assert problem.value(blocks) == pytest.approx(expected, rel=1e-12)
    assert problem.violation(blocks) <= 1e-12


def test_box_qp_is_solved_by_the_point_it_was_made_from(references):
    for problem in (box_qp(), box_qp(n=7, condition=1.0, active=1.0, seed=3), box_qp(n=1, active=0.0)):
        terms = bodies(problem)
        assert references.REFERENCES["problems.box_qp"](terms) == pytest.approx(problem.reference, rel=1e-7)
    eigenvalues = np.linalg.eigvalsh(bodies(box_qp(condition=50.0))["objective"].P)
    assert eigenvalues[[0, -1]] == pytest.approx([1.0, 50.0], rel=1e-9)


def test_ill_conditioned_quadratic():
    problem = ill_conditioned_quadratic(n=6, condition=1e3)
    eigenvalues, directions = np.linalg.eigh(bodies(problem)["objective"].P)
    np.testing.assert_allclose(eigenvalues, np.geomspace(1, 1e3, 6), rtol=1e-9)
    np.testing.assert_allclose(np.abs(directions.T @ problem.start(rng())), 1.0, rtol=1e-9)
    assert problem.reference == problem.value(np.zeros(6)) == 0.0


def test_basis_pursuit_knows_its_optimum_only_with_a_proof(references):
    easy, hard = basis_pursuit(rows=30, columns=60, nonzeros=3), basis_pursuit(rows=30, columns=60, nonzeros=25)
    optimum = references.REFERENCES["problems.basis_pursuit"]
    assert easy.reference == pytest.approx(optimum(bodies(easy)), rel=1e-7)
    assert hard.reference is None
    assert optimum(bodies(hard)) > 0
    assert basis_pursuit(rows=3, columns=3, nonzeros=0).reference == 0.0


@pytest.mark.parametrize("n", [2, 5])
def test_rosenbrock_is_its_formula_with_derivatives(n):
    from scipy.optimize import rosen, rosen_der, rosen_hess, rosen_hess_prod

    f, x, v = Rosenbrock(n), rng().standard_normal(n), rng().standard_normal(n) + 1.0
    assert f.value(x) == pytest.approx(rosen(x), rel=1e-12)
    np.testing.assert_allclose(f.gradient(x), rosen_der(x), rtol=1e-11)
    np.testing.assert_allclose(f.hessian(x), rosen_hess(x), rtol=1e-11)
    np.testing.assert_allclose(f.hvp(x, v), rosen_hess_prod(x, v), rtol=1e-10)
    assert f.value_and_gradient(x)[0] == pytest.approx(rosen(x), rel=1e-12)
    J = f.jacobian(x)
    assert J.shape == (2 * n - 2, n)
    np.testing.assert_allclose(J.T @ f.residual(x), rosen_der(x), rtol=1e-10)
    np.testing.assert_allclose((f.residual(x + 1e-6 * v) - f.residual(x - 1e-6 * v)) / 2e-6, J @ v, atol=1e-6)
    np.testing.assert_array_equal(rosenbrock(5).start(rng()), [-1.2, 1, -1.2, 1, -1.2])


def test_rosenbrock_in_torch():
    torch = pytest.importorskip("torch")
    f, x, v = Rosenbrock(4), rng().standard_normal(4), rng().standard_normal(4)
    X, V = torch.as_tensor(x), torch.as_tensor(v)
    pairs = [
        (f.gradient(X), f.gradient(x)),
        (f.hessian(X), f.hessian(x)),
        (f.hvp(X, V), f.hvp(x, v)),
        (f.residual(X), f.residual(x)),
        (f.jacobian(X), f.jacobian(x)),
    ]
    for mine, expected in pairs:
        assert torch.is_tensor(mine)
        np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-12)


def test_hs071_has_its_optimum_where_the_conditions_hold():
    terms, x = bodies(hs071()), np.array([1.0, 4.7429996372644, 3.8211499841849, 1.3794082931727])
    assert hs071().value(x) == pytest.approx(hs071().reference, rel=1e-12)
    assert hs071().violation(x) <= 1e-10
    product, sphere = terms["product"].jacobian(x)[0], terms["sphere"].jacobian(x)[0]
    left = terms["objective"].gradient(x) - 0.5522936601208 * product + 0.1614685667706 * sphere
    np.testing.assert_allclose(left[1:], 0.0, atol=1e-10)
    assert left[0] > 0  # x1 stands at its lower bound.
    step = 1e-6 * rng().standard_normal(4)
    for body in (terms["product"], terms["sphere"]):
        change = (body.residual(x + step) - body.residual(x - step)) / 2
        np.testing.assert_allclose(change, body.jacobian(x) @ step, rtol=1e-6)
    change = (terms["objective"].gradient(x + step) - terms["objective"].gradient(x - step)) / 2
    np.testing.assert_allclose(change, terms["objective"].hessian(x) @ step, rtol=1e-6)


def test_tv_denoising_1d_is_its_formula(references):
    from sklearn.datasets import load_sample_image

    row = load_sample_image("flower.jpg")[17] @ np.array([0.299, 0.587, 0.114]) / 255
    b = row + 0.2 * np.random.default_rng(9).standard_normal(640)
    problem, x = tv_denoising_1d("flower", penalty=0.3, row=17, noise=0.2, seed=9), rng().standard_normal(640)
    expected = 0.5 * ((x - b) ** 2).sum() + 0.3 * np.abs(np.diff(x)).sum()
    assert problem.value(x) == pytest.approx(expected, rel=1e-12)


# The ready run files reach their references.

EXPECTED = {
    "basis-pursuit": 1e-6,
    "box-qp": 1e-9,
    "elastic-net": 1e-6,
    "hs071": 1e-9,
    "ill-conditioned-quadratic": 1e-9,
    "nonnegative-least-squares": 1e-6,
    "robust-pca": 1e-6,
    "rosenbrock": 1e-9,
    "svm-dual": 1e-6,
    "tv-denoising-1d": 1e-6,
    "tv-denoising-2d": 1e-6,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_ready_run_reaches_its_reference(name, references):
    run = RunFile.load(RUNS / f"{name}.yaml").prepare()
    optimum = references.reference(f"problems.{name.replace('-', '_')}", run.problem)
    result = run.solve()
    assert str(result.status) == "converged"
    assert (result.violation or 0.0) <= 1e-6
    assert abs(result.value - optimum) <= EXPECTED[name] * max(1.0, abs(optimum))


def test_every_problem_has_a_run_file():
    components = get_registry().components("problem")
    names = [one.name.partition(".")[2] for one in components if one.plugin == "problems"]
    assert len(names) == 14
    assert {name.replace("_", "-") for name in names} <= {one.stem for one in RUNS.glob("*.yaml")}


def test_every_run_file_is_tested():
    elsewhere = {"lasso", "lasso-zeroth", "overlapping-group-lasso", "sparse-logistic"}  # in test_problems.py
    elsewhere |= {"components-from-values"}  # in test_problems_four_plugins.py
    assert {one.stem for one in RUNS.glob("*.yaml")} == set(EXPECTED) | elsewhere


# What is refused.


@pytest.mark.parametrize(
    ("message", "call", "options"),
    [
        (r"elastic_net: l1_ratio=1\.5; expected a number from 0 to 1", elastic_net, {"l1_ratio": 1.5}),
        (r"elastic_net: penalty=-1; expected", elastic_net, {"penalty": -1}),
        (r"tv_denoising_1d: row=427, but 'china' has 427 rows; expected -427 to 426", tv_denoising_1d, {"row": 427}),
        (r"noise=-1; expected a finite number >= 0", tv_denoising_1d, {"noise": -1}),
        (r"tv_denoising_2d: penalty=nan; expected", tv_denoising_2d, {"penalty": float("nan")}),
        (r"robust_pca: penalty=0; expected a finite number > 0", robust_pca, {"penalty": 0}),
        (r"corruption=2; expected a share", robust_pca, {"corruption": 2}),
        (r"nonzeros=9, rows=5, columns=20; expected", basis_pursuit, {"rows": 5, "columns": 20, "nonzeros": 9}),
        (r"box_qp: active=2; expected a share", box_qp, {"active": 2}),
        (r"box_qp: condition=0\.5; expected a finite number >= 1", box_qp, {"condition": 0.5}),
        (r"ill_conditioned_quadratic: n=0; expected at least one", ill_conditioned_quadratic, {"n": 0}),
        (r"svm_dual: C=0; expected a finite number > 0", svm_dual, {"C": 0}),
        (r"svm_dual: gamma=-1; expected a finite number > 0", svm_dual, {"gamma": -1}),
        (r"svm_dual: kernel='poly'; expected 'rbf' or 'linear'", svm_dual, {"kernel": "poly"}),
        (r"Rosenbrock\(1\): expected at least 2 variables", rosenbrock, {"n": 1}),
    ],
)
def test_options_out_of_range_are_refused(message, call, options):
    with pytest.raises(InputError, match=message):
        call(**options)
