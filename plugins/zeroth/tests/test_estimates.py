"""Central and complex steps, random directions, sign vectors, blocks and replay: errors, bias, counts, resume."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import infimum
import infimum_zeroth.mezo as mezo_module
import infimum_zeroth.queries as queries
from infimum.checkpoint import freeze, thaw
from infimum.errors import InfimumWarning, InputError, PlanError
from infimum.exactness import Exactness
from infimum.functions import L1, Function
from infimum_zeroth import (
    CentralDifference,
    ComplexStep,
    ForwardDifference,
    Mezo,
    RandomBlock,
    RandomDirections,
    Spsa,
)

X = np.random.default_rng(0).standard_normal((2, 3))
C = np.array([[1.0, -2.0, 0.5], [0.3, 1.5, -1.0]])
N = X.size


def smooth(x):
    """Analytic, neither linear nor quadratic, in NumPy and torch alike."""
    c = C if isinstance(x, np.ndarray) else x.new_tensor(C, dtype=x.real.dtype)
    return (c * x + x**2 + x**3 / 3).sum() + x[0, 0] * x[1, 2]


def slope(x):
    out = C + 2 * x + x**2
    out[0, 0] += x[1, 2]
    out[1, 2] += x[0, 0]
    return out


def quadratic(x):
    return float((C * x + x**2).sum())


def quadratic_slope(x):
    return C + 2 * x


class Counted(Function):
    """Counts its points for itself."""

    def __init__(self, value, batched=False):
        self.points = 0
        more = {"values": self._many} if batched else {}
        self._value = value
        super().__init__(self._one, **more)

    def _one(self, x):
        self.points += 1
        return self._value(x)

    def _many(self, points):
        self.points += points.shape[0]
        return np.array([self._value(x) for x in points])


def bind(oracle, function=smooth, seed=0):
    function = function if isinstance(function, Function) else Function(function)
    return oracle.bind(function, np.random.default_rng(seed))


RANDOM = {
    "gaussian": RandomDirections(4),
    "sphere": RandomDirections(4, "sphere"),
    "one_sided": RandomDirections(4, two_sided=False),
    "spsa": Spsa(directions=2),
    "spsa_gains": Spsa(0.1, 0.101),
    "block": RandomBlock(2),
    "plain_block": RandomBlock(2, scaled=False),
    "central_block": RandomBlock(difference="central"),
    "mezo": Mezo(directions=2),
}
ALL = {**RANDOM, "forward": ForwardDifference(), "central": CentralDifference(), "complex": ComplexStep()}


# Deterministic differences.


@pytest.mark.parametrize(("oracle", "order"), [(ForwardDifference, 1), (CentralDifference, 2)])
def test_the_error_falls_with_its_order(oracle, order):
    errors = [np.abs(bind(oracle(eps=eps)).gradient(X) - slope(X)).max() / eps**order for eps in (1e-1, 1e-2, 1e-3)]
    np.testing.assert_allclose(errors, errors[0], rtol=0.15)
    assert errors[0] > 0.1


def test_the_defaults_are_as_accurate_as_their_order_allows():
    errors = {name: np.abs(bind(ALL[name]).gradient(X) - slope(X)).max() for name in ("forward", "central", "complex")}
    assert 1e-9 < errors["forward"] < 3e-7
    assert 1e-13 < errors["central"] < 3e-9
    assert errors["complex"] < 1e-14


def test_central_differences_are_exact_for_quadratics_at_any_step():
    np.testing.assert_allclose(bind(CentralDifference(3.0), quadratic).gradient(X), quadratic_slope(X), atol=1e-12)


def test_a_complex_step_does_not_depend_on_its_length():
    wanted = bind(ComplexStep()).gradient(X)
    np.testing.assert_allclose(bind(ComplexStep(1e-60)).gradient(X), wanted, rtol=1e-14)
    value, gradient = bind(ComplexStep()).value_and_gradient(X)
    assert value == smooth(X)
    np.testing.assert_allclose(gradient, slope(X), rtol=1e-14)


@pytest.mark.parametrize("name", ["forward", "central", "complex"])
def test_float32_and_torch_agree(name):
    torch = pytest.importorskip("torch")
    tolerance = {"forward": 2e-2, "central": 2e-3, "complex": 2e-6}[name]
    single = bind(ALL[name]).gradient(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, slope(X), atol=tolerance)
    double = bind(ALL[name]).gradient(torch.as_tensor(X))
    np.testing.assert_allclose(double.numpy(), slope(X), atol=3e-7)
    assert bind(ALL[name]).gradient(torch.as_tensor(X).float()).dtype == torch.float32


# Random estimates.


@pytest.mark.parametrize(
    ("oracle", "expected"),
    [
        (RandomDirections(1, eps=0.1), 1.0),
        (RandomDirections(3, "sphere", eps=0.1), 1.0),
        (RandomDirections(1, two_sided=False, eps=1e-6), 1.0),
        (Spsa(0.1), 1.0),
        (Spsa(0.5, 0.2, 2), 1.0),
        (RandomBlock(2, difference="central"), 1.0),
        (RandomBlock(4, difference="forward"), 1.0),
        (RandomBlock(2, scaled=False, difference="central"), 2 / N),
        (Mezo(0.1), 1.0),
        (Mezo(0.1, directions=3), 1.0),
    ],
)
def test_the_mean_is_the_gradient_of_a_quadratic(oracle, expected):
    """Unbiased at any step, two-sided: the mean of many estimates lies within 5 of its own standard errors."""
    part = bind(oracle, quadratic, seed=3)
    many = np.array([part.gradient(X) for _ in range(1000)])
    error = many.mean(0) - expected * quadratic_slope(X)
    assert np.all(np.abs(error) <= 5 * many.std(0) / math.sqrt(len(many)) + 1e-5)
    assert np.all(many.std(0) > 0.1)


@pytest.mark.parametrize(
    ("oracle", "factor"),
    [
        (RandomDirections(1, eps=0.1), N + 1),
        (RandomDirections(5, eps=0.1), (N + 1) / 5),
        (RandomDirections(1, "sphere", eps=0.1), N - 1),
        (Spsa(0.1), N - 1),
        (RandomBlock(2, difference="central"), N / 2 - 1),
        (Mezo(0.1), N + 1),
    ],
)
def test_the_variance_is_what_the_documentation_says(oracle, factor):
    part = bind(oracle, lambda x: float((C * x).sum()), seed=5)
    many = np.array([part.gradient(X) for _ in range(3000)])
    found = many.var(0).sum() / np.vdot(C, C)
    assert found == pytest.approx(factor, rel=0.12)


def test_gains_fall_as_stated():
    seen = []

    def record(x):
        seen.append(x.copy())
        return quadratic(x)

    part = bind(Spsa(0.5, 0.25), record)
    for _ in range(3):
        part.gradient(X)
    widths = [np.abs(one - X) for one in seen]
    for k in range(3):
        np.testing.assert_allclose(widths[2 * k], 0.5 / (k + 1) ** 0.25)
        np.testing.assert_allclose(widths[2 * k + 1], 0.5 / (k + 1) ** 0.25)


def test_a_block_holds_partial_derivatives_and_zeros():
    plain = bind(RandomBlock(2, scaled=False, difference="central"), seed=4).gradient(X)
    kept = plain != 0
    assert kept.sum() == 2
    np.testing.assert_allclose(plain[kept], slope(X)[kept], atol=1e-7)
    np.testing.assert_array_equal(bind(RandomBlock(2, difference="central"), seed=4).gradient(X), plain * 3)
    assert (bind(RandomBlock(), seed=4).gradient(X) != 0).sum() == 3


def test_sphere_directions_have_one_length():
    seen = []
    part = bind(RandomDirections(3, "sphere", eps=0.5), lambda x: seen.append(x.copy()) or quadratic(x))
    part.gradient(X)
    np.testing.assert_allclose([np.linalg.norm(one - X) for one in seen], 0.5 * math.sqrt(N))


# Counts and batches.

COSTS = [
    (ForwardDifference(), N + 1, N + 1),
    (CentralDifference(), 2 * N + 1, 2 * N + 1),
    (CentralDifference(1e-4), 2 * N, 2 * N),
    (ComplexStep(), N + 3, N + 1),
    (RandomDirections(5), 11, 10),
    (RandomDirections(5, eps=1e-4), 10, 10),
    (RandomDirections(5, two_sided=False), 6, 6),
    (Spsa(), 3, 2),
    (Spsa(0.1, directions=4), 8, 8),
    (RandomBlock(2), 3, 3),
    (RandomBlock(2, difference="central"), 5, 5),
    (RandomBlock(2, difference="central", eps=1e-4), 4, 4),
    (Mezo(directions=3), 7, 6),
    (Mezo(1e-4), 2, 2),
]


@pytest.mark.parametrize(("oracle", "first", "later"), COSTS)
@pytest.mark.parametrize("batched", [False, True])
def test_a_gradient_costs_what_the_table_says(oracle, first, later, batched):
    function = Counted(smooth, batched)
    part = bind(oracle, function)
    part.gradient(X)
    assert function.points == first
    for _ in range(3):
        part.gradient(X)
    assert function.points == first + 3 * later


@pytest.mark.parametrize("oracle", [CentralDifference(1e-4), RandomBlock(2, difference="central", eps=1e-4)])
def test_the_value_costs_one_more(oracle):
    function = Counted(smooth)
    value, gradient = bind(oracle, function, seed=2).value_and_gradient(X)
    assert value == smooth(X)
    assert function.points == (5 if isinstance(oracle, RandomBlock) else 2 * N + 1)
    np.testing.assert_array_equal(bind(oracle, seed=2).gradient(X), gradient)


@pytest.mark.parametrize("name", ALL)
def test_batches_are_loops(name, monkeypatch):
    loops = bind(ALL[name], Counted(smooth))
    batches = bind(ALL[name], Counted(smooth, batched=True))
    expected = [loops.gradient(X) for _ in range(3)]
    np.testing.assert_array_equal([batches.gradient(X) for _ in range(3)], expected)
    monkeypatch.setattr(queries, "BATCH_BYTES", 2 * X.nbytes + 1)
    monkeypatch.setattr(mezo_module, "CHUNK", 4)
    function = Counted(smooth, batched=True)
    largest = []
    many = function.values
    function.values = lambda points: largest.append(points.shape[0]) or many(points)
    chunked = bind(ALL[name], function)
    np.testing.assert_allclose([chunked.gradient(X) for _ in range(3)], expected, rtol=1e-12)
    assert not largest or max(largest) <= 2


@pytest.mark.parametrize("name", RANDOM)
def test_torch_draws_the_numbers_of_numpy(name):
    torch = pytest.importorskip("torch")
    ours, theirs = bind(RANDOM[name]), bind(RANDOM[name])
    for dtype, tolerance in ((np.float64, 1e-6), (np.float32, 0.2)):
        x = X.astype(dtype)
        found = theirs.gradient(torch.as_tensor(x))
        assert str(found.dtype).endswith(np.dtype(dtype).name)
        assert tuple(found.shape) == X.shape
        expected = ours.gradient(x)
        assert expected.dtype == dtype
        if name != "mezo":  # draws on the device of the point
            np.testing.assert_allclose(found.numpy(), expected, atol=tolerance)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    "oracle", [ForwardDifference(0.25), CentralDifference(0.25), Spsa(0.25, directions=64), Mezo(0.25)]
)
def test_bfloat16_points_work_within_their_precision(oracle, batched):
    torch = pytest.importorskip("torch")
    more = {"values": lambda points: points.float().sum(1)} if batched else {}
    function = Function(lambda x: float(x.float().sum()), **more)
    gradient = bind(oracle, function).gradient(torch.ones(4, dtype=torch.bfloat16))
    assert gradient.dtype == torch.bfloat16
    if not isinstance(oracle, Mezo):
        np.testing.assert_allclose(gradient.float().numpy(), 1.0, atol=1.2 if isinstance(oracle, Spsa) else 0.02)


def test_replay_with_torch_is_unbiased_and_leaves_the_point_alone():
    torch = pytest.importorskip("torch")
    x = torch.as_tensor(X).requires_grad_()
    before = x.detach().clone()
    part = bind(Mezo(0.1, directions=1000), lambda x: float((torch.as_tensor(C) * x + x**2).sum()))
    gradient = part.gradient(x)
    assert torch.equal(x, before)
    assert not gradient.requires_grad
    np.testing.assert_allclose(
        gradient.numpy(), quadratic_slope(X), atol=5 * math.sqrt(2 / 1000) * np.linalg.norm(quadratic_slope(X))
    )


def test_whole_numbers_are_values_too():
    count = Function(lambda x: int(x.sum()), values=lambda points: points.sum(1).astype(int))
    assert bind(ForwardDifference(2.0), count).gradient(np.ones(2)).tolist() == [1.0, 1.0]


def test_replay_fills_one_array(monkeypatch):
    monkeypatch.setattr(mezo_module, "CHUNK", 4)
    seen = set()
    part = bind(Mezo(directions=3), lambda x: seen.add(x.ctypes.data) or quadratic(x))
    part.gradient(X)
    assert len(seen) == 1
    assert X.ctypes.data not in seen


# State.


@pytest.mark.parametrize("name", ALL)
def test_a_part_resumes_bit_for_bit(name):
    whole, first, second = bind(ALL[name]), bind(ALL[name]), bind(ALL[name], seed=9)
    expected = [whole.gradient(X + 0.1 * k) for k in range(6)]
    for k in range(3):
        first.gradient(X + 0.1 * k)
    second.load_state_dict(thaw(freeze(first.state_dict())))
    np.testing.assert_array_equal([second.gradient(X + 0.1 * k) for k in range(3, 6)], expected[3:])


@pytest.mark.parametrize("name", ALL)
def test_a_run_resumes_bit_for_bit_with_its_counts(name):
    def prepare():
        return infimum.prepare(
            Function(smooth),
            np.zeros((2, 3)),
            solver={"use": "splitting.gradient_descent", "step": 0.01},
            oracles={"objective": ALL[name]},
            stopping="max_iter(8)",
            seed=5,
        )

    whole, first = prepare().solve(), prepare()
    first.advance(3)
    second = prepare().load_state_dict(first.state_dict()).solve()
    np.testing.assert_array_equal(second.x, whole.x)
    assert second.evaluations == whole.evaluations
    assert str(whole.exactness) == ("stochastic" if name in RANDOM else "approximate")
    function = Counted(smooth)
    part = bind(ALL[name], function)
    for _ in range(9):
        offers = "value_and_gradient" in ALL[name].supplies
        (part.value_and_gradient if offers else part.gradient)(np.zeros((2, 3)))
    assert whole.evaluations == {"objective": {"value": function.points}}


# Stochastic functions.


def noisy(x, rng):
    return quadratic(x) + 10.0 * rng.standard_normal()


STOCHASTIC = [
    ForwardDifference(1e-3, common=True),
    CentralDifference(1e-3, common=True),
    RandomDirections(8, eps=1e-3, common=True),
    Spsa(1e-3, directions=8, common=True),
    RandomBlock(2, eps=1e-3, common=True),
    Mezo(1e-3, directions=8, common=True),
]


@pytest.mark.parametrize("oracle", STOCHASTIC, ids=lambda one: type(one).__name__)
def test_common_random_numbers_cancel_the_noise(oracle):
    assert (oracle.needs, oracle.supplies, oracle.wants) == (("sample_value",), ("gradient",), ())
    assert oracle.exactness is Exactness.stochastic
    exact = replace(oracle, common=None)
    function = Function(extra={"sample_value": noisy})
    assert np.abs(oracle.bind(function, np.random.default_rng(1)).gradient(X)).max() < 100
    apart = replace(oracle, common=False)
    assert np.abs(apart.bind(function, np.random.default_rng(1)).gradient(X)).max() > 500
    if not isinstance(oracle, RandomDirections | Spsa | RandomBlock | Mezo):
        found = oracle.bind(function, np.random.default_rng(1)).gradient(X)
        np.testing.assert_allclose(found, bind(exact, quadratic).gradient(X), atol=1e-8)


@pytest.mark.parametrize("common", [True, False])
def test_seeds_are_shared_within_an_estimate_only(common):
    drawn = []

    def sample(x, rng):
        drawn.append(rng.standard_normal())
        return quadratic(x)

    part = ForwardDifference(common=common).bind(Function(extra={"sample_value": sample}), np.random.default_rng(0))
    part.gradient(X)
    part.gradient(X)
    assert [len(set(drawn[: N + 1])), len(set(drawn[N + 1 :]))] == ([1, 1] if common else [N + 1, N + 1])
    assert drawn[0] != drawn[-1]


def test_a_stochastic_function_is_minimized():
    result = infimum.solve(
        Function(extra={"sample_value": noisy}),
        np.zeros((2, 3)),
        solver={"use": "splitting.gradient_descent", "step": 0.05},
        oracles={"objective": {"use": "zeroth.spsa", "c": 0.1, "common": True, "directions": 2}},
        stopping="max_iter(300)",
        seed=0,
    )
    np.testing.assert_allclose(result.x, -C / 2, atol=1e-4)
    assert result.evaluations == {"objective": {"sample_value": 4 * 301}}


# Messages.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CentralDifference(0.0), r"central_difference: eps=0\.0; expected a positive finite number"),
        (lambda: ComplexStep(math.inf), r"complex_step: eps=inf; expected a positive finite number"),
        (lambda: RandomDirections(0), r"random_directions: directions=0; expected a whole number from 1"),
        (lambda: RandomDirections(eps=math.nan), r"random_directions: eps=nan; expected a positive"),
        (lambda: RandomDirections(distribution="cube"), r"distribution='cube'; expected 'gaussian' or 'sphere'"),
        (lambda: Spsa(-1.0), r"spsa: c=-1\.0; expected a positive"),
        (lambda: Spsa(decay=-0.1), r"spsa: decay=-0\.1; expected a finite number from 0"),
        (lambda: Spsa(directions=0), r"spsa: directions=0; expected a whole number"),
        (lambda: RandomBlock(0), r"random_block: block=0; expected a whole number from 1"),
        (lambda: RandomBlock(difference="both"), r"difference='both'; expected 'forward' or 'central'"),
        (lambda: RandomBlock(eps=0.0), r"random_block: eps=0\.0"),
        (lambda: Mezo(eps=0.0), r"mezo: eps=0\.0"),
        (lambda: Mezo(directions=0), r"mezo: directions=0"),
        (lambda: bind(RandomBlock(7)).gradient(X), r"block=7 of the n=6 coordinates of x; expected 1 to 6"),
        (
            lambda: bind(RandomDirections(eps=1e-30)).gradient(X),
            r"a step of 1e-30 vanishes .* float64; give a larger eps",
        ),
        (lambda: bind(Spsa(1e-30)).gradient(X), r"spsa: a step of 1e-30 vanishes .*; give a larger c"),
        (lambda: bind(Mezo(1e-30)).gradient(X), r"mezo: a step of 1e-30 vanishes beside x in float64"),
        (
            lambda: bind(CentralDifference(1e-20)).gradient(X),
            r"central_difference: eps=1e-20 vanishes beside x\[0\] = 0\.1.* in float64",
        ),
        (lambda: bind(ForwardDifference()).gradient(X + 1j), r"x is complex .*; pass real and imaginary parts"),
        (lambda: bind(Mezo()).gradient(X + 1j), r"mezo: x is complex"),
        (
            lambda: bind(ComplexStep(), lambda x: float((x @ x.T).trace())).gradient(X),
            r"complex_step: the function fails on complex points .*; use zeroth\.central_difference",
        ),
        (
            lambda: bind(ComplexStep(), lambda x: np.linalg.norm(x)).gradient(X),
            r"returned a real number for a complex point: .* such as x @ x",
        ),
        (
            lambda: bind(ComplexStep(), lambda x: (x * x.conj()).sum() + 0j).gradient(X),
            r"predict a change of .* where real values change by .*: the function is not analytic",
        ),
    ],
)
def test_a_mistake_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "oracle",
    [RandomDirections(eps=1e-5), Spsa(1e-5), Mezo(1e-5), ForwardDifference(1e-5, relative=False)],
    ids=lambda one: type(one).__name__,
)
def test_points_that_run_away_end_a_run_with_its_best_point_kept(oracle):
    result = infimum.solve(
        Function(lambda x: float(x @ x)),
        np.ones(5),
        solver={"use": "splitting.gradient_descent", "step": 3.0},
        oracles={"objective": oracle},
        stopping="max_iter(2000)",
        seed=0,
    )
    assert result.status == "failed" and "vanishes beside" in result.message
    assert "if the points run away, shorter steps" in result.message
    assert result.best_value <= 5.0


@pytest.mark.parametrize("oracle", [CentralDifference(1e-12), RandomDirections(eps=1e-12), Spsa(1e-12)])
def test_below_the_noise_floor_is_a_warning(oracle):
    with pytest.warns(InfimumWarning, match=r"rounding drowns the gradient: \|f\(x\)\| = 1e\+06 .* (eps|c) of about"):
        bind(oracle, lambda x: 1e6 + 1e-3 * quadratic(x)).gradient(X)


def test_functions_of_real_points_are_refused_by_the_plan():
    with pytest.raises(PlanError, match=r"refused by oracle zeroth\.complex_step: it is defined for real points only"):
        infimum.solve(
            L1(),
            np.ones(3),
            solver={"use": "splitting.gradient_descent", "step": 0.1},
            oracles={"objective": "zeroth.complex_step"},
            stopping="max_iter(1)",
        )
    assert ComplexStep().refuses(Function(smooth)) is None


def test_the_complex_step_goes_through_the_host():
    result = infimum.solve(
        Function(lambda x: (x * x).sum() / 2 - x[0]),
        np.ones(3),
        solver={"use": "splitting.gradient_descent", "step": 1.0},
        oracles={"objective": "zeroth.complex_step"},
        stopping="max_iter(3)",
    )
    np.testing.assert_allclose(result.x, [1, 0, 0], atol=1e-15)
    assert result.evaluations == {"objective": {"value": 4 * 4 + 2}}


def test_auto_takes_the_forward_difference():
    result = infimum.solve(
        Function(lambda x: float(x @ x)),
        np.ones(3),
        solver={"use": "splitting.gradient_descent", "step": 0.1},
        oracles="auto",
        stopping="max_iter(1)",
    )
    assert "zeroth.forward_difference" in str(result.plan)
