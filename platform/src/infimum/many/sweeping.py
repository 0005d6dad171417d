"""Sweeps: one statement with values that vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from infimum.many.members import Runs


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Runs):
    """Runs of one statement over values that vary; what `infimum.sweep` returns."""

    kind: ClassVar[str] = "sweep"


def sweep(
    source: Any,
    *,
    product: Mapping[str, Any] | None = None,
    zip: Mapping[str, Any] | None = None,
    components: Mapping[str, Any] | None = None,
    exclude: Sequence[Mapping[str, Any]] | None = None,
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
) -> Sweep:
    """Solve one statement for many values.

    Parameters
    ----------
    source : path, mapping or object
        A run file, perhaps with `sweep` and `repeat`; one as data (with the key `problem`); or a problem in any form
        that `infimum.solve` takes, with `options` beside it.
    product, zip, components : mapping, optional
        Places to their values: `product={"solver.step": [0.1, 1], "problem.penalty": {"logspace": [1e-3, 1, 4]}}`
        takes every combination, `zip` goes through lists of one length together (arrays and ranges serve too),
        `components` puts whole components in place (`{"solver": ["splitting.fista", …]}` or
        `{"solver": {label: component}}`).
    exclude : sequence of mapping, optional
        Combinations to leave out: `[{"solver.step": 1, "problem.penalty": 1e-3}]`.
    repeat : int, optional
        Solve each so many times, with random numbers of its own.
    overrides : sequence of str
        `key=value` on top of a run file.
    jobs : int, optional
        Members at a time; as many as there are cores by default. 1 solves them in this process, one after the other:
        for debugging, and for objects that cannot be sent to another process. A member that crashes ends it then.
    engine : {"loky", "threading", "dask", "dask:ADDRESS", "ray"}, optional
        Where the workers are: processes of joblib by default, a Dask or Ray cluster. Each member is solved in a
        process that its worker guards, so that it can crash alone.
    timeout : float, optional
        Seconds after which a member is asked to end, and killed soon after. It is a result with status `timeout`.
    threads : int, default 1
        Of BLAS and OpenMP in each member, so that members do not fight for cores.
    folder : path, optional
        Where everything is written as it comes; nothing is kept on the disk by default.
    resume : bool, default False
        Go on in `folder`: what is finished is kept, unless the code or the data have changed since.
    retry_failed : bool, default False
        With `resume`, run again what failed, crashed, took too long or turned non-finite.
    fresh : bool, default False
        Run what the cache knows, too.
    cache : bool or path, default True
        Where finished runs are kept under the hash of everything that defines them. Without a seed, for problems that
        are stated by objects, and where an observer writes outside of the run's folder, nothing is cached.
    progress : bool, default False
        A bar on a terminal.
    **options
        Those of `infimum.solve` (solver, stopping, seed, …) beside a problem.

    Returns
    -------
    Sweep
        In the order of the combinations, those that were lost too. After Ctrl-C, what is finished; the others have
        status `interrupted`.

    Raises
    ------
    RunFileError, InputError
        Every mistake in any member, before the first run.

    Examples
    --------
    >>> import infimum
    >>> runs = infimum.sweep("problems.rosenbrock", solver="scipy.bfgs", seed=1, jobs=1, cache=False,
    ...                      product={"problem.n": [2, 4]})
    >>> [(run.values["problem.n"], run.status) for run in runs]
    [(2, 'converged'), (4, 'converged')]
    """
    from infimum.many.launch import Options, launch
    from infimum.many.planning import plan_many

    ways = {"product": _listed(product), "zip": _listed(zip), "components": components, "exclude": exclude}
    stated = {name: value for name, value in ways.items() if value is not None} or None
    how = Options(jobs, engine, timeout, threads, folder, resume, retry_failed, fresh, cache, progress)
    agenda = plan_many(
        source, options, compares=False, many={"sweep": stated, "repeat": repeat}, overrides=overrides, memo=how.memo
    )
    found = launch(agenda, Sweep.kind, how)
    assert isinstance(found, Sweep)
    return found


def _listed(varied: Any) -> Any:
    """Places to their values, where those are arrays or ranges as lists."""
    if not isinstance(varied, Mapping):
        return varied
    return {place: _as_list(values) for place, values in varied.items()}


def _as_list(values: Any) -> Any:
    if isinstance(values, range):
        return list(values)
    return values.tolist() if getattr(values, "ndim", 0) == 1 else values
