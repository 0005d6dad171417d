"""Every wrong input has a message that names the thing, its value, what was expected and what to do."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import infimum
from infimum.constraints import Box
from infimum.errors import InfimumWarning, InputError, NonFiniteError, PlanError
from infimum.functions import L1, L2, Function, LeastSquares
from infimum.schedule import Power
from infimum_hjprox import EssAdaptive, Geometric, HJProx, NoiseFloor, PowerLaw, Separable, hj_prox

X = np.array([1.0, -2.0, 0.5])


def l1(Y):
    return abs(Y).sum(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t": 0.0}, r"hj_prox: t=0\.0; expected a positive finite number"),
        ({"t": -1}, r"t=-1; expected a positive"),
        ({"t": math.nan}, r"t=nan; expected a positive"),
        ({"delta": 0.0}, r"delta=0\.0; expected a positive finite number"),
        ({"delta": math.inf}, r"delta=inf; expected"),
        ({"n_samples": 0}, r"n_samples=0; expected a whole number >= 2"),
        ({"n_samples": 1}, r"n_samples=1; expected a whole number >= 2 \(one sample is a random point, not a prox\)"),
        ({"n_samples": 2.5}, r"n_samples=2\.5; expected a whole number >= 2"),
        ({"ess_min": 1.0}, r"ess_min=1\.0; expected a share of the samples, at least 0 and below 1"),
        ({"recenter": -1}, r"recenter=-1; expected a whole number >= 0"),
        ({"preset": "papers"}, r"preset='papers'; expected 'paper' or None"),
        ({"x": np.array([1.0 + 1j])}, r"x is complex \(\(1,\) complex128\); expected real numbers"),
        ({"x": np.array(["a"])}, r"x holds <U1 entries; expected real numbers"),
        ({"x": np.zeros((2, 2, 2))}, r"x is \(2, 2, 2\) float64; expected shape \(n,\), or \(B, n\) for a batch"),
        ({"x": np.zeros(0)}, r"x is \(0,\) float64; expected .* with entries"),
        ({"x": np.array([np.nan])}, r"x holds NaN or inf; expected finite numbers"),
        ({"f": 3.0}, r"f is a float; expected a callable"),
        ({"f": lambda Y: l1(Y)[:, None]}, r"returned shape \(1000, 1\) for 1000 points .* expected \(1000,\); drop"),
        ({"f": lambda Y: abs(Y)}, r"shape \(1000, 3\) .* expected \(1000,\); sum over the coordinates, or pass"),
        ({"f": lambda Y: abs(Y).sum()}, r"shape \(\) for 1000 .*: if f takes one point at a time, pass vectorized=F"),
        ({"f": lambda Y: l1(Y)[1:]}, r"returned shape \(999,\) for 1000 points of shape \(3,\); expected \(1000,\)"),
        ({"f": l1, "separable": True}, r"expected \(1000, 3\): with separable=True, f gives each coordinate's share"),
        ({"f": lambda Y: Y.astype(complex)[:, 0]}, r"f returned complex numbers \(\(1000,\) complex128\)"),
        ({"f": lambda Y: ["a"] * len(Y)}, r"f returned \(1000,\) <U1; expected real numbers"),
        ({"f": abs, "vectorized": False}, r"f returned \(3,\) float64 for one point of shape \(3,\); expected"),
        ({"f": lambda y: 1j, "vectorized": False}, r"f returned complex numbers"),
        ({"f": L2(), "separable": True}, r"separable=True, but f is no sum over its entries: f\(y\) = .*leave"),
        ({"f": Function(l1), "separable": True}, r"separable=True needs separable_values or values"),
        ({"f": Function(gradient=lambda x: x)}, r"offers no value; it offers gradient"),
        ({"f": Box(0, 1)}, r"f = Box.* is a set: its prox is the exact projection, f\.project\(x\)"),
    ],
)
def test_the_plain_function_refuses(options, message):
    given = {"f": l1, "x": X, "t": 0.5, "rng": 0, **options}
    with pytest.raises(InputError, match=message):
        hj_prox(given.pop("f"), given.pop("x"), given.pop("t"), **given)


@pytest.mark.parametrize(
    ("bad", "said"), [(np.nan, "NaN at sample 17 of 1000"), (-np.inf, "-inf at sample 17 of 1000")]
)
@pytest.mark.parametrize("separable", [False, True])
def test_nan_and_minus_infinity_are_located(bad, said, separable):
    def f(Y):
        out = abs(Y) if separable else l1(Y)
        out[17] = bad
        return out

    with pytest.raises(NonFiniteError, match=f"value of f returned {said}"):
        hj_prox(f, X, 0.5, separable=separable, rng=0)


def test_torch_points_want_torch_values():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(InputError, match=r"returned \(1000,\) float32 for torch points; expected a torch tensor"):
        hj_prox(lambda Y: l1(Y.numpy()), x, 0.5, rng=0)
    with pytest.raises(InputError, match=r"f returned complex numbers \(\(1000,\) complex64\)"):
        hj_prox(lambda Y: Y.sum(1) * 1j, x, 0.5, rng=0)


def test_an_indicator_is_a_warning_that_names_the_projection():
    with pytest.warns(InfimumWarning, match=r"one finite value, 0, and \+inf: it is the indicator .* exact projection"):
        hj_prox(lambda Y: np.where((Y >= 0).all(1), 0.0, np.inf), np.full(2, 0.1), 0.5, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hj_prox(lambda Y: np.where((Y >= 0).all(1), l1(Y), np.inf), np.full(2, 0.1), 0.5, rng=0)


def test_a_function_with_a_projection_is_a_warning_too():
    f = Function(lambda y: float(abs(y).sum()), project=lambda x: x * 0.0)
    with pytest.warns(InfimumWarning, match=r"its prox is the exact projection, f\.project\(x\)"):
        hj_prox(f, X, 0.5, n_samples=20, rng=0)


def test_jvp_refuses_what_does_not_fit():
    one, batch = (hj_prox(l1, x, 0.5, rng=0, full_output=True) for x in (X, np.stack([X, X])))
    with pytest.raises(InputError, match=r"u is \(2,\) float64, x is \(3,\) float64; expected equal shapes"):
        one.jvp(np.ones(2))
    with pytest.raises(InputError, match=r"x is a batch of 2 points"):
        batch.jvp(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HJProx(delta=-1.0), r"hjprox.prox: delta=-1\.0; expected a positive"),
        (lambda: HJProx(n_samples=1), r"n_samples=1; expected a whole number >= 2"),
        (lambda: HJProx(n_samples=EssAdaptive(100)), r"target from 1 on, a number of effective samples"),
        (lambda: PowerLaw(0.0, 2.0), r"PowerLaw schedule: initial must be above 0, got 0\.0"),
        (lambda: PowerLaw(1.0, 11.0), r"exponent must lie between -10 and 10, got 11\.0"),
        (lambda: PowerLaw(1.0, 1.0, floor=-1.0), r"floor must be 0 or above, got -1\.0"),
        (lambda: PowerLaw(1.0, 1.0, floor=1.0, ceiling=0.5), r"ceiling must be above 0 and at least the floor, 1"),
        (lambda: PowerLaw(math.nan, 1.0), r"initial must be a finite number, got nan"),
        (lambda: Geometric(1.0, 0.0), r"Geometric schedule: ratio must be above 0, got 0\.0"),
        (lambda: EssAdaptive(1.0, target=0.0), r"EssAdaptive schedule: target must be above 0, got 0\.0"),
        (lambda: EssAdaptive(1.0, factor=1.0), r"factor must be above 1, got 1\.0"),
        (lambda: NoiseFloor(of="value"), r"noise_floor: of='value'; expected 'residual' or 'grad_norm'"),
        (lambda: NoiseFloor(-1.0), r"noise_floor: factor must be >= 0, got -1\.0"),
        (lambda: Separable(3.0), r"Separable: phi is a float; expected a callable"),
        (lambda: Separable(abs, weight=0.0), r"Separable: weight=0\.0; expected a positive finite number"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("schedule", [PowerLaw(1.0, 1.0), Power(1.0, 2.0), PowerLaw(2.0, 0.5)])
def test_a_schedule_whose_roots_do_not_sum_is_a_warning(schedule):
    with pytest.warns(InfimumWarning, match=r"delta falls like 1/k\^.*: sum sqrt\(delta_k\) diverges .* a floor"):
        HJProx(delta=schedule)


def test_a_summable_or_floored_schedule_is_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for schedule in (PowerLaw(1.0, 2.1), PowerLaw(1.0, 1.0, floor=0.1), Geometric(1.0, 0.5), EssAdaptive(0.1)):
            HJProx(delta=schedule)


@pytest.mark.parametrize("name", ["delta", "n_samples"])
def test_a_schedule_that_returns_zero_is_named(name):
    part = HJProx(**{name: lambda k: 0.0}).bind(L1(), np.random.default_rng(0))
    with pytest.raises(InputError, match=rf"the schedule of {name}, .* returned 0\.0 at k = 0; expected a positive"):
        part.prox(X, 0.5)


def test_a_part_refuses_a_step_that_is_no_step():
    part = HJProx().bind(L1(), np.random.default_rng(0))
    with pytest.raises(InputError, match=r"hjprox.prox: t=0\.0; expected a positive finite number"):
        part.prox(X, 0.0)
    with pytest.raises(InputError, match="there is no last prox"):
        part.jvp(X)


def problem(constraints=(), penalty=None):
    A = np.random.default_rng(0).standard_normal((8, 3))
    return infimum.Composite({"loss": LeastSquares(A, A @ X), "penalty": penalty or L1(0.1)}, constraints=constraints)


def explained(**options):
    return infimum.solve(problem(**options), solver="splitting.davis_yin", oracles={"set": "hjprox.prox"}, seed=0)


def test_a_constraint_keeps_its_exact_projection():
    with pytest.raises(PlanError, match=r"leave hjprox\.prox out of oracles: its own project gives prox"):
        explained(constraints={"set": Box(0, 1)})


def test_a_function_with_a_projection_is_refused_by_the_oracle():
    indicator = Function(lambda x: 0.0, project=lambda x: x.clip(0), extended=True)
    with pytest.raises(PlanError, match=r"is refused by oracle hjprox\.prox: .* has an exact projection, which is"):
        infimum.solve(
            problem(penalty=indicator), solver="splitting.proximal_gradient", oracles={"penalty": "hjprox.prox"}, seed=0
        )


def test_separable_without_shares_is_refused_by_the_plan():
    with pytest.raises(PlanError, match=r"separable=True needs separable_values, or values at points of one entry"):
        infimum.solve(
            problem(penalty=Function(lambda x: 0.0)),
            solver="splitting.proximal_gradient",
            oracles={"penalty": {"use": "hjprox.prox", "separable": True}},
            seed=0,
        )
    with pytest.raises(PlanError, match=r"its values take points of shape \(3,\), so that one entry"):
        infimum.solve(
            problem(penalty=L1(np.ones(3))),
            solver="splitting.proximal_gradient",
            oracles={"penalty": {"use": "hjprox.prox", "separable": True}},
            seed=0,
        )


def test_acceleration_is_refused_unless_asked_for():
    solver = {"use": "splitting.proximal_gradient", "acceleration": True}
    with pytest.raises(PlanError, match=r"would be stochastic through oracle hjprox\.prox, but slot 'rest' "):
        infimum.solve(problem(), solver=solver, oracles={"penalty": "hjprox.prox"}, seed=0)
    with pytest.warns(InfimumWarning, match=r"slot 'rest' is stochastic, and acceleration amplifies its noise"):
        got = infimum.solve(
            problem(),
            solver={**solver, "allow_stochastic": True},
            oracles={"penalty": "hjprox.prox"},
            stopping="max_iter(3)",
            seed=0,
        )
    assert str(got.exactness) == "stochastic"


def test_a_missing_gradient_and_steps_beyond_the_bounds_are_refused_with_the_numbers():
    oracles = {"penalty": "hjprox.prox"}
    valued = infimum.Composite({"loss": Function(lambda x: float(x @ x)), "penalty": L1()}, start=X)
    with pytest.raises(PlanError, match=r"splitting\.proximal_gradient .*gradient"):
        infimum.solve(valued, solver="splitting.proximal_gradient", oracles=oracles, seed=0)
    with pytest.raises(InputError, match=r"step .* >= 2/L = "):
        infimum.solve(problem(), solver={"use": "splitting.davis_yin", "step": 1e3}, oracles=oracles, seed=0)
    with pytest.raises(InputError, match=r"tau\*sigma\*\|\|A\|\|\^2 = .* >= 1"):
        infimum.solve(
            infimum.Composite({"loss": L1(), "penalty": L1() @ np.eye(3)}, start=X),
            solver={"use": "splitting.pdhg", "tau": 2.0, "sigma": 2.0},
            oracles=oracles,
            seed=0,
        )


@pytest.mark.parametrize("batched", [False, True])
def test_an_undeclared_plus_infinity_ends_the_run_and_says_how_to_declare_it(batched):
    def value(x):
        return math.inf if x[0] < 0.9 else float(abs(x).sum())

    def values(Y):
        return np.array([value(y) for y in Y])

    f = Function(value, **({"values": values} if batched else {}))
    got = infimum.solve(
        problem(penalty=f),
        X,
        solver="splitting.proximal_gradient",
        oracles={"penalty": "hjprox.prox"},
        stopping="max_iter(5)",
        seed=0,
    )
    assert str(got.status) == "nonfinite" and "penalty" in got.message
    if batched:
        assert "declare it extended=True" in got.message


def test_no_usable_sample_ends_the_run_as_failed_with_the_best_point_kept():
    f = Function(lambda x: 0.0 if np.array_equal(x, X) else math.inf, extended=True)
    got = infimum.solve(
        problem(penalty=f),
        X,
        solver="splitting.proximal_gradient",
        oracles={"penalty": {"use": "hjprox.prox", "n_samples": 20}},
        stopping="max_iter(5)",
        seed=0,
    )
    assert str(got.status) == "failed" and "no feasible sample" in got.message
    np.testing.assert_array_equal(got.best_x, X)
