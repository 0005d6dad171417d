"""The formulas behind exponential step sizes: initial steps, bounds, mixing times (arXiv 2603.02577)."""

from __future__ import annotations

import math

from infimum_tdexp import checks


def alpha(horizon: int, beta: float = 1.0) -> float:
    """The factor from step to step, (beta/T)^(1/T)."""
    horizon, beta = checks.whole(horizon, "horizon", "alpha"), checks.positive(beta, "beta", "alpha")
    return math.exp(math.log(beta / horizon) / horizon)


def sum_bound(horizon: int) -> float:
    """A lower bound of sum_{t=1}^T alpha^t for beta = 1: alpha T/ln T - 1/ln T; needs T >= 2."""
    checks.whole(horizon, "horizon", "sum_bound", least=2)
    return (alpha(horizon) * horizon - 1.0) / math.log(horizon)


def iid_step(gamma: float) -> float:
    """Largest initial step for independent states, (1 - gamma)/8 (Theorem 3.4).

    From E<g, w* - w> >= (1 - gamma) ||V_w - V*||^2 and E||g||^2 <= 2 sigma^2 + 8 ||V_w - V*||^2: then one step gives
    E||w+ - w*||^2 <= (1 - eta (1 - gamma) omega) ||w - w*||^2 + 2 eta^2 sigma^2.
    """
    return (1.0 - checks.discount(gamma, "iid_step")) / 8.0


def markov_constants(lam: float) -> tuple[float, float]:
    """The constants C and C' of the theorems for one trajectory, at regularization `lam`."""
    lam = checks.non_negative(lam, "lam", "markov_constants")
    c1 = 2560.0 * (2.0 + lam) ** 2
    c2 = 4.0 * (2.0 + lam) ** 2 + 4.0 * (3.0 + lam) ** 2 + 2.0 * (2.0 + lam) ** 2
    return c1 / 2.0 + 3.0 + c1 * c2, 10.0 * (3.0 + lam) ** 2


def markov_step(gamma: float, omega: float, horizon: int) -> float:
    """Initial step for one trajectory, (1 - gamma) omega / (2 (C ln^2 T + C')) (Theorem 4.10); linear in omega."""
    gamma, omega = checks.discount(gamma, "markov_step"), checks.positive(omega, "omega", "markov_step")
    horizon = checks.whole(horizon, "horizon", "markov_step")
    first, second = markov_constants(0.0)
    return (1.0 - gamma) * omega / (2.0 * (first * math.log(horizon) ** 2 + second))


def regularized_step(horizon: int) -> float:
    """Initial step for one trajectory with lam = 1/sqrt(T) (Theorem 4.12); needs nothing but T."""
    horizon = checks.whole(horizon, "horizon", "regularized_step")
    lam = 1.0 / math.sqrt(horizon)
    first, second = markov_constants(lam)
    return lam / (first * math.log(horizon) ** 2 + second + 8.0 + 2.0 * lam**2)


def iid_bound(horizon: int, gamma: float, omega: float, sigma2: float, distance2: float) -> float:
    """Bound of E||w_T - w*||^2 for independent states with eta0 = (1 - gamma)/8 and beta = 1 (Theorem 3.4).

    Parameters
    ----------
    horizon : int
        T, at least 2.
    gamma, omega : float
        Discount, and smallest eigenvalue of the features' second moments.
    sigma2 : float
        E||g(w*)||^2.
    distance2 : float
        ||w_0 - w*||^2.
    """
    what = "iid_bound"
    horizon, omega = checks.whole(horizon, "horizon", what, least=2), checks.positive(omega, "omega", what)
    sigma2, distance2 = (
        checks.non_negative(one, name, what) for one, name in ((sigma2, "sigma2"), (distance2, "distance2"))
    )
    factor, log = alpha(horizon), math.log(horizon)
    rate = omega * (1.0 - gamma)
    bias = distance2 * math.e * math.exp(-iid_step(gamma) * rate * factor * horizon / log)
    return bias + 8.0 * sigma2 * log**2 / (math.e * rate**2 * factor**2 * horizon)


def mixing_time(delta: float, m: float, rho: float) -> int:
    """The first t >= 0 with m rho^t <= delta (Definition 4.1).

    Parameters
    ----------
    delta : float
        Above 0.
    m, rho : float
        Of the bound m rho^t on the distance in total variation from the stationary distribution; 0 <= rho < 1.
    """
    delta, m = checks.positive(delta, "delta", "mixing_time"), checks.positive(m, "m", "mixing_time")
    rho = checks.fraction(rho, "rho", "mixing_time")
    if m <= delta:
        return 0
    if rho == 0:
        return 1
    t = max(0, math.ceil(math.log(delta / m) / math.log(rho)) - 1)
    # The logarithms may be off by a rounding error.
    while m * rho**t > delta:
        t += 1
    return t
