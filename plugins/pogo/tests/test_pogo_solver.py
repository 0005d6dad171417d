"""The solvers, `minimize_stiefel` and the problems: known solutions, run files' options, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import infimum
from infimum.errors import InfimumWarning, InputError, PlanError
from infimum.functions import Function
from infimum_pogo import Stiefel, gaps, minimize_stiefel, polar
from infimum_pogo.problems.digits import Contrast, dictionary, load, patches, pca, whitened
from infimum_pogo.problems.procrustes import nearest, procrustes
from infimum_pogo.solver import LandingSolver, Pogo, RiemannianSolver

SPREAD = np.diag([5.0, 4.0, 2.0, 1.0])


def start(shape: tuple[int, ...] = (2, 4), seed: int = 0) -> Any:
    return polar(np.random.default_rng(seed).standard_normal(shape))


def value(X: Any) -> float:
    return -0.5 * float(np.sum(X * (X @ SPREAD)))


def slope(X: Any) -> Any:
    return -X @ SPREAD


# Solvers


@pytest.mark.parametrize(("field", "n"), [("real", 9), ("real", 6), ("complex", 9), ("complex", 6)])
@pytest.mark.parametrize("solver", ["pogo.pogo", "pogo.riemannian"])
def test_procrustes_reaches_the_closed_form(field: str, n: int, solver: str) -> None:
    problem = procrustes(batch=5, p=6, n=n, field=field, data_seed=3)  # type: ignore[arg-type]
    result = infimum.solve(
        problem, solver={"use": solver, "lr": 0.5}, stopping="max_iter(4000) | grad_norm(1e-7)", seed=0
    )
    assert result.success, result
    assert abs(result.value - problem.reference) <= 1e-9 * max(1.0, problem.reference)
    assert result.violation < 1e-10


@pytest.mark.parametrize(
    ("base", "landing", "lr"), [("sgd", "half", 1.0), ("sgd", "optimal", 1.0), ("vadam", "half", 0.5)]
)
def test_pca_reaches_the_known_optimum(base: str, landing: str, lr: float) -> None:
    problem = pca(components=3)
    solver = Pogo(lr=lr, base=base, landing=landing)  # type: ignore[arg-type]
    result = infimum.solve(problem, solver=solver, stopping="max_iter(2000) | grad_norm(1e-7)", seed=0)
    assert abs(result.value - problem.reference) < 1e-8, result


def test_torch_points_give_the_same_iterates() -> None:
    torch = pytest.importorskip("torch")
    problem = procrustes(batch=3, p=4, n=6)
    options: dict[str, Any] = {"solver": Pogo(lr=0.3, base="vadam"), "stopping": "max_iter(30)", "seed": 0}
    plain = infimum.solve(problem, **options)
    tensor = infimum.solve(problem, torch.as_tensor(plain.x * 0 + problem._start), **options)
    assert isinstance(tensor.x, torch.Tensor) and np.allclose(tensor.x.numpy(), plain.x, atol=1e-12)


def test_metrics_say_how_it_stands() -> None:
    problem = procrustes(batch=64, p=3, n=3, group="rotations", noise=0.3)
    seen: list[dict[str, Any]] = []
    result = infimum.solve(
        problem,
        solver=Pogo(lr=50.0),
        stopping="max_iter(5)",
        record=["orthogonality", "reach", "guard_share", "reflections", "grad_norm", "step"],
        callback=lambda progress: seen.append(dict(progress.metrics)),
        seed=0,
    )
    assert result.trace is not None
    last = seen[-1]
    assert last["guard_share"] > 0.9 and last["reach"] > 0.5 and last["reflections"] == 0.0 and last["step"] == 50.0
    assert 0 < last["orthogonality"] < 0.05 and last["grad_norm"] > 0


def test_sampled_gradients_find_most_of_the_variance() -> None:
    problem = pca(components=10, batch=64)
    shares = []
    for seed in range(2):
        lr = _Falling(2.0, 600)
        solver = Pogo(lr=lr, gradient="sample")
        result = infimum.solve(problem, solver=solver, stopping="max_iter(600)", value_every=600, seed=seed)
        assert result.violation < 1e-9
        shares.append(problem.value(polar(result.x)) / problem.reference)
    assert min(shares) > 0.999, shares


class _Falling:
    """lr (1 - k/n)^2."""

    def __init__(self, lr: float, n: int) -> None:
        self.lr, self.n = lr, n

    def __call__(self, k: int) -> float:
        return self.lr * max(0.0, 1.0 - k / self.n) ** 2


def test_without_a_guard_long_steps_are_told_and_end_as_nonfinite() -> None:
    problem = procrustes(batch=2, p=3, n=5)
    with (
        pytest.warns(InfimumWarning, match=r"lr \|\|R\|\| may reach .*take lr of at most .*step guard"),
        np.errstate(all="ignore"),
    ):
        result = infimum.solve(problem, solver=Pogo(lr=100.0, safe=None), stopping="max_iter(50)", seed=0)
    assert str(result.status) in ("nonfinite", "diverged")
    guarded = infimum.solve(problem, solver=Pogo(lr=100.0), stopping="max_iter(50)", seed=0)
    assert str(guarded.status) == "limit"


def test_a_start_off_the_set_is_refused_projected_or_landed() -> None:
    problem, far = procrustes(batch=2, p=3, n=5), 1.3 * start((2, 3, 5))
    options: dict[str, Any] = {"stopping": "max_iter(40)", "seed": 0}
    with pytest.raises(InputError, match=r"matrix \d of 2 of x0 is not orthonormal: .*pass start='project'"):
        infimum.solve(problem, far, solver=Pogo(lr=0.1), **options)
    for word in ("project", "ignore"):
        result = infimum.solve(problem, far, solver=Pogo(lr=0.1, start=word), **options)  # type: ignore[arg-type]
        assert result.violation < 1e-6
    with pytest.raises(InputError, match=r"singular value 1\.8 >= sqrt\(3\)"):
        infimum.solve(problem, 1.8 * start((2, 3, 5)), solver=Pogo(lr=0.1, start="ignore"), **options)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Pogo(lr=-1.0), r"pogo\.pogo: lr=-1\.0; expected a finite number > 0"),
        (lambda: Pogo(lr=math.nan), "lr=nan"),
        (lambda: Pogo(base="adam"), "base='adam'; expected 'sgd' or 'vadam'; did you mean 'vadam'"),  # type: ignore
        (lambda: Pogo(landing="best"), "landing='best'; expected 'half' or 'optimal'"),  # type: ignore
        (lambda: Pogo(safe=1.5), r"safe=1\.5; expected a bound of lr \|\|R\|\| between 0 and sqrt\(2\)"),
        (lambda: Pogo(betas=(0.9, 1.0)), r"betas=\(0\.9, 1\.0\); expected two numbers in \[0, 1\)"),
        (lambda: Pogo(momentum=1.0), r"momentum=1\.0; expected a finite number >= 0 and < 1"),
        (lambda: Pogo(start="fix"), "start='fix'"),  # type: ignore
        (lambda: LandingSolver(attraction=0.0), r"pogo\.landing: attraction=0\.0"),
        (lambda: LandingSolver(radius=1.0), r"radius=1\.0"),
        (lambda: RiemannianSolver(gradient="noisy"), "gradient='noisy'"),  # type: ignore
    ],
)
def test_options_that_do_not_fit(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_auto_needs_a_constant_or_vector_adam() -> None:
    bare = Function(value=value, gradient=slope)
    problem = infimum.Composite(bare, constraints=Stiefel(), start=start())
    with pytest.raises(InputError, match="lr='auto' is 1/L, but no Lipschitz constant"):
        infimum.solve(problem, solver=Pogo(), stopping="max_iter(3)", seed=0)
    assert infimum.solve(problem, solver=Pogo(base="vadam"), stopping="max_iter(3)", seed=0).metrics
    declared = infimum.Composite(Function(value=value, gradient=slope, lipschitz=5.0), constraints=Stiefel())
    run = infimum.solve(declared, start(), solver=Pogo(), stopping="max_iter(3)", record=["step"], seed=0)
    assert run.trace is not None and float(run.trace["step"][-1]) == 0.2


def test_a_schedule_may_fall_to_zero_but_not_below() -> None:
    problem = procrustes(batch=1, p=2, n=3)
    infimum.solve(problem, solver=Pogo(lr=lambda k: 0.1 if k < 3 else 0.0), stopping="max_iter(6)", seed=0)
    fell = infimum.solve(problem, solver=Pogo(lr=lambda k: -1.0 if k == 2 else 0.1), stopping="max_iter(6)", seed=0)
    assert fell.status == "failed" and "gave -1.0 at k=2" in fell.message
    assert fell.iterations == 2 and np.isfinite(fell.best_x).all()


@pytest.mark.slow  # A refused plan looks at all that is installed.
def test_it_needs_one_stiefel_constraint() -> None:
    f = Function(value=value, gradient=slope, shape=(2, 4))
    for sets, said in (((), "needs .*set"), ({"box": {"use": "core.box", "lower": 0}}, "matrices and assemble of")):
        with pytest.raises(PlanError, match=said):
            infimum.solve(infimum.Composite(f), start(), constraints=sets, solver=Pogo(lr=0.1), seed=0)


# minimize_stiefel


@pytest.mark.parametrize(("base", "lr"), [("sgd", 0.1), ("vadam", 1.0)])
def test_minimize_by_rows_and_by_columns(base: str, lr: float) -> None:
    rows = minimize_stiefel(value, start(), jac=slope, base=base, lr=lr, seed=0)
    tall = minimize_stiefel(
        lambda X: value(X.T), start().T, jac=lambda X: slope(X.T).T, rows=False, base=base, lr=lr, seed=0
    )
    assert rows.success and rows.value == pytest.approx(-4.5, abs=1e-9)
    assert tall.x.shape == (4, 2) and np.allclose(tall.x.T, rows.x, atol=1e-12)


def test_minimize_takes_value_and_gradient_together_and_batches() -> None:
    batch = start((3, 2, 4))
    result = minimize_stiefel(lambda X: (value(X), slope(X)), batch, jac=True, tol=1e-8, max_iter=3000, seed=0)
    assert result.x.shape == (3, 2, 4) and result.value == pytest.approx(-13.5, abs=1e-9)


def test_minimize_over_complex_matrices() -> None:
    rng = np.random.default_rng(1)
    C = rng.standard_normal((3, 5)) + 1j * rng.standard_normal((3, 5))
    X0 = polar(rng.standard_normal((3, 5)) + 1j * rng.standard_normal((3, 5)))
    result = minimize_stiefel(
        lambda X: -float(np.sum(X.conj() * C).real), X0, jac=lambda X: -C + 0 * X, lr=0.3, max_iter=5000, seed=0
    )
    assert result.success and np.allclose(result.x, polar(C), atol=1e-5) and result.x.dtype == np.complex128
    assert gaps(result.x[None]).max() < 1e-10


def test_minimize_differentiates_torch_functions() -> None:
    torch = pytest.importorskip("torch")
    C = torch.as_tensor(SPREAD)
    real = minimize_stiefel(lambda X: -0.5 * (X * (X @ C)).sum(), torch.as_tensor(start()), seed=0)
    X0 = torch.as_tensor(start()) + 0j
    wide = minimize_stiefel(lambda X: -0.5 * (X.conj() * (X @ C.to(X.dtype))).sum().real, X0, seed=0)
    assert real.value == pytest.approx(-4.5, abs=1e-9) and wide.value == pytest.approx(-4.5, abs=1e-9)
    assert torch.allclose(wide.x.real, real.x, atol=1e-9) and wide.x.dtype == torch.complex128


@pytest.mark.parametrize(
    ("f", "options", "said"),
    [
        (value, {}, "f has no gradient; pass jac="),
        (3.0, {}, "f=3.0; expected a callable"),
        (value, {"jac": "exact"}, "jac='exact'"),
        (value, {"jac": slope, "X0": np.zeros(4)}, r"X0 is \(4,\); expected one matrix \(p, n\) or a batch"),
        (value, {"jac": slope, "X0": np.eye(4)[:, :2]}, "row-orthogonal needs p <= n.*pass rows=False"),
        (value, {"jac": slope, "X0": np.ones((2, 4), int)}, "X0 holds int64 entries"),
        (value, {"jac": slope, "X0": np.ones((2, 4))}, "X0 is not orthonormal: .*start='project'"),
        (value, {"jac": slope, "X0": np.full((2, 4), np.nan)}, "holds NaN or inf"),
    ],
)
def test_minimize_refuses(f: Any, options: dict[str, Any], said: str) -> None:
    given = {"X0": start(), **options}
    with pytest.raises(InputError, match=said):
        minimize_stiefel(f, given.pop("X0"), seed=0, **given)


# Problems


def test_rotations_have_their_own_closed_form() -> None:
    rng = np.random.default_rng(2)
    C = rng.standard_normal((200, 3, 3))
    best = nearest(C, "rotations")
    assert np.allclose(np.linalg.det(best), 1.0)
    others = polar(rng.standard_normal((400, 3, 3)))
    others[np.linalg.det(others) < 0] *= -1.0
    scores = np.einsum("bij,kij->bk", C, others).max(axis=1)
    assert (np.sum(best * C, axis=(1, 2)) >= scores - 1e-12).all()


def independent(kind: str) -> infimum.Composite:
    """The dictionary's term on few samples."""
    samples = whitened(np.random.default_rng(8).laplace(size=(200, 5)))
    return infimum.Composite(Contrast(samples, kind, 3, 16), constraints=Stiefel(), start=start((3, 5)))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(
    "problem",
    [
        procrustes(batch=2, p=2, n=3),
        procrustes(batch=2, p=2, n=3, field="complex"),
        pca(components=2),
        independent("logcosh"),
        independent("l4"),
    ],
    ids=["procrustes", "complex", "pca", "logcosh", "l4"],
)
def test_gradients_are_right(problem: infimum.Composite, library: str) -> None:
    x: Any = problem._start
    if library == "torch":
        x = pytest.importorskip("torch").as_tensor(x)
    report = infimum.testing.check_function(problem.view(problem.terms[0]).to(x), x)
    assert report.ok, report


def test_sampled_gradients_have_the_right_mean() -> None:
    for problem in (pca(components=2, batch=400), dictionary(components=3, batch=400)):
        body, x = problem.terms[0].body, problem._start
        rng = np.random.default_rng(3)
        draws = np.stack([body.sample_gradient(x, rng) for _ in range(400)])
        off = np.abs(draws.mean(axis=0) - body.gradient(x))
        assert (off <= 6.0 * draws.std(axis=0) / 20.0 + 1e-12).all()


def test_patches_and_whitening() -> None:
    pictures = np.arange(2 * 64, dtype=float).reshape(2, 8, 8)
    rows = patches(pictures, 4)
    assert rows.shape == (8, 16) and np.allclose(rows.mean(axis=1), 0.0)
    white = whitened(np.random.default_rng(4).standard_normal((500, 3)) @ np.diag([3.0, 1.0, 0.0]))
    assert white.shape == (500, 2) and np.allclose(white.T @ white / 500, np.eye(2))


def test_own_data(tmp_path: Any) -> None:
    table = np.random.default_rng(5).standard_normal((30, 4))
    np.save(tmp_path / "x.npy", table)
    np.savetxt(tmp_path / "x.csv", table, delimiter=",")
    for name in ("x.npy", "x.csv"):
        assert np.allclose(load({"file": str(tmp_path / name)}, "pogo.pca"), table)
    assert pca(data={"file": str(tmp_path / "x.npy")}, components=2).reference < 0
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    for file, said in (("bad.csv", "no table of numbers"), ("no.npy", "no such file"), ("x.txt", ".npy or .csv")):
        with pytest.raises(InputError, match=said):
            load({"file": str(tmp_path / file)}, "pogo.pca")
    with pytest.raises(InputError, match="components=5, but the data has 4 features"):
        pca(data={"file": str(tmp_path / "x.npy")}, components=5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: procrustes(p=5, n=3), "row-orthogonal needs p <= n"),
        (lambda: procrustes(p=3, n=4, group="rotations"), "group='rotations' needs real square matrices"),
        (lambda: procrustes(field="quaternion"), "field='quaternion'"),  # type: ignore
        (lambda: procrustes(noise=-1.0), r"noise=-1\.0"),
        (lambda: procrustes(batch=0), "batch=0; expected a whole number >= 1"),
        (lambda: procrustes(p="3"), "p='3'; expected a whole number"),  # type: ignore
        (lambda: pca(components=0), r"pogo\.pca: components=0; expected a whole number"),
        (lambda: pca(batch=2.5), r"batch=2\.5; expected a whole number"),  # type: ignore
        (lambda: dictionary(batch=0), r"pogo\.dictionary: batch=0"),
        (lambda: dictionary(patch=9), "patch=9; expected a side from 2 to 8"),
        (lambda: dictionary(components=17), "components=17, but there are 15 whitened features"),
        (lambda: load("faces", "pogo.pca"), "data='faces'; expected 'digits'"),
    ],
)
def test_problems_refuse(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_the_dictionary_finds_independent_parts() -> None:
    """Rotated sources that are sparse: the rows of X are the sources' axes, up to sign and order."""
    rng = np.random.default_rng(6)
    sources = rng.laplace(size=(6000, 4)) / math.sqrt(2.0)
    mix = polar(rng.standard_normal((4, 4)))
    for kind in ("logcosh", "l4"):
        term = Contrast(sources @ mix, kind, 4, 64)
        problem = infimum.Composite(term, constraints=Stiefel(), start=start((4, 4), 7))
        result = infimum.solve(problem, solver=Pogo(lr=0.1, base="vadam"), stopping="max_iter(150)", seed=0)
        found = np.abs(result.x @ mix.T)
        assert np.allclose(np.sort(found, axis=1)[:, -1], 1.0, atol=0.02), found
