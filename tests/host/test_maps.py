"""Linear maps: adjoints, norms, semi-orthogonality, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from infimum.errors import InputError
from infimum.functions.maps import BlockMap, LinearMap, Map, Product, ScaledIdentity, as_map, spectral_norm

RNG = np.random.default_rng(11)
A = RNG.standard_normal((5, 8))
Q = np.linalg.qr(RNG.standard_normal((8, 5)))[0].T
COMPLEX = A + 1j * RNG.standard_normal((5, 8))


def fourier(n):
    return sp.linalg.LinearOperator(
        (n, n), matvec=lambda x: np.fft.fft(x.ravel()), rmatvec=lambda y: n * np.fft.ifft(y.ravel()), dtype=complex
    )


MAPS = {
    "dense": LinearMap(A),
    "list": LinearMap(A.tolist()),
    "sparse": LinearMap(sp.csr_array(A)),
    "sparse matrix": LinearMap(sp.coo_matrix(A)),
    "operator": LinearMap(sp.linalg.aslinearoperator(A)),
    "complex": LinearMap(COMPLEX),
    "complex sparse": LinearMap(sp.csc_array(COMPLEX)),
    "fourier": LinearMap(fourier(8)),
    "product": Product(LinearMap(A), LinearMap(RNG.standard_normal((8, 8)))),
    "scaled": Product(ScaledIdentity(-2.0), LinearMap(A)),
}


@pytest.mark.parametrize("name", MAPS)
def test_the_adjoint_is_the_adjoint(name):
    map_ = MAPS[name]
    x, y = RNG.standard_normal(map_.shape[1]), RNG.standard_normal(map_.shape[0]) + 0j
    assert np.vdot(y, map_.forward(x)) == pytest.approx(np.vdot(map_.adjoint(y), x))


@pytest.mark.parametrize("name", MAPS)
def test_rows_is_forward_at_each_point(name):
    map_ = MAPS[name]
    for shape in ((3, 8), (3, 8, 2)):
        X = RNG.standard_normal(shape)
        if name == "fourier" and len(shape) == 3:
            continue
        assert np.allclose(map_.rows(X), np.stack([map_.forward(one) for one in X]))


@pytest.mark.parametrize("name", [name for name in MAPS if name not in ("product", "fourier")])
def test_the_norm_is_the_spectral_norm(name):
    matrix = COMPLEX if "complex" in name else A
    exact = np.linalg.norm(matrix, 2) * (2 if name == "scaled" else 1)
    assert exact * (1 - 1e-12) <= MAPS[name].norm <= exact * (1 + 1.1e-6)


def test_the_norm_of_a_product_is_an_upper_bound():
    product = MAPS["product"]
    assert product.norm >= np.linalg.norm(product.outer.operator @ product.inner.operator, 2)


def test_the_norm_of_the_fourier_transform():
    assert LinearMap(fourier(16)).norm == pytest.approx(4.0, rel=2e-6)


@pytest.mark.parametrize("shape", [(1500, 1100), (60, 3000), (3000, 60), (1, 7), (7, 1), (1, 1)])
def test_lanczos_agrees_with_singular_values(shape):
    matrix = np.random.default_rng(0).standard_normal(shape)
    exact = (
        float(sp.linalg.svds(matrix, k=1, return_singular_vectors=False)[0])
        if min(shape) > 1
        else np.linalg.norm(matrix)
    )
    assert LinearMap(sp.linalg.aslinearoperator(matrix)).norm == pytest.approx(exact, rel=2e-6)
    assert LinearMap(matrix).norm == pytest.approx(exact, rel=2e-6)


def test_lanczos_with_clustered_singular_values_is_close_from_above():
    values = 1 - 1e-4 * np.arange(400.0)
    assert LinearMap(sp.diags_array(values)).norm == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e200])
def test_norms_of_matrices_whose_squares_leave_the_floating_range(size):
    assert LinearMap(size * np.diag([3.0, 4.0])).norm == pytest.approx(4.0 * size, rel=2e-6)
    assert LinearMap(size * sp.diags_array([3.0, 4.0])).norm == pytest.approx(4.0 * size, rel=2e-6)


def test_a_known_norm_is_believed_and_a_computed_one_kept():
    assert LinearMap(A, norm=7.0).norm == 7.0
    calls = []
    counting = sp.linalg.LinearOperator((8, 8), matvec=lambda x: calls.append(1) or x, rmatvec=lambda y: y, dtype=float)
    map_ = LinearMap(counting)
    first = map_.norm
    count = len(calls)
    assert map_.norm == first == spectral_norm(map_)
    assert len(calls) == 2 * count
    known = LinearMap(A)
    assert known.to(np.ones(8, np.float32)).norm == pytest.approx(known.norm, rel=1e-5)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (Q, 1.0),
        (3.0 * Q, 9.0),
        (Q.astype(np.float32), 1.0),
        (sp.csr_array(np.eye(4)[:2]), 1.0),
        (Q.T, None),
        (A, None),
        (np.eye(3) + 1e-9, None),
        (np.zeros((2, 3)), None),
        (np.fft.fft(np.eye(4)), 4.0),
    ],
)
def test_tight_finds_semi_orthogonal_matrices(operator, expected):
    tight = LinearMap(operator).tight
    assert tight == (None if expected is None else pytest.approx(expected, rel=1e-6))


def test_tight_of_derived_maps():
    assert Product(ScaledIdentity(2.0), LinearMap(Q)).tight == pytest.approx(4.0)
    assert Product(LinearMap(Q), LinearMap(np.eye(8))).tight == pytest.approx(1.0)
    assert Product(LinearMap(Q), LinearMap(np.diag(np.arange(1.0, 9.0)))).tight is None
    assert ScaledIdentity(0.0).tight is None
    assert BlockMap({"L": 1.0, "S": -2.0}).tight == 5.0
    assert BlockMap({"L": 1.0, "S": A}).tight is None


def test_conversion_keeps_what_fits():
    map_ = LinearMap(A)
    assert map_.to(np.ones(8)) is map_
    assert map_.to(np.ones(8, np.float32)).forward(np.ones(8, np.float32)).dtype == np.float32
    assert LinearMap(np.eye(2, dtype=int)).operator.dtype == np.float64
    assert LinearMap(sp.csr_array(A)).to(np.ones(8, np.float32)).operator.dtype == np.float32
    assert LinearMap(COMPLEX).to(np.ones(8, np.float32)).operator.dtype == np.complex64


def test_an_operator_in_double_precision_keeps_points_in_single():
    map_, single = LinearMap(sp.linalg.aslinearoperator(A)), np.ones(8, np.float32)
    cast = map_.to(single)
    assert cast.forward(single).dtype == cast.adjoint(single[:5]).dtype == cast.rows(single[None]).dtype == np.float32
    assert cast.to(np.ones(8)).forward(np.ones(8)).dtype == np.float64
    assert np.allclose(cast.forward(single), A.sum(axis=1), atol=1e-5)
    assert map_.to(np.ones(8)) is map_


def test_torch_agrees_with_numpy():
    torch = pytest.importorskip("torch")
    x, y = torch.ones(8), torch.ones(5)
    map_ = LinearMap(A).to(x)
    assert map_.forward(x).dtype == torch.float32
    assert np.allclose(map_.adjoint(y).numpy(), A.T @ np.ones(5), atol=1e-5)
    assert np.allclose(map_.rows(torch.ones(2, 8, 3)).numpy(), LinearMap(A).rows(np.ones((2, 8, 3))), atol=1e-5)
    assert LinearMap(torch.tensor(A)).norm == pytest.approx(np.linalg.norm(A, 2))
    assert LinearMap(torch.tensor(COMPLEX)).norm == pytest.approx(np.linalg.norm(COMPLEX, 2))
    assert LinearMap(torch.tensor(Q)).tight == pytest.approx(1.0)


def test_as_map_takes_what_users_write():
    assert as_map(3).norm == 3.0
    assert as_map(np.float32(2)).forward(np.ones(2)).tolist() == [2.0, 2.0]
    assert isinstance(as_map({"L": A}), BlockMap)
    map_ = LinearMap(A)
    assert as_map(map_) is map_
    assert as_map([[1.0, 2.0]]).shape == (1, 2)


def test_a_users_own_map():
    class Difference(Map):
        shape = (3, 4)
        norm = 2.0

        def forward(self, x):
            return x[1:] - x[:-1]

        def adjoint(self, y):
            return np.concatenate([-y[:1], y[:-1] - y[1:], y[-1:]])

    map_ = as_map(Difference())
    assert map_.tight is None
    assert map_.to(np.ones(4)) is map_
    assert map_.rows(np.arange(8.0).reshape(2, 4)).tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearMap(np.ones(3)), r"two-dimensional shape, got ndarray with shape \(3,\)"),
        (lambda: LinearMap("A"), r"two-dimensional shape, got str; pass a matrix"),
        (lambda: LinearMap([[1.0, np.nan]]), r"the linear map\[0, 1\] is nan"),
        (lambda: LinearMap(np.ones((0, 3))), r"the linear map is empty"),
        (lambda: LinearMap(A, norm=-1.0), r"norm=-1.0\): expected a finite number >= 0"),
        (lambda: LinearMap(A, tight=np.nan), r"tight=nan"),
        (lambda: ScaledIdentity(np.inf), r"finite factor, got inf"),
        (lambda: BlockMap({}), r"at least one block"),
        (lambda: BlockMap({"L": {"S": A}}), r"the map of block 'L' is itself a map from blocks"),
        (lambda: BlockMap({"L": A, "S": 1.0}).forward(np.ones(8)), r"put it in a Composite with blocks=\{L, S\}"),
        (lambda: Product(LinearMap(A), LinearMap(A)), r"\(5, 8\) and \(5, 8\) do not compose: the outer takes 8"),
    ],
)
def test_bad_maps_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
