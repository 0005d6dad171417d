"""Recorded transitions: what is left when there is no model."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from zipfile import BadZipFile

import numpy as np
from annotated_types import Ge, Lt

from infimum.errors import InputError
from infimum_tdexp import checks
from infimum_tdexp.transitions import BLOCK, TRANSITIONS, Array, Batch, Moments, Request, uniforms

if TYPE_CHECKING:
    from infimum_tdexp.problem import PolicyEvaluation

WHAT = "stream"


class Stream:
    """Recorded transitions, gone through in their order (and again from the first), or drawn from at random.

    Parameters
    ----------
    features : array, shape (N, d)
        Of the states.
    rewards : array, shape (N,)
    next_features : array, shape (N, d)
        Of the states that followed.
    terminated : array of bool, shape (N,), optional
        Where the episode ended in a terminal state, whose value is 0. An episode that was merely cut off
        (`truncated`) is not terminated: its next state has a value like any other.
    gamma : float, default 0.99
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        In order, or independent draws with replacement.
    scale_features : bool, default False
        Divide features by the largest norm where it exceeds 1.

    Raises
    ------
    InputError
        For shapes that do not agree, numbers that are not finite, features that are too long.

    Notes
    -----
    The fixed point that errors are measured from is that of the record, which is what LSTD finds after one pass.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset({TRANSITIONS})

    def __init__(
        self,
        features: Any,
        rewards: Any,
        next_features: Any,
        terminated: Any = None,
        gamma: float = 0.99,
        sampling: Literal["markov", "iid"] = "markov",
        scale_features: bool = False,
    ) -> None:
        now, after = (
            checks.numbers(one, f"{WHAT}: {name}")
            for one, name in ((features, "features"), (next_features, "next_features"))
        )
        if now.ndim != 2 or now.shape != after.shape:
            raise InputError(f"{WHAT}: features {now.shape} and next_features {after.shape} must be equal, (N, d)")
        both = checks.features(np.concatenate([now, after]), scale_features, WHAT)
        self.phi, follow = both[: len(now)], both[len(now) :]
        self.rewards = checks.numbers(rewards, f"{WHAT}: rewards")
        if self.rewards.shape != (len(now),):
            raise InputError(f"{WHAT}: rewards must be {len(now)} numbers, got shape {self.rewards.shape}")
        ended = np.zeros(len(now), dtype=bool) if terminated is None else np.asarray(terminated)
        if ended.shape != (len(now),) or ended.dtype != bool:
            raise InputError(f"{WHAT}: terminated must be {len(now)} booleans, got {ended.dtype} of {ended.shape}")
        self.gamma, self.sampling = checks.discount(gamma, WHAT), checks.sampling(sampling, WHAT)
        self.dimension = self.phi.shape[1]
        self.psi = np.where(ended[:, None], 0.0, self.gamma) * follow - self.phi

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return f"Stream({len(self)} transitions, {self.dimension} features, gamma={self.gamma:g}, {self.sampling})"

    @cached_property
    def moments(self) -> Moments:
        """Those of the record."""
        N = len(self)
        phi = self.phi
        return Moments(-phi.T @ self.psi / N, phi.T @ self.rewards / N, phi.T @ phi / N)

    @property
    def omega(self) -> float:
        """Smallest eigenvalue of the features' second moments."""
        return self.moments.omega

    def transitions(self, request: Request) -> Batch:
        """Transitions for each run: the same for all in order, independent ones at random."""
        steps = np.arange(request.first, request.first + request.steps)
        if self.sampling == "markov":
            chosen = np.broadcast_to(steps[:, None] % len(self), (request.steps, request.runs))
        else:
            first, last = request.first // BLOCK, (request.first + request.steps - 1) // BLOCK
            blocks = [uniforms(request.seed, k, (BLOCK, request.runs))[0] for k in range(first, last + 1)]
            u = np.concatenate(blocks)[steps - first * BLOCK]
            chosen = (u * len(self)).astype(np.intp)
        return Batch.of(self.phi[chosen], self.psi[chosen], self.rewards[chosen])


def stream(
    path: Path,
    gamma: Annotated[float, Ge(0), Lt(1)] = 0.99,
    sampling: Literal["markov", "iid"] = "markov",
    scale_features: bool = False,
    runs: Annotated[int, Ge(1)] = 1,
) -> PolicyEvaluation:
    """Policy evaluation from recorded transitions.

    Parameters
    ----------
    path : path
        An `.npz` file with `features` (N, d), `rewards` (N,), `next_features` (N, d) and perhaps `terminated` (N,), as
        `numpy.savez` writes it.
    gamma : float, default 0.99
        Discount, in [0, 1).
    sampling : {"markov", "iid"}, default "markov"
        In the order of the record, or independent draws.
    scale_features : bool, default False
        Divide features by the largest norm where it exceeds 1.
    runs : int, default 1
        Independent runs at once.

    Raises
    ------
    InputError
        If the file is missing, holds other arrays, or they do not fit.
    """
    from infimum_tdexp.problem import PolicyEvaluation

    arrays = _loaded(path)
    missing = [name for name in ("features", "rewards", "next_features") if name not in arrays]
    if missing:
        there = ", ".join(arrays) or "nothing"
        raise InputError(f"tdexp.stream: {path} lacks {', '.join(missing)}; it holds {there}")
    features, rewards, after = (arrays[name] for name in ("features", "rewards", "next_features"))
    record = Stream(features, rewards, after, arrays.get("terminated"), gamma, sampling, scale_features)
    return PolicyEvaluation(record, runs=runs, name=Path(path).stem)


def _loaded(path: Path) -> dict[str, Array]:
    """The arrays of an `.npz` file."""
    try:
        # Opened here: numpy leaves a file open that it cannot make out.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except OSError as error:
        raise InputError(f"tdexp.stream: {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, EOFError, BadZipFile) as error:
        raise InputError(
            f"tdexp.stream: {path} is no .npz file of arrays of numbers, as numpy.savez writes it: {error}"
        ) from error


def _examples() -> list[dict[str, Any]]:
    """A recorded walk over five cells, which comes with the package."""
    return [{"path": str(Path(__file__).with_name("walk.npz")), "gamma": 0.9}]


stream.examples = _examples  # type: ignore[attr-defined]
