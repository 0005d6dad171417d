"""The family `Training`: a module, a loss, data, and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge
from torch import nn

from infimum.arrays import describe
from infimum.constraints.base import Constraint
from infimum.errors import InfimumError, InputError, did_you_mean
from infimum.problem import Cadence, PointMetric, Problem, Sense, Term, free_name
from infimum_torch import modules
from infimum_torch.batches import Tensors, as_source, generators_of
from infimum_torch.dice import Dice, draw_seed
from infimum_torch.loss import TrainingLoss, as_objective, mean_loss
from infimum_torch.patterns import matching

DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "bfloat16", "float16")}
UNKNOWN_LENGTH = 100
"""Iterations between evaluations where an epoch's length is not known before the run."""

DType = Literal["float64", "float32", "bfloat16", "float16"]


class Training(Problem):
    """Minimize the mean loss of a module over data, by steps on batches.

    One iteration is one step of an optimizer, on one batch (torch.lbfgs evaluates its batch several times). Iterates
    are modules: the run works on a copy of yours, and the result has the trained one as `x` and the best one seen at an
    evaluation as `best_x`. Dropout, initialization and the order of the batches follow the run's seed; torch's global
    generators stay as they are. Parts of the module that you put into evaluation mode stay in it.

    Parameters
    ----------
    module : torch.nn.Module or callable
        The module to start from, or a function without arguments that makes it, from random numbers of the run.
    loss : callable or str, optional
        `loss(outputs, targets)`, a tensor without axes; or the name of one in torch.nn.functional ("cross_entropy").
        Batches are pairs (inputs, targets).
    data : object
        Arrays `(inputs, targets)` with a row for each sample, a `DataLoader`, any other iterable that gives the batches
        of an epoch whenever it is iterated, or a function without arguments that returns one of these.
    objective : callable, optional
        `objective(module, batch)`, in place of `loss` for batches of any form.
    batch_size : int, optional
        For arrays: rows of a batch, all of them by default.
    shuffle : bool, default True
        For arrays: a new order for each epoch.
    drop_last : bool, default False
        For arrays: leave out a last batch that is smaller than the others.
    validation : object, optional
        Data in the form of `data`, on which `value` is taken.
    metrics : mapping of str to callable, optional
        `metric(module) -> float`, called with the module in evaluation mode and without gradients.
    value : str, optional
        What ranks iterates, is recorded as `value`, and is read by the rules target and stall: "loss" (the default),
        the mean loss in evaluation mode over `validation`, else over `data`; the name of a metric; or "none", which
        spares the evaluation: then there is no best point.
    sense : {"min", "max"}, default "min"
        Whether small or large values of that metric are good.
    evaluate_every : int or "epoch", default "epoch"
        Iterations between evaluations of `value`, the metrics and the violation of constraints; the start and the end
        are always evaluated. Where the loader does not say its length, "epoch" means 100 iterations.
    constraints : mapping of str to Constraint, sequence of Constraint, or Constraint
        Sets for parameters.
    on : mapping of str to str, optional
        Name of a constraint to the pattern (`*`, `?`, `[…]`) of the names of the parameters that it holds for, each by
        itself.
    device : str or torch.device, optional
        Where to train; by default where the module is. Batches are moved there.
    dtype : {"float64", "float32", "bfloat16", "float16"} or torch.dtype, optional
        Of the floating tensors of module and batches; as they are by default.
    seed : int, optional
        Of the numbers that a function given as `module` draws; by default they follow the seed of the run.
    name : str, default ""
        What plans and results call it.

    Raises
    ------
    InputError
        For empty data, data that can be read only once, a module on several devices or with parameters that have no
        shape yet, patterns that match nothing (names the nearest), names that are not known, a metric or loss that
        raises at the first evaluation. A loss that is no scalar is refused at its first evaluation, a
        loader that changes its length when it does.

    Examples
    --------
    >>> import torch, infimum
    >>> from infimum_torch import Training
    >>> X = torch.linspace(-1, 1, 64)[:, None]
    >>> problem = Training(lambda: torch.nn.Linear(1, 1), loss="mse_loss", data=(X, 3 * X - 1), batch_size=16)
    >>> adam = {"use": "torch.adam", "lr": 0.1}
    >>> result = infimum.solve(problem, solver=adam, stopping="torch.max_epochs(40)", seed=0)
    >>> result.iterations, round(result.x.weight.item(), 2)
    (160, 3.0)
    """

    family = "training"
    examples: ClassVar[Sequence[Mapping[str, Any]]] = (
        {
            "module": "python:infimum_torch.samples:small_module",
            "loss": "mse_loss",
            "data": "python:infimum_torch.samples:small_data",
            "batch_size": 16,
        },
    )

    def __init__(
        self,
        module: Any,
        loss: Any = None,
        data: Any = None,
        *,
        objective: Any = None,
        batch_size: Annotated[int, Ge(1)] | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        validation: Any = None,
        metrics: Mapping[str, Any] | None = None,
        value: str = "loss",
        sense: Sense = "min",
        evaluate_every: Annotated[int, Ge(1)] | Literal["epoch"] = "epoch",
        constraints: Any = (),
        on: Mapping[str, str] | None = None,
        device: Any = None,
        dtype: DType | None = None,
        seed: Annotated[int, Ge(0)] | None = None,
        name: str = "",
    ) -> None:
        if data is None:
            raise InputError("data is missing: give arrays (inputs, targets) or a DataLoader")
        self.name, self.sense, self.seed = name, sense, seed
        self.make = module if callable(module) and not isinstance(module, nn.Module) else None
        made = self._fresh(0) if self.make is not None else module
        if not isinstance(made, nn.Module):
            raise InputError(f"module: expected a torch.nn.Module or a function that makes one, got {_kind(made)}")
        self.device = modules.device_of(made, device)
        self.dtype = _dtype(dtype)
        modules.require_castable(made, self.dtype)
        self.module = self._moved(modules.clone(made))
        self.names = [key for key, one in self.module.named_parameters() if one.requires_grad]
        if not self.names:
            raise InputError(f"module: no parameter of {type(made).__name__} requires a gradient; unfreeze some")
        source = self._source(data, batch_size, shuffle, drop_last, "data")
        held = None if validation is None else self._source(validation, batch_size, False, False, "validation")
        self.evaluation = source if held is None else held
        self.loss = TrainingLoss(as_objective(loss, objective), source, self.device, self.dtype)
        self.user_metrics = _checked_metrics(metrics)
        self.ranked_by = self._ranked(value)
        length = len(source) if hasattr(source, "__len__") else UNKNOWN_LENGTH
        self.every = length if evaluate_every == "epoch" else int(evaluate_every)
        self._sets = self._placed(constraints, dict(on or {}))

    def _fresh(self, seed: int) -> Any:
        """The module that the user's function makes, from a seed."""
        assert self.make is not None
        with Dice(seed if self.seed is None else self.seed, torch.device("cpu")):
            return self.make()

    def _moved(self, module: nn.Module) -> nn.Module:
        return module.to(device=self.device, dtype=self.dtype)

    def _source(self, data: Any, batch_size: int | None, shuffle: bool, drop_last: bool, name: str) -> Any:
        source = as_source(data, batch_size, shuffle, drop_last, name)
        return source.to(self.device, self.dtype) if isinstance(source, Tensors) else source

    def _ranked(self, value: str) -> str | None:
        known = ("loss", "none", *self.user_metrics)
        if value not in known:
            raise InputError(f"value='{value}': expected 'loss', 'none' or a metric; {did_you_mean(value, known)}")
        if value in ("loss", "none") and self.sense == "max":
            raise InputError(f"sense='max' goes with value='NAME' of a metric; the {value} is minimized")
        return None if value == "none" else value

    def _placed(self, constraints: Any, on: dict[str, str]) -> tuple[Term, ...]:
        found = []
        for key, one in _named(constraints).items():
            if not isinstance(one, Constraint):
                raise InputError(f"constraint '{key}': expected a Constraint, got {type(one).__name__}")
            if key not in on:
                raise InputError(
                    f"constraint '{key}' needs on: a pattern of parameter names, such as '*.weight'; there are: "
                    f"{', '.join(self.names)}"
                )
            pattern = on.pop(key)
            for parameter in matching(pattern, self.names, f"constraint '{key}'"):
                self._fit(key, one, parameter)
            found.append(Term(key, one, pattern, "constraint"))
        if on:
            key = next(iter(on))
            raise InputError(f"on: there is no constraint '{key}'; {did_you_mean(key, [t.name for t in found])}")
        return tuple(found)

    def _fit(self, key: str, one: Constraint, parameter: str) -> None:
        try:
            one.check(self.module.get_parameter(parameter))
        except InputError as error:
            raise InputError(f"constraint '{key}', parameter '{parameter}': {error}") from None

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term("loss", self.loss), *self._sets)

    @property
    def merit(self) -> str | None:
        return None if self.ranked_by is None else "value"

    @property
    def recorded(self) -> tuple[str, ...]:
        return ("batch_loss", "epoch", *self.user_metrics)

    def with_constraints(self, constraints: Any, on: Mapping[str, str] | None = None) -> Training:
        """The same problem with further constraints, each on a pattern of parameter names."""
        import copy

        new = copy.copy(self)
        taken = {term.name for term in self.terms}
        if clash := taken & set(_named(constraints)):
            raise InputError(f"the problem already has a term called '{min(clash)}'; give yours another name")
        new._sets = (*self._sets, *self._placed(constraints, dict(on or {})))
        return new

    def start(self, rng: np.random.Generator) -> nn.Module:
        return self._fresh(draw_seed(rng)) if self.make is not None else self.module

    def prepare(self, start: Any) -> nn.Module:
        if isinstance(start, Mapping):
            return modules.fill(modules.clone(self.module), start)
        if not isinstance(start, nn.Module):
            raise InputError(
                f"x0: expected a module like the problem's, or its tensors by name, got {type(start).__name__}"
            )
        tensors = modules.tensors_of(start)
        if start is not self.module and self.make is None:
            for key, one in tensors.items():
                if one.device != self.device:
                    raise InputError(
                        f"x0: '{key}' is on {one.device}, the problem is on {self.device}; move one of them"
                    )
        return modules.fill(modules.clone(self.module), tensors)

    def copy(self, point: nn.Module) -> nn.Module:
        return self.load(modules.dump(point))

    def view(self, term: Term, point: Any = None) -> Any:
        if term.role == "term" or point is None or term.on is None:
            return term.body
        name = matching(term.on, self.names, term.name)[0]
        return term.body.to(point.get_parameter(name).detach())

    def metrics(self, point: nn.Module) -> Mapping[str, PointMetric]:
        out = {key: self._evaluated(metric, key) for key, metric in self.user_metrics.items()}
        if self.ranked_by == "loss":
            out["value"] = self._evaluated(self._loss_value, "loss")
        elif self.ranked_by is not None:
            out["value"] = out[self.ranked_by]  # The same one, so that it is evaluated once.
        if self._sets:
            views = [(self.view(term, point), term.on or "*") for term in self._sets]
            out["violation"] = self._evaluated(lambda module: self._violation(module, views), "violation")
        return out

    def _evaluated(self, metric: Callable[[nn.Module], Any], name: str) -> PointMetric:
        drawn = generators_of(self.evaluation)
        worked = False

        def measure(module: nn.Module, _: Any) -> float:
            nonlocal worked
            try:
                with modules.evaluating(module), torch.no_grad(), Dice(0, self.device, drawn):
                    found = _number(metric(module))
            except Exception as error:
                if worked:
                    raise  # Something happened after a good start; the run ends as failed, and what it has is kept.
                raise InputError(self._why(name, error)) from error
            worked = True
            return found

        return Cadence(measure, self.every)

    def _why(self, name: str, error: Exception) -> str:
        """Why the first evaluation came to nothing."""
        said = str(error) if isinstance(error, InfimumError) else f"{type(error).__name__}: {error}"
        of = self.evaluation
        data = " and ".join(describe(one) for one in of.tensors) if isinstance(of, Tensors) else type(of).__name__
        cast = "; dtype='float32', say, casts module and data alike" if "same dtype" in said else ""
        return f"{name} at its first evaluation: {said} (module: {modules.size_words(self.module)}; data: {data}{cast})"

    def _loss_value(self, module: nn.Module) -> float:
        return mean_loss(self.loss.objective, self.evaluation, module, self.device, self.dtype)

    def _violation(self, module: nn.Module, views: Sequence[tuple[Any, str]]) -> float:
        return max(
            float(one.violation(module.get_parameter(name)))
            for one, pattern in views
            for name in matching(pattern, self.names, "constraint")
        )

    def dump(self, point: nn.Module) -> dict[str, Any]:
        return modules.dump(point)

    def load(self, tree: Any) -> nn.Module:
        return modules.fill(modules.clone(self.module), tree, "state")

    def describe(self, point: Any = None) -> str:
        module = self.module if point is None else point
        return f"{self.name or 'Training'} ({modules.size_words(module)})"


def _dtype(given: Any) -> torch.dtype | None:
    if given is None or given in DTYPES.values():
        return given  # type: ignore[no-any-return]
    if given not in DTYPES:
        raise InputError(f"dtype={given!r}: expected one of {', '.join(DTYPES)}")
    return DTYPES[given]  # type: ignore[no-any-return]


def _number(found: Any) -> float:
    try:
        return float(found)
    except (TypeError, ValueError, RuntimeError):
        kind = describe(found) if isinstance(found, torch.Tensor | np.ndarray) else _kind(found)
        raise InputError(f"expected one number, got {kind}") from None


def _named(constraints: Any) -> dict[str, Constraint]:
    if isinstance(constraints, Constraint):
        constraints = (constraints,)
    if isinstance(constraints, Mapping):
        return dict(constraints)
    named: dict[str, Constraint] = {}
    for one in constraints:
        named[free_name(type(one).__name__.lower(), named)] = one
    return named


TAKEN = ("value", "violation", "batch_loss", "epoch", "lr", "samples", "loss", "none", "iteration", "time")


def _checked_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Callable[[nn.Module], Any]]:
    for name, call in (metrics or {}).items():
        if not callable(call):
            raise InputError(f"metrics: '{name}' is {_kind(call)}; expected a function of the module")
        if name in TAKEN or not name.isidentifier():
            raise InputError(f"metrics: '{name}' is no name for a metric; expected an identifier other than {TAKEN}")
    return dict(metrics or {})


def _kind(thing: Any) -> str:
    return f"{type(thing).__name__} {thing!r}" if isinstance(thing, str | int | float) else type(thing).__name__
