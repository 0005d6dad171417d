"""Comparisons: several methods on one or several problems at an equal budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infimum.many.comparison import Comparison


def compare(
    problems: Any,
    solvers: Any = None,
    *,
    budget: Mapping[str, float] | None = None,
    targets: Any = None,
    references: Any = None,
    repeat: int | None = None,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    engine: str | None = None,
    timeout: float | None = None,
    threads: int = 1,
    folder: str | Path | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    fresh: bool = False,
    cache: bool | str | Path = True,
    progress: bool = False,
    **options: Any,
) -> Comparison:
    """Compare methods at an equal budget.

    Parameters
    ----------
    problems : path, object, list or mapping
        A run file with the key `compare`; or a problem in any form that `infimum.solve` takes, several of them, or
        `{label: problem}`.
    solvers : list or mapping
        Methods, or `{label: method}`: a solver in any form that `solve` takes, or `{"solver": …, "oracles": …}`.
    budget : mapping
        What every run has the same of, one of `{"iterations": n}`, `{"seconds": s}`, or evaluations of a capability
        such as `{"value": n}`, `{"gradient": n}`, `{"prox": n}`. Runs at equal seconds are run one at a time, in turn,
        each method warmed up before; the seconds are the solver's own, without evaluations for the record.
    targets : list or mapping, optional
        Accuracies, `[0.1, 1e-3, 1e-5]` by default: shares of the initial gap that are left. Or under `"gap"` relative
        gaps to the reference, or under `"value"` values.
    references : number, solver or mapping, optional
        The known best value, or one for each problem; where none is given that which the problem itself knows
        (`Composite(…, reference=…)`), else the best one found. Also a solver
        that is to find it, in a run without the budget before the others: `{"use": "cvxpy.solve"}`, or
        `{"solver": …, "oracles": …, "stopping": …}`.
    repeat : int, optional
        Repetitions, each with random numbers of its own, the same ones for every method's problem.
    **options
        Those of `infimum.solve` for all runs: seed, oracles, constraints, x0, … A stopping rule may end a run before
        its budget.

    Other parameters are those of `infimum.sweep`.

    Returns
    -------
    Comparison
        A method that cannot take a problem is a row with status `invalid`.

    Raises
    ------
    RunFileError, InputError
        Every mistake, before the first run; also if no method takes any problem.

    Examples
    --------
    >>> import infimum
    >>> found = infimum.compare("problems.rosenbrock", ["scipy.bfgs", "scipy.nelder_mead"], budget={"value": 100},
    ...                         seed=1, jobs=1, cache=False)
    >>> found.solvers
    ('bfgs', 'nelder_mead')
    """
    from infimum.many.launch import Options, launch
    from infimum.many.planning import is_file, plan_many

    terms = {"solvers": solvers, "budget": budget, "targets": targets, "references": references}
    stated = {name: value for name, value in terms.items() if value is not None}
    if is_file(problems):
        given: Any = stated or None
        source = problems
    else:
        several = isinstance(problems, list | tuple) or (
            isinstance(problems, Mapping) and "use" not in problems and "problem" not in problems
        )
        source = None if several else problems
        given = {**stated, "problems": problems} if several else stated
    how = Options(jobs, engine, timeout, threads, folder, resume, retry_failed, fresh, cache, progress)
    agenda = plan_many(
        source, options, compares=True, many={"compare": given, "repeat": repeat}, overrides=overrides, memo=how.memo
    )
    found = launch(agenda, Comparison.kind, how)
    assert isinstance(found, Comparison)
    return found
