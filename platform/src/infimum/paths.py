"""A warm-started path: the same problem for a row of values of a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from infimum.api import solve
from infimum.errors import InputError
from infimum.result import Result
from infimum.status import Status

_LOST = (Status.failed, Status.nonfinite, Status.diverged)


def path(problem_factory: Callable[[Any], Any], values: Iterable[Any], x0: Any = None, **options: Any) -> list[Result]:
    """Solve a problem for each value of a parameter, starting where the one before ended.

    Parameters
    ----------
    problem_factory : callable
        `problem_factory(value)` gives anything that `solve` takes as a problem: an object, or
        `{"use": "problems.lasso", "penalty": value}`. All must have points of one shape.
    values : iterable
        In the order in which they are solved. Neighbors should be close: for the lasso, penalties that fall from the
        one at which the solution becomes zero, `np.geomspace(largest, smallest, 50)`.
    x0 : optional
        Start of the first, as in `solve`.
    **options
        Those of `solve` (solver, stopping, seed, …), the same for all. A seed that is not given is drawn once.

    Returns
    -------
    list of Result
        One for each value. Ctrl-C ends the path: the interrupted result is then the last.

    Raises
    ------
    InputError
        Without values, for a factory that is not callable, and where `solve` raises it; a note says for which value.

    Notes
    -----
    Each start is the solution, or without convergence the best point, of the last result that did not fail, diverge or
    turn non-finite. Only the point is handed on, no other state of the solver.

    Examples
    --------
    >>> import numpy as np, infimum
    >>> from infimum.functions import L1, LeastSquares
    >>> loss = LeastSquares(np.eye(2), np.array([3.0, 1.0]), reduction="sum")
    >>> results = infimum.path(lambda t: infimum.Composite({"loss": loss, "penalty": L1(t)}), [2.0, 0.5],
    ...                        solver="splitting.proximal_gradient")
    >>> [result.x.tolist() for result in results]
    [[1.0, 0.0], [2.5, 0.5]]
    """
    if not callable(problem_factory):
        raise InputError(
            f"path: expected a callable value -> problem, got {type(problem_factory).__name__}; for an installed "
            'problem write  lambda value: {"use": "problems.lasso", "penalty": value}'
        )
    results: list[Result] = []
    start = x0
    for value in values:
        # Options of a component are plain numbers.
        value = value.item() if isinstance(value, np.generic) else value
        try:
            result = solve(problem_factory(value), start, **options)
        except Exception as error:
            error.add_note(f"at value {len(results)} of the path: {value!r}")
            raise
        results.append(result)
        if result.status is Status.interrupted:
            break
        if result.status not in _LOST:
            start = result
        if options.get("seed") is None:
            options["seed"] = result.seed
    if not results:
        raise InputError("path: there are no values; give at least one")
    return results
