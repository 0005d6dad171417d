"""Pictures and signals: those that come along, the user's own, and what is said of unusable ones."""

from __future__ import annotations

import numpy as np
import pytest

from infimum.errors import InputError
from infimum_problems import robust_pca, tv_denoising_1d, tv_denoising_2d
from infimum_problems.pictures import corrupted, load_picture, load_signal, noisy


def bodies(problem):
    return {term.name: term.body for term in problem.terms}


PICTURE = np.linspace(0.0, 3.0, 12).reshape(3, 4)


def own(folder, kind):
    path = folder / f"own.{kind}"
    if kind == "csv":
        np.savetxt(path, PICTURE, delimiter=",")
    elif kind == "npy":
        np.save(path, PICTURE)
    else:
        np.savez(path, picture=PICTURE)
    return {"file": str(path)}


@pytest.mark.parametrize("kind", ["csv", "npy", "npz"])
def test_own_tables_are_taken_whole_and_without_noise(tmp_path, kind):
    problem = tv_denoising_2d(own(tmp_path, kind))
    np.testing.assert_allclose(bodies(problem)["loss"].b, PICTURE, rtol=1e-15)
    matrix = robust_pca(own(tmp_path, kind))
    np.testing.assert_allclose(bodies(matrix)["sum"].b, PICTURE.reshape(-1), rtol=1e-15)


def test_own_image_files_become_gray(tmp_path):
    from PIL import Image

    colors = np.zeros((2, 3, 3), dtype=np.uint8)
    colors[0], colors[1, 0] = 255, (255, 0, 0)
    Image.fromarray(colors).save(tmp_path / "own.png")
    gray = load_picture({"file": str(tmp_path / "own.png")}, None, "p")
    np.testing.assert_allclose(gray, [[1, 1, 1], [0.299, 0, 0]], atol=2e-3)
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"data file 'bad\.png' cannot be read"):
        load_picture({"file": str(tmp_path / "bad.png")}, None, "p")


def test_bundled_pictures():
    from sklearn.datasets import load_digits

    sheet = load_picture("digits", 24, "p")
    np.testing.assert_array_equal(sheet[8:16, 16:24], load_digits().images[5] / 16)
    china = load_picture("china", None, "p")
    assert china.shape == (32, 32)
    assert 0 <= china.min() < china.max() <= 1
    np.testing.assert_array_equal(load_picture("china", 10, "p"), china[11:21, 11:21])


def test_noise_and_corruption_come_from_the_seed():
    np.testing.assert_array_equal(noisy(PICTURE, 0.0, 1), PICTURE)
    np.testing.assert_array_equal(noisy(PICTURE, 0.5, 1), noisy(PICTURE, 0.5, 1))
    hit = corrupted(np.arange(100.0).reshape(10, 10), 0.2, 1)
    assert (hit != np.arange(100.0).reshape(10, 10)).sum() == 20
    assert not np.array_equal(hit, corrupted(np.arange(100.0).reshape(10, 10), 0.2, 2))


@pytest.mark.parametrize(
    ("name", "content", "target", "expected"),
    [
        ("a.csv", "t,y\n1,5\n2,6\n3,8\n", {"target": "y"}, [5, 6, 8]),
        ("b.csv", "5\n6\n8\n", {}, [5, 6, 8]),
        ("c.csv", "y\n5\n6\n", {"target": "y"}, [5, 6]),
        ("d.npy", np.array([5.0, 6.0]), {}, [5, 6]),
        ("e.npy", PICTURE, {"target": -1}, PICTURE[:, 3]),
        ("f.npz", {"y": np.array([5.0, 6.0]), "t": np.ones(2)}, {"target": "y"}, [5, 6]),
        ("g.npz", {"y": PICTURE}, {"target": 1}, PICTURE[:, 1]),
        ("h.npz", {"y": np.array([5, 6])}, {}, [5, 6]),
    ],
)
def test_own_signals(tmp_path, name, content, target, expected):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content)
    b = bodies(tv_denoising_1d({"file": str(path), **target}))["loss"].b
    np.testing.assert_array_equal(b, expected)


# What is refused.


def refused(message, call, *args, **options):
    with pytest.raises(InputError, match=message):
        call(*args, **options)


@pytest.mark.parametrize(
    ("content", "target", "message"),
    [
        ("a,b\n1,2\n3,4\n", {}, r"own\.csv' holds 2 columns; choose one with target:"),
        ("a\n1\n", {}, r"the signal has 1 entry; expected at least 2"),
        ("a\nx\ny\n", {"target": "a"}, r"own\.csv': the column holds text, such as 'x'; expected numbers"),
        ("a\n1\n2\n", {"target": "b"}, r"has no column 'b'; there are: a"),
        ("a\n1\n2\n", {"key": "b"}, r"expected \{file: X\.csv, target: column name or number\}"),
    ],
)
def test_unusable_signals_are_refused(tmp_path, content, target, message):
    (tmp_path / "own.csv").write_text(content)
    refused(message, load_signal, {"file": str(tmp_path / "own.csv"), **target}, 0, "p")


def test_unusable_pictures_are_refused(tmp_path):
    np.save(tmp_path / "row.npy", np.ones((1, 5)))
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    np.savez(tmp_path / "two.npz", a=PICTURE, b=PICTURE)
    (tmp_path / "hole.csv").write_text("1,2\n3,NaN\n")
    refused(
        r"p: the picture is \(1, 5\); expected at least 2", load_picture, {"file": f"{tmp_path}/row.npy"}, None, "p"
    )
    refused(r"holds \(2, 2, 2\) of float64", load_picture, {"file": f"{tmp_path}/cube.npy"}, None, "p")
    refused(r"has no array 'c'; there are: a, b", load_picture, {"file": f"{tmp_path}/two.npz", "key": "c"}, None, "p")
    refused(r"two\.npz' holds a, b; choose one with key:", load_picture, {"file": f"{tmp_path}/two.npz"}, None, "p")
    refused(r"line 2, column '1' holds 'NaN'", load_picture, {"file": f"{tmp_path}/hole.csv"}, None, "p")
    refused(r"is not in .*; did you mean 'row\.npy'", load_picture, {"file": f"{tmp_path}/rows.npy"}, None, "p")
    refused(r"\.tif'; expected one of .*\.png", load_picture, {"file": _touched(tmp_path / "x.tif")}, None, "p")
    refused(r"data 'chian' is not known \(did you mean 'china'\?\)", load_picture, "chian", None, "p")
    refused(r"expected \{file: picture\.png\}", load_picture, {"target": "x"}, None, "p")


def _touched(path):
    path.write_bytes(b"")
    return str(path)
