"""Parts as images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infimum.errors import InputError


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
        If n is not the number of pixels.
    """
    V = np.asarray(V)
    if V.ndim != 2 or V.shape[0] != shape[0] * shape[1]:
        raise InputError(f"V has shape {V.shape}; images of {shape[0]} x {shape[1]} need {shape[0] * shape[1]} rows")
    from matplotlib.figure import Figure

    rows = -(-V.shape[1] // columns)
    figure = Figure(figsize=(columns, rows), layout="constrained")
    for k, axes in enumerate(figure.subplots(rows, columns, squeeze=False).ravel()):
        axes.axis("off")
        if k < V.shape[1]:
            axes.imshow(V[:, k].reshape(shape), cmap="gray_r")
    figure.savefig(file, dpi=120)
    return Path(file)
