"""The oracle: a prox for any function that has values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from infimum.arrays import Array, copy, namespace
from infimum.errors import InfimumWarning, InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum.schedule import Schedule
from infimum_hjprox.checks import positive, rules, samples
from infimum_hjprox.estimate import Estimate, estimate
from infimum_hjprox.sampling import Rules
from infimum_hjprox.schedules import EssAdaptive, diverges
from infimum_hjprox.values import SHARES, Shares, Values, values_of

NAME = "hjprox.prox"
TRUSTED = 5.0
"""Effective samples below which a standard error says nothing."""


def _metric(name: str) -> Callable[[Any], Any]:
    return lambda part: getattr(part, name)


@dataclass(frozen=True)
class HJProx(Oracle):
    """Prox of a function from its values alone, by Hamilton–Jacobi sampling.

    The mean of samples `y ~ N(v, delta t I)` with weights proportional to `exp(-f(y)/delta)`. For convex f its limit is
    within `sqrt(n t delta)` of the prox, without bias for a quadratic, and firmly nonexpansive: with a fixed delta the
    splitting methods converge to a point nearby. With a schedule whose roots sum to a finite number, and enough
    samples, they converge to a minimizer if there is one. For a discontinuous f nothing is known.

    Short steps and a mild, low-dimensional or separable f are easy: what decides is `L^2 t / delta`, L the Lipschitz
    constant of f. Sets are projected exactly instead: an f with a projection is refused.

    Metrics: `prox_error` (Monte Carlo standard error of the last prox; unknown below 5 effective samples), `ess` and
    `delta` of it, and the error as it shows in a solver's `grad_norm` (`grad_noise`: over the step) and `residual`
    (`residual_noise`: times max(1, 1/step)).

    Parameters
    ----------
    delta : float or schedule, default 0.1
        Smoothing, above 0. A schedule is asked for k = 0, 1, … at each prox: `hjprox.power_law`, `hjprox.geometric`,
        `hjprox.ess_adaptive`, `core.power`, `core.constant`.
    n_samples : int or schedule, default 1000
        Samples a round, at least 2; numbers of a schedule are rounded up.
    preset : {"paper"}, optional
        The plain method: no ESS rule, no recentering.
    ess_min : float, optional
        Share of the samples that must be effective, else delta is doubled and the samples are drawn again, at most 30
        times; default 0.05 (0 with the preset).
    recenter : int, optional
        How often to draw again around the estimate, with importance weights, while less than a tenth of the samples is
        effective; default 2 (0 with the preset).
    separable : bool, default False
        f is a sum over coordinates: weight every coordinate by itself, without the curse of dimension. Uses the
        capability `separable_values(Y) -> like Y`, each coordinate's share of the value (`infimum_hjprox.Separable`
        offers it), or `values` at points of one entry for an f of any length such as the l1 norm; then it is checked
        once that the shares add up, and every entry is counted as an evaluation.
    antithetic : bool, default False
        Draw pairs z, -z; the number of samples is made even.

    Raises
    ------
    InputError
        For options out of range, or a schedule that returns a number out of range.

    Warns
    -----
    InfimumWarning
        For a power of k as delta whose roots sum to infinity (exponent at most 2, no floor); when f turns out to be
        the indicator of a set.

    References
    ----------
    S. Osher, H. Heaton, S. Wu Fung, "A Hamilton–Jacobi-based proximal operator", PNAS 120(14), 2023. N. Di, E. Chi,
    S. Wu Fung, "Operator splitting with Hamilton-Jacobi-based proximals", arXiv 2601.22370.
    """

    delta: Annotated[float, Gt(0)] | Schedule = 0.1
    n_samples: Annotated[int, Ge(2)] | Schedule = 1000
    preset: Literal["paper"] | None = None
    ess_min: Annotated[float, Ge(0), Lt(1)] | None = None
    recenter: Annotated[int, Ge(0)] | None = None
    separable: bool = False
    antithetic: bool = False

    kind: ClassVar[str] = "proximal"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values", SHARES)
    supplies: ClassVar[tuple[str, ...]] = ("prox",)
    exactness = Exactness.stochastic
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"preset": "paper", "delta": 0.5},
        {"antithetic": True, "n_samples": 201, "recenter": 1, "ess_min": 0.1},
        {"separable": True, "n_samples": 200},
        {"delta": {"use": "hjprox.ess_adaptive", "initial": 0.01}},
        {"delta": {"use": "hjprox.power_law", "initial": 1, "exponent": 2.1, "floor": 0.05}},
    )
    metrics: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        name: _metric(name) for name in ("prox_error", "ess", "delta", "grad_noise", "residual_noise")
    }

    def __post_init__(self) -> None:
        self.rules()
        if not callable(self.delta):
            positive(self.delta, "delta", NAME)
        if not callable(self.n_samples):
            samples(self.n_samples, NAME)
        elif isinstance(self.n_samples, EssAdaptive) and self.n_samples.target < 1:
            raise InputError(
                f"{NAME}: n_samples follows ESS / n_samples = {self.n_samples.target:g}, which more samples do not "
                "change; give ess_adaptive a target from 1 on, a number of effective samples"
            )
        if (exponent := diverges(self.delta)) is not None:
            warnings.warn(
                f"{NAME}: delta falls like 1/k^{exponent:g}: sum sqrt(delta_k) diverges for exponents up to 2, and the "
                "errors may add up; take an exponent above 2, or a floor",
                InfimumWarning,
                stacklevel=3,
            )

    def rules(self) -> Rules:
        """The options of sampling as numbers."""
        return rules(self.preset, self.ess_min, self.recenter, self.separable, self.antithetic, NAME)

    def refuses(self, function: Any) -> str | None:
        if "project" in function.capabilities:
            return f"{function!r} has an exact projection, which is its prox; leave it out of oracles"
        if not self.separable or SHARES in function.capabilities:
            return None
        if "values" not in function.capabilities:
            return f"separable=True needs {SHARES}, or values at points of one entry; {function!r} offers neither"
        if getattr(function, "shape", None) not in (None, (1,)):
            return (
                f"separable=True needs {SHARES} of {function!r}: its values take points of shape {function.shape}, so "
                "that one entry alone has no value"
            )
        return None

    def bind(self, function: Any, rng: np.random.Generator) -> HJProxPart:
        return HJProxPart(self, function, rng)


class HJProxPart:
    """A function with a sampled prox; remembers the generator, how many proxes it made, and the last of them."""

    def __init__(self, options: HJProx, function: Any, rng: np.random.Generator) -> None:
        self.options, self.function, self.rng = options, function, rng
        self.rules = options.rules()
        self.k = 0
        self.evaluations = 0
        """Points at which the function was evaluated."""
        self._adapted: dict[str, float] = {}
        self._values: Values | None = None
        self._checked: tuple[int, ...] | None = None
        """Shape of points at which the shares of a separable f were found to add up before a checkpoint."""
        self._numbers: dict[str, float] = {}
        self.last: Estimate | None = None
        """The last estimate; None after a checkpoint was taken up."""

    def prox(self, v: Array, t: float) -> Array:
        """Estimate of `argmin_u f(u) + ||u - v||^2 / (2 t)`."""
        xp, step = namespace(v), positive(t, "t", NAME)
        count = samples(math.ceil(self._number("n_samples")), NAME)
        delta = positive(self._number("delta"), f"delta of prox {self.k}", NAME)
        if self._values is None or self._values.shape != tuple(v.shape):
            self._values = self._make_values(tuple(v.shape))
        points = xp.reshape(copy(v), (1, -1))
        found = estimate(
            self._values, points, step, delta, count, self.rules, self.rng, single=True, shape=tuple(v.shape)
        )
        self._remember(found, step, delta, count)
        return found.point

    def covariance(self, u: Array) -> Array:
        """The weighted covariance of the last prox's samples times `u`, without forming a matrix."""
        return self._last().covariance(u)

    def jvp(self, u: Array) -> Array:
        """The Jacobian of the last prox times `u`: `covariance(u) / (delta t)`."""
        return self._last().jvp(u)

    def _last(self) -> Estimate:
        if self.last is None:
            raise InputError(f"{NAME}: there is no last prox (yet, or since the checkpoint); call prox first")
        return self.last

    def _make_values(self, shape: tuple[int, ...]) -> Values:
        call, batched = values_of(self.function, self.options.separable, NAME)
        if isinstance(call, Shares) and self._checked == shape:
            call.fresh = False
        return Values(
            call,
            shape,
            f"the function under {NAME}",
            separable=self.options.separable,
            batched=batched,
            infinite=bool(getattr(self.function, "extended", False)),
        )

    def _number(self, name: str) -> float:
        given = getattr(self.options, name)
        if not callable(given):
            return float(given)
        if name in self._adapted:
            return self._adapted[name]
        number = given(self.k)
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < math.inf:
            raise InputError(
                f"{NAME}: the schedule of {name}, {given!r}, returned {number!r} at k = {self.k}; expected a positive "
                "finite number (give it a floor)"
            )
        return float(number)

    def _remember(self, found: Estimate, t: float, delta: float, count: int) -> None:
        ess = float(np.min(found.ess))
        self.last = found
        self.k += 1
        self.evaluations += found.evaluations
        self._numbers = {"error": float(found.standard_error), "ess": ess, "delta": float(np.max(found.delta)), "t": t}
        for name, number in (("delta", delta), ("n_samples", float(count))):
            schedule = getattr(self.options, name)
            if isinstance(schedule, EssAdaptive):
                self._adapted[name] = schedule.adapt(number, ess, count)

    @property
    def ess(self) -> float | None:
        return self._numbers.get("ess")

    @property
    def delta(self) -> float | None:
        return self._numbers.get("delta")

    @property
    def prox_error(self) -> float | None:
        return self._numbers["error"] if (self.ess or 0.0) >= TRUSTED else None

    @property
    def grad_noise(self) -> float | None:
        error = self.prox_error
        return None if error is None else error / self._numbers["t"]

    @property
    def residual_noise(self) -> float | None:
        error = self.prox_error
        return None if error is None else error * max(1.0, 1.0 / self._numbers["t"])

    def state_dict(self) -> dict[str, Any]:
        values, checked = self._values, self._checked
        if values is not None and isinstance(values.call, Shares) and not values.call.fresh:
            checked = values.shape
        return {
            "rng": self.rng,
            "checked": checked,
            "k": self.k,
            "evaluations": self.evaluations,
            "adapted": dict(self._adapted),
            "numbers": dict(self._numbers),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng, self.k, self.evaluations = state["rng"], int(state["k"]), int(state["evaluations"])
        self._adapted, self._numbers = dict(state["adapted"]), dict(state["numbers"])
        self._checked = None if state["checked"] is None else tuple(state["checked"])
        self.last = self._values = None
