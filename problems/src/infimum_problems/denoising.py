"""Denoising by total variation, of signals and of pictures."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

from infimum.functions import TV1D, SquaredL2, total_variation
from infimum.problem import Composite
from infimum_problems.data import check_penalty
from infimum_problems.pictures import Picture, Signal, level, load_picture, load_signal, noisy

NOISE = 0.05


def tv_denoising_1d(
    data: Signal = "china",
    penalty: Annotated[float, Ge(0)] = 0.2,
    row: int = 300,
    noise: Annotated[float, Ge(0)] | None = None,
    seed: Annotated[int, Ge(0)] = 0,
) -> Composite:
    """Piecewise constant fit of a noisy signal: minimize `||x - b||^2 / 2 + penalty sum_i |x_{i+1} - x_i|`.

    b is a row of a sample photograph of scikit-learn (640 gray values from 0 to 1) with normal noise, or your own
    signal.

    Parameters
    ----------
    data : {"china", "flower"} or mapping, default "china"
        A photograph, or your own: `{file: x.csv, target: column}`; `target` may be left out for a single column.
    penalty : float, default 0.2
        Weight of the total variation, at least 0.
    row : int, default 300
        Row of the photograph, from 0 at the top; negative from the bottom.
    noise : float, optional
        Standard deviation of the noise that is added. None means 0.05 for a photograph and none for your own data.
    seed : int, default 0
        Of the noise.

    Returns
    -------
    Composite
        Terms `loss` (gradient, prox) and `tv` (prox); x has shape (n,). The start is b.

    Raises
    ------
    InputError
        For data that cannot be used, a row that is not there, or a negative penalty or noise.
    """
    what = "problems.tv_denoising_1d"
    check_penalty(penalty, what)
    b = noisy(load_signal(data, row, what), level(noise, data, NOISE), seed)
    terms = {"loss": SquaredL2().translate(b), "tv": penalty * TV1D()}
    return Composite(terms, start=b, name="1-D total variation denoising")


def tv_denoising_2d(
    data: Picture = "china",
    penalty: Annotated[float, Ge(0)] = 0.05,
    isotropic: bool = True,
    size: Annotated[int, Ge(2)] | None = None,
    noise: Annotated[float, Ge(0)] | None = None,
    seed: Annotated[int, Ge(0)] = 0,
) -> Composite:
    """Total variation denoising of a picture: minimize `||x - b||^2 / 2 + penalty TV(x)`.

    `TV` sums over pixels the size of the differences to the next pixel below and to the right: their Euclidean norm
    (isotropic), or the sum of their absolute values. b is a sample picture of scikit-learn (gray values from 0 to 1)
    with normal noise, or your own picture.

    Parameters
    ----------
    data : {"china", "flower", "digits"} or mapping, default "china"
        A photograph, a sheet of handwritten digits, or your own: `{file: picture.png}` (also CSV, NPY, NPZ).
    penalty : float, default 0.05
        Weight of the total variation, at least 0.
    isotropic : bool, default True
        Euclidean norms of the differences; otherwise their absolute values.
    size : int, optional
        At most so many rows and columns, around the center. None means 32 for a bundled picture, all of your own.
    noise : float, optional
        Standard deviation of the noise that is added. None means 0.05 for a bundled picture and none for your own.
    seed : int, default 0
        Of the noise.

    Returns
    -------
    Composite
        Terms `loss` (gradient, prox) and `tv` (a norm with a prox, of a linear map); x has the shape of the picture.
        The start is b.

    Raises
    ------
    InputError
        For a picture that cannot be used, or a negative penalty or noise.
    """
    what = "problems.tv_denoising_2d"
    check_penalty(penalty, what)
    b = noisy(load_picture(data, size, what), level(noise, data, NOISE), seed)
    terms = {"loss": SquaredL2().translate(b), "tv": penalty * total_variation(b.shape, isotropic)}
    return Composite(terms, start=b, name="2-D total variation denoising")
