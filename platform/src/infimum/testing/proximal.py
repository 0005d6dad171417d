"""Proxes: optimality by the definition, firm nonexpansiveness, Moreau; subgradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infimum.arrays import Array, all_finite, inner, like, norm
from infimum.testing.subject import Subject

STEPS = (0.1, 1.0, 10.0)
DISTANCES = (0.0, 0.3, 1.0, 10.0)


def check_prox(subject: Subject) -> None:
    """No point has a smaller `f(u) + ||u - v||^2 / (2 t)` than the prox; for convex f by a margin."""
    tolerance = _tolerance(subject)
    for t in STEPS:
        for distance in DISTANCES:
            v = subject.x + subject.random(distance * subject.scale)
            p = subject.thing.prox(v, t)
            if not all_finite(p):
                subject.wrong("prox", f"prox(v, {t:g}) holds NaN or inf for a finite v")
                return
            if subject.has_value and not _is_minimizer(subject, v, p, t, tolerance):
                return
    if getattr(subject.thing, "convex", None):
        _firmly_nonexpansive(subject, subject.thing.prox, "prox")


def _tolerance(subject: Subject) -> float:
    inexact = int(getattr(subject.thing, "exactness", 0) or 0) > 0
    return max(subject.tolerance, 1e-4) if inexact else subject.tolerance


def _is_minimizer(subject: Subject, v: Array, p: Array, t: float, tolerance: float) -> bool:
    # What a convex f adds to a quadratic of modulus 1 / t cannot make it flatter.
    margin = 0.5 / t if getattr(subject.thing, "convex", None) else 0.0
    here = subject.value(p) + norm(p - v) ** 2 / (2.0 * t)
    if not math.isfinite(here):
        subject.wrong("prox", f"prox(v, {t:g}) lies where the value is {subject.value(p):g}")
        return False
    for u in _rivals(subject, v, p):
        there = subject.value(u) + norm(u - v) ** 2 / (2.0 * t)
        least = there - margin * norm(u - p) ** 2
        if here > least + tolerance * (abs(here) + abs(there) + tolerance):
            beside = "" if there < here else f", and must exceed it by {margin * norm(u - p) ** 2:.3g} for convex f"
            subject.wrong(
                "prox",
                f"prox(v, {t:g}) is no minimizer: f(u) + ||u - v||^2/(2t) is {here:.10g} there and {there:.10g} at a "
                f"point {norm(u - p):.3g} away{beside}; do the factor 1/2 and the step t stand where they should?",
                there=there,
                here=here,
                t=t,
            )
            return False
    return True


def _rivals(subject: Subject, v: Array, p: Array) -> list[Array]:
    """Points near and far from p: on the line to v, random ones, single coordinates, the points of the check."""
    line = [p + s * (v - p) for s in (1.0, -1.0, 0.5, -0.5, 0.1, -0.1, 1e-2, -1e-2, 1e-3, -1e-3)]
    size = max(subject.scale, norm(p) / math.sqrt(subject.size))
    cloud = [p + subject.random(size * s) for s in (1e-3, 1e-2, 0.1, 1.0) for _ in range(2)]
    single = []
    for index in subject.rng.choice(subject.size, min(6, subject.size), replace=False):
        d = np.zeros(subject.size)
        d[index] = size * float(subject.rng.choice([-1.0, 1.0])) * 10.0 ** float(subject.rng.uniform(-3, 0))
        single.append(p + like(d.reshape(tuple(subject.x.shape)), p))
    return [*line, *cloud, *single, subject.x, 0.0 * p]


def _firmly_nonexpansive(subject: Subject, prox: Any, name: str) -> None:
    for t in STEPS:
        u, v = subject.x + subject.random(subject.scale), subject.x + subject.random(3.0 * subject.scale)
        gap = prox(u, t) - prox(v, t)
        left, right = norm(gap) ** 2, inner(gap, u - v)
        if left > right + _tolerance(subject) * (left + norm(gap) * norm(u - v) + 1e-12):
            subject.wrong(
                name,
                f"it is not firmly nonexpansive, which the prox of a convex function is: ||p - q||^2 = {left:.6g} > "
                f"<p - q, u - v> = {right:.6g} at step {t:g}",
            )


def check_prox_conjugate(subject: Subject) -> None:
    """Moreau: `prox_conjugate(v, s) = v - s prox(v / s, 1 / s)`; without a prox, firm nonexpansiveness."""
    if not subject.can("prox"):
        _firmly_nonexpansive(subject, subject.thing.prox_conjugate, "prox_conjugate")
        return
    for s in STEPS:
        for distance in DISTANCES:
            v = subject.x + subject.random(distance * subject.scale)
            mine = subject.thing.prox_conjugate(v, s)
            moreau = v - s * subject.thing.prox(v / s, 1.0 / s)
            if not norm(mine - moreau) <= _tolerance(subject) * (norm(v) + norm(moreau) + 1e-12):
                subject.wrong(
                    "prox_conjugate",
                    f"prox_conjugate(v, {s:g}) is {norm(mine - moreau):.3g} away from v - s prox(v/s, 1/s) (Moreau)",
                )
                return


def check_subgradient(subject: Subject) -> None:
    """`f(y) >= f(x) + <g, y - x>` for convex f."""
    if not getattr(subject.thing, "convex", None):
        subject.skip("subgradient", "the function is not declared convex")
        return
    points = [*subject.near(), *subject.near((10.0,))]
    for x in points:
        g, here = subject.thing.subgradient(x), subject.value(x)
        for y in points:
            there, line = subject.value(y), here + inner(g, y - x)
            if there < line - subject.tolerance * (abs(here) + abs(line) + 1.0):
                subject.wrong("subgradient", f"f(y) = {there:.10g} < f(x) + <g, y - x> = {line:.10g}")
