"""Recipes for data: low rank plus noise, separable exact, digits, patches of a photograph."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from infimum.errors import InputError
from infimum_enmf.checks import check_whole, checked_rank
from infimum_enmf.matrix import Array


def low_rank(m: int, n: int, rank: int, snr: float, seed: int) -> Array:
    """|W H + N| with W, H uniform on [0, 1] and Gaussian N of `snr` decibels below W H, (m, n).

    Raises
    ------
    InputError
        For a size, a seed or a number that does not serve.
    """
    _check_sizes(m, n, rank, seed)
    if not isinstance(snr, Real) or isinstance(snr, bool) or not -200.0 <= snr <= 300.0:
        raise InputError(f"snr={snr!r}: expected decibels from -200 to 300")
    rng = np.random.default_rng(seed)
    clean = rng.random((m, rank)) @ rng.random((rank, n))
    noise = rng.standard_normal((m, n))
    noise *= np.linalg.norm(clean) / np.linalg.norm(noise) * 10.0 ** (-snr / 20.0)
    return np.abs(clean + noise)


def separable(m: int, n: int, rank: int, sparsity: float, seed: int) -> tuple[Array, Array, Array]:
    """X = U V^T exactly, with U = [I; M]; entries of M and V are uniform, or zero with probability `sparsity`.

    Returns
    -------
    X, U, V : ndarray, (m, n), (m, rank), (n, rank)

    Raises
    ------
    InputError
        For a size, a seed or a probability that does not serve.
    """
    _check_sizes(m, n, rank, seed)
    if not isinstance(sparsity, Real) or isinstance(sparsity, bool) or not 0.0 <= sparsity < 1.0:
        raise InputError(f"sparsity={sparsity!r}: expected a probability from 0 to below 1")
    rng = np.random.default_rng(seed)
    M = rng.random((m - rank, rank)) * (rng.random((m - rank, rank)) >= sparsity)
    V = rng.random((n, rank)) * (rng.random((n, rank)) >= sparsity)
    U = np.vstack([np.eye(rank), M])
    return U @ V.T, U, V


def _check_sizes(m: Any, n: Any, rank: Any, seed: Any) -> None:
    check_whole("m", m, 1)
    check_whole("n", n, 1)
    checked_rank(rank, (m, n))
    check_whole("seed", seed)


def digits() -> Array:
    """The digits of scikit-learn, (1797, 64), entries 0 to 16."""
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data, dtype=np.float64)


def china() -> Array:
    """Gray 8 x 8 patches of scikit-learn's china.jpg, side by side without overlap, (4240, 64), entries 0 to 255."""
    from sklearn.datasets import load_sample_image

    gray = load_sample_image("china.jpg").astype(np.float64).mean(axis=2)
    rows, columns = (size // 8 * 8 for size in gray.shape)
    tiles = gray[:rows, :columns].reshape(rows // 8, 8, columns // 8, 8)
    return np.ascontiguousarray(tiles.transpose(0, 2, 1, 3).reshape(-1, 64))


def from_file(spec: Mapping[str, Any]) -> Any:
    """The matrix of a file, dense or sparse.

    Parameters
    ----------
    spec : mapping
        `{"file": X.npy}`, `{"file": X.csv}` (a first line of names is left out), or `{"file": X.npz, "key": name}`; an
        NPZ file of `scipy.sparse.save_npz` is sparse.

    Raises
    ------
    InputError
        For a missing file, another format, a key that is not there, content that cannot be read.
    """
    path = Path(str(spec.get("file", ""))).expanduser()
    if not set(spec) <= {"file", "key"} or path.suffix.lower() not in (".csv", ".npy", ".npz"):
        raise InputError(f"X={dict(spec)!r}: expected {{file: X.npy}}, {{file: X.csv}} or {{file: X.npz, key: name}}")
    if not path.is_file():
        raise InputError(f"X: there is no file {path}")
    try:
        return _from_csv(path) if path.suffix.lower() == ".csv" else _from_numpy(path, spec.get("key"))
    except InputError:
        raise
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"X: file {path.name} cannot be read: {error}") from error


def _from_csv(path: Path) -> Array:
    with path.open(encoding="utf-8") as file:
        first = file.readline().split(",")
    try:
        [float(cell) for cell in first]
        names = 0
    except ValueError:
        names = 1
    return np.loadtxt(path, delimiter=",", skiprows=names, ndmin=2)


def _from_numpy(path: Path, key: Any) -> Any:
    stored = np.load(path, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        return stored
    with stored:
        names = list(stored.files)
        if "indptr" in names:
            from scipy.sparse import load_npz

            return load_npz(path)
        key = names[0] if key is None and len(names) == 1 else key
        if key not in names:
            raise InputError(f"X: file {path.name} holds {', '.join(names) or 'nothing'}; name one of them with key:")
        return stored[key]
