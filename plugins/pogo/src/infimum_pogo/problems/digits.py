"""Principal components and an orthogonal dictionary of handwritten digits, or of the user's own table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.problem.composite import Composite
from infimum_pogo.checks import check_size, check_word
from infimum_pogo.geometry import polar
from infimum_pogo.stiefel import Stiefel

Size = Annotated[int, Ge(1)]
Data = Literal["digits"] | dict[str, str]
"""The digits of scikit-learn, or `{"file": X.csv}` (CSV without header, or NPY): one sample a row."""


class Spread(Function):
    """`-1/2 tr(X C X^T)`, the variance along the rows of X, negative; C is the covariance of the samples.

    Parameters
    ----------
    samples : array, shape (m, n)
        Centered rows z; C = 1/m sum z z^T.
    batch : int
        Samples of which `sample_gradient` takes the mean.
    components : int
        Rows of X.
    """

    provides: ClassVar[tuple[str, ...]] = ("value", "gradient", "value_and_gradient", "hvp", "sample_gradient")
    data: ClassVar[tuple[str, ...]] = ("C", "samples")
    convex = False

    def __init__(self, samples: np.ndarray, batch: int, components: int) -> None:
        self.samples, self.batch = samples, batch
        self.C = samples.T @ samples / len(samples)
        self.shape = (components, samples.shape[1])
        self.lipschitz = float(np.linalg.eigvalsh(self.C)[-1])

    def value(self, x: Array) -> float:
        return self.value_and_gradient(x)[0]

    def gradient(self, x: Array) -> Array:
        return -(x @ self.C)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        gradient = self.gradient(x)
        return 0.5 * float(namespace(x).sum(x * gradient)), gradient

    def hvp(self, x: Array, v: Array) -> Array:
        return -(v @ self.C)

    def sample_gradient(self, x: Array, rng: np.random.Generator) -> Array:
        """The gradient on `batch` samples drawn with replacement."""
        taken = self.samples[rng.integers(0, self.samples.shape[0], self.batch)]
        return -((x @ taken.T) @ taken) / self.batch


def pca(data: Data = "digits", components: Size = 10, batch: Size = 64, data_seed: int = 0) -> Composite:
    """Principal components: minimize `-1/2 tr(X C X^T)` over X with orthonormal rows.

    C is the covariance, scaled to a largest eigenvalue of one; the optimum, minus half of the sum of its largest
    eigenvalues, is known. The term also offers gradients from batches (`sample_gradient`), for online methods:
    `solver: {use: pogo.pogo, gradient: sample}`.

    Parameters
    ----------
    data : {"digits"} or mapping, default "digits"
        1797 pictures of 8 x 8, or your own: `{file: X.npy}` or CSV of numbers, one sample a row.
    components : int, default 10
        Rows of X, at most the number of features.
    batch : int, default 64
        Samples for each `sample_gradient`.
    data_seed : int, default 0
        Of the start.

    Returns
    -------
    Composite
        Term `spread` (value, gradient, hvp, sample_gradient), constraint `stiefel`; x has shape (components, n).

    Raises
    ------
    InputError
        For data that cannot be used, or more components than features.
    """
    check_size(components, "components", "pogo.pca")
    check_size(batch, "batch", "pogo.pca")
    table = load(data, "pogo.pca")
    table = table - table.mean(axis=0)
    if components > table.shape[1]:
        raise InputError(f"pogo.pca: components={components}, but the data has {table.shape[1]} features")
    top = np.linalg.norm(table, 2) / np.sqrt(len(table))
    if not top > 0:
        raise InputError("pogo.pca: all samples are equal, so there is no variance to explain")
    spread = Spread(table / top, batch, components)
    best = float(np.linalg.eigvalsh(spread.C)[-components:].sum())
    start = polar(np.random.default_rng(data_seed).standard_normal(spread.shape or ()))
    return Composite(
        {"spread": spread}, constraints={"stiefel": Stiefel()}, start=start, reference=-0.5 * best, name="PCA"
    )


class Contrast(Function):
    """Minus the mean over samples of a contrast of `X z`, summed over the rows of X: sparse or independent parts.

    Parameters
    ----------
    samples : array, shape (m, n)
        Whitened rows z.
    kind : {"l4", "logcosh"}
        `y^4 / 4` is large, `log cosh y` small for sparse y.
    components, batch : int
    """

    provides: ClassVar[tuple[str, ...]] = ("value", "gradient", "value_and_gradient", "sample_gradient")
    data: ClassVar[tuple[str, ...]] = ("samples",)
    convex = False

    def __init__(self, samples: np.ndarray, kind: str, components: int, batch: int) -> None:
        self.samples, self.kind, self.batch = samples, kind, batch
        self.shape = (components, samples.shape[1])

    def _parts(self, Y: Array) -> tuple[Array, Array]:
        xp = namespace(Y)
        if self.kind == "l4":
            cube = Y * Y * Y
            return -0.25 * Y * cube, -cube
        size = xp.abs(Y)
        # log cosh without overflow.
        return size + xp.log1p(xp.exp(-2.0 * size)) - float(np.log(2.0)), xp.tanh(Y)

    def value(self, x: Array) -> float:
        return float(namespace(x).sum(self._parts(x @ self.samples.T)[0])) / int(self.samples.shape[0])

    def gradient(self, x: Array) -> Array:
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, slope = self._parts(x @ self.samples.T)
        m = int(self.samples.shape[0])
        return float(namespace(x).sum(value)) / m, (slope @ self.samples) / m

    def sample_gradient(self, x: Array, rng: np.random.Generator) -> Array:
        """The gradient on `batch` samples drawn with replacement."""
        taken = self.samples[rng.integers(0, self.samples.shape[0], self.batch)]
        return (self._parts(x @ taken.T)[1] @ taken) / self.batch


def dictionary(
    data: Data = "digits",
    patch: Annotated[int, Ge(2)] = 4,
    components: Size | None = None,
    contrast: Literal["l4", "logcosh"] = "logcosh",
    batch: Size = 256,
    data_seed: int = 0,
) -> Composite:
    """An orthogonal dictionary of patches: rows of X along which whitened patches are sparse.

    With `logcosh` this is independent component analysis (FastICA's contrast), with `l4` complete dictionary learning
    by the fourth power. Not convex: which optimum is reached depends on the start.

    Parameters
    ----------
    data : {"digits"} or mapping, default "digits"
        Patches of the 8 x 8 digits, or your own table `{file: X.npy}`, one sample a row, taken as it is.
    patch : int, default 4
        Side of the patches, 2 to 8, for digits.
    components : int, optional
        Rows of X; as many as whitened features by default, a square X.
    contrast : {"l4", "logcosh"}, default "logcosh"
        What is small or large for sparse parts.
    batch : int, default 256
        Samples for each `sample_gradient`.
    data_seed : int, default 0
        Of the start.

    Returns
    -------
    Composite
        Term `contrast` (value, gradient, sample_gradient), constraint `stiefel`; x has shape (components, n).

    Raises
    ------
    InputError
        For data that cannot be used, or more components than features.
    """
    check_word(contrast, "contrast", ("l4", "logcosh"), "pogo.dictionary")
    for name, size in (("batch", batch), ("patch", patch), ("components", 1 if components is None else components)):
        check_size(size, name, "pogo.dictionary")
    table = load(data, "pogo.dictionary")
    if data == "digits":
        table = patches(table.reshape(-1, 8, 8), patch)
    white = whitened(table)
    count = white.shape[1] if components is None else components
    if count > white.shape[1]:
        raise InputError(f"pogo.dictionary: components={count}, but there are {white.shape[1]} whitened features")
    start = polar(np.random.default_rng(data_seed).standard_normal((count, white.shape[1])))
    term = Contrast(white, contrast, count, batch)
    return Composite({"contrast": term}, constraints={"stiefel": Stiefel()}, start=start, name="dictionary")


def patches(pictures: np.ndarray, side: int) -> np.ndarray:
    """All square patches that do not overlap, from the upper left corner, as rows without their mean."""
    if not 2 <= side <= min(pictures.shape[1:]):
        raise InputError(f"pogo.dictionary: patch={side}; expected a side from 2 to {min(pictures.shape[1:])}")
    tall, wide = (size // side for size in pictures.shape[1:])
    cut = pictures[:, : tall * side, : wide * side].reshape(-1, tall, side, wide, side)
    rows: np.ndarray = cut.transpose(0, 1, 3, 2, 4).reshape(-1, side * side)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows


def whitened(table: np.ndarray) -> np.ndarray:
    """Samples in the directions that have variance, each scaled to variance one."""
    centered = table - table.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(centered))
    kept = values > 1e-8 * values[-1]
    if not kept.any() or values[-1] <= 0:
        raise InputError("pogo.dictionary: all samples are equal")
    white: np.ndarray = centered @ (vectors[:, kept] / np.sqrt(values[kept]))
    return white


def load(data: Any, what: str) -> np.ndarray:
    """The samples, one a row, float64.

    Raises
    ------
    InputError
        For an unknown name, a file that is not there or cannot be read, or numbers that are not finite.
    """
    if data == "digits":
        return _digits(what)
    if not isinstance(data, dict) or set(data) != {"file"}:
        raise InputError(f"{what}: data={data!r}; expected 'digits' or {{file: X.npy}}")
    path = Path(data["file"]).expanduser()
    readers: dict[str, Callable[[Path], Any]] = {
        ".npy": lambda one: np.load(one, allow_pickle=False),
        ".csv": lambda one: np.loadtxt(one, delimiter=",", ndmin=2),
    }
    if path.suffix not in readers or not path.is_file():
        said = "there is no such file" if path.suffix in readers else "expected a file .npy or .csv"
        raise InputError(f"{what}: data file '{path}': {said}")
    try:
        table = np.asarray(readers[path.suffix](path), dtype=np.float64)
    except ValueError as error:
        raise InputError(f"{what}: data file '{path}' is no table of numbers: {error}") from error
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise InputError(f"{what}: data file '{path}' is {table.shape}; expected finite numbers, one sample a row")
    return table


def _digits(what: str) -> np.ndarray:
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise InputError(f"{what}: the digits come with scikit-learn: pip install 'infimum-pogo[data]'") from error
    out: np.ndarray = np.array(load_digits().data, dtype=np.float64)
    return out
