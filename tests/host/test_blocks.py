"""Named blocks in one vector: packing, functions, sets and maps on blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from infimum.constraints import Box, Nonnegative
from infimum.errors import InputError, UnknownNameError
from infimum.functions import L1, L2, Function, LeastSquares, Linear, SquaredL2
from infimum.functions.blocks import Layout, OnBlock, Separable, place, place_map
from infimum.functions.maps import BlockMap, LinearMap

RNG = np.random.default_rng(2)
LAYOUT = Layout({"L": (3, 2), "S": (4,), "z": ()})
x = RNG.standard_normal(LAYOUT.size)
A = RNG.standard_normal((5, 4))
LOSS = LeastSquares(A, A[:, 0])


def test_pack_and_unpack_are_inverse_and_unpack_gives_views():
    blocks = LAYOUT.unpack(x)
    assert {name: one.shape for name, one in blocks.items()} == {"L": (3, 2), "S": (4,), "z": ()}
    assert all(np.shares_memory(one, x) for one in blocks.values())
    assert np.array_equal(LAYOUT.pack(blocks), x)
    assert np.array_equal(LAYOUT.pack(dict(reversed(blocks.items()))), x)
    assert LAYOUT.slices["S"] == slice(6, 10)
    assert LAYOUT.size == 11
    assert Layout({"x": 3}).shapes == {"x": (3,)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout({}), r"blocks are empty"),
        (lambda: Layout({"x": (0, 2)}), r"block 'x' has shape \(0, 2\); expected positive sizes"),
        (lambda: Layout({"a": 2, "b": 2}).pack({"a": np.ones(2)}), r"no array for block 'b'"),
        (lambda: Layout({"a": 2}).pack({"a": np.ones(3)}), r"block 'a' is \(3,\) float64; expected .* \(2,\)"),
        (
            lambda: Layout({"a": 1, "b": 1}).pack({"a": np.ones(1), "b": np.ones(1, np.float32)}),
            r"block 'b' is \(1,\) float32, block 'a' is \(1,\) float64",
        ),
        (lambda: LAYOUT.check(np.ones(3)), r"L \(3, 2\), S \(4,\), z \(\)\) pack into \(11,\), x0 is \(3,\)"),
        (lambda: OnBlock(LOSS, LAYOUT, "L").check(x), r"block 'L': A is \(5, 4\), x0 is \(3, 2\)"),
        (lambda: OnBlock(Box([0.0]), LAYOUT, "S").check(x), r"block 'S': lower of the box is \(1,\)"),
        (lambda: place(L2() @ {"L": 1.0}, LAYOUT).check(np.ones(4)), r"pack into \(11,\), x0 is \(4,\)"),
        (lambda: Separable([]), r"at least one part"),
        (
            lambda: Separable([OnBlock(L1(), LAYOUT, "L"), OnBlock(L2(), LAYOUT, "L")]),
            r"two functions are on block 'L'",
        ),
        (
            lambda: Separable([OnBlock(L1(), LAYOUT, "L"), OnBlock(L1(), Layout({"L": 6}), "L")]),
            r"another layout",
        ),
        (
            lambda: place_map(BlockMap({"S": np.ones((5, 3))}), LAYOUT),
            r"linear map of block 'S' is \(5, 3\), the block is \(4,\); expected 3 entries",
        ),
        (
            lambda: place_map(BlockMap({"S": np.ones((5, 4)), "L": np.ones((6, 3))}), LAYOUT),
            r"blocks 'S' and 'L' give 5 and 6 rows",
        ),
    ],
)
def test_bad_blocks_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: OnBlock(L1(), LAYOUT, "LL"),
        lambda: OnBlock(Nonnegative(), LAYOUT, "LL"),
        lambda: LAYOUT.pack({"LL": np.ones(1)}),
        lambda: place_map(BlockMap({"LL": 1.0}), LAYOUT),
    ],
)
def test_an_unknown_block_is_answered_with_the_nearest(make):
    with pytest.raises(UnknownNameError, match=r"no block 'LL'; did you mean 'L'\?"):
        make()


def test_a_function_of_one_block():
    f = OnBlock(LOSS, LAYOUT, "S")
    s = LAYOUT.view(x, "S")
    assert f.value(x) == LOSS.value(s)
    value, gradient = f.value_and_gradient(x)
    assert value == LOSS.value(s)
    assert np.array_equal(gradient, f.gradient(x))
    assert np.array_equal(LAYOUT.view(gradient, "S"), LOSS.gradient(s))
    assert not LAYOUT.view(gradient, "L").any()
    assert np.array_equal(LAYOUT.view(f.hvp(x, x), "S"), LOSS.hvp(s, s))
    X = RNG.standard_normal((3, 11))
    assert np.allclose(f.values(X), [f.value(one) for one in X])
    assert f.lipschitz == LOSS.lipschitz
    assert f.capabilities == {"value", "values", "gradient", "value_and_gradient", "hvp", "prox"}
    f.check(x)


def test_a_prox_touches_only_its_slice():
    before = x.copy()
    p = OnBlock(L2(), LAYOUT, "L").prox(x, 0.3)
    assert np.array_equal(LAYOUT.view(p, "L"), L2().prox(LAYOUT.view(x, "L"), 0.3))
    assert np.array_equal(p[6:], x[6:])
    assert np.array_equal(x, before)
    q = OnBlock(L2(), LAYOUT, "L").prox_conjugate(x, 0.3)
    assert not q[6:].any()


def test_functions_see_views():
    seen = []
    f = OnBlock(Function(value=lambda block: seen.append(block) or 0.0), LAYOUT, "L")
    f.value(x)
    assert seen[0].shape == (3, 2)
    assert np.shares_memory(seen[0], x)


def test_a_separable_function_is_the_sum_over_its_blocks():
    parts = [OnBlock(SquaredL2(), LAYOUT, "L"), OnBlock(2.0 * SquaredL2(), LAYOUT, "z"), OnBlock(LOSS, LAYOUT, "S")]
    f = Separable(parts)
    assert f.value(x) == pytest.approx(sum(part.value(x) for part in parts))
    assert np.allclose(f.gradient(x), sum(part.gradient(x) for part in parts))
    value, gradient = f.value_and_gradient(x)
    assert value == pytest.approx(f.value(x))
    assert np.allclose(gradient, f.gradient(x))
    assert np.allclose(f.hvp(x, x), sum(part.hvp(x, x) for part in parts))
    X = RNG.standard_normal((3, 11))
    assert np.allclose(f.values(X), [f.value(one) for one in X])
    assert f.lipschitz == max(2.0, LOSS.lipschitz)
    assert f.strongly_convex == 0.0
    assert Separable(parts[:2]).strongly_convex == 0.0
    assert f.convex
    p = f.prox(x, 0.7)
    objective = f.value(p) + float((p - x) @ (p - x)) / 1.4
    for _ in range(20):
        u = p + 1e-2 * RNG.standard_normal(11)
        assert objective <= f.value(u) + float((u - x) @ (u - x)) / 1.4


def test_a_separable_function_decomposes_after_moreau_on_blocks_without_a_function_too():
    f = Separable([OnBlock(L1(), LAYOUT, "L"), OnBlock(L2(), LAYOUT, "S")])
    assert f.capabilities == {"value", "values", "prox", "prox_conjugate"}
    assert f.how == {"prox": "separable", "prox_conjugate": "separable"}
    assert np.allclose(f.prox_conjugate(x, 0.4) + 0.4 * f.prox(x / 0.4, 1 / 0.4), x)


def test_strong_convexity_needs_every_block():
    layout = Layout({"a": 2, "b": 2})
    both = [OnBlock(SquaredL2(), layout, "a"), OnBlock(3.0 * SquaredL2(), layout, "b")]
    assert Separable(both).strongly_convex == 1.0
    assert both[0].strongly_convex == 0.0


def test_a_map_from_blocks_on_the_packed_vector():
    layout = Layout({"u": 4, "w": 3, "v": 5})
    y, B = RNG.standard_normal(layout.size), sp.csr_array(RNG.standard_normal((5, 3)))
    map_ = place_map(BlockMap({"u": A, "v": -2.0, "w": B}), layout)
    dense = np.hstack([A, B.toarray(), -2.0 * np.eye(5)])
    assert map_.shape == (5, 12)
    assert np.allclose(map_.forward(y), dense @ y)
    assert np.allclose(map_.adjoint(y[:5]), dense.T @ y[:5])
    assert np.allclose(map_.rows(np.stack([y, 2 * y])), [dense @ y, 2 * dense @ y])
    assert map_.norm >= np.linalg.norm(dense, 2)
    single = map_.to(y.astype(np.float32))
    assert single.forward(y.astype(np.float32)).dtype == np.float32
    assert single.adjoint(y[:5].astype(np.float32)).dtype == np.float32


def test_low_rank_plus_sparse_in_two_blocks():
    layout = Layout({"L": (3, 2), "S": (3, 2), "other": 2})
    M, y = RNG.standard_normal((3, 2)), RNG.standard_normal(14)
    f = place(SquaredL2().translate(M) @ {"L": 1.0, "S": 1.0}, layout)
    gap = y[:6].reshape(3, 2) + y[6:12].reshape(3, 2) - M
    f.check(y)
    assert f.value(y) == pytest.approx(0.5 * float(np.sum(gap**2)))
    assert np.allclose(f.gradient(y), np.r_[gap.ravel(), gap.ravel(), 0.0, 0.0])
    assert np.allclose(f.values(np.stack([y, -y])), [f.value(y), f.value(-y)])
    assert f.lipschitz == pytest.approx(2.0)
    p = f.prox(y, 0.5)
    assert np.allclose(p + 0.5 * f.gradient(p), y)
    g = place(0.1 * L1() @ LinearMap(A) @ {"u": 1.0} + SquaredL2() @ {"u": 2.0}, Layout({"u": 4}))
    assert g.value(y[:4]) == pytest.approx(0.1 * np.abs(A @ y[:4]).sum() + 2.0 * float(y[:4] @ y[:4]))


def test_a_map_from_blocks_composes_only_at_the_end():
    with pytest.raises(InputError, match="takes named blocks already"):
        SquaredL2() @ {"L": 1.0} @ A


def test_a_set_on_one_block():
    one = OnBlock(Box(0.0, 0.5), LAYOUT, "S")
    s = LAYOUT.view(x, "S")
    assert one.capabilities == {"violation", "project", "step", "bounds"}
    assert one.violation(x) == Box(0.0, 0.5).violation(s)
    p = one.project(x)
    assert np.array_equal(LAYOUT.view(p, "S"), np.clip(s, 0.0, 0.5))
    assert np.array_equal(p[:6], x[:6])
    stepped = one.step(p, x)
    assert np.array_equal(LAYOUT.view(stepped, "S"), np.clip(p[6:10] + x[6:10], 0.0, 0.5))
    assert np.array_equal(stepped[:6], p[:6] + x[:6])
    lower, upper = one.bounds(x)
    assert lower[:6].tolist() == [-np.inf] * 6
    assert upper[6:10].tolist() == [0.5] * 4


def test_linear_functions_and_gradient_estimates_of_blocks():
    noisy = Function(gradient=lambda u: u, sample_gradient=lambda u, rng: u + rng.standard_normal(u.shape))
    cost = Separable([OnBlock(Linear(np.arange(4.0), 1.0), LAYOUT, "S"), OnBlock(Linear([[1.0, 0]] * 3), LAYOUT, "L")])
    c, r = cost.coefficients(x)
    assert c @ x + r == pytest.approx(cost.value(x))
    assert OnBlock(noisy, LAYOUT, "S").sample_gradient(x, np.random.default_rng(3))[6:10].tolist() == (
        (x[6:10] + np.random.default_rng(3).standard_normal(4)).tolist()
    )


def test_torch_agrees_with_numpy():
    torch = pytest.importorskip("torch")
    t = torch.tensor(x, dtype=torch.float32)
    f = Separable([OnBlock(LOSS, LAYOUT, "S"), OnBlock(SquaredL2(), LAYOUT, "L")])
    g = f.to(t)
    assert g.gradient(t).dtype == torch.float32
    assert np.allclose(g.gradient(t).numpy(), f.gradient(x), atol=1e-5)
    assert np.allclose(g.prox(t, 0.5).numpy(), f.prox(x, 0.5), atol=1e-5)
    assert np.allclose(t.numpy(), x.astype(np.float32))
    assert all(one.data_ptr() >= t.data_ptr() for one in LAYOUT.unpack(t).values())
    assert torch.equal(LAYOUT.pack(LAYOUT.unpack(t)), t)
    h = place(SquaredL2() @ {"L": 1.0}, LAYOUT).to(t)
    assert np.allclose(h.gradient(t).numpy(), np.r_[x[:6], np.zeros(5)], atol=1e-6)
    one = OnBlock(Box([0.0] * 4), LAYOUT, "S").to(t)
    assert one.project(t)[6:10].min() >= 0
    assert one.bounds(t)[0].dtype == torch.float32
