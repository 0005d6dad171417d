"""What is known about stale gradients in numbers: the effective step, its limit, and how far staleness can lead."""

from __future__ import annotations

import math

from infimum.errors import InputError


def gain(n: int, block: int, gamma: float = 1.0, memory: int | None = None) -> float:
    """By how much the reuse of old entries lengthens a step: `(1 - gamma^K) / (1 - gamma)`, K for gamma = 1.

    K = memory / block is the number of steps in which one difference quotient is used. On a separable quadratic with
    curvatures h_i, K a whole number and gamma = 1, the method with step size lr is stable if and only if
    `K lr h_i < 2` for every i: it moves like coordinate descent with the step `K lr`.

    Parameters
    ----------
    n : int
        Number of coordinates.
    block : int
        Coordinates refreshed at each step.
    gamma : float, default 1.0
        Decay of the buffer, from 0 (no reuse: gain 1) to 1.
    memory : int, optional
        Entries that are kept; None means n.
    """
    K = max(1.0, (n if memory is None else memory) / block)
    return K if gamma == 1.0 else (1.0 - gamma**K) / (1.0 - gamma)


def staleness_bound(lipschitz: float, delta: float, n: int, block: int) -> float:
    """Theorem 5.3: how far a coherent gradient can be from the difference gradient at the present point, in 1-norm.

    `(L delta / 2) (B K (K - 1) + 2 r K)` with `K = floor(n / B)` and `r = n mod B`: the entries refreshed j steps ago
    are off by at most `L j delta` each. It holds with gamma = 1, the whole buffer kept, from the end of the first
    cycle on.

    Parameters
    ----------
    lipschitz : float
        A Lipschitz constant of every difference partial; one of the gradient serves.
    delta : float
        Length of the longest of the last K steps.
    n, block : int
        Coordinates, and those refreshed at each step.

    Raises
    ------
    InputError
        For a negative constant or length, or a block outside of 1, …, n.
    """
    if not (0 <= lipschitz < math.inf and 0 <= delta < math.inf):
        raise InputError(f"staleness_bound: lipschitz={lipschitz!r}, delta={delta!r}; expected finite numbers >= 0")
    if not 1 <= block <= n:
        raise InputError(f"staleness_bound: block={block!r}; expected an integer from 1 to n={n}")
    K, r = divmod(n, block)
    return 0.5 * lipschitz * delta * (block * K * (K - 1) + 2 * r * K)


def unstable(
    n: int, block: int, gamma: float, memory: int | None, lr: float, curvature: float | None, how: str = "declared"
) -> str | None:
    """A sentence if the effective step is beyond 2 / curvature, else None; `how` says where the curvature is from."""
    factor = gain(n, block, gamma, memory)
    if not curvature or factor * lr * curvature <= 2.0 * (1.0 + 1e-9):
        return None
    K = (n if memory is None else memory) / block
    if gamma == 1.0:
        what = f"K*lr={K * lr:.3g}: with gamma=1 the effective step is (n/block)*lr with n/block={K:.3g}"
    else:
        what = (
            f"effective step {factor * lr:.3g}: with gamma={gamma:g} it is (1-gamma^K)/(1-gamma)*lr with "
            f"K=n/block={K:.3g}"
        )
    return f"{what}, beyond 2/L={2.0 / curvature:.3g} (L={curvature:.3g}, {how}); reduce lr or gamma"
