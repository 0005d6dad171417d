"""The capability `transitions`: what solvers ask a process for, what they get, and the moments behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from infimum.vocabulary import CAPABILITIES, Capability

TRANSITIONS = "transitions"
"""The capability of a process. A call is counted in transitions: steps times runs."""
BLOCK = 256
"""Steps that share one draw of random numbers; blocks start at multiples of it, so that any cut gives the same."""
_RESOLUTION = 2.0**-32

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Request:
    """Steps `first`, …, `first + steps - 1` of `runs` independent runs.

    Attributes
    ----------
    seed : int
        Of the runs; the same request gives the same transitions.
    first, steps, runs : int
    where : array, shape (runs,), or None
        Where the chains stand at `first`, from the batch before; None at `first = 0`.
    """

    seed: int
    first: int
    steps: int
    runs: int
    where: Array | None = None

    @property
    def size(self) -> int:
        """Number of transitions."""
        return self.steps * self.runs


@dataclass(frozen=True, slots=True)
class Batch:
    """Transitions, in the form in which TD(0) uses them: `w += eta (error'[w, 1]) phi`.

    Attributes
    ----------
    update : array, shape (steps, runs, d + 1)
        Features of the states, and 0.
    error : array, shape (steps, runs, d + 1)
        `gamma phi' - phi`, or `-phi` where the episode ended in a terminal state; and the reward.
    where : array, shape (runs,), or None
        Where the chains stand after the last step.
    """

    update: Array
    error: Array
    where: Array | None = None

    @classmethod
    def of(cls, phi: Array, psi: Array, reward: Array, where: Array | None = None) -> Batch:
        """From features and their differences (steps, runs, d), and rewards (steps, runs)."""
        return cls(joined(phi, np.zeros_like(reward)), joined(psi, reward), where)

    @property
    def phi(self) -> Array:
        """Features of the states, shape (steps, runs, d)."""
        return self.update[..., :-1]

    @property
    def psi(self) -> Array:
        """`gamma phi' - phi`, or `-phi` at an end, shape (steps, runs, d)."""
        return self.error[..., :-1]

    @property
    def reward(self) -> Array:
        """Rewards, shape (steps, runs)."""
        return self.error[..., -1]


def joined(rows: Array, last: Array) -> Array:
    """Rows with one more number each."""
    return np.concatenate([rows, last[..., None]], axis=-1)


class Process(Protocol):
    """The term of a policy evaluation problem."""

    @property
    def capabilities(self) -> frozenset[str]: ...
    @property
    def gamma(self) -> float: ...
    @property
    def dimension(self) -> int: ...
    @property
    def sampling(self) -> str: ...
    @property
    def omega(self) -> float | None: ...
    @property
    def moments(self) -> Moments | None: ...
    def transitions(self, request: Request) -> Batch: ...


def _size(request: Request) -> int:
    return request.size


CAPABILITIES.setdefault(
    TRANSITIONS, Capability("transitions(request) -> Batch: features, errors, rewards", (TRANSITIONS,), points=_size)
)


@dataclass(frozen=True, eq=False)
class Moments:
    """What the fixed point of TD(0) is made of.

    Attributes
    ----------
    A : array, shape (d, d)
        `E[phi (phi - gamma phi')']`.
    b : array, shape (d,)
        `E[reward phi]`.
    G : array, shape (d, d)
        `E[phi phi']`.
    """

    A: Array
    b: Array
    G: Array

    @cached_property
    def w_star(self) -> Array:
        """The fixed point, A w = b; of smallest norm where it is not unique."""
        return self.shifted(0.0)

    def shifted(self, lam: float) -> Array:
        """The fixed point of regularized TD(0), (A + lam I) w = b; of smallest norm where it is not unique."""
        found: Array = np.linalg.lstsq(self.A + lam * np.eye(len(self.b)), self.b, rcond=None)[0]
        return found

    @cached_property
    def omega(self) -> float:
        """Smallest eigenvalue of G."""
        return max(0.0, float(np.linalg.eigvalsh(self.G)[0]))

    @property
    def energy(self) -> float:
        """`E[V*(s)^2]`: the error of the zero function."""
        return float(self.w_star @ self.G @ self.w_star)

    def bias(self, lam: float) -> float:
        """`||w_lam - w*||`, what regularization costs however long one learns."""
        return float(np.linalg.norm(self.shifted(lam) - self.w_star))

    def errors(self, x: Array) -> Array:
        """`E[(V_w - V*)^2]` of each row of x (..., d)."""
        gap = x - self.w_star
        return np.asarray(np.einsum("...i,ij,...j->...", gap, self.G, gap))

    def residuals(self, x: Array) -> Array:
        """`||A w - b||` of each row of x (..., d)."""
        return np.asarray(np.linalg.norm(x @ self.A.T - self.b, axis=-1))

    def mspbe(self, x: Array) -> Array:
        """Mean squared projected Bellman error, `||A w - b||^2` in the metric of the inverse of G."""
        gap = x @ self.A.T - self.b
        return np.asarray(np.einsum("...i,ij,...j->...", gap, np.linalg.pinv(self.G, hermitian=True), gap))


def uniforms(seed: int, block: int, shape: tuple[int, ...], stream: int = 0) -> tuple[Array, np.random.Generator]:
    """Numbers in [0, 1) that belong to a block of steps, and the generator after them.

    They are multiples of 2^-32, so that adding the index of a state is exact.
    """
    bits = np.random.Philox(key=[seed % 2**64, stream], counter=[0, 0, 0, block])
    rng = np.random.Generator(bits)
    return rng.integers(0, 2**32, size=shape, dtype=np.uint32) * _RESOLUTION, rng
