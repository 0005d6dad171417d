"""PDHG, Condat–Vũ and ADMM: identities, certificates, step conditions, maps and blocks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import infimum
from infimum.constraints import Box, Nonnegative
from infimum.errors import InputError
from infimum.functions import L1, L2, LeastSquares, SquaredL2
from infimum_splitting import ADMM, PDHG, CondatVu, DouglasRachford, ProximalGradient

RNG = np.random.default_rng(5)
A, B = RNG.standard_normal((20, 6)), RNG.standard_normal(20)
START = RNG.standard_normal(6)
LOSS = LeastSquares(A, B, reduction="sum")
D = np.diff(np.eye(6), axis=0)
SOLVERS = [PDHG(), CondatVu(), ADMM()]


def moreau(function):
    return lambda v, s: v - s * function.prox(v / s, 1.0 / s)


def dual(function, matrix=None):
    """A function under a map, as a dual slot hands it over."""
    forward, adjoint = (lambda x: x, lambda y: y) if matrix is None else (lambda x: matrix @ x, lambda y: matrix.T @ y)
    norm = 1.0 if matrix is None else float(np.linalg.norm(matrix, 2))
    return SimpleNamespace(
        prox=function.prox, prox_conjugate=moreau(function), map=forward, adjoint=adjoint, norm=norm, lipschitz=None
    )


def states(solver, parts, steps, start=START):
    out = [solver.init(parts, start, np.random.default_rng(0))]
    for _ in range(steps):
        out.append(solver.step(parts, out[-1]))
    return out


def metric(solver, name, state):
    return solver.metrics[name].get(state)


# Identities.


@pytest.mark.parametrize("tau", [0.02, 0.3])
def test_pdhg_without_a_map_at_the_boundary_is_douglas_rachford(tau):
    """With A = I and tau sigma = 1, z = x - tau y follows Douglas–Rachford with step tau."""
    penalty = 2.0 * L1()
    out = states(PDHG(tau=tau, sigma=1 / tau), SimpleNamespace(primal=LOSS, dual=(dual(penalty),)), 30)
    z = START - tau * out[1].y[0]
    reference = states(DouglasRachford(step=tau), SimpleNamespace(first=LOSS, second=penalty), 30, z)
    for ours, theirs in zip(out[1:], reference[1:], strict=True):
        np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-8, atol=1e-10)


def test_admm_without_a_map_is_douglas_rachford_on_its_second_function():
    """x of ADMM with penalty rho is the second prox of Douglas–Rachford with step 1/rho, begun at z = A x0."""
    penalty, rho = 2.0 * L1(), 3.0
    out = states(ADMM(rho=rho), SimpleNamespace(first=LOSS, second=(dual(penalty),)), 30)
    y, z = np.zeros(6), START
    for state in out[1:]:
        x = LOSS.prox(z - y / rho, 1 / rho)
        z = penalty.prox(x + y / rho, 1 / rho)
        y = y + rho * (x - z)
        np.testing.assert_allclose(state.x, x, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(state.y[0], y, rtol=1e-9, atol=1e-10)
        assert metric(ADMM, "primal_residual", state) == pytest.approx(np.linalg.norm(x - z), rel=1e-6, abs=1e-12)


def test_admm_is_the_linearized_recursion_with_a_map():
    penalty, square = 2.0 * L1(), np.linalg.norm(D, 2) ** 2
    for rho in (0.5, 4.0):
        tau = 1 / (rho * square)
        out = states(ADMM(rho=rho), SimpleNamespace(first=LOSS, second=(dual(penalty, D),)), 20)
        x, y, z = START, np.zeros(5), D @ START
        for state in out[1:]:
            x = LOSS.prox(x - tau * D.T @ (y + rho * (D @ x - z)), tau)
            z = penalty.prox(D @ x + y / rho, 1 / rho)
            y = y + rho * (D @ x - z)
            np.testing.assert_allclose(state.x, x, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(state.y[0], y, rtol=1e-9, atol=1e-10)


def test_condat_vu_without_a_dual_part_is_proximal_gradient():
    penalty = 2.0 * L1()
    ours = states(CondatVu(), SimpleNamespace(smooth=LOSS, primal=penalty, dual=()), 30)
    plain = states(ProximalGradient(), SimpleNamespace(smooth=LOSS, rest=penalty), 30)
    for mine, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(mine.x, other.x, rtol=1e-12, atol=1e-14)


def test_condat_vu_without_a_smooth_term_is_pdhg():
    penalty, none = L1(), SimpleNamespace(gradient=np.zeros_like, lipschitz=0.0)
    parts = SimpleNamespace(smooth=none, primal=LOSS, dual=(dual(penalty, D),))
    for options in ({"tau": 0.1, "sigma": 0.2}, {"ratio": 3.0}, {"sigma": 0.3}, {"tau": 0.3}):
        ours, theirs = states(CondatVu(**options), parts, 20), states(PDHG(**options), parts, 20)
        np.testing.assert_allclose(ours[-1].x, theirs[-1].x, rtol=1e-10, atol=1e-13)


def test_pdhg_without_a_dual_part_is_the_proximal_point_method():
    out = states(PDHG(tau=0.5), SimpleNamespace(primal=LOSS, dual=()), 5)
    x = START
    for state in out[1:]:
        x = LOSS.prox(x, 0.5)
        np.testing.assert_allclose(state.x, x)
        assert metric(PDHG, "dual_residual", state) == 0.0


def test_several_dual_parts_are_one_under_the_stacked_map():
    two = SimpleNamespace(primal=LOSS, dual=(dual(L1(), D), dual(L1(), A[:4])))
    one = SimpleNamespace(primal=LOSS, dual=(dual(L1(), np.vstack([D, A[:4]])),))
    for ours, theirs in zip(
        states(PDHG(tau=0.05, sigma=0.1), two, 20), states(PDHG(tau=0.05, sigma=0.1), one, 20), strict=True
    ):
        np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.concatenate(ours.y), theirs.y[0], rtol=1e-9, atol=1e-12)
        if theirs.x_from is not None:
            for name in ("primal_residual", "dual_residual"):
                assert metric(PDHG, name, ours) == pytest.approx(metric(PDHG, name, theirs), rel=1e-9)


def test_every_map_and_adjoint_is_applied_once_an_iteration():
    for solver in SOLVERS:
        counts = {"map": 0, "adjoint": 0}
        part = dual(L1(), D)
        forward, adjoint = part.map, part.adjoint

        def counted(name, call, counts=counts):
            def apply(x):
                counts[name] += 1
                return call(x)

            return apply

        part.map, part.adjoint = counted("map", forward), counted("adjoint", adjoint)
        parts = SimpleNamespace(smooth=LOSS, primal=SquaredL2(), first=LOSS, dual=(part,), second=(part,))
        out = states(solver, parts, 10)
        assert counts == {"map": 11, "adjoint": 10}
        [metric(solver, name, out[-1]) for name in solver.metrics]
        assert counts == {"map": 11, "adjoint": 10}


# Certificates.


@pytest.mark.parametrize("solver", [*SOLVERS, ADMM(balance=True), PDHG(ratio=50.0)], ids=repr)
def test_residuals_are_those_of_the_optimality_conditions(solver):
    """f = 1/2 ||x - a||^2, h = the loss, g = 1/2 ||. - c||^2: every subgradient is a number that can be computed."""
    a, c = RNG.standard_normal(6), RNG.standard_normal(5)
    f, g = SquaredL2().translate(a), SquaredL2().translate(c)
    part = dual(g, D)
    parts = SimpleNamespace(smooth=LOSS, primal=f, first=f, dual=(part,), second=(part,))
    for state in states(solver, parts, 60)[1:]:
        x, y = state.x, state.y[0]
        slope = x - a + D.T @ y
        if isinstance(solver, CondatVu):
            slope = slope + LOSS.gradient(x)
        name = "dual_residual" if isinstance(solver, ADMM) else "primal_residual"
        assert metric(solver, name, state) == pytest.approx(np.linalg.norm(slope), rel=1e-6, abs=1e-11)
        # g*(y) = ||y||^2/2 + <c, y>, so its gradient is y + c; ADMM's z is that number.
        name = "primal_residual" if isinstance(solver, ADMM) else "dual_residual"
        assert metric(solver, name, state) == pytest.approx(np.linalg.norm(y + c - D @ x), rel=1e-6, abs=1e-11)
        assert metric(solver, "residual", state) == pytest.approx(
            max(metric(solver, "primal_residual", state), metric(solver, "dual_residual", state))
        )


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_start_knows_no_residual(solver):
    part = dual(L1(), D)
    parts = SimpleNamespace(smooth=LOSS, primal=SquaredL2(), first=LOSS, dual=(part,), second=(part,))
    state = solver.init(parts, START, np.random.default_rng(0))
    assert [metric(solver, name, state) for name in ("residual", "primal_residual", "dual_residual")] == [None] * 3
    assert solver.solution(state) is START


@pytest.mark.parametrize("make", [PDHG, CondatVu, ADMM])
def test_an_empty_intersection_never_looks_converged(make):
    problem = infimum.Composite(
        {"pull": SquaredL2()}, constraints={"low": Box(upper=0.0), "high": Box(lower=1.0)}, start=np.full(3, 0.4)
    )
    result = infimum.solve(problem, solver=make(), stopping="max_iter(3000) | residual(1e-2)")
    assert not result.success


# Steps.


def test_pdhg_refuses_steps_that_are_too_long_with_the_numbers():
    with pytest.raises(
        InputError,
        match=r"splitting\.pdhg: tau\*sigma\*\|\|A\|\|\^2 = 2 >= 1 \(tau = 2, sigma = 1, \S+ = 1\).* sigma < 0\.5",
    ):
        infimum.prepare(
            infimum.Composite({"a": SquaredL2(), "b": L1()}, start=np.ones(3)), solver=PDHG(tau=2.0, sigma=1.0)
        )
    two = infimum.Composite({"a": SquaredL2(), "b": L1() @ (2 * D), "c": L2() @ D}, start=np.ones(6))
    square = 5 * np.linalg.norm(D, 2) ** 2
    with pytest.raises(InputError, match=rf"\|\|A\|\|\^2 = {square:.4g}\)"):
        infimum.prepare(two, solver=PDHG(tau=1.0, sigma=1.0))
    with pytest.raises(InputError, match=r"= 1 >= 1"):
        infimum.prepare(
            infimum.Composite({"a": SquaredL2(), "b": L1()}, start=np.ones(3)), solver=PDHG(tau=1.0, sigma=1.0)
        )


def test_condat_vu_refuses_steps_that_are_too_long_with_the_numbers():
    parts = SimpleNamespace(smooth=SimpleNamespace(lipschitz=4.0), primal=L1(), dual=(dual(L1()),))
    with pytest.raises(
        InputError, match=r"1/tau - sigma\*\|\|A\|\|\^2 = 1\.5 <= L/2 = 2 \(tau = 0\.5, sigma = 0\.5, .*L = 4\)"
    ):
        CondatVu(tau=0.5, sigma=0.5).check(parts)
    with pytest.raises(InputError, match=r"1/tau = 2 <= L/2 = 2 .*no sigma makes up for that; take tau < 2/L = 0\.5"):
        CondatVu(tau=0.5).check(parts)
    CondatVu(tau=0.25, sigma=1.9).check(parts)
    parts.smooth = SimpleNamespace(lipschitz=0.0)
    with pytest.raises(InputError, match=r"tau\*sigma\*\|\|A\|\|\^2 = 4 >= 1"):
        CondatVu(tau=2.0, sigma=2.0).check(parts)
    parts.smooth = SimpleNamespace(lipschitz=None)
    with pytest.raises(InputError, match=r"lipschitz=L.*give both as numbers"):
        CondatVu(tau=0.5).check(parts)


def test_admm_refuses_too_long_a_step_with_the_numbers():
    parts = SimpleNamespace(first=SquaredL2(), second=(dual(L1(), 2.0 * np.eye(3)),))
    with pytest.raises(
        InputError, match=r"tau\*rho\*\|\|A\|\|\^2 = 2 > 1 \(tau = 0\.5, rho = 1, .*\): .*take tau <= 0\.25, or 'auto'"
    ):
        ADMM(tau=0.5, rho=1.0).check(parts)
    ADMM(tau=0.25, rho=1.0).check(parts)


@pytest.mark.parametrize("make", [PDHG, CondatVu])
def test_automatic_steps_satisfy_the_condition_and_the_ratio(make):
    for constant in (0.0, 1e-3, 1.0, 1e4):
        for scale in (1e-3, 1.0, 30.0):
            smooth = SimpleNamespace(lipschitz=constant)
            parts = SimpleNamespace(smooth=smooth, primal=smooth, dual=(dual(L1(), scale * D),))
            for options in ({}, {"ratio": 7.0}, {"sigma": 0.1}, {"tau": 1e-5}):
                solver = make(**options)
                solver.check(parts)
                tau, sigma = solver.steps(parts)
                if "ratio" in options:
                    assert sigma / tau == pytest.approx(7.0)
                if constant and not options:
                    assert sigma / tau == pytest.approx(constant**2 / (scale * np.linalg.norm(D, 2)) ** 2)


@pytest.mark.parametrize("make", [PDHG, CondatVu])
def test_steps_that_are_no_positive_numbers_are_refused(make):
    for option in ("tau", "sigma", "ratio"):
        for bad in (0, -1.0, float("nan"), "fast", True):
            with pytest.raises(InputError, match=rf"{option}={bad!r}; expected a positive finite number, or 'auto'"):
                make(**{option: bad})
    with pytest.raises(InputError, match=r"ratio=2 sets sigma / tau of the automatic steps, but tau=0\.1"):
        make(tau=0.1, ratio=2.0)


@pytest.mark.parametrize("option", ["rho", "tau"])
def test_admm_refuses_what_is_no_positive_number(option):
    with pytest.raises(InputError, match=rf"admm: {option}=-1; expected a positive finite number, or 'auto'"):
        ADMM(**{option: -1})


def test_balancing_brings_a_bad_penalty_near_and_then_leaves_it():
    problem = infimum.Composite({"loss": LOSS, "tv": 2.0 * L1() @ D})
    rule = "max_iter(4000) | residual(1e-8)"
    counts, last = {}, None
    for balance in (False, True):
        run = infimum.prepare(problem, solver=ADMM(rho=1e-4, balance=balance), stopping=rule)
        counts[balance] = run.solve().iterations
        last = run.state
    assert counts[True] < 0.5 * counts[False]
    assert last.rho != 1e-4
    assert last.tau * last.rho == pytest.approx(1 / np.linalg.norm(D, 2) ** 2)


# Through the host.


def test_slots_take_what_they_say():
    problem = infimum.Composite(
        {"loss": LOSS, "tv": 0.5 * L1() @ D, "size": 0.1 * L2() @ A[:3]}, constraints=[Nonnegative()]
    )
    placed = {one.term: one.slot for one in infimum.prepare(problem, solver=PDHG()).plan.placements}
    assert placed == {"loss": "primal", "tv": "dual", "size": "dual", "nonnegative": "dual"}
    placed = {one.term: one.slot for one in infimum.prepare(problem, solver=CondatVu()).plan.placements}
    assert placed == {"loss": "smooth", "tv": "dual", "size": "dual", "nonnegative": "primal"}


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_blocks_reach_the_dual_parts_in_their_shapes(solver):
    """min 1/2 ||u - p||^2 + 1/2 ||w - q||^2 + ||u||_1 + ||D w||_1 + indicator: each block is what it is alone."""
    p, q = 3 * RNG.standard_normal(4), RNG.standard_normal(6)
    problem = infimum.Composite(
        {
            "fit_u": SquaredL2().translate(p),
            "fit_w": SquaredL2().translate(q),
            "sparse": L1(),
            "tv": 0.3 * L1() @ D,
        },
        constraints={"positive": Nonnegative()},
        blocks={"u": (4,), "w": (6,)},
        on={"fit_u": "u", "fit_w": "w", "sparse": "u", "tv": "w", "positive": "w"},
    )
    result = infimum.solve(problem, solver=solver, stopping="max_iter(20000) | residual(1e-10)")
    assert result.success
    np.testing.assert_allclose(result.x["u"], np.sign(p) * np.maximum(np.abs(p) - 1, 0), atol=1e-8)
    alone = infimum.Composite(
        {"fit": SquaredL2().translate(q), "tv": 0.3 * L1() @ D}, constraints=[Nonnegative()], start=np.zeros(6)
    )
    expected = infimum.solve(alone, solver=solver, stopping="max_iter(20000) | residual(1e-10)").x
    np.testing.assert_allclose(result.x["w"], expected, atol=1e-8)
