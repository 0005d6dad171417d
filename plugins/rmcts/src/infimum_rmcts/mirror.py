"""The regularized policy as a proximal step on the simplex, and the method that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt
from numpy.typing import NDArray

from infimum.constraints import Simplex
from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum.solver import Metric, Slot, Solver
from infimum.vocabulary import CAPABILITIES, Capability
from infimum_rmcts.checks import positive
from infimum_rmcts.policy import Divergence, regularized_policy

Floats = NDArray[np.float64]
CAPABILITIES.setdefault(
    "kl_prox", Capability("kl_prox(v, t) -> argmin over the simplex of <grad f(v), u> + KL / t", ("kl_prox",))
)


def _policy_at(k: int) -> tuple[Floats, float]:
    v = np.random.default_rng(k).dirichlet(np.ones(5))
    return v, 0.5


@dataclass(frozen=True)
class KLProx(Oracle):
    """A proximal step on the simplex in the KL divergence, from the gradient: `argmin_u <grad f(v), u> + D / t`.

    With "kl_prior_first" `D = KL(v || u)`, whose solution is the regularized policy, `v / (t (u0 + grad f(v)))` with
    the number u0 for which it sums to one; with "kl_policy_first" `D = KL(u || v)`, the exponentiated gradient. The
    step of search is `t = sqrt(N) / c`: its schedule is c / sqrt(N) in 1/t. Exact for a linear f.

    Parameters
    ----------
    divergence : {"kl_prior_first", "kl_policy_first"}, default "kl_prior_first"
        The first never leaves an entry behind: it falls off like a power, not exponentially.
    """

    divergence: Divergence = "kl_prior_first"

    kind: ClassVar[str] = "proximal"
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    supplies: ClassVar[tuple[str, ...]] = ("kl_prox",)
    exactness = Exactness.exact
    reference_arguments: ClassVar[Mapping[str, Callable[[int], Any]]] = {"kl_prox": _policy_at}

    def bind(self, function: Any, rng: np.random.Generator) -> KLProxPart:
        return KLProxPart(function, self.divergence)


class KLProxPart:
    """A function with a step on the simplex."""

    def __init__(self, function: Any, divergence: Divergence) -> None:
        self.function, self.divergence = function, divergence

    def kl_prox(self, v: Floats, t: float) -> Floats:
        """`argmin_u <grad f(v), u> + D / t` over the simplex, v a point of it, (n,)."""
        positive("rmcts.kl_prox: t", t)
        slope = np.asarray(self.function.gradient(v), np.float64)
        if not np.isfinite(slope).all():
            # The run ends at a point that is not finite, and names the gradient.
            return np.full_like(v, np.nan)
        found = regularized_policy(-slope, v, 1.0, 1.0 / t, divergence=self.divergence)
        return found.astype(v.dtype)


@dataclass(slots=True)
class MirrorState:
    """A point of the simplex; `moved` is the distance of the last step over its length."""

    x: Floats
    moved: float | None = None


def _not_a_simplex(function: Any) -> str | None:
    origin = getattr(function, "origin", function)
    origin = getattr(origin, "body", origin)
    if isinstance(origin, Simplex) and origin.radius == 1.0:
        return None
    return f"rmcts.mirror_descent works on core.simplex with radius 1, got {function!r}"


@dataclass(frozen=True, init=False, repr=False)
class MirrorDescent(Solver):
    """Minimize a smooth function over the probability simplex by steps that are near in the KL divergence.

    `x+ = kl_prox(x, t)`, with the oracle `rmcts.kl_prox` over the function. A start that is no policy with all entries
    above 0 is followed by a step from the middle of the simplex. Reports x; `residual` is the 1-norm of the last change
    over t.

    Parameters
    ----------
    step : float, default 0.1
        Step size t > 0. For "kl_policy_first" t <= 1/L with the Lipschitz constant of the gradient from the 1-norm to
        the infinity norm is safe.

    Raises
    ------
    InputError
        For another set than the simplex, or a step that is not positive and finite.
    """

    step_size: Annotated[float, Gt(0)]

    supports: ClassVar[tuple[str, ...]] = ("numpy", "float32")
    metrics: ClassVar[Mapping[str, Metric]] = {"residual": Metric(lambda state: state.moved)}
    State: ClassVar[type] = MirrorState
    reference_problems: ClassVar[tuple[Any, ...]] = ("python:infimum_rmcts.mirror:example",)

    def __init__(self, step: Annotated[float, Gt(0)] = 0.1) -> None:
        object.__setattr__(self, "step_size", positive("rmcts.mirror_descent: step", step))

    def __repr__(self) -> str:
        return f"MirrorDescent(step={self.step_size!r})"

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("smooth", needs=("kl_prox",), at_least=1, at_most=1),
            Slot("simplex", needs=("project",), at_least=1, at_most=1, refuses=_not_a_simplex),
        )

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> MirrorState:
        if start.ndim != 1 or not isinstance(start, np.ndarray):
            raise InputError("rmcts.mirror_descent: x must be a NumPy array with one axis")
        return MirrorState(start)

    def step(self, parts: Any, state: MirrorState) -> MirrorState:
        x = state.x
        if state.moved is None and not (x.min() > 0 and abs(float(x.sum()) - 1.0) < 1e-5):
            x = np.full_like(x, 1.0 / x.size)
        new = parts.smooth.kl_prox(x, self.step_size)
        return MirrorState(new, float(np.abs(new - state.x).sum()) / self.step_size)


def example() -> Any:
    """A quadratic over the simplex."""
    from infimum.functions import LeastSquares
    from infimum.problem import Composite

    rng = np.random.default_rng(3)
    return Composite(
        {"loss": LeastSquares(rng.standard_normal((8, 5)), rng.standard_normal(8))},
        constraints={"simplex": Simplex()},
        start=np.full(5, 0.2),
        name="least squares on the simplex",
    )
