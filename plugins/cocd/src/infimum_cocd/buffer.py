"""The coherent buffer: which coordinates come next, how old the entries are, and the gradient that they make."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.arrays import Array, inner, namespace, norm
from infimum.errors import InfimumWarning, InputError
from infimum_cocd.checks import (
    DIFFERENCES,
    ORDERS,
    below_noise,
    check_block,
    check_memory,
    check_positive,
    check_unit,
    check_word,
)
from infimum_cocd.differences import partials
from infimum_cocd.theory import gain, staleness_bound


@dataclass(frozen=True)
class Buffering:
    """Options of a buffer, checked; `what` is the name of the component in messages."""

    block: int | str
    gamma: float
    memory: int | None
    order: str
    difference: str
    eps: float
    init: str | tuple[float, ...]
    what: str

    def __post_init__(self) -> None:
        check_block(self.block, self.what)
        check_unit(self.gamma, "gamma", self.what)
        check_memory(self.memory, self.what)
        check_word(self.order, "order", ORDERS, self.what)
        check_word(self.difference, "difference", DIFFERENCES, self.what)
        check_positive(self.eps, "eps", self.what)
        if isinstance(self.init, str):
            check_word(self.init, "init", ("zeros", "full"), self.what)
        elif not all(math.isfinite(one) for one in self.init):
            raise InputError(f"{self.what}: init holds NaN or inf; give one finite number for each coordinate")
        if self.memory is not None and self.init != "zeros":
            raise InputError(f"{self.what}: init fills the whole buffer, memory={self.memory} keeps a part; drop one")

    def sizes(self, n: int) -> tuple[int, int]:
        """Block and memory for n coordinates; "auto" is the square root of n, rounded."""
        if n < 1:
            raise InputError(f"{self.what}: x is empty; expected at least one coordinate")
        check_block(self.block, self.what, n)
        check_memory(self.memory, self.what, n)
        block = max(1, round(math.sqrt(n))) if isinstance(self.block, str) else int(self.block)
        return block, n if self.memory is None else int(self.memory)

    def gain(self, n: int) -> float:
        """By how much the reuse of entries lengthens a step."""
        block, memory = self.sizes(n)
        return gain(n, block, self.gamma, memory)

    def whole(self) -> bool:
        """Whether every entry counts in full, however old."""
        return self.gamma == 1.0 and self.memory is None


@dataclass(slots=True)
class Buffer:
    """A buffer with the point of its last refresh; never changed in place.

    Attributes
    ----------
    x : array
        Where the last block was refreshed.
    estimate : array, like x
        The gradient that the buffer makes there.
    value : float or None
        f(x), where the differences need it or it was asked for.
    partials : array, shape (n,)
        Difference quotients as they were computed, without decay.
    serial : ndarray of int, shape (n,)
        Number of the refresh of each entry, counted from 0 over all steps; -1 for entries never refreshed.
    taken : int
        Refreshes so far: the block size times the number of steps.
    order : ndarray of int or None
        The permutation of the present cycle; None for cyclic order.
    travel : ndarray, at most K + 2 entries
        Length of the way until each of the last points.
    curved : ndarray, at most K entries
        Lower bounds of the Lipschitz constant, one from each of the last blocks.
    cosine, change : float or None
        Cosine between the last two estimates, and the norm of their difference.
    """

    x: Array
    estimate: Array
    value: float | None
    partials: Array
    serial: np.ndarray
    taken: int
    seed: int
    order: np.ndarray | None
    travel: np.ndarray
    curved: np.ndarray
    cosine: float | None
    change: float | None


def start(options: Buffering, function: Any, x: Array, seed: int, with_value: bool) -> Buffer:
    """The buffer after its first refresh, which is one of all coordinates for init="full"."""
    xp = namespace(x)
    n = math.prod(x.shape)
    block, _ = options.sizes(n)
    _check_point(x, options.what)
    kept = xp.zeros(n, dtype=x.dtype, device=x.device) if xp is not np else np.zeros(n, dtype=x.dtype)
    if not isinstance(options.init, str):
        if len(options.init) != n:
            raise InputError(f"{options.what}: init has {len(options.init)} entries, x has n={n}; give one for each")
        kept = kept + xp.asarray(np.asarray(options.init), dtype=x.dtype)
    order = _permutation(seed, 0, n) if options.order == "shuffled cycle" else None
    blank = np.full(n, -1, dtype=np.int64)
    empty = Buffer(x, kept, None, kept, blank, 0, seed, order, np.zeros(0), np.zeros(0), None, None)
    if options.init != "full":
        return refresh(options, function, empty, x, with_value)
    slopes, value, level = partials(
        function, x, np.arange(n), options.eps, options.difference, with_value, options.what
    )
    _warn_of_noise(options, x, level)
    estimate = xp.reshape(slopes, tuple(x.shape))
    return Buffer(x, estimate, value, slopes, 0 * blank, block, seed, order, np.zeros(1), np.zeros(0), None, None)


def refresh(options: Buffering, function: Any, old: Buffer, x: Array, with_value: bool) -> Buffer:
    """The buffer after the refresh of the next block at x."""
    xp = namespace(x)
    if tuple(x.shape) != tuple(old.x.shape):
        raise InputError(
            f"{options.what}: x is {tuple(x.shape)}, the buffer was made for {tuple(old.x.shape)}; "
            "use a part for one problem only"
        )
    n = old.serial.size
    block, _ = options.sizes(n)
    coordinates, order = _next(old, block)
    slopes, value, level = partials(
        function,
        x,
        coordinates,
        options.eps,
        options.difference,
        with_value,
        options.what,
        first=old.taken == 0,
    )
    if old.taken == 0:
        _warn_of_noise(options, x, level)
    index = coordinates if xp is np else xp.asarray(coordinates, device=x.device)
    kept = xp.asarray(old.partials, copy=True)
    kept[index] = slopes
    serial = old.serial.copy()
    serial[coordinates] = np.arange(old.taken, old.taken + block)
    new = Buffer(x, x, value, kept, serial, old.taken + block, old.seed, order, np.zeros(0), np.zeros(0), None, None)
    new.estimate = xp.reshape(_decayed(options, new), tuple(x.shape))
    if old.taken:
        new.cosine, new.change = _compare(old.estimate, new.estimate)
    K = max(1, n // block)
    behind = float(old.travel[-1]) if old.travel.size else 0.0
    new.travel = np.append(old.travel, behind + (norm(x - old.x) if old.taken else 0.0))[-(K + 2) :]
    measured = _curvature(old, new, index, coordinates, block, level / options.eps)
    new.curved = np.append(old.curved, measured)[-K:]
    return new


def _check_point(x: Array, what: str) -> None:
    xp = namespace(x)
    real = x.dtype.kind == "f" if xp is np else xp.isdtype(x.dtype, "real floating")
    if not real:
        raise InputError(f"{what}: x holds {str(x.dtype).rpartition('.')[2]} entries; expected real floating ones")


def _permutation(seed: int, cycle: int, n: int) -> np.ndarray:
    return np.random.Generator(np.random.PCG64([seed, cycle])).permutation(n)


def _next(old: Buffer, block: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The next coordinates, and the permutation that holds afterwards."""
    n = old.serial.size
    first = old.taken % n
    if old.order is None:
        return (first + np.arange(block)) % n, None
    if first + block < n:
        return old.order[first : first + block], old.order
    rest = old.order[first:]
    fresh = _permutation(old.seed, (old.taken + block) // n, n)
    # Those just refreshed come last of the new cycle's first ones: no coordinate twice in one step.
    again = np.isin(fresh, rest)
    fresh = np.concatenate([fresh[~again], fresh[again]])
    return np.concatenate([rest, fresh[: block - rest.size]]), fresh


def age(buffer: Buffer, block: int) -> np.ndarray:
    """Steps since the refresh of each entry, 0 for the last block; entries never refreshed date from before step 0."""
    return buffer.taken // block - 1 - buffer.serial // block


def covered(options: Buffering, buffer: Buffer) -> np.ndarray | None:
    """Which entries the buffer holds; None for all."""
    if options.memory is None:
        return None
    return buffer.serial >= max(0, buffer.taken - options.memory)


def _decayed(options: Buffering, buffer: Buffer) -> Array:
    if options.whole():
        return buffer.partials
    block, _ = options.sizes(buffer.serial.size)
    weight = np.power(options.gamma, age(buffer, block).astype(np.float64))
    held = covered(options, buffer)
    if held is not None:
        weight = weight * held
    x = buffer.partials
    xp = namespace(x)
    return x * (weight.astype(x.dtype) if xp is np else xp.asarray(weight, dtype=x.dtype, device=x.device))


def _compare(old: Array, new: Array) -> tuple[float | None, float]:
    size = norm(old) * norm(new)
    return (inner(old, new) / size if size > 0 else None), norm(new - old)


def _curvature(old: Buffer, new: Buffer, index: Any, coordinates: np.ndarray, block: int, unit: float) -> float:
    """How much a block of slopes changed for the way since its last refresh: at most the Lipschitz constant; or 0.

    `unit` is |f| / eps: rounding of f, in units of the dtype's precision, as it shows in a slope.
    """
    known = old.serial[coordinates]
    back = int(new.taken // block - 1 - known.min() // block)
    if known.min() < 0 or back >= new.travel.size:
        return 0.0
    slopes = new.partials[index]
    way = float(new.travel[-1] - new.travel[-1 - back])
    change = norm(slopes - old.partials[index])
    noise = 4.0 * float(namespace(slopes).finfo(slopes.dtype).eps) * abs(unit) * math.sqrt(block)
    return change / way if way > 0 and change > 10.0 * noise else 0.0


def _warn_of_noise(options: Buffering, x: Array, value: float) -> None:
    dtype = str(x.dtype).rpartition(".")[2]
    text = below_noise(options.eps, value, float(namespace(x).finfo(x.dtype).eps), dtype, options.difference)
    if text is not None:
        warnings.warn(f"{options.what}: {text}", InfimumWarning, stacklevel=5)


def oldest(options: Buffering, buffer: Buffer) -> float:
    """Age in steps of the oldest entry that counts."""
    block, _ = options.sizes(buffer.serial.size)
    ages = age(buffer, block)
    held = covered(options, buffer)
    return float(ages.max() if held is None else ages[held].max())


def cycled(buffer: Buffer) -> bool:
    """Whether every entry has been refreshed."""
    return bool(buffer.serial.min() >= 0)


def bound(options: Buffering, buffer: Buffer, lipschitz: float | None) -> float | None:
    """Theorem 5.3 with a known Lipschitz constant, else with the largest one measured; None where it does not hold."""
    constant = lipschitz if lipschitz is not None else float(buffer.curved.max(initial=0.0))
    if not options.whole() or options.order != "cyclic" or not cycled(buffer) or not constant:
        return None
    n = buffer.serial.size
    block, _ = options.sizes(n)
    steps = np.diff(buffer.travel)[-(n // block) :]
    return staleness_bound(constant, float(steps.max(initial=0.0)), n, block)
