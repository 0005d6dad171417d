"""Cost-aware Bayesian optimization as a solver of black boxes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt

from infimum_optuna.solver import Sampling

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from infimum_optuna.space import Space


@dataclass(frozen=True, kw_only=True, eq=False)
class GP(Sampling):
    """Bayesian optimization with the cost of an evaluation in the acquisition function.

    Parameters
    ----------
    lam : float
        Worth of a unit of cost in units of the objective.
    acquisition : {"pbgi", "logeipc"}, default "pbgi"
        The Gittins index, or the log expected improvement per expected cost.
    cost : str, callable or None, default "user_attr:cost"
        The cost that the problem tells, modeled by a second Gaussian process; None for one unit each; or a function
        of the parameters, known beforehand (in a run file `"python:module:function"`).
    n_startup_trials : int, optional
        Random points first; 2 (d + 1) by default.
    warp : {"auto", "log", None}, default "auto"
        Model the logarithm of the objective; see `costbo.stop`.

    Notes
    -----
    The sampler `infimum_costbo.CostAwareGPSampler`, made afresh for each evaluation, so that a run can be taken up bit
    for bit.

    References
    ----------
    Xie et al., "Cost-aware Stopping for Bayesian Optimization", arXiv 2507.12453.
    """

    lam: Annotated[float, Gt(0)]
    acquisition: Literal["pbgi", "logeipc"] = "pbgi"
    cost: str | Callable[..., Any] | None = "user_attr:cost"
    n_startup_trials: Annotated[int, Ge(0)] | None = None
    warp: Literal["auto", "log"] | None = "auto"

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"lam": 0.01, "n_startup_trials": 4},
        {"lam": 0.1, "acquisition": "logeipc", "cost": None, "n_startup_trials": 3},
    )

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from infimum_costbo.sampler import CostAwareGPSampler

        return CostAwareGPSampler(self.lam, self.acquisition, self.cost, self.n_startup_trials, self.warp, trial_seed)
