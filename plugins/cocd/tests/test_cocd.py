"""The coherent buffer by hand: formulas of the method, exact counts, checkpoints, diagnostics, refusals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import infimum
import infimum_cocd.differences as differences
from infimum import Composite
from infimum.errors import InfimumWarning, InputError, NonFiniteError
from infimum.functions import LeastSquares
from infimum.functions.base import Function
from infimum_cocd import Coherent, Descent, gain, staleness_bound

RNG = np.random.default_rng(0)
N = 7
TARGET = RNG.standard_normal(N)
CURVATURE = np.linspace(0.5, 2.0, N)


def quadratic(**facts):
    def value(x):
        return float(0.5 * (CURVATURE * (x - TARGET) ** 2).sum())

    return Function(value, **facts)


def quartic(x):
    return float((x**4).sum() + np.sin(x[0] * x[-1]))


def bind(function, **options):
    return Coherent(**options).bind(function, np.random.default_rng(0))


def by_hand(f, points, block, gamma, memory, eps, difference):
    """The method as it is written down: decay, refresh, forget."""
    n = len(points[0])
    g, pointer, recent, out = np.zeros(n), 0, [], []
    for x in points:
        g *= gamma
        for _ in range(block):
            e = np.zeros(n)
            e[pointer] = eps
            g[pointer] = (f(x + e) - f(x - e)) / (2 * eps) if difference == "central" else (f(x + e) - f(x)) / eps
            recent = [*recent, pointer][-memory:]
            pointer = (pointer + 1) % n
        out.append(np.where(np.isin(np.arange(n), recent), g, 0.0) if memory < n else g.copy())
    return out


@pytest.mark.parametrize("difference", ["central", "forward"])
@pytest.mark.parametrize(
    ("block", "gamma", "memory"), [(2, 1.0, N), (3, 0.9, N), (1, 0.0, N), (N, 1.0, N), (2, 0.7, 3), (4, 1.0, 2)]
)
@pytest.mark.parametrize("batched", [False, True])
def test_the_estimates_are_those_of_the_method(block, gamma, memory, difference, batched):
    points = [RNG.standard_normal(N) for _ in range(9)]
    more = {"values": lambda X: np.array([quartic(x) for x in X])} if batched else {}
    kept = memory if memory < N else None
    part = bind(Function(quartic, **more), block=block, gamma=gamma, memory=kept, eps=0.05, difference=difference)
    found = [part.gradient(x) for x in points]
    expected = by_hand(quartic, points, block, gamma, memory, 0.05, difference)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("difference", ["central", "forward"])
def test_queries_are_counted_exactly(difference):
    seen = []

    def value(x):
        seen.append(x)
        return float(x @ x)

    part = bind(Function(value), block=3, difference=difference)
    part.gradient(np.ones(N))
    assert len(seen) == (6 if difference == "central" else 4)
    del seen[:]
    assert part.value_and_gradient(np.ones(N))[0] == N
    assert len(seen) == (7 if difference == "central" else 4)


def test_batches_stay_below_the_memory_bound(monkeypatch):
    sizes = []

    def values(X):
        sizes.append(len(X))
        return (X**2).sum(1)

    f = Function(lambda x: float(x @ x), values=values)
    whole = bind(f, block=5).gradient(np.ones(N))
    monkeypatch.setattr(differences, "BATCH_BYTES", 3 * 8 * N)
    np.testing.assert_array_equal(bind(f, block=5).gradient(np.ones(N)), whole)
    assert sizes == [10, 3, 3, 3, 1]


@pytest.mark.parametrize("eps", [1e-3, 0.1, 10.0])
def test_central_differences_are_exact_for_quadratics_at_any_eps(eps):
    x = RNG.standard_normal(N)
    np.testing.assert_allclose(bind(quadratic(), block=N, eps=eps).gradient(x), CURVATURE * (x - TARGET), atol=1e-10)


def test_an_entry_is_the_difference_at_the_step_of_its_last_refresh():
    points = [RNG.standard_normal(N) for _ in range(6)]
    part = bind(quadratic(), block=2)
    for x in points:
        found = part.gradient(x)
    for i, age in enumerate(part.ages):
        assert found[i] == pytest.approx(CURVATURE[i] * (points[-1 - age][i] - TARGET[i]), abs=1e-10)
    assert part.staleness == part.ages.max() == 3


@pytest.mark.parametrize("block", [1, 2, 3, 5, N])
def test_a_shuffled_cycle_takes_every_coordinate_once(block):
    part = bind(quadratic(), block=block, order="shuffled cycle")
    taken = []
    for _ in range(3 * N):
        before = np.full(N, -1) if part.buffer is None else part.buffer.serial
        part.gradient(np.zeros(N))
        changed = np.flatnonzero(part.buffer.serial != before)
        assert len(changed) == block
        taken += sorted(changed, key=lambda i: part.buffer.serial[i])
    cycles = np.reshape(taken[: N * (len(taken) // N)], (-1, N))
    assert all(sorted(cycle) == list(range(N)) for cycle in cycles)
    assert block == N or len({tuple(cycle) for cycle in cycles}) > 1


def test_init_fills_the_buffer():
    x = RNG.standard_normal(N)
    exact = CURVATURE * (x - TARGET)
    np.testing.assert_allclose(bind(quadratic(), block=2, init="full").gradient(x), exact, atol=1e-10)
    given = bind(quadratic(), block=2, gamma=0.5, init=list(range(N))).gradient(x)
    np.testing.assert_allclose(given, [*exact[:2], *(0.5 * np.arange(2, N))], atol=1e-10)


def test_the_solver_is_gradient_descent_with_the_oracle():
    problem = Composite({"f": quadratic()})
    options = {"block": 2, "gamma": 0.9, "eps": 0.1}
    one = infimum.solve(problem, np.zeros(N), solver=Descent(lr=0.1, **options), stopping="max_iter(25)", seed=0)
    other = infimum.solve(
        problem,
        np.zeros(N),
        solver={"use": "splitting.gradient_descent", "step": 0.1},
        oracles={"f": {"use": "cocd.coherent", **options}},
        stopping="max_iter(25)",
        seed=0,
    )
    np.testing.assert_array_equal(one.x, other.x)
    assert one.evaluations["f"]["value"] == 26 * 4
    assert other.exactness == "approximate"


def test_the_whole_block_is_difference_gradient_descent_and_no_reuse_is_block_descent():
    start, lr = np.zeros(N), 0.2
    run = {"stopping": "max_iter(10)", "seed": 0}
    x = infimum.solve(Composite({"f": quadratic()}), start, solver=Descent(lr=lr, block=N), **run).x
    np.testing.assert_allclose(x - TARGET, (1 - lr * CURVATURE) ** 10 * -TARGET, atol=1e-12)
    x = infimum.solve(Composite({"f": quadratic()}), start, solver=Descent(lr=lr, block=1, gamma=0.0), **run).x
    times = np.array([2, 2, 2, 1, 1, 1, 1])
    np.testing.assert_allclose(x - TARGET, (1 - lr * CURVATURE) ** times * -TARGET, atol=1e-12)


def test_separable_quadratics_contract_like_k_times_the_step():
    """After c cycles the error of coordinate i in block j is e_i (1 - K lr h_i)^(c-1) (1 - (K - j) lr h_i)."""
    n, block, lr, cycles = 12, 4, 0.2, 5
    K, h = n // block, np.linspace(0.2, 1.5, n)
    f = Function(lambda x: float(0.5 * (h * x * x).sum()))
    stop = f"max_iter({K * cycles})"
    x = infimum.solve(Composite({"f": f}), np.ones(n), solver=Descent(lr=lr, block=block), stopping=stop, seed=0).x
    j = np.arange(n) // block
    np.testing.assert_allclose(x, (1 - K * lr * h) ** (cycles - 1) * (1 - (K - j) * lr * h), atol=1e-12)


@pytest.mark.parametrize(("factor", "stable"), [(0.99, True), (1.01, False)])
def test_stability_ends_where_k_lr_h_is_2(factor, stable):
    n, block = 12, 4
    lr = factor * 2.0 / (n // block)
    f = Function(lambda x: float(0.5 * (x * x).sum()))
    run = {"stopping": "max_iter(2000)", "seed": 0}
    x = infimum.solve(Composite({"f": f}), np.ones(n), solver=Descent(lr=lr, block=block), **run).x
    assert bool(np.abs(x).max() < 1e-2) is stable


@pytest.mark.parametrize("block", [1, 3, 5, 8, 53])
def test_the_staleness_bound_holds(block):
    """Theorem 5.3 in the 1-norm, along a path of gradient steps on a function with coupled coordinates."""
    n = 53
    A = np.random.default_rng(3).standard_normal((n, n)) / math.sqrt(n)
    f = LeastSquares(A, np.ones(n))
    L = float(np.linalg.norm(A.T @ A / n, 2))
    part = bind(f, block=block)
    x, tight = np.zeros(n), 0.0
    for k in range(4 * n):
        g = part.gradient(x)
        if k * block >= 2 * n:
            error = float(np.abs(g - f.gradient(x)).sum())
            assert error <= part.staleness_bound * (1 + 1e-9) + 1e-10
            if part.staleness_bound:
                tight = max(tight, error / part.staleness_bound)
        x = x - (0.5 / (L * n / block)) * g
    assert block == n or tight > 0.01


def test_the_bound_in_numbers():
    assert staleness_bound(2.0, 0.5, 10, 10) == 0.0
    # K = 3, r = 1: entries 1 and 2 steps old, 3 each, and one 3 steps old.
    assert staleness_bound(2.0, 0.5, 10, 3) == pytest.approx(1.0 * (3 * 1 + 3 * 2 + 1 * 3))
    assert gain(10, 5) == 2.0
    assert gain(12, 4, 0.5) == pytest.approx(1 + 0.5 + 0.25)
    assert gain(12, 4, 0.0) == 1.0


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_coherence_of_successive_estimates(gamma):
    part = bind(quadratic(), block=2, gamma=gamma)
    one, other = part.gradient(np.zeros(N)), part.gradient(np.ones(N))
    assert part.coherence == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
    assert part.estimate_change == pytest.approx(np.linalg.norm(other - one))


def test_diagnostics_stand_in_the_trace_and_steer_rules():
    result = infimum.solve(
        Composite({"f": quadratic(shape=(N,), lipschitz=2.0)}),
        solver=Descent(block=2),
        stopping="grad_norm(1e-8) | max_iter(2000)",
        record=["coherence", "staleness", "staleness_bound", "effective_step"],
        seed=0,
    )
    assert result.status == "converged"
    assert result.metrics["staleness"] == 3.0
    assert result.metrics["effective_step"] == pytest.approx(0.5)
    assert result.metrics["staleness_bound"] < 1e-6
    np.testing.assert_allclose(result.x, TARGET, atol=1e-8)


@pytest.mark.parametrize("options", [{"block": 3}, {"block": 2, "order": "shuffled cycle", "gamma": 0.9}])
def test_a_run_resumes_bit_for_bit_in_mid_cycle(options):
    def prepare():
        solver = Descent(lr=0.05, difference="forward", eps=1e-4, **options)
        return infimum.prepare(
            Composite({"f": quadratic()}), np.zeros(N), solver=solver, stopping="max_iter(9)", seed=3
        )

    whole, first, second = prepare(), prepare(), prepare()
    first.advance(4)
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(whole.solve().x, second.solve().x)


@pytest.mark.parametrize("one", [Coherent(gamma=0.5, init=[1, 2]), Descent(lr=0.1, order="shuffled cycle")])
def test_both_travel_to_other_processes(one):
    twin = pickle.loads(pickle.dumps(one))
    assert twin == one
    assert repr(twin) == repr(one)
    assert set(twin.metrics) == set(one.metrics)


def test_weight_decay_moves_what_the_buffer_covers():
    flat = Function(lambda x: 0.0)
    solver = Descent(lr=0.5, weight_decay=0.2, block=2, memory=2)
    x = infimum.solve(Composite({"f": flat}), np.ones(5), solver=solver, stopping="max_iter(2)", seed=0).x
    np.testing.assert_allclose(x, [0.9, 0.9, 0.9, 0.9, 1.0])


def test_a_part_knows_that_reuse_lengthens_steps():
    known = quadratic(shape=(N,), lipschitz=2.0)
    assert bind(known, block=2).lipschitz == pytest.approx(2.0 * N / 2)
    assert bind(known, block=2, gamma=0.0).lipschitz == 2.0
    assert bind(quadratic(shape=(N,)), block=2).lipschitz is None
    result = infimum.solve(
        Composite({"f": known}),
        solver="splitting.gradient_descent",
        oracles={"f": {"use": "cocd.coherent", "block": 2}},
        stopping="max_iter(300)",
        seed=0,
    )
    np.testing.assert_allclose(result.x, TARGET, atol=1e-6)
    with pytest.warns(InfimumWarning, match=r"lipschitz=2 but no shape.*3\.5 times too long.*shape=\(7,\)"):
        bind(quadratic(lipschitz=2.0), block=2).gradient(np.zeros(N))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_points_agree_with_numpy(dtype):
    torch = pytest.importorskip("torch")
    f = Function(lambda x: (x**4).sum(), values=lambda X: (X**4).sum(1))
    points = [RNG.standard_normal(N).astype(dtype) for _ in range(5)]
    ours, theirs = (bind(f, block=3, gamma=0.9, memory=5) for _ in range(2))
    for x in points:
        one, other = ours.gradient(x), theirs.gradient(torch.as_tensor(x))
    assert one.dtype == dtype
    assert str(other.dtype) == f"torch.{dtype}"
    np.testing.assert_allclose(other.numpy(), one, rtol=1e-3 if dtype == "float32" else 1e-10)


def test_auto_takes_the_plain_differences_first():
    plan = infimum.explain(
        Composite({"f": quadratic(shape=(N,), lipschitz=2.0)}), solver="splitting.gradient_descent", oracles="auto"
    )
    assert "zeroth.forward_difference" in str(plan)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 0}, r"block=0: refresh at least 1 of the coordinates per step"),
        ({"block": 2.5}, r"block=2\.5; expected a whole number of coordinates"),
        ({"block": True}, r"block=True; expected a whole number"),
        ({"gamma": 1.5}, r"gamma=1\.5; expected a number from 0 \(no reuse\) to 1"),
        ({"gamma": math.nan}, r"gamma=nan; expected a number from 0"),
        ({"memory": 0}, r"memory=0: keep from 1 entry to the number n of coordinates"),
        ({"order": "random"}, r"order='random'; expected 'cyclic' or 'shuffled cycle'"),
        ({"difference": "complex"}, r"difference='complex'; expected 'central' or 'forward'"),
        ({"eps": 0.0}, r"eps=0\.0; expected a positive finite number"),
        ({"eps": math.inf}, r"eps=inf; expected a positive finite number"),
        ({"init": "ones"}, r"init='ones'; expected 'zeros' or 'full'"),
        ({"init": [1.0, math.nan]}, r"init holds NaN or inf"),
        ({"init": "full", "memory": 2}, r"init fills the whole buffer, memory=2 keeps a part"),
    ],
)
@pytest.mark.parametrize("target", [Coherent, Descent])
def test_options_out_of_range_are_refused(target, options, message):
    with pytest.raises(InputError, match=message):
        target(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, r"lr=-1\.0; expected a positive"),
        ({"weight_decay": -0.1}, r"weight_decay=-0\.1; expected a finite"),
    ],
)
def test_options_of_the_solver_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Descent(**options)


@pytest.mark.parametrize(
    ("options", "x", "message"),
    [
        ({"block": 9}, np.zeros(N), r"block=9: there are only n=7 coordinates"),
        ({"memory": 9}, np.zeros(N), r"memory=9: keep from 1 entry to n=7"),
        ({"init": [1.0]}, np.zeros(N), r"init has 1 entries, x has n=7"),
        ({}, np.zeros(0), r"x is empty"),
        ({}, np.zeros(N, dtype=complex), r"x holds complex128 entries; expected real"),
        ({}, np.zeros(N, dtype=int), r"x holds int64 entries; expected real"),
        ({"eps": 1e-9}, np.full(N, 1e9), r"eps=1e-09 vanishes beside x\[0\] = 1e\+09 in float64; give a larger eps"),
    ],
)
def test_points_that_do_not_fit_are_refused(options, x, message):
    with pytest.raises(InputError, match=message):
        bind(quadratic(), **options).gradient(x)


@pytest.mark.parametrize("oracle", [False, True])
def test_a_run_whose_points_run_away_ends_with_its_best_point_kept(oracle):
    """eps vanishes beside them before the host calls it divergence."""
    gradient_descent = {
        "solver": {"use": "splitting.gradient_descent", "step": 1.0},
        "oracles": {"f": Coherent(block=2)},
    }
    result = infimum.solve(
        Composite({"f": quadratic()}),
        np.ones(N),
        **(gradient_descent if oracle else {"solver": Descent(lr=1.0, block=2)}),
        stopping="max_iter(2000)",
        seed=0,
    )
    assert result.status == "failed" and not result.success
    assert "vanishes beside x[" in result.message and "if the points run away, shorter steps" in result.message
    assert result.best_value <= quadratic().value(np.ones(N))


def test_another_shape_is_refused():
    part = bind(Function(lambda x: float(x @ x)))
    part.gradient(np.zeros(4))
    with pytest.raises(InputError, match=r"x is \(5,\), the buffer was made for \(4,\)"):
        part.gradient(np.zeros(5))


def test_auto_needs_a_constant():
    with pytest.raises(InputError, match=r"lr='auto' is 1/\(L G\), but no Lipschitz constant"):
        infimum.solve(Composite({"f": quadratic()}), np.zeros(N), solver=Descent(), stopping="max_iter(1)")


def test_a_step_beyond_stability_is_a_warning_in_numbers():
    problem = Composite({"f": quadratic(shape=(N,), lipschitz=2.0)})
    with pytest.warns(InfimumWarning, match=r"K\*lr=3\.5: with gamma=1 the effective step is \(n/block\)\*lr.*2/L=1 "):
        infimum.prepare(problem, solver=Descent(lr=1.0, block=2), stopping="max_iter(1)")
    with pytest.warns(InfimumWarning, match=r"effective step 1\.82: with gamma=0\.5 .* reduce lr or gamma"):
        infimum.prepare(problem, solver=Descent(lr=1.0, block=2, gamma=0.5), stopping="max_iter(1)")


@pytest.mark.parametrize(("difference", "eps", "floor"), [("central", 1e-6, "0.006"), ("forward", 1e-5, "0.0005")])
def test_an_eps_below_the_noise_floor_is_a_warning(difference, eps, floor):
    f = Function(lambda x: 2.3 + float(x @ x))
    with pytest.warns(InfimumWarning, match=rf"eps=1e-0\d is below the float32 noise floor \(~{floor}\) of f≈2\.3"):
        bind(f, difference=difference, eps=eps).gradient(np.full(4, 1e-3, dtype=np.float32))


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(("bad", "kind"), [(math.nan, "NaN"), (math.inf, "inf")])
def test_a_bad_value_names_its_coordinate_and_leaves_the_buffer_alone(batched, bad, kind):
    def value(x):
        return bad if x[2] > 0.05 else float(x @ x)

    more = {"values": lambda X: np.array([value(x) for x in X])} if batched else {}
    part = bind(Function(value, **more), block=2)
    before = part.gradient(np.zeros(4))
    with pytest.raises(NonFiniteError, match=rf"returned {kind} at coordinate 2 \(\+eps\); nothing of this step"):
        part.gradient(np.zeros(4))
    np.testing.assert_array_equal(part.buffer.estimate, before)


def test_nan_ends_a_run_and_names_term_and_coordinate():
    f = Function(lambda x: math.nan if x[3] < -0.05 else float(x @ x))
    result = infimum.solve(Composite({"f": f}), np.zeros(4), solver=Descent(lr=0.1, block=2), stopping="max_iter(9)")
    assert result.status == "nonfinite"
    assert "term 'f' returned NaN at coordinate 3 (-eps)" in result.message
