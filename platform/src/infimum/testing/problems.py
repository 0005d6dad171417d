"""`check_problem`: `check_function` and `check_constraint` on every term of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum import arrays
from infimum.problem import Problem
from infimum.testing.functions import check_function
from infimum.testing.report import Report
from infimum.testing.sets import check_constraint


def check_problem(
    problem: Problem,
    x: Any = None,
    *,
    rng: np.random.Generator | int | None = None,
    tolerance: float | None = None,
    raise_: bool = False,
) -> list[Report]:
    """Check every term of a problem at a point.

    Parameters
    ----------
    problem : Problem
    x : object, optional
        A point in the user's form; the problem's own start by default.
    rng : numpy.random.Generator or int, default 0
    tolerance : float, optional
        As in `check_function`.
    raise_ : bool, default False
        Raise `InputError` at the first term with something wrong.

    Returns
    -------
    list of Report
        One for each term, functions and sets. Terms whose points are no arrays are reported as not checked.
    """
    generator = np.random.default_rng(0 if rng is None else rng)
    point = problem.prepare(problem.start(generator) if x is None else x)
    reports = []
    for term in problem.terms:
        reports.append(_check_term(problem, term, point, generator, tolerance))
        if raise_:
            reports[-1].require()
    return reports


def _check_term(problem: Problem, term: Any, point: Any, rng: np.random.Generator, tolerance: float | None) -> Report:
    name = f"{'constraint' if term.role == 'constraint' else 'term'} '{term.name}'"
    layout = getattr(problem, "layout", None)
    here = point if layout is None or term.on is None else layout.view(point, term.on)
    if not arrays.is_array(here):
        return Report(name, skipped={"everything": f"its points are of type {type(here).__name__}, no arrays"})
    body = problem.view(term, point)
    check = check_constraint if term.role == "constraint" else check_function
    return check(body, here, rng=rng, tolerance=tolerance, name=f"{name}, {body!r},")
