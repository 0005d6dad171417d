"""The numbers behind the options that rule, detector and callback share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from infimum.errors import InfimumWarning, InputError
from infimum_cpd.checks import not_negative, positive, whole
from infimum_cpd.reference import LEAST, Reference
from infimum_cpd.theory import arl0 as mean_run
from infimum_cpd.theory import threshold, threshold_for

DIRECTIONS = ("up", "down", "both")
ONSETS = ("glr", "last_zero")
SHORT = 200.0
"""Samples between false alarms below which a threshold of one's own is a warning."""


def chosen_threshold(
    h: float | None,
    k: float,
    arl: float | None,
    far: float | None,
    horizon: int | None,
    sided: int,
    samples: int = 0,
    robust: bool = True,
) -> float:
    """The threshold from whichever of `h`, `arl0` or `far` with `horizon` was given; `arl0=1000` without any.

    Raises
    ------
    InputError
        For two of them at once, one half of the pair, or numbers out of range.

    Warns
    -----
    InfimumWarning
        For an `h` with less than 200 samples between false alarms.
    """
    not_negative("k", k, remark=", in standard deviations")
    positive("h", h)
    positive("arl0", arl)
    if horizon is not None:
        whole("horizon", horizon, 1)
    given = [name for name, value in (("h", h), ("arl0", arl), ("far", far)) if value is not None]
    if len(given) > 1:
        raise InputError(f"cusum: {' and '.join(given)} each set the threshold; give one of them")
    if (far is None) != (horizon is None):
        raise InputError("cusum: far and horizon go together: the chance of a false alarm within so many samples")
    if far is not None and horizon is not None:
        return threshold_for(far, horizon, k, sided, samples, robust)
    if h is None:
        return threshold(1000.0 if arl is None else arl, k, sided)
    run = mean_run(h, k, sided)
    if run < SHORT:
        wanted = threshold(1000.0, k, sided)
        warnings.warn(
            f"cusum: h={h:g} with k={k:g} false-alarms every {run:.0f} samples on average; "
            f"use h={wanted:.3g} for arl0=1000",
            InfimumWarning,
            stacklevel=4,
        )
    return float(h)


def read_reference(
    given: Any, robust: bool = True, scale_floor: float | None = None, whiten: bool = False
) -> tuple[int, Reference | None]:
    """Length of the warm-up (0 without one), and the reference where it is known already.

    Parameters
    ----------
    given : str, Reference or array_like
        "warmup:N" for the first N samples, "normal:CENTER,SCALE[,RHO[,N]]" for known numbers, or in-control samples.

    Raises
    ------
    InputError
        For another text, or samples that `Reference.of` refuses.
    """
    if isinstance(given, Reference):
        return 0, given
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return 0, Reference.of(given, robust, scale_floor, whiten)
    kind, _, rest = given.partition(":") if isinstance(given, str) else ("", "", "")
    try:
        if kind == "warmup" and rest.strip():
            count = int(rest)
            if count < LEAST:
                raise InputError(f"cusum: reference={given!r}; a warm-up needs {LEAST} samples or more")
            return count, None
        if kind == "normal":
            numbers = [float(one) for one in rest.split(",")]
            if 2 <= len(numbers) <= 4:
                center, scale, rho, samples = [*numbers, 0.0, 0.0][:4]
                return 0, Reference(center, scale, rho, int(samples))
    except InputError:
        raise
    except ValueError:
        pass
    raise InputError(
        f"cusum: reference={given!r}; expected 'warmup:64' (the first 64 samples), 'normal:CENTER,SCALE', "
        "or a list of in-control samples"
    )


def as_text(reference: Reference) -> str:
    """The text that `read_reference` reads back to the same numbers."""
    numbers = [reference.center, reference.scale, reference.rho]
    return f"normal:{','.join(repr(float(one)) for one in numbers)},{reference.n}"
