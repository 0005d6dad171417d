"""Members before they run, and all that is to be run together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infimum.runfile.budget import Terms


@dataclass(frozen=True, eq=False)
class Planned:
    """A member to run.

    Attributes
    ----------
    id, name, problem, solver : str
    values : dict
        Varied values as plain data.
    repetition : int
    config : dict
        The resolved run file; empty where it is stated by objects.
    stated : dict or None
        Keyword arguments of `infimum.solve`, where it is stated by objects.
    refused : str or None
        Why it cannot start.
    """

    id: str
    name: str
    problem: str
    solver: str
    values: dict[str, Any]
    repetition: int
    config: dict[str, Any]
    stated: dict[str, Any] | None = None
    refused: str | None = None

    @property
    def line(self) -> dict[str, Any]:
        """What is known of it before it runs."""
        names = ("name", "problem", "solver", "values", "repetition", "config")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Agenda:
    """All members, and what they have in common."""

    name: str
    path: str
    members: tuple[Planned, ...]
    varied: tuple[str, ...]
    seed: int
    seeded: bool
    terms: Terms | None = None
    output: str = "runs"
    references: tuple[Planned, ...] = ()
    """Runs that find the known best values, where a solver is to find them."""
    notes: tuple[str, ...] = ()
