"""Derivatives against differences: gradient by coordinate, Hessian and Jacobian products along directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.arrays import Array, entry, inner, is_array, like, namespace, norm, to_numpy
from infimum.testing.subject import Subject, same

ALL_COORDINATES = 64
"""Up to so many coordinates each is checked; of more so many are drawn, besides three random directions."""
LARGE = 2000


def check_gradient(subject: Subject) -> None:
    """Central differences of the value, coordinate by coordinate."""
    worst: tuple[float, str, float, float] | None = None
    ratios: list[float] = []
    looked = 0
    for point in subject.near((0.0, 1.0) if subject.size > LARGE else (0.0, 0.1, 1.0)):
        g = to_numpy(subject.gradient(point)).reshape(-1)
        for index in _coordinates(subject):
            found = _compare(subject, point, g, index)
            if found is None:
                continue
            looked += 1
            excess, claimed, measured = found
            if abs(measured) > 1e-3 * float(np.abs(g).max(initial=0.0)) and measured:
                ratios.append(claimed / measured)
            if excess > 0 and (worst is None or excess > worst[0]):
                worst = (excess, entry(index, tuple(subject.x.shape))[1], claimed, measured)
        _along_directions(subject, point, g)
    if not looked:
        subject.skip("gradient", "no point with a finite value around it was found")
    if worst is not None:
        _, where, claimed, measured = worst
        subject.wrong(
            "gradient",
            f"gradient{where} = {claimed:.10g}, central differences of the value give {measured:.10g}{_factor(ratios)}",
            claimed=claimed,
            measured=measured,
            coordinate=where,
        )


def _coordinates(subject: Subject) -> list[int]:
    if subject.size <= ALL_COORDINATES:
        return list(range(subject.size))
    count = 16 if subject.size > LARGE else ALL_COORDINATES
    return sorted(int(i) for i in subject.rng.choice(subject.size, count, replace=False))


def _compare(subject: Subject, point: Array, g: np.ndarray, index: int) -> tuple[float, float, float] | None:
    """By how much an entry is off beyond rounding, the entry, and what differences give."""
    d = np.zeros(subject.size)
    d[index] = 1.0
    unit = like(d.reshape(tuple(subject.x.shape)), point)
    h = subject.h * max(1.0, abs(float(to_numpy(point).reshape(-1)[index])))
    measured, spread = subject.derivative(subject.value, point, unit, h)
    if not math.isfinite(measured):
        return None
    claimed = float(g[index])
    allowed = _allowed(subject, abs(claimed), abs(measured), spread, abs(subject.value(point)), h)
    allowed += 1e-2 * _relative(subject) * float(np.abs(g).max(initial=0.0))
    excess = abs(claimed - measured) - allowed
    return (excess if excess == excess else math.inf), claimed, measured


def _relative(subject: Subject) -> float:
    return 1e-5 if subject.eps < 1e-12 else 2e-2


def _allowed(subject: Subject, claimed: float, measured: float, spread: float, size: float, h: float) -> float:
    """What rounding and curvature can explain."""
    noise = 32.0 * subject.eps * size / h
    tiny = 1e-7 * float((subject.eps / 2e-16) ** 0.25)
    return _relative(subject) * max(claimed, measured) + 4.0 * spread + noise + tiny


def _factor(ratios: list[float]) -> str:
    if len(ratios) < 2:
        return ""
    middle = float(np.median(ratios))
    off = max(abs(one - middle) for one in ratios)
    return f" (every entry is off by the factor {middle:.6g})" if off < 1e-2 * abs(middle) else ""


def _along_directions(subject: Subject, point: Array, g: np.ndarray) -> None:
    """For many coordinates: random directions see them all."""
    if subject.size <= ALL_COORDINATES:
        return
    for _ in range(3):
        d = subject.random()
        measured, spread = subject.derivative(subject.value, point, d, subject.h * subject.scale)
        if not math.isfinite(measured):
            continue
        claimed = float(g @ to_numpy(d).reshape(-1))
        size = float(np.linalg.norm(g))
        allowed = _allowed(subject, size, abs(measured), spread, abs(subject.value(point)), subject.h * subject.scale)
        if not abs(claimed - measured) <= allowed:
            subject.wrong(
                "gradient",
                f"along a random direction the gradient says {claimed:.10g}, central differences of the value "
                f"{measured:.10g}",
                claimed=claimed,
                measured=measured,
            )


def check_pair(subject: Subject) -> None:
    """`value_and_gradient` is the pair of `value` and `gradient`."""
    for point in subject.near():
        value, gradient = subject.thing.value_and_gradient(point)
        for name, mine in (("value", value), ("gradient", gradient)):
            if not subject.can(name):
                continue
            alone = getattr(subject.thing, name)(point)
            if not _close(subject, mine, alone):
                shown = f": {float(mine):.12g} and {float(alone):.12g}" if name == "value" else ""
                subject.wrong("value_and_gradient", f"its {name} differs from {name}(x){shown}")


def check_values(subject: Subject) -> None:
    """`values(X)` is `value` row by row, for one point and for several."""
    points = subject.near()
    for batch in (points[:1], points):
        if not batch:
            continue
        found = subject.thing.values(subject.xp.stack(batch))
        alone = [subject.value(one) for one in batch]
        for row, one in enumerate(alone):
            if not _close(subject, float(found[row]), one):
                subject.wrong(
                    "values",
                    f"values(X)[{row}] = {float(found[row]):.12g}, value(X[{row}]) = {one:.12g} "
                    f"in a batch of {len(batch)}",
                )


def _close(subject: Subject, one: Any, other: Any) -> bool:
    if is_array(one) and one.ndim:
        return norm(one - other) <= subject.tolerance * (norm(other) + 1e-12)
    return abs(float(one) - float(other)) <= subject.tolerance * max(abs(float(other)), 1e-6)


def check_hvp(subject: Subject) -> None:
    """Hessian times vector against differences of the gradient."""
    _check_product(subject, "hvp", subject.thing.hvp, subject.gradient)


def check_hessian(subject: Subject) -> None:
    """The Hessian against differences of the gradient; symmetric."""

    def product(x: Array, d: Array) -> Array:
        H = subject.thing.hessian(x)
        if not norm(H - H.T) <= subject.tolerance * (norm(H) + 1e-12):
            subject.wrong("hessian", "it is not symmetric")
        return (H @ d.reshape((-1,))).reshape(tuple(d.shape))

    _check_product(subject, "hessian", product, subject.gradient)


def check_jvp(subject: Subject) -> None:
    """Jacobian times vector against differences of the residual."""
    _check_product(subject, "jvp", subject.thing.jvp, subject.thing.residual)


def check_jacobian(subject: Subject) -> None:
    """The Jacobian against differences of the residual."""

    def product(x: Array, d: Array) -> Array:
        J = subject.thing.jacobian(x)
        return J @ d.reshape((-1,))

    _check_product(subject, "jacobian", product, subject.thing.residual)


def _check_product(
    subject: Subject, name: str, product: Callable[[Array, Array], Array], call: Callable[[Array], Array]
) -> None:
    for point in subject.near():
        d = subject.direction()
        h = subject.h * subject.scale
        claimed = product(point, d)
        measured, spread = subject.derivative(call, point, d, h)
        measured = namespace(claimed).reshape(measured, tuple(claimed.shape))
        if not math.isfinite(norm(measured)):
            continue
        allowed = _allowed(subject, norm(claimed), norm(measured), spread, norm(call(point)), h)
        if not norm(claimed - measured) <= allowed:
            subject.wrong(
                name,
                f"along a random direction its norm is {norm(claimed):.10g}, that of the differences "
                f"{norm(measured):.10g}, and the two are {norm(claimed - measured):.3g} apart",
                claimed=norm(claimed),
                measured=norm(measured),
            )


def check_vjp(subject: Subject) -> None:
    """`<u, J v> = <J' u, v>`, with J v from `jvp` or from differences of the residual."""
    for point in subject.near():
        residual = subject.thing.residual(point)
        u, v = subject.random(shape=tuple(residual.shape)), subject.direction()
        spread = 0.0
        if subject.can("jvp"):
            image = subject.thing.jvp(point, v)
        else:
            image, spread = subject.derivative(subject.thing.residual, point, v, subject.h * subject.scale)
        left, right = inner(u, image), inner(subject.thing.vjp(point, u), v)
        slack = (subject.tolerance if subject.can("jvp") else _relative(subject)) * (norm(u) * norm(image) + 1e-12)
        if not abs(left - right) <= slack + 4.0 * spread * norm(u):
            subject.wrong("vjp", f"<u, J v> = {left:.10g}, <J' u, v> = {right:.10g}", left=left, right=right)


def check_sample_gradient(subject: Subject) -> None:
    """The same generator gives the same sample; the mean of 256 samples is the gradient, up to 6 standard errors."""
    x = subject.x
    one, other = (subject.thing.sample_gradient(x, np.random.default_rng(1)) for _ in range(2))
    if not same(one, other):
        subject.wrong("sample_gradient", "two generators of the same seed give two samples: it draws elsewhere")
    if not subject.has_gradient:
        return
    many = np.array([to_numpy(subject.thing.sample_gradient(x, subject.rng)).reshape(-1) for _ in range(256)])
    exact = to_numpy(subject.gradient(x)).reshape(-1)
    error = many.std(axis=0, ddof=1) / 16.0
    off = np.abs(many.mean(axis=0) - exact) - 6.0 * error - 1e-6 * (1.0 + np.abs(exact))
    if off.max() > 0:
        i = int(np.argmax(off))
        subject.wrong(
            "sample_gradient",
            f"the mean of 256 samples is {many.mean(axis=0)[i]:.6g} at {entry(i, tuple(x.shape))[1]}, the gradient "
            f"{exact[i]:.6g} (standard error {error[i]:.2g})",
        )
