"""Optuna's samplers as solvers. Options have Optuna's names and defaults; those that Optuna deprecates are left out.
Seeds come from the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le

from infimum.errors import InputError
from infimum_optuna.solver import Sampling
from infimum_optuna.space import Space, enumerated

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

Count = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]
Probability = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TPE(Sampling):
    """Tree-structured Parzen estimator, Optuna's default.

    Parameters
    ----------
    n_startup_trials : int, default 10
        Random trials first.
    n_ei_candidates : int, default 24
        Candidates among which the best by the ratio of densities is taken.
    multivariate : bool, optional
        Model the parameters together; None leaves it to Optuna.
    group : bool, default False
        Model the groups of a conditional space apart; not with `multivariate: false`.
    constant_liar : bool, default True
        Count running trials of other workers as bad ones.
    """

    n_startup_trials: Count = 10
    n_ei_candidates: Positive = 24
    multivariate: bool | None = None
    group: bool = False
    constant_liar: bool = True

    preference: ClassVar[int] = 1
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"n_startup_trials": 4}, {"multivariate": True, "group": True})

    @property
    def experimental(self) -> bool:  # type: ignore[override]
        return self.group

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import TPESampler

        return TPESampler(
            n_startup_trials=self.n_startup_trials,
            n_ei_candidates=self.n_ei_candidates,
            multivariate=self.multivariate,
            group=self.group,
            constant_liar=self.constant_liar,
            seed=trial_seed,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class GP(Sampling):
    """Gaussian process with log expected improvement. Needs PyTorch.

    Parameters
    ----------
    n_startup_trials : int, default 10
        Random trials first.
    deterministic_objective : bool, default False
        Whether the function gives the same value at the same point.
    """

    n_startup_trials: Count = 10
    deterministic_objective: bool = False

    requires: ClassVar[tuple[str, str] | None] = ("torch", "pip install 'infimum-optuna[gp]'")
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"n_startup_trials": 9},)

    @property
    def experimental(self) -> bool:  # type: ignore[override]
        return self.deterministic_objective

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import GPSampler

        return GPSampler(
            n_startup_trials=self.n_startup_trials,
            deterministic_objective=self.deterministic_objective,
            warn_independent_sampling=False,
            seed=trial_seed,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CmaEs(Sampling):
    """CMA-ES on the numeric parameters; the categorical ones are random. Needs the package cmaes.

    Parameters
    ----------
    n_startup_trials : int, default 1
        Random trials first.
    popsize : int, optional
        Trials of a generation; by default from the number of parameters.
    use_separable_cma : bool, default False
        Diagonal covariance.
    with_margin : bool, default False
        Keep integer parameters from getting stuck.
    lr_adapt : bool, default False
        Adapt the learning rate, for many local minima or noise.
    consider_pruned_trials : bool, default False
        Learn from the last values of pruned trials too.
    """

    n_startup_trials: Count = 1
    popsize: Annotated[int, Ge(2)] | None = None
    use_separable_cma: bool = False
    with_margin: bool = False
    lr_adapt: bool = False
    consider_pruned_trials: bool = False

    requires: ClassVar[tuple[str, str] | None] = ("cmaes", "pip install 'infimum-optuna[cmaes]'")
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"with_margin": True, "popsize": 4})

    @property
    def experimental(self) -> bool:  # type: ignore[override]
        return self.use_separable_cma or self.with_margin or self.lr_adapt or self.consider_pruned_trials

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import CmaEsSampler, RandomSampler

        return CmaEsSampler(
            n_startup_trials=self.n_startup_trials,
            independent_sampler=RandomSampler(seed=trial_seed),
            warn_independent_sampling=False,
            seed=trial_seed,
            popsize=self.popsize,
            use_separable_cma=self.use_separable_cma,
            with_margin=self.with_margin,
            lr_adapt=self.lr_adapt,
            consider_pruned_trials=self.consider_pruned_trials,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Random(Sampling):
    """Independent random parameters."""

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import RandomSampler

        return RandomSampler(seed=trial_seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class QMC(Sampling):
    """A quasi-random sequence over the space of the first trial, which itself is random.

    Parameters
    ----------
    qmc_type : {"sobol", "halton"}, default "sobol"
        The sequence.
    scramble : bool, default True
        Randomize the sequence by the seed of the run. (Optuna leaves it out by default, since its seeds differ
        from worker to worker; here they do not.)
    """

    qmc_type: Literal["sobol", "halton"] = "sobol"
    scramble: bool = True

    experimental: ClassVar[bool] = True

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import QMCSampler, RandomSampler

        return QMCSampler(
            qmc_type=self.qmc_type,
            scramble=self.scramble,
            seed=study_seed,
            independent_sampler=RandomSampler(seed=trial_seed),
            warn_independent_sampling=False,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(Sampling):
    """Every point of a grid, in random order; ends as `converged` when all have been tried.

    Parameters
    ----------
    grid : mapping of str to list, optional
        Values of the parameters. Those that are left out take all values of their ranges: choices, whole numbers,
        floats with a step.
    """

    grid: Mapping[str, Sequence[Any]] | None = None

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import GridSampler

        return GridSampler(self._values(space), seed=study_seed)

    def _values(self, space: Space | None) -> dict[str, list[Any]]:
        found = {name: list(values) for name, values in (self.grid or {}).items()}
        if space is None:
            if not found:
                raise InputError("grid: the function defines its space as it runs; name the values of all parameters")
            return found
        if space.conditional:
            raise InputError("grid: the space is conditional, so it has no grid; optuna.brute_force takes it")
        for one in space:
            if one.name not in found:
                values = enumerated(one.distribution)
                if values is None:
                    raise InputError(f"grid: '{one.name}' is continuous; give its values in grid, or a step")
                found[one.name] = values
        unknown = [name for name in found if name not in space.parameters]
        if unknown:
            raise InputError(f"grid: the space has no parameter '{unknown[0]}'; it has {', '.join(space.parameters)}")
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class BruteForce(Sampling):
    """Every combination of a finite space, a conditional one too; ends as `converged` when all have been tried.

    Parameters
    ----------
    avoid_premature_stop : bool, default False
        With several workers: go on until the running trials of the others have ended well, too.
    """

    avoid_premature_stop: bool = False

    experimental: ClassVar[bool] = True

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import BruteForceSampler

        for one in space or ():
            if enumerated(one.distribution) is None:
                raise InputError(f"brute_force: '{one.name}' is continuous; give it a step")
        return BruteForceSampler(seed=trial_seed, avoid_premature_stop=self.avoid_premature_stop)


@dataclass(frozen=True, kw_only=True, eq=False)
class NSGAII(Sampling):
    """The genetic algorithm NSGA-II; with one objective it is a plain one with elitism.

    Parameters
    ----------
    population_size : int, default 50
        Trials of a generation.
    mutation_prob : float, optional
        Probability that a parameter is drawn anew; by default 1 / number of parameters.
    crossover_prob : float, default 0.9
        Probability that two parents make a child.
    swapping_prob : float, default 0.5
        Probability that a parameter comes from the second parent.
    """

    population_size: Annotated[int, Ge(2)] = 50
    mutation_prob: Probability | None = None
    crossover_prob: Probability = 0.9
    swapping_prob: Probability = 0.5

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"population_size": 4},)

    def _options(self, trial_seed: int) -> dict[str, Any]:
        return {
            "population_size": self.population_size,
            "mutation_prob": self.mutation_prob,
            "crossover_prob": self.crossover_prob,
            "swapping_prob": self.swapping_prob,
            "seed": trial_seed,
        }

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import NSGAIISampler

        return NSGAIISampler(**self._options(trial_seed))


@dataclass(frozen=True, kw_only=True, eq=False)
class NSGAIII(NSGAII):
    """The genetic algorithm NSGA-III; made for many objectives, here with one.

    Parameters
    ----------
    dividing_parameter : int, default 3
        Density of the reference points.
    """

    dividing_parameter: Positive = 3

    experimental: ClassVar[bool] = True

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import NSGAIIISampler

        return NSGAIIISampler(**self._options(trial_seed), dividing_parameter=self.dividing_parameter)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler(Sampling):
    """Any other sampler: your own, or that of another package.

    Parameters
    ----------
    make_sampler : callable
        `make_sampler(seed) -> optuna.samplers.BaseSampler`, called for every trial with a seed of its own; in a run
        file `"python:module:function"`. The sampler may keep what it learns in the study only.
    """

    make_sampler: Callable[[int], Any]

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"make_sampler": "python:infimum_optuna.examples:random_sampler"},
    )

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        from optuna.samplers import BaseSampler

        made = self.make_sampler(trial_seed)
        if not isinstance(made, BaseSampler):
            raise InputError(f"make_sampler returned {made!r}; expected a sampler of Optuna (optuna.samplers)")
        return made
