"""The regularized policy of a node, solved for many nodes at once, and the split of a budget over its actions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError
from infimum_rmcts.checks import generator, not_negative, numbers, positive

Divergence = Literal["kl_prior_first", "kl_policy_first"]
Floats = NDArray[np.float64]

TOLERANCE = 1e-12
"""Of the normalization at which Newton's method ends."""
FLOOR = 1e-300
"""Smallest distance of the multiplier from the largest Q, in units of lam; priors below it count as so much."""
USUAL, STEPS = 11, 100
"""Newton steps after which it is asked whether they still move, and at most; 20,000 random nodes took 8 at most, with
priors down to 1e-40 18."""


def regularized_policy(
    q: ArrayLike,
    prior: ArrayLike,
    n: ArrayLike,
    c: float = 1.0,
    mask: ArrayLike | None = None,
    divergence: Divergence = "kl_prior_first",
) -> Floats:
    """The policy that weighs action values against a prior: a proximal step on the simplex in the KL divergence.

    With `lam = c / sqrt(n)` it is `argmax_p <p, q> - lam KL(prior || p)`, that is `p = lam prior / (u - q)` with the
    one `u > max q` for which it sums to one. The multiplier is found by Newton's method from a lower bound, from which
    it increases monotonically, on the inverse of the sum. With `divergence="kl_policy_first"` it is
    `argmax_p <p, q> - lam KL(p || prior)`, in closed form `p ~ prior exp(q / lam)`.

    Parameters
    ----------
    q : array_like, shape (A,) or (m, A)
        Values of the actions; what stands outside of `mask` is ignored and may be NaN.
    prior : array_like, shape of q
        At least 0; renormalized over the mask. Actions without prior get nothing.
    n : array_like, shape () or (m,)
        Simulations behind `q`, above 0: with more of them the policy moves from the prior to the greedy one.
    c : float, default 1.0
        Weight of the prior, above 0; the value that the paper's timings use.
    mask : array_like of bool, shape of q, optional
        The actions that take part; all by default.
    divergence : {"kl_prior_first", "kl_policy_first"}, default "kl_prior_first"
        The first keeps every action of the prior and falls off like 1/(u - q); the second is greedier.

    Returns
    -------
    ndarray, shape of q
        Rows sum to one, zero outside of the mask.

    Raises
    ------
    InputError
        For shapes that do not fit, a prior that is negative or not finite, no action with a prior, q that is not
        finite on the mask, n or c that is not above 0.

    References
    ----------
    K. Frankston, B. Howard, "Accelerating Monte-Carlo tree search with optimized posterior policies", 2026.
    J.-B. Grill et al., "Monte-Carlo tree search as regularized policy optimization", ICML 2020, equation 7.

    Examples
    --------
    >>> regularized_policy([1.0, 0.0], [0.5, 0.5], n=100).round(3).tolist()
    [0.952, 0.048]
    """
    values, weights, lam, allowed = _checked(q, prior, n, c, mask, divergence)
    solve = solve_prior_first if divergence == "kl_prior_first" else solve_policy_first
    policy = solve(values, weights, lam, allowed) if len(values) else values
    return policy[0] if np.ndim(q) == 1 else policy


def _checked(
    q: Any, prior: Any, n: Any, c: Any, mask: Any, divergence: Any
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Values, normalized prior, lam and mask of m nodes."""
    given, weights = numbers("regularized_policy: q", q), numbers("regularized_policy: prior", prior)
    if given.ndim not in (1, 2) or given.shape != weights.shape:
        raise InputError(
            f"regularized_policy: q is {given.shape} and prior {weights.shape}; expected the same (A,) or (m, A)"
        )
    if divergence not in ("kl_prior_first", "kl_policy_first"):
        raise InputError(f"divergence={divergence!r}: expected 'kl_prior_first' or 'kl_policy_first'")
    values, weights = np.atleast_2d(given), np.atleast_2d(weights)
    allowed = np.ones(values.shape, bool) if mask is None else np.atleast_2d(np.asarray(mask, dtype=bool))
    if allowed.shape != values.shape:
        raise InputError(f"regularized_policy: mask is {np.shape(mask)}, q is {given.shape}; expected the same shape")
    lam = _lam(n, c, len(values))
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InputError("regularized_policy: the prior must be finite and >= 0")
    allowed = allowed & (weights > 0)
    if not allowed.any(axis=1).all():
        row = int(np.argmin(allowed.any(axis=1)))
        raise InputError(f"regularized_policy: row {row} has no action with a prior above 0 in its mask")
    if not np.all(np.isfinite(values[allowed])):
        raise InputError("regularized_policy: q must be finite wherever the mask and the prior let an action take part")
    return values, _normalized(np.where(allowed, weights, 0.0)), lam, allowed


def _normalized(weights: Floats) -> Floats:
    """Rows divided by their sums, which may be beyond the largest number."""
    scaled = weights / weights.max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _lam(n: Any, c: Any, rows: int) -> Floats:
    """c / sqrt(n), one number a row."""
    weight, simulations = positive("regularized_policy: c", c), numbers("regularized_policy: n", n)
    if simulations.shape not in ((), (rows,)) or not np.all((simulations > 0) & np.isfinite(simulations)):
        raise InputError(f"regularized_policy: n={n!r:.80}; expected one number > 0, or one for each of {rows}")
    with np.errstate(over="ignore", under="ignore"):
        lam = weight / np.sqrt(simulations)
    if not np.all((lam > 0) & np.isfinite(lam)):
        raise InputError(f"regularized_policy: c={c!r} over the root of n={n!r:.80} leaves the range of numbers")
    return np.broadcast_to(lam, (rows,))


def solve_prior_first(q: Floats, prior: Floats, lam: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """`lam prior / (u - q)` for checked arrays: prior normalized and zero outside of `allowed`, rows nonempty."""
    top = np.where(allowed, q, -np.inf).max(axis=1, keepdims=True)
    # In units of lam: the multiplier stands d above the largest value, with the prior of the best actions <= d <= 1.
    with np.errstate(over="ignore"):
        gap = np.where(allowed, top - q, 1.0) / lam[:, None]
    # Actions that are equally good count together, which sharpens the bound; d lies above it.
    best = np.where(gap == 0.0, prior, 0.0).sum(axis=1, keepdims=True)
    d = np.maximum(np.where(allowed, prior - gap, -np.inf).max(axis=1, keepdims=True), best)
    d = np.maximum(d, FLOOR)
    ones = np.ones((q.shape[1], 1))
    for k in range(STEPS):
        inverse = 1.0 / (gap + d)
        ratio = prior * inverse
        total = ratio @ ones
        if total.max() <= 1.0 + TOLERANCE:
            break
        # Newton's method on 1 / sum - 1, which is concave and nearly linear: it stays below the root, as on the sum
        # itself, and needs fewer steps.
        new = d + total * np.maximum(total - 1.0, 0.0) / ((ratio * inverse) @ ones)
        if k > USUAL and not (new > d).any():
            break
        d = new
    policy: Floats = prior / (gap + d)
    policy /= policy @ ones
    return policy


def solve_policy_first(q: Floats, prior: Floats, lam: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """`prior exp(q / lam)`, normalized, for checked arrays."""
    shifted = np.where(allowed, q, -np.inf)
    with np.errstate(over="ignore"):
        scaled = (shifted - shifted.max(axis=1, keepdims=True)) / lam[:, None]
    policy: Floats = prior * np.exp(scaled)
    policy /= policy.sum(axis=1, keepdims=True)
    return policy


def split_budget(prior: ArrayLike, budget: ArrayLike, x: ArrayLike) -> NDArray[np.int64]:
    """Split whole budgets over actions in proportion to priors, by systematic sampling.

    Parameters
    ----------
    prior : array_like, shape (m, A)
        At least 0; renormalized.
    budget : array_like of int, shape (m,)
    x : array_like, shape (m,)
        One uniform number in [0, 1) for each row.

    Returns
    -------
    ndarray of int, shape (m, A)
        Unbiased: the mean over x is `budget * prior`; each entry is that number rounded down or up, and rows sum to
        the budget. Nothing for actions without prior.

    Raises
    ------
    InputError
        For shapes that do not fit, a prior that is negative, not finite or zero in a row, a budget that is no whole
        number >= 0, x outside of [0, 1).
    """
    weights, places = numbers("split_budget: prior", prior), numbers("split_budget: x", x)
    amounts = np.asarray(budget)
    if weights.ndim != 2 or not weights.shape[:1] == amounts.shape == places.shape:
        raise InputError(
            f"split_budget: prior is {weights.shape}, budget {amounts.shape} and x {places.shape}; expected (m, A), "
            "(m,) and (m,)"
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not np.all((weights > 0).any(axis=1)):
        raise InputError("split_budget: the prior must be finite, >= 0 and above 0 somewhere in each row")
    if amounts.dtype.kind not in "iu" or np.any(amounts < 0):
        raise InputError(f"split_budget: budget={budget!r:.80}; expected whole numbers >= 0")
    if not np.all((places >= 0) & (places < 1)):
        raise InputError(f"split_budget: x={x!r:.80}; expected numbers in [0, 1)")
    return split_checked(_normalized(weights), amounts.astype(np.int64), places)


def split_checked(prior: Floats, budget: NDArray[np.int64], x: Floats) -> NDArray[np.int64]:
    """`split_budget` of arrays that are in order, the prior normalized."""
    edges, whole = np.cumsum(prior, axis=1), budget[:, None].astype(np.float64)
    # Rounding must not lose or add one: from the last action with a prior on, the edge is the budget itself, which no
    # edge before it passes.
    shares = np.where(edges < edges[:, -1:], edges * whole, whole)
    marks = np.ceil(np.minimum(shares, whole) - x[:, None]).astype(np.int64)
    counts = marks.copy()
    counts[:, 1:] -= marks[:, :-1]
    return counts


def choose(policy: ArrayLike, temperature: float = 1.0, rng: np.random.Generator | int | None = None) -> Any:
    """Actions from policies: drawn in proportion to `policy ** (1 / temperature)`, the largest at temperature 0.

    Parameters
    ----------
    policy : array_like, shape (A,) or (m, A)
    temperature : float, default 1.0
        At least 0. Small values are greedy, 1 draws from the policy itself.
    rng : numpy.random.Generator or int, optional
        Needed above temperature 0.

    Returns
    -------
    int, or ndarray of int, shape (m,)

    Raises
    ------
    InputError
        For a policy that is negative, not finite or zero in a row; a negative temperature; no rng where one is needed.
    """
    rows = np.atleast_2d(numbers("choose: policy", policy))
    if rows.ndim != 2 or not np.all(np.isfinite(rows)) or np.any(rows < 0) or not np.all(rows.sum(axis=1) > 0):
        raise InputError("choose: a policy must be (A,) or (m, A), finite, >= 0 and above 0 somewhere in each row")
    if not_negative("choose: temperature", temperature) == 0:
        picked = rows.argmax(axis=1)
    else:
        if rng is None:
            raise InputError("choose: a temperature above 0 draws; give rng, a generator or a seed")
        with np.errstate(divide="ignore", over="ignore"):
            weights = np.exp(np.log(rows / rows.max(axis=1, keepdims=True)) / temperature)
        edges = np.cumsum(weights, axis=1)
        draws = generator(rng).random(len(rows))[:, None] * edges[:, -1:]
        picked = np.minimum((edges <= draws).sum(axis=1), rows.shape[1] - 1)
    return int(picked[0]) if np.ndim(policy) == 1 else picked
