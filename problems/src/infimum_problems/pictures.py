"""Gray pictures and signals: the images of scikit-learn, or the user's own file; noise and corruption with a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum_problems.data import Own, load_column, load_matrix, locate

Picture = Literal["china", "flower", "digits"] | Own
"""A picture that comes with scikit-learn, or the user's own: `{"file": path}`, and `"key"` for one array of several.

`china` and `flower` are the two sample photographs; `digits` is a sheet of handwritten digits, 8 × 8 pixels each. All
are gray, from 0 (black) to 1. The user's file is PNG, JPEG, CSV, NPY or NPZ; tables are taken as they are.
"""

Signal = Literal["china", "flower"] | Own
"""A row of a sample photograph, or the user's own column of a table: `{"file": path, "target": column}`."""

SIDE = 32
PIXELS = 8
GRAY = (0.299, 0.587, 0.114)
FORMATS = (".png", ".jpg", ".jpeg")


def load_picture(data: Picture, size: int | None, what: str) -> np.ndarray:
    """A gray picture, shape (rows, columns), at most `size` × `size` around its center.

    Without a size bundled pictures are 32 × 32 and the user's own are whole.

    Raises
    ------
    InputError
        For an unknown name, a file that cannot be read, or a picture with fewer than 2 rows or columns.
    """
    if isinstance(data, str):
        return _bundled(data, SIDE if size is None else size, Picture)
    path = locate(data, ("file", "key"), ("file",), "{file: picture.png}")
    gray = _read_image(path) if path.suffix.lower() in FORMATS else load_matrix(data, more=FORMATS)
    gray = gray if size is None else _cropped(gray, size)
    if min(gray.shape) < 2:
        raise InputError(f"{what}: the picture is {gray.shape}; expected at least 2 rows and 2 columns")
    return gray


def load_signal(data: Signal, row: int, what: str) -> np.ndarray:
    """A signal, shape (n,): a row of a photograph, or a column of the user's own table.

    Raises
    ------
    InputError
        For an unknown name, a row that the photograph does not have, or a file that cannot be used.
    """
    if not isinstance(data, str):
        signal = load_column(data)
        if len(signal) < 2:
            raise InputError(f"{what}: the signal has {len(signal)} entry; expected at least 2")
        return signal
    photograph: np.ndarray = _bundled(data, None, Signal)
    rows = len(photograph)
    if not -rows <= row < rows:
        raise InputError(f"{what}: row={row}, but '{data}' has {rows} rows; expected {-rows} to {rows - 1}")
    chosen: np.ndarray = photograph[row]
    return chosen


def level(given: float | None, data: Any, bundled: float) -> float:
    """Noise or corruption to add: what was given, else `bundled` for a bundled picture and none for the user's own."""
    if given is not None:
        return given
    return bundled if isinstance(data, str) else 0.0


def noisy(clean: np.ndarray, noise: float, seed: int) -> np.ndarray:
    """With normal noise of that standard deviation."""
    if not 0 <= noise < float("inf"):
        raise InputError(f"noise={noise!r}; expected a finite number >= 0")
    return clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)


def corrupted(clean: np.ndarray, share: float, seed: int) -> np.ndarray:
    """With that share of the entries replaced by uniform numbers between the smallest and the largest entry."""
    if not 0 <= share <= 1:
        raise InputError(f"corruption={share!r}; expected a share of the entries, from 0 to 1")
    rng, out = np.random.default_rng(seed), clean.copy().reshape(-1)
    hit = rng.choice(out.size, size=round(share * out.size), replace=False)
    out[hit] = rng.uniform(clean.min(), clean.max(), size=hit.size)
    return out.reshape(clean.shape)


def _bundled(name: str, size: int | None, names: Any) -> np.ndarray:
    known = get_args(get_args(names)[0])
    if name not in known:
        raise InputError(f"data '{name}' is not known ({did_you_mean(name, known)}); your own data are {{file: …}}")
    from sklearn import datasets

    if name == "digits":
        side = max(1, (size or SIDE) // PIXELS)
        tiles = datasets.load_digits().images
        count = min(side, int(len(tiles) ** 0.5))
        sheet = tiles[: count * count].reshape(count, count, PIXELS, PIXELS) / 16.0
        return np.ascontiguousarray(sheet.transpose(0, 2, 1, 3).reshape(count * PIXELS, count * PIXELS))
    gray = datasets.load_sample_image(f"{name}.jpg") @ np.array(GRAY) / 255.0
    return gray if size is None else _cropped(gray, size)


def _cropped(gray: np.ndarray, size: int) -> np.ndarray:
    """At most `size` rows and columns around the center."""
    top, left = (max(0, (n - size) // 2) for n in gray.shape)
    return np.ascontiguousarray(gray[top : top + size, left : left + size])


def _read_image(path: Path) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("L"), dtype=float) / 255.0
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"data file '{path.name}' cannot be read: {error}") from None
