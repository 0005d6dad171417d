"""Known best values that a solver is to find: runs of their own beside those that are compared."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from infimum.errors import InfimumError, InputError
from infimum.many.members import Member
from infimum.many.planned import Planned
from infimum.runfile.budget import Terms
from infimum.status import Status

log = logging.getLogger("infimum")

_DROPPED = ("solver", "oracles", "stopping", "check_every", "observers", "checkpoint")
"""What a run for a reference does not share with the runs that are compared."""
_TRUSTED = (Status.converged, Status.target_reached, Status.stalled, Status.limit)


def reference_members(terms: Terms | None, members: Sequence[Planned], path: str) -> tuple[Planned, ...]:
    """A run for every problem whose best value a solver is to find.

    Raises
    ------
    InputError
        If the solver does not take the problem.
    """
    if terms is None:
        return ()
    found = []
    for label, spec in terms.references.items():
        if isinstance(spec, Mapping):
            first = next(one for one in members if one.problem == label)
            found.append(_member(first, dict(spec), path))
    return tuple(found)


def _member(first: Planned, spec: dict[str, Any], path: str) -> Planned:
    stated = spec["solver"]
    named = isinstance(stated, Mapping)
    solver = stated if isinstance(stated, str) else stated["use"] if named else type(stated).__name__
    name = f"{first.problem} / {solver}"
    common: dict[str, Any] = {"id": "", "name": name, "solver": solver, "values": {}, "refused": None, "repetition": 0}
    try:
        if first.stated is not None:
            arguments = {**_without(first.stated), **spec}
            _prepared(arguments)
            return replace(first, **common, stated=arguments)
        from infimum.runfile.model import RunFile

        run_file = RunFile.of({**_without(first.config), **spec}, path)
        run_file.prepare()
        return replace(first, **common, config=run_file.resolved())
    except InfimumError as error:
        raise InputError(f"references: {name}: {error}") from None


def _prepared(arguments: Mapping[str, Any]) -> None:
    from infimum.api import prepare

    prepare(**arguments)


def _without(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _DROPPED}


def settled(terms: Terms, runs: Sequence[Member]) -> tuple[Terms, list[str]]:
    """The terms with the values that the runs for references found, and what is to be known about those.

    Raises
    ------
    InputError
        If one of them found none.
    """
    values, origins, notes = dict(terms.references), dict(terms.origins), []
    for member in runs:
        result = member.result
        value = None if result is None else result.best_value if result.best_value is not None else result.value
        if result is None or value is None or not math.isfinite(value) or member.status not in _TRUSTED:
            said = f": {member.error}" if member.error else ""
            raise InputError(f"references: {member.name} ended as {member.status} and gives no best value{said}")
        values[member.problem], origins[member.problem] = float(value), f"by {member.solver}"
        if not member.success:
            notes.append(f"the reference of {member.problem} is of a run that ended as {member.status}")
            log.warning(notes[-1])
    return replace(terms, references=values, origins=origins), notes
