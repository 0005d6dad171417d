"""Array helpers: extremes of the floating range, conversions, and what bad data is told."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from infimum import arrays
from infimum.errors import InputError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("size", [0.0, 1.0, 1e-200, 1e200, 5e-324])
def test_norm_survives_squares_outside_the_floating_range(size):
    x = np.array([[3.0, 0.0], [-4.0, 0.0]]) * size
    assert arrays.norm(x) == pytest.approx(5.0 * size, rel=1e-12)


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_norm_survives_squares_outside_float32(size):
    assert arrays.norm(np.array([3.0, 4.0], np.float32) * np.float32(size)) == pytest.approx(5 * size, rel=1e-5)


def test_norm_of_what_is_not_finite():
    assert arrays.norm(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(arrays.norm(np.array([1.0, np.nan])))
    assert arrays.norm(np.zeros(0)) == 0.0


def test_norm_and_inner_of_complex_and_integer_arrays():
    z, w = np.array([1 + 2j, 3j]), np.array([2j, 1.0])
    for x, y in ((z, w), (torch.tensor(z), torch.tensor(w))):
        assert arrays.norm(x) == pytest.approx(np.sqrt(14))
        assert arrays.inner(x, y) == pytest.approx(4.0)
    assert arrays.norm(np.array([3, 4])) == 5.0
    assert isinstance(arrays.inner(torch.ones(3), torch.ones(3)), float)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_clip_with_any_mix_of_numbers_and_arrays(make):
    x = make([-2.0, 0.5, 3.0])
    assert arrays.clip(x, -1.0, make([0.0, 1.0, 2.0])).tolist() == [-1.0, 0.5, 2.0]
    assert arrays.clip(x, make([0.0, 0.0, 0.0]), None).tolist() == [0.0, 0.5, 3.0]
    assert arrays.clip(x, None, 1.0).tolist() == [-2.0, 0.5, 1.0]
    assert x.tolist() == [-2.0, 0.5, 3.0]


def test_like_takes_namespace_and_dtype_of_the_point():
    data = np.ones(3)
    assert arrays.like(data, np.zeros(2)) is data
    assert arrays.like(data, np.zeros(2, np.float32)).dtype == np.float32
    assert arrays.like(data, torch.zeros(2)).dtype == torch.float32
    assert arrays.like(torch.ones(3), np.zeros(2)).dtype == np.float64
    assert arrays.like(data * 1j, np.zeros(2, np.float32)).dtype == np.complex64
    assert arrays.like(np.arange(3), np.zeros(2)).dtype == np.arange(3).dtype
    assert arrays.like(sp.eye_array(3), np.zeros(2, np.float32)).dtype == np.float32
    assert arrays.like(1j * sp.eye_array(3), np.zeros(2)).dtype == np.complex128


def test_like_takes_read_only_and_reversed_arrays_to_torch():
    data = np.arange(3.0)
    data.flags.writeable = False
    assert arrays.like(data, torch.zeros(2, dtype=torch.float64)).tolist() == [0.0, 1.0, 2.0]
    assert arrays.like(np.arange(3.0)[::-1], torch.zeros(2)).tolist() == [2.0, 1.0, 0.0]


def test_copy_is_independent_and_detached():
    x = torch.ones(2, requires_grad=True)
    y = arrays.copy(x)
    assert not y.requires_grad
    y += 1
    assert x.tolist() == [1.0, 1.0]
    a = np.ones(2)
    arrays.copy(a)[0] = 5.0
    assert a[0] == 1.0


def test_all_finite_is_exact():
    for make in (np.array, torch.tensor):
        assert arrays.all_finite(make([3e38, -3e38]))
        assert not arrays.all_finite(make([1.0, float("nan")]))
        assert not arrays.all_finite(make([1.0, float("-inf")]))


def test_as_data_keeps_floats_and_converts_the_rest():
    single = np.ones(2, np.float32)
    assert arrays.as_data(single, "A") is single
    assert arrays.as_data([True, False], "A").dtype == np.float64
    assert arrays.as_data(torch.tensor([1, 2]), "A").dtype == torch.float64
    assert arrays.as_data(sp.eye_array(3, dtype=int), "A").dtype == np.float64
    assert arrays.as_data(1j * np.ones(2), "A", real=False).dtype == np.complex128
    assert arrays.as_data(sp.lil_array((3, 3)), "A").format == "csr"


def test_as_data_names_the_first_bad_entry():
    with pytest.raises(InputError, match=r"A\[1, 0\] is inf; clean the data first"):
        arrays.as_data(torch.tensor([[1.0, 2.0], [float("inf"), 0.0]]), "A")
    with pytest.raises(InputError, match=r"A is empty: its shape is \(0,\)"):
        arrays.as_data([], "A")
    with pytest.raises(InputError, match=r"A is nan; clean"):
        arrays.as_data(np.nan, "A")
    with pytest.raises(InputError, match=r"A is complex \(\(2,\) complex64\)"):
        arrays.as_data(torch.ones(2, dtype=torch.complex64), "A")


def test_describe():
    assert arrays.describe(np.ones((2, 3))) == "(2, 3) float64"
    assert arrays.describe(torch.ones(2)) == "(2,) float32"
    assert arrays.describe("text") == "str"
