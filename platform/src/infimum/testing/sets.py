"""`check_constraint`: a set's projection, violation, step, tangent space and bounds against each other."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from infimum.arrays import Array, all_finite, describe, inner, norm
from infimum.testing.derivatives import check_jacobian, check_jvp, check_vjp
from infimum.testing.purity import check_form, check_purity
from infimum.testing.report import Report
from infimum.testing.subject import Check, Subject, as_point

DISTANCES = (0.0, 0.1, 1.0, 10.0)


def check_constraint(
    c: Any,
    x: Any,
    *,
    rng: np.random.Generator | int | None = None,
    tolerance: float | None = None,
    name: str = "",
    raise_: bool = False,
) -> Report:
    """Check what a set offers.

    `project`: feasible, idempotent, and nearest among samples of the set; `violation`: 0 at projections, positive
    where a point is moved; `step`: feasible from a point of the set, and the point itself for d = 0; `tangent`: an
    orthogonal projector; `bounds`: ordered, and projections lie between them; declared convexity on midpoints; shapes
    and dtype kept, inputs unchanged, the same result for the same input.

    Parameters
    ----------
    c : Constraint
    x : array_like
        Any point of the right shape; further points are drawn around it, near and far.
    rng : numpy.random.Generator or int, default 0
    tolerance : float, optional
        Relative error that counts as rounding; 1e-9 in float64, 2e-3 in float32. Raise it for a projection that
        iterates to a tolerance of its own.
    name : str, optional
        What the report calls the set.
    raise_ : bool, default False
        Raise `InputError` with the report if something is wrong.

    Returns
    -------
    Report
    """
    point = as_point(x)
    if hasattr(c, "check"):
        c.check(point)
    body = c.to(point) if hasattr(c, "to") else c
    subject = Subject(body, point, np.random.default_rng(0 if rng is None else rng), tolerance)
    if name:
        subject.report.subject = f"{name} at x {describe(point)}"
    subject.run(CHECKS)
    return subject.report.require() if raise_ else subject.report


def _points(subject: Subject) -> list[Array]:
    return [subject.x + subject.random(distance * subject.scale) for distance in DISTANCES for _ in range(2)]


def _members(subject: Subject) -> list[Array]:
    """Points of the set: projections, or x itself if it is one."""
    if subject.can("project"):
        return [subject.thing.project(one) for one in _points(subject)]
    return [subject.x] if _violation(subject, subject.x) <= _slack(subject, subject.x) else []


def _violation(subject: Subject, x: Array) -> float:
    return float(subject.thing.violation(x))


def _slack(subject: Subject, *points: Array) -> float:
    return 10.0 * subject.tolerance * (1.0 + sum(norm(one) for one in points))


def _check_violation(subject: Subject) -> None:
    for point in _points(subject):
        violation = _violation(subject, point)
        if not 0.0 <= violation < math.inf:
            subject.wrong("violation", f"violation(x) = {violation:g}; expected a finite number >= 0")
            return
        if not subject.can("project"):
            continue
        distance = norm(point - subject.thing.project(point))
        if violation == 0.0 and distance > _slack(subject, point):
            subject.wrong("violation", f"violation(x) = 0 although the projection is {distance:.6g} away")


def _check_project(subject: Subject) -> None:
    points = _points(subject)
    images = [subject.thing.project(one) for one in points]
    for point, image in zip(points, images, strict=True):
        if not all_finite(image):
            subject.wrong("project", "project(x) holds NaN or inf for a finite x")
            return
        violation = _violation(subject, image)
        if violation > _slack(subject, point, image):
            subject.wrong("project", f"violation(project(x)) = {violation:.6g}; expected 0: it is not feasible")
        again = norm(subject.thing.project(image) - image)
        if again > _slack(subject, point, image):
            subject.wrong("project", f"it is not idempotent: projecting a projection moves it by {again:.6g}")
        _check_nearest(subject, point, image, images)


def _check_nearest(subject: Subject, point: Array, image: Array, members: list[Array]) -> None:
    mine = norm(point - image)
    for member in members:
        rivals = [member]
        if getattr(subject.thing, "convex", None):
            rivals += [image + s * (member - image) for s in (1e-3, 1e-2, 0.1, 0.5)]
        for rival in rivals:
            if norm(point - rival) < mine - _slack(subject, point, image):
                subject.wrong(
                    "nearest",
                    f"project(x) is {mine:.10g} away from x, another point of the set only {norm(point - rival):.10g}",
                )
                return


def _check_convex(subject: Subject) -> None:
    if not getattr(subject.thing, "convex", None):
        subject.skip("convex", "not declared")
        return
    members = _members(subject)
    for one, other in itertools.pairwise(members):
        violation = _violation(subject, 0.5 * (one + other))
        if violation > _slack(subject, one, other):
            subject.wrong(
                "convex", f"convex = True, but a midpoint of two of its points violates it by {violation:.6g}"
            )


def _check_step(subject: Subject) -> None:
    for member in _members(subject):
        still = norm(subject.thing.step(member, 0.0 * member) - member)
        if still > _slack(subject, member):
            subject.wrong("step", f"step(x, 0) moves a point of the set by {still:.6g}")
        for scale in (0.01, 1.0):
            d = subject.random(scale * subject.scale)
            violation = _violation(subject, subject.thing.step(member, d))
            if violation > _slack(subject, member, d):
                subject.wrong("step", f"step(x, d) leaves the set by {violation:.6g}")


def _check_tangent(subject: Subject) -> None:
    for member in _members(subject):
        g, h = subject.random(), subject.random()
        flat, other = subject.thing.tangent(member, g), subject.thing.tangent(member, h)
        slack = 10.0 * subject.tolerance * (norm(g) + norm(h))
        twice = norm(subject.thing.tangent(member, flat) - flat)
        if twice > slack:
            subject.wrong("tangent", f"it is no projector: applied twice it moves a tangent vector by {twice:.6g}")
        left, right = inner(flat, h), inner(g, other)
        if abs(left - right) > slack * (norm(g) + norm(h)):
            subject.wrong("tangent", f"it is not orthogonal: <T g, h> = {left:.10g}, <g, T h> = {right:.10g}")
        mixed = norm(subject.thing.tangent(member, 2.0 * g - h) - (2.0 * flat - other))
        if mixed > 4.0 * slack:
            subject.wrong("tangent", f"it is not linear: T(2 g - h) is {mixed:.6g} away from 2 T g - T h")


def _check_bounds(subject: Subject) -> None:
    lower, upper = subject.thing.bounds(subject.x)
    if bool(subject.xp.any(lower > upper)):
        subject.wrong("bounds", "the lower bound exceeds the upper one")
    for member in _members(subject):
        outside = subject.xp.maximum(lower - member, member - upper)
        if float(subject.xp.max(outside)) > _slack(subject, member):
            subject.wrong("bounds", f"a point of the set lies {float(subject.xp.max(outside)):.6g} outside of them")


def _check_linear_minimizer(subject: Subject) -> None:
    members = _members(subject)
    for _ in range(3):
        g = subject.random()
        u = subject.thing.linear_minimizer(g)
        violation = _violation(subject, u)
        if violation > _slack(subject, u):
            subject.wrong("linear_minimizer", f"what it returns violates the set by {violation:.6g}")
        for member in members:
            if inner(g, member) < inner(g, u) - _slack(subject, member, u) * norm(g):
                subject.wrong(
                    "linear_minimizer", f"<g, u> = {inner(g, u):.10g}, another point has {inner(g, member):.10g}"
                )


CHECKS: tuple[tuple[str, tuple[str, ...], Check], ...] = (
    ("form", (), check_form),
    ("purity", (), check_purity),
    ("violation", ("violation",), _check_violation),
    ("project", ("project", "violation"), _check_project),
    ("convex", ("violation",), _check_convex),
    ("step", ("step", "violation"), _check_step),
    ("tangent", ("tangent", "violation"), _check_tangent),
    ("jvp", ("jvp", "residual"), check_jvp),
    ("jacobian", ("jacobian", "residual"), check_jacobian),
    ("vjp", ("vjp", "residual"), check_vjp),
    ("bounds", ("bounds", "violation"), _check_bounds),
    ("linear_minimizer", ("linear_minimizer", "violation"), _check_linear_minimizer),
)
