"""Studies as results: what `infimum report sqlite:///study.db` shows of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum.result import Result, versions
from infimum.status import Status
from infimum.trace import Trace
from infimum_optuna.callback import require_single
from infimum_optuna.history import DEFAULT_COST, Cost, History, as_cost, cost_of
from infimum_optuna.storage import hidden, is_storage, open_storage, quiet

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

log = logging.getLogger("infimum")


def results_of(source: str, *, cost: Cost = DEFAULT_COST) -> list[tuple[str, Result]]:
    """The results of the studies in a storage.

    Parameters
    ----------
    source : str
        URL of a database or path of a journal, as in `open_storage`; `#NAME` behind it names one study.
    cost : str, callable or None, default "user_attr:cost"
        Where the cost of a trial is found.

    Returns
    -------
    list of (str, Result)
        By name. Studies with several objectives are left out, with a warning in the log.

    Raises
    ------
    InputError
        If there is no such storage or study, or none with one objective.
    """
    import optuna

    address, _, name = source.partition("#") if isinstance(source, str) else (source, "", "")
    if not is_storage(address):
        raise InputError(f"{hidden(str(source))} is neither the URL of a database nor a journal of Optuna")
    storage = open_storage(address, create=False)
    with quiet():
        names = optuna.get_all_study_names(storage)
        if name and name not in names:
            raise InputError(f"{hidden(address)} has no study '{name}'; {did_you_mean(name, names)}")
        studies = [optuna.load_study(study_name=one, storage=storage) for one in names if not name or one == name]
    if not studies:
        raise InputError(f"{hidden(address)} holds no study")
    found, refused = [], None
    for study in studies:
        try:
            found.append((study.study_name, result_of(study, cost=cost, where=hidden(address))))
        except InputError as error:
            refused = error
            log.warning("%s", error)
    if not found:
        assert refused is not None
        raise refused
    return found


def result_of(study: Study, *, cost: Cost = DEFAULT_COST, where: str = "memory") -> Result:
    """What a study has come to, as a result: an iteration is a finished trial, in the order of their ends.

    Parameters
    ----------
    study : optuna.Study
    cost : str, callable or None, default "user_attr:cost"
        Where the cost of a trial is found.
    where : str, default "memory"
        Of the storage, for the result's plan.

    Returns
    -------
    Result
        With status `interrupted` (a study can always be gone on with), the trace of value, best value and costs, and
        `extras["optuna"]`: numbers of trials by state, parameters, direction.

    Raises
    ------
    InputError
        For a study with several objectives, or a negative cost.
    """
    require_single(study, "report")
    cost = as_cost(cost)
    history = History(study.get_trials(deepcopy=False), maximize=study.direction.name == "MAXIMIZE", cost=cost)
    finished = sorted((one for one in history.trials if one.state.is_finished()), key=_end)
    trace = _trace(finished, history.maximize, cost)
    states = Counter(one.state.name for one in history.trials)
    last, best = (finished[-1] if finished else None), history.best
    number = last.value if last is not None and last.state.name == "COMPLETE" else None
    return Result(
        x=None if last is None else dict(last.params),
        best_x=None if best is None else dict(best.params),
        value=number,
        best_value=None if best is None else best.value,
        violation=None,
        status=Status.interrupted,
        message=f"a study with {_said(states)}; it can be gone on with",
        fired=(),
        iterations=len(finished),
        elapsed=float(trace["time"][-1]) if finished else 0.0,
        evaluations={"objective": {"evaluate": len(finished), "value": len(finished)}} if finished else {},
        calls={},
        monitored={},
        exactness="exact",
        trace=trace,
        metrics={"total_cost": history.total_cost} | ({} if number is None else {"value": number}),
        plan=_plan(study, where),
        details={"study": study.study_name, "storage": where, "direction": history.direction},
        seed=0,
        versions=versions(__name__, "optuna"),
        best_iteration=None if best is None else next(k for k, one in enumerate(finished, 1) if one is best),
        notes=["the seed of a study is not known; 0 stands for it"],
        extras={
            "optuna": {
                "study": study.study_name,
                "direction": history.direction,
                "trials": dict(states),
                "parameters": sorted({name for one in history.trials for name in one.params}),
            }
        },
    )


def _plan(study: Study, where: str) -> str:
    sampler = type(study.sampler).__name__
    return f"""plan: Optuna study '{study.study_name}' in {where}
  direction {study.direction.name.lower()}
  sampler {sampler}"""


def _said(states: Counter[str]) -> str:
    return ", ".join(f"{n} {state.lower()}" for state, n in sorted(states.items())) or "no trial"


def _trace(finished: Sequence[FrozenTrial], maximize: bool, cost: Cost) -> Trace:
    """Columns over the finished trials; seconds run from the start of the first one."""
    n = len(finished)
    values = np.array([one.value if one.state.name == "COMPLETE" else np.nan for one in finished], dtype=float)
    best = (np.fmax if maximize else np.fmin).accumulate(values) if n else values
    costs = np.array([cost_of(one, cost) for one in finished], dtype=float)
    starts = [one.datetime_start for one in finished if one.datetime_start is not None]
    zero = min(starts) if starts else None
    times = [np.nan if zero is None else _seconds(one.datetime_complete, zero) for one in finished]
    return Trace(
        {
            "iteration": np.arange(1, n + 1),
            "time": np.array(times, dtype=float),
            "value": values,
            "best": best,
            "cost": costs,
            "total_cost": np.nancumsum(costs),
            "calls.evaluate": np.arange(1, n + 1),
        }
    )


def _seconds(end: Any, zero: Any) -> float:
    return float("nan") if end is None else float((end - zero).total_seconds())


def _end(trial: FrozenTrial) -> tuple[Any, int]:
    return (trial.datetime_complete, trial.number)
