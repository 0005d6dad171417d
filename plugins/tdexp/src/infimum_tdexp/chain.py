"""Finite Markov chains: recurrent classes, stationary distributions, mixing."""

from __future__ import annotations

import numpy as np

from infimum.errors import InputError
from infimum_tdexp import checks

Array = np.ndarray


def recurrent(chain: Array, what: str) -> Array:
    """Indices of the states of the only recurrent class.

    Raises
    ------
    InputError
        If there are several: then the stationary distribution is not unique.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array(chain > 0)
    count, label = connected_components(graph, directed=True, connection="strong")
    rows, columns = graph.nonzero()
    leaves = label[rows] != label[columns]
    closed = np.setdiff1d(np.arange(count), label[rows[leaves]])
    if len(closed) > 1:
        one, other = (int(np.argmax(label == k)) for k in closed[:2])
        raise InputError(
            f"{what}: the chain is reducible ({len(closed)} classes of states that are never left, one with state "
            f"{one}, another with state {other}): there is no unique stationary distribution"
        )
    return np.flatnonzero(label == closed[0])


def stationary(chain: Array, what: str) -> Array:
    """The stationary distribution, 0 on transient states."""
    states = recurrent(chain, what)
    inner = chain[np.ix_(states, states)]
    n = len(states)
    system = np.vstack([inner.T - np.eye(n), np.ones((1, n))])
    mu = np.zeros(len(chain))
    found = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
    found = np.maximum(found, 0.0)
    mu[states] = found / found.sum()
    return mu


def second_modulus(chain: Array) -> float:
    """The second largest modulus of an eigenvalue, the rate of mixing; 0 for a single state."""
    moduli = np.sort(np.abs(np.linalg.eigvals(chain)))
    return float(moduli[-2]) if len(moduli) > 1 else 0.0


def mixing_time(chain: Array, mu: Array, delta: float) -> int:
    """The first t >= 0 at which all starts are within `delta` of mu in total variation.

    By squaring until it is passed, then by bisection with the powers kept: log2(t) products of matrices each way.
    """
    delta = checks.positive(delta, "delta", "mixing_time")

    def far(power: Array) -> bool:
        return bool(0.5 * np.abs(power - mu).sum(axis=1).max() > delta)

    power = np.eye(len(chain))
    if not far(power):
        return 0
    powers = [chain]
    while far(powers[-1]):
        if len(powers) > 40:
            raise InputError("mixing_time: the chain is periodic, or mixes in more than 2^40 steps")
        powers.append(powers[-1] @ powers[-1])
    t = 0
    for k in reversed(range(len(powers))):
        longer = power @ powers[k]
        if far(longer):
            power, t = longer, t + (1 << k)
    return t + 1
