"""Proximal ADMM for many blocks under linear rows, each with a last block of its own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_padmm.builders import chain, control, from_composite, split
    from infimum_padmm.functions import Cauchy, ScoreLogistic
    from infimum_padmm.horizon import RecedingHorizon
    from infimum_padmm.margins import Certificate, certificate, lagrangian
    from infimum_padmm.problem import BlockProblem
    from infimum_padmm.rate import estimate_rate
    from infimum_padmm.repeated import Repeated, Solution
    from infimum_padmm.report import Report
    from infimum_padmm.solver import PADMM
    from infimum_padmm.structure import StructureError

__all__ = [
    "PADMM",
    "BlockProblem",
    "Cauchy",
    "Certificate",
    "RecedingHorizon",
    "Repeated",
    "Report",
    "ScoreLogistic",
    "Solution",
    "StructureError",
    "certificate",
    "chain",
    "control",
    "estimate_rate",
    "from_composite",
    "lagrangian",
    "split",
]

_HOMES = {
    "PADMM": "solver",
    "BlockProblem": "problem",
    "Cauchy": "functions",
    "Certificate": "margins",
    "RecedingHorizon": "horizon",
    "Repeated": "repeated",
    "Report": "report",
    "ScoreLogistic": "functions",
    "Solution": "repeated",
    "StructureError": "structure",
    "certificate": "margins",
    "chain": "builders",
    "control": "builders",
    "estimate_rate": "rate",
    "from_composite": "builders",
    "lagrangian": "margins",
    "split": "builders",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
