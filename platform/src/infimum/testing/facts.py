"""Declared facts against samples: Lipschitz constant, strong convexity, convexity."""

from __future__ import annotations

import math

from infimum.arrays import Array, inner, norm
from infimum.testing.subject import Subject

POWER_STEPS = 20
WASTEFUL = 10.0
"""A declared constant so many times larger than what was seen is noted."""


def check_facts(subject: Subject) -> None:
    """All facts that the function declares."""
    lipschitz, modulus = _number(subject, "lipschitz"), _number(subject, "strongly_convex") or 0.0
    if subject.has_gradient:
        seen = [_curvatures(subject, point) for point in subject.near()]
        seen = [one for one in seen if math.isfinite(one[0])]
        if seen:
            _compare(subject, lipschitz, modulus, max(one[0] for one in seen), min(one[1] for one in seen))
    elif lipschitz is not None:
        subject.skip("lipschitz", "no gradient is offered to compare it with")
    if subject.has_value and (modulus or getattr(subject.thing, "convex", None)):
        _midpoints(subject, modulus)


def _number(subject: Subject, name: str) -> float | None:
    found = getattr(subject.thing, name, None)
    if found is None:
        return None
    subject.report.checked.append(name)
    number = float(found)
    if not 0 <= number < math.inf:
        subject.wrong(name, f"it is {number:g}; expected a finite number >= 0, or None")
        return None
    return number


def _curvatures(subject: Subject, x: Array) -> tuple[float, float]:
    """The largest and the smallest slope of the gradient around x that power iterations find.

    Difference quotients of the gradient never exceed its Lipschitz constant, whatever the step.
    """
    # For such a step noise and curvature of the gradient are both small beside its slope.
    h = subject.eps**0.25 * subject.scale

    def slope(d: Array) -> Array:
        return (subject.gradient(x + h * d) - subject.gradient(x - h * d)) / (2.0 * h)

    top, d = 0.0, subject.direction()
    for _ in range(POWER_STEPS):
        image = slope(d)
        size = norm(image)
        if not math.isfinite(size):
            return math.nan, math.nan
        top = max(top, size)
        if size == 0.0:
            break
        d = image / size
    least, d = math.inf, subject.direction()
    for _ in range(POWER_STEPS):
        image = slope(d)
        least = min(least, inner(image, d))
        d = top * d - image
        size = norm(d)
        if not math.isfinite(size) or size == 0.0:
            break
        d = d / size
    return top, least


def _compare(subject: Subject, lipschitz: float | None, modulus: float, top: float, least: float) -> None:
    noise = 32.0 * subject.eps * norm(subject.gradient(subject.x)) / (subject.eps**0.25 * subject.scale)
    slack = 1e-6 if subject.eps < 1e-12 else 1e-2
    if lipschitz is not None and top > lipschitz * (1.0 + slack) + noise:
        subject.wrong(
            "lipschitz",
            f"lipschitz = {lipschitz:.6g} is too small: the gradient changes by {top:.6g} times the distance "
            "between two points; steps of 1/lipschitz may diverge",
            declared=lipschitz,
            seen=top,
        )
    elif lipschitz is not None and lipschitz > WASTEFUL * top + noise and lipschitz > 0:
        subject.report.add(
            "lipschitz",
            f"lipschitz = {lipschitz:.6g} is allowed, but the gradient changed by {top:.6g} times the distance at "
            "most: steps of 1/lipschitz may be needlessly small",
            severity="note",
            declared=lipschitz,
            seen=top,
        )
    if modulus and least < modulus * (1.0 - slack) - noise - slack * top:
        subject.wrong(
            "strongly_convex",
            f"strongly_convex = {modulus:.6g} is too large: along one direction the gradient changes by only "
            f"{least:.6g} times the distance",
            declared=modulus,
            seen=least,
        )
    if getattr(subject.thing, "convex", None):
        subject.report.checked.append("convex")
        if least < -noise - slack * max(top, 1e-12):
            subject.wrong("convex", f"convex = True, but along one direction the curvature is {least:.6g}", seen=least)


def _midpoints(subject: Subject, modulus: float) -> None:
    """`f((a + b) / 2) <= (f(a) + f(b)) / 2 - modulus ||a - b||^2 / 8` on pairs of points, close and far."""
    if "convex" not in subject.report.checked:
        subject.report.checked.append("convex")
    for distance in (0.01, 0.1, 1.0, 10.0):
        for center in subject.near((0.0, 1.0)):
            for _ in range(4):
                d = subject.random(distance * subject.scale)
                a, b = center + d, center - d
                ends, middle = subject.value(a) + subject.value(b), subject.value(0.5 * (a + b))
                if not math.isfinite(ends):
                    continue
                room = modulus * norm(a - b) ** 2 / 8.0
                excess = middle - (0.5 * ends - room)
                if excess > 16.0 * subject.eps * subject.size**0.5 * (abs(ends) + abs(middle)) + 1e-6 * room:
                    name = "convex" if middle > 0.5 * ends else "strongly_convex"
                    subject.wrong(
                        name,
                        f"between two points {norm(a - b):.3g} apart the value is {middle:.10g}, which exceeds the "
                        f"mean {0.5 * ends:.10g} of theirs"
                        + (f" less modulus * distance^2 / 8 = {room:.3g}" if room else ""),
                    )
                    return
