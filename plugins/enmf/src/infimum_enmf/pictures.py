"""Parts as images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infimum import arrays
from infimum.errors import InputError
from infimum_enmf.checks import check_whole


def save_parts(V: Any, shape: tuple[int, int], file: str | Path, columns: int = 8) -> Path:
    """Draw the columns of V as gray images side by side, dark where they are large, into a PNG (needs matplotlib).

    Parameters
    ----------
    V : array, (n, r)
    shape : (int, int)
        Rows and columns of an image; their product is n.
    file : path
    columns : int, default 8
        Images in a row.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If n is not the number of pixels, or an argument does not serve.
    """
    V = arrays.to_numpy(arrays.as_data(V, "V"))
    check_whole("columns", columns, 1)
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise InputError(f"shape={shape!r}: expected (rows, columns) of an image")
    high, wide = shape
    check_whole("rows of an image", high, 1)
    check_whole("columns of an image", wide, 1)
    if V.ndim != 2 or V.shape[0] != high * wide:
        raise InputError(f"V has shape {V.shape}; images of {high} x {wide} need {high * wide} rows")
    file = Path(file)
    if file.suffix.lower() != ".png" or not file.parent.is_dir():
        raise InputError(f"file={str(file)!r}: expected the name of a .png file in a folder that exists")
    from matplotlib.figure import Figure

    rows = -(-V.shape[1] // columns)
    figure = Figure(figsize=(columns, rows), layout="constrained")
    for k, axes in enumerate(figure.subplots(rows, columns, squeeze=False).ravel()):
        axes.axis("off")
        if k < V.shape[1]:
            axes.imshow(V[:, k].reshape(high, wide), cmap="gray_r")
    figure.savefig(file, dpi=120)
    return file
