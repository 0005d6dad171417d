"""What a change-point detector has to beat: perplexity, windowed perplexity, single tokens, and the mere length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError
from infimum_cpd.checks import samples, whole


def perplexity(nll: ArrayLike) -> float:
    """Mean negative log-likelihood of a text (the logarithm of its perplexity); NaN entries are left out.

    Raises
    ------
    InputError
        If there is no other entry.
    """
    x = samples(nll, "perplexity")
    if np.isnan(x).all():
        raise InputError(f"perplexity: there is no number among {x.size} values")
    return float(np.nanmean(x))


def windows(values: ArrayLike, width: int) -> NDArray[np.float64]:
    """Means over consecutive windows of `width` samples that do not overlap; the last may be shorter.

    Raises
    ------
    InputError
        For a width below 1, or no value.
    """
    x = samples(values, "windows")
    whole("width", width, 1, "windows")
    if not x.size:
        raise InputError("windows: there is no value")
    starts = np.arange(0, x.size, width)
    good = np.isfinite(x)
    counts = np.add.reduceat(good.astype(float), starts)
    return np.add.reduceat(np.where(good, x, 0.0), starts) / np.maximum(counts, 1.0)


def windowed_perplexity(nll: ArrayLike, width: int = 10) -> tuple[float, int]:
    """The highest mean negative log-likelihood over windows, and the first token of that window.

    Parameters
    ----------
    nll : array_like, shape (n,)
    width : int, default 10
        Tokens in a window.

    References
    ----------
    N. Jain et al., Baseline defenses for adversarial attacks against aligned language models, 2023.
    """
    means = windows(nll, width)
    best = int(means.argmax())
    return float(means[best]), best * width


def length(text: str) -> float:
    """Characters in a text. Where this alone separates two sets, nothing else has been shown on them."""
    return float(len(text))
