"""The oracle in the plan: part, schedules, state, metrics, the noise floor."""

from __future__ import annotations

import math

import numpy as np
import pytest

import infimum
from infimum.exactness import Exactness
from infimum.functions import L1, Function, LeastSquares
from infimum.status import Status
from infimum.stopping import UNKNOWN, Progress, max_iter, parse
from infimum_hjprox import EssAdaptive, Geometric, HJProx, NoiseFloor, PowerLaw, Separable, hj_prox, l1_limit

X = np.array([1.0, -2.0, 0.5, 0.0])


def bind(f=None, seed=0, **options):
    return HJProx(**options).bind(f or L1(), np.random.default_rng(seed))


def regression(n=4, penalty=None, **more):
    A = np.random.default_rng(1).standard_normal((20, n))
    x = np.where(np.arange(n) < 2, 1.0, 0.0)
    return infimum.Composite({"loss": LeastSquares(A, A @ x), "penalty": penalty or L1(0.1)}, **more)


def test_what_the_plan_reads():
    oracle = HJProx()
    assert (oracle.kind, oracle.supplies, oracle.exactness) == ("proximal", ("prox",), Exactness.stochastic)
    assert set(oracle.metrics) == {"prox_error", "ess", "delta", "grad_noise", "residual_noise"}


def test_the_part_is_the_plain_function_in_any_shape():
    for shape in ((4,), (2, 2), (4, 1)):
        v = X.reshape(shape)
        got = bind(n_samples=500, delta=0.2).prox(v, 0.5)
        assert got.shape == shape
        plain = hj_prox(lambda Y: abs(Y).sum(1), X, 0.5, n_samples=500, delta=0.2, rng=0)
        np.testing.assert_allclose(got.reshape(-1), plain, rtol=1e-12)


@pytest.mark.parametrize("separable", [False, True])
def test_the_part_knows_its_last_prox(separable):
    part = bind(n_samples=4000, delta=0.5, separable=separable)
    assert part.prox_error is None and part.ess is None
    part.prox(X, 0.5)
    assert 0 < part.prox_error < 0.1 and part.ess > 100 and part.delta >= 0.5
    assert part.grad_noise == part.residual_noise == part.prox_error / 0.5
    first = part.evaluations
    part.prox(X, 4.0)
    assert part.grad_noise == part.prox_error / 4.0 and part.residual_noise == part.prox_error
    assert part.k == 2 and part.evaluations == first + part.last.evaluations
    slope = (l1_limit(X + 1e-5, 4.0, part.delta) - l1_limit(X - 1e-5, 4.0, part.delta)) / 2e-5
    np.testing.assert_allclose(part.jvp(np.ones(4)), slope, atol=0.25)
    scale = part.last.delta * 4.0
    np.testing.assert_allclose(part.covariance(np.ones(4)), scale * part.jvp(np.ones(4)), rtol=1e-6)


def test_an_error_that_means_nothing_is_not_told():
    part = bind(n_samples=100, delta=1e-4, preset="paper")
    part.prox(X, 1.0)
    assert part.ess < 5 and part.prox_error is None and part.residual_noise is None


def test_state_goes_on_bit_for_bit_with_every_schedule():
    options = {"delta": EssAdaptive(0.01), "n_samples": EssAdaptive(100, target=50.0, ceiling=400.0)}
    whole, first, second = bind(**options), bind(**options), bind(seed=5, **options)
    expected = [whole.prox(X + k, 0.5) for k in range(6)]
    for k in range(3):
        first.prox(X + k, 0.5)
    second.load_state_dict(first.state_dict())
    for k in range(3, 6):
        np.testing.assert_array_equal(second.prox(X + k, 0.5), expected[k])


def test_schedules_by_the_number():
    assert [PowerLaw(8.0, 3.0, floor=0.5)(k) for k in (0, 1, 3)] == [8.0, 1.0, 0.5]
    assert [PowerLaw(100.0, -1.0, ceiling=250.0)(k) for k in range(3)] == [100.0, 200.0, 250.0]
    assert [Geometric(1.0, 0.5, floor=0.2)(k) for k in range(4)] == pytest.approx([1.0, 0.5, 0.25, 0.2])
    assert Geometric(1.0, 2.0)(10**6) < math.inf and Geometric(1.0, 0.5)(10**6) == 0.0
    adaptive = EssAdaptive(1.0, target=0.1, factor=2.0, floor=0.3, ceiling=1.5)
    assert [adaptive(k) for k in (0, 9)] == [1.0, 1.0]
    assert [adaptive.adapt(1.0, ess, 100) for ess in (5, 15, 25)] == [1.5, 1.0, 0.5]
    assert EssAdaptive(100, target=50.0).adapt(100.0, 20.0, 100) == 150.0


def test_schedules_are_asked_at_each_prox():
    seen = []
    f = Function(lambda x: 0.0, values=lambda Y: seen.append(len(Y)) or Y[:, 0] * 0)
    part = bind(f, delta=Geometric(1.0, 0.5), n_samples=PowerLaw(10.0, -1.0))
    used = [(part.prox(X, 1.0), part.delta)[1] for _ in range(3)]
    assert used == pytest.approx([1.0, 0.5, 0.25]) and seen == [10, 20, 30]


def test_the_adaptive_delta_finds_what_the_samples_can_serve():
    part = bind(delta=EssAdaptive(1e-6, target=0.1), preset="paper", n_samples=2000)
    for _ in range(60):
        part.prox(X, 1.0)
    assert 0.05 < part.ess / 2000 < 0.35 and part.delta > 1e-3


def test_separable_shares_from_the_function_or_from_single_entries():
    results = [
        bind(f, separable=True, n_samples=200).prox(X, 0.5)
        for f in (Separable(abs), L1(), Function(lambda x: float(abs(x).sum()), extra={"separable_values": abs}))
    ]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)
    np.testing.assert_allclose(results[2], results[0], rtol=1e-12)


def test_a_separable_function_offers_the_same_values_three_ways():
    f, Y = Separable(lambda x: x**2, weight=0.5), np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(f.values(Y), [f.value(y) for y in Y])
    np.testing.assert_allclose(f.separable_values(Y), 0.5 * Y**2)
    assert repr(Separable(np.abs, 2.0)) == "Separable(absolute, weight=2)"


@pytest.mark.parametrize("batched", [False, True])
def test_the_host_counts_every_sample(batched):
    f = Function(lambda x: 0.1 * float(abs(x).sum()), **({"values": lambda Y: 0.1 * abs(Y).sum(1)} if batched else {}))
    got = infimum.solve(
        regression(penalty=f),
        solver="splitting.proximal_gradient",
        oracles={"penalty": HJProx(n_samples=50, preset="paper")},
        stopping="max_iter(10)",
        seed=3,
    )
    assert got.evaluations["penalty"]["value"] == 500
    assert got.exactness == "stochastic" and got.tail_x is not None


def test_metrics_reach_trace_and_rules():
    got = infimum.solve(
        regression(),
        solver="splitting.proximal_gradient",
        oracles={"penalty": HJProx(n_samples=200)},
        stopping="max_iter(5)",
        record=["prox_error", "ess", "delta"],
        seed=3,
    )
    assert all(one > 5 for one in got.trace["ess"][1:]) and all(one >= 0.1 for one in got.trace["delta"][1:])
    assert all(0 < one < 1 for one in got.trace["prox_error"][1:])


@pytest.mark.parametrize(
    ("solver", "of"), [("splitting.proximal_gradient", "grad_norm"), ("splitting.douglas_rachford", "residual")]
)
def test_the_noise_floor_ends_a_run_as_stalled(solver, of):
    step = {"step": 0.05} if "rachford" in solver else {}
    got = infimum.solve(
        regression(),
        solver={"use": solver, **step},
        oracles={"penalty": HJProx(n_samples=1000, delta=0.1)},
        stopping=NoiseFloor(2.0, of) | max_iter(3000),
        seed=4,
    )
    assert got.status is Status.stalled and got.iterations < 1000, got
    assert "times the sampling error of the prox" in got.message
    assert got.tail_value < regression().value(np.zeros(4))
    # What it has reached is as good as what three times as many iterations reach.
    far = infimum.solve(
        regression(),
        solver={"use": solver, **step},
        oracles={"penalty": HJProx(n_samples=1000, delta=0.1)},
        stopping=max_iter(3 * got.iterations),
        seed=4,
    )
    assert got.value < far.tail_value + 0.02


def test_the_noise_floor_rule_by_the_number():
    tracker = NoiseFloor(2.0, "grad_norm", patience=2).start()

    def say(value, noise):
        return tracker.update(Progress(1, 0.0, metrics={"grad_norm": value, "grad_noise": noise}))

    assert say(None, 1.0) is UNKNOWN and say(1.0, None) is UNKNOWN and say(math.nan, 1.0) is UNKNOWN
    assert say(2.1, 1.0) is None and say(1.9, 1.0) is None and say(2.1, 1.0) is None and say(1.0, 1.0) is None
    reason = say(1.5, 1.0)
    assert reason.status is Status.stalled and reason.values == {"grad_norm": 1.5, "grad_noise": 1.0}
    text = str(NoiseFloor(3.0, of="grad_norm"))
    assert parse(text, resolve=lambda name: NoiseFloor) == NoiseFloor(3.0, "grad_norm")


def test_the_noise_floor_needs_the_solvers_metric():
    with pytest.raises(infimum.InfimumError, match="residual"):
        infimum.solve(
            regression(),
            solver="splitting.proximal_gradient",
            oracles={"penalty": HJProx()},
            stopping=NoiseFloor() | max_iter(3),
            seed=4,
        )


def test_no_minimizer_is_never_a_convergence():
    problem = infimum.Composite({"f": Function(lambda x: float(x.sum()), values=lambda Y: Y.sum(1))}, start=np.zeros(2))
    got = infimum.solve(
        problem,
        solver="splitting.proximal_point",
        oracles={"f": HJProx(n_samples=200)},
        stopping="max_iter(60) | grad_norm(1e-6) | hjprox.noise_floor(2, of='grad_norm')",
        seed=0,
    )
    assert got.status is Status.limit and got.value < -50


@pytest.mark.parametrize("separable", [False, True])
def test_a_resumed_run_is_the_whole_run(separable):
    def run():
        return infimum.prepare(
            regression(),
            solver="splitting.proximal_gradient",
            oracles={"penalty": HJProx(n_samples=100, delta=EssAdaptive(0.01), separable=separable)},
            stopping="max_iter(12)",
            seed=6,
        )

    whole, first = run().solve(), run()
    first.advance(5)
    second = run().load_state_dict(first.state_dict()).solve()
    np.testing.assert_array_equal(second.x, whole.x)
    assert second.evaluations == whole.evaluations


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_run_on_torch_points(dtype, separable):
    torch = pytest.importorskip("torch")
    more = {
        "solver": "splitting.proximal_gradient",
        "oracles": {"penalty": HJProx(n_samples=500, separable=separable)},
        "stopping": "max_iter(60)",
        "seed": 6,
    }
    got = infimum.solve(regression(), torch.zeros(4, dtype=getattr(torch, dtype)), **more)
    ours = infimum.solve(regression(), np.zeros(4), **more)
    assert str(got.x.dtype) == f"torch.{dtype}"
    np.testing.assert_allclose(got.tail_x.numpy(), ours.tail_x, atol=0.05)
    half = infimum.solve(regression(), np.zeros(4, dtype), **more)
    assert half.x.dtype == dtype
