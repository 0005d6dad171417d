"""Refusals and warnings that the constraint, the solvers and the optimizers share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infimum.arrays import Array, describe, namespace
from infimum.errors import InputError, did_you_mean
from infimum_pogo.geometry import gaps, polar, sturdy

FAR = math.sqrt(3.0)
"""Singular values from here on are not landed on the nearest matrix: s (3 - s^2) / 2 is negative beyond it."""
NEAR = 0.1
"""Defects up to here need no projection: two landings bring them to 1e-4. A guarded step leaves half of it at most, so
that what a checkpoint holds is taken up bit for bit."""
LAYOUTS = "rows=True (X X^H = I, p <= n), rows=False (X^H X = I, p >= n) or rows='auto' (the shorter side)"
INITS = ("check", "project", "ignore")


def is_number(value: Any) -> bool:
    """Whether this is a real number; booleans are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_number(
    value: Any, name: str, what: str, low: float, high: float = math.inf, *, open_low: bool = True
) -> None:
    """A finite number between two bounds; the upper one is not included."""
    if is_number(value) and low <= value < high and not (open_low and value == low):
        return
    expected = f"a finite number {'>' if open_low else '>='} {low:g}" + (f" and < {high:g}" if high < math.inf else "")
    raise InputError(f"{what}: {name}={value!r}; expected {expected}")


def check_size(value: Any, name: str, what: str) -> None:
    """A whole number of at least one."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InputError(f"{what}: {name}={value!r}; expected a whole number >= 1")


def check_word(value: Any, name: str, words: tuple[str, ...], what: str) -> None:
    """One of some words."""
    if value not in words:
        hint = f"; {did_you_mean(value, words)}" if isinstance(value, str) else ""
        raise InputError(f"{what}: {name}={value!r}; expected {' or '.join(map(repr, words))}{hint}")


def check_safe(value: Any, what: str) -> None:
    """The step guard: None, or a bound within the basin of the landing."""
    if value is None or (is_number(value) and 0 < value < math.sqrt(2.0)):
        return
    raise InputError(
        f"{what}: safe={value!r}; expected a bound of lr ||R|| between 0 and sqrt(2), beyond which a step loses rank "
        "(0.5 is the default), or None for no guard"
    )


def check_betas(value: Any, what: str) -> None:
    """Two decay rates in [0, 1)."""
    if isinstance(value, tuple | list) and len(value) == 2 and all(is_number(one) and 0 <= one < 1 for one in value):
        return
    raise InputError(f"{what}: betas={value!r}; expected two numbers in [0, 1), such as (0.9, 0.999)")


def too_long(what: str, lr: float, reach: float) -> str:
    """What to say of a step that may lose rank."""
    return (
        f"{what}: lr ||R|| may reach {reach:.3g} with lr={lr:g}; from sqrt(2) on a step loses rank and from 2 on it "
        f"diverges; take lr of at most {0.5 * lr / reach:.2g}, or the step guard (safe=0.5)"
    )


def lies_in_rows(shape: tuple[int, ...], rows: bool | str, what: str) -> bool:
    """Whether matrices of this shape are orthonormal by rows, under an option `rows`.

    Raises
    ------
    InputError
        For matrices with more orthonormal rows than columns, or the other way round.
    """
    p, n = shape[-2:]
    if rows == "auto":
        return p <= n
    if rows not in (True, False):
        raise InputError(f"{what}: rows={rows!r}; expected {LAYOUTS}")
    if rows and p > n:
        raise InputError(f"{what}: row-orthogonal needs p <= n, got (…, p, n) = {shape}; pass rows=False")
    if not rows and n > p:
        raise InputError(f"{what}: column-orthogonal needs p >= n, got (…, p, n) = {shape}; pass rows=True")
    return bool(rows)


def admitted(X: Array, init: str, what: str, optimizer: bool = False) -> Array | None:
    """Whether a start serves: None where it is near enough, or what to put in its place.

    Parameters
    ----------
    X : array, shape (b, p, n)
    init : {"check", "project", "ignore"}
        "check" refuses defects above 0.1, "project" gives the nearest point in their place, "ignore" only refuses what
        would land elsewhere.
    what : str
        Named in messages.

    Raises
    ------
    InputError
        For NaN or inf, a start that is not orthonormal under "check", and a singular value >= sqrt(3) under "ignore".
    """
    xp = namespace(X)
    found = gaps(X)
    # In half precision rounding alone leaves about eps sqrt(p).
    near = max(NEAR, 2.0 * float(xp.finfo(X.dtype).eps) * math.sqrt(X.shape[-2]))
    worst = int(xp.argmax(xp.where(xp.isfinite(found), found, xp.full_like(found, math.inf))))
    gap = float(found[worst])
    one = f"matrix {worst} of {int(X.shape[0])} of {what}" if X.shape[0] > 1 else what
    if not math.isfinite(gap):
        raise InputError(f"{one} ({describe(X)}) holds NaN or inf")
    if init == "project":
        return polar(X) if gap > near else None
    remedy = "run project_() or pass init='project'" if optimizer else "pass start='project'"
    if init == "check" and gap > near:
        raise InputError(f"{one} is not orthonormal: ||X X^H - I|| = {gap:.3g}; {remedy}")
    if gap > 2.0:
        top = float(xp.max(xp.linalg.svdvals(sturdy(X))))
        if top >= FAR:
            raise InputError(
                f"{one} has a singular value {top:.4g} >= sqrt(3), from where landing goes to another matrix or "
                f"diverges; {remedy}"
            )
    return None
