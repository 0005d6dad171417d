"""Checks for those who write functions, sets and plugins.

`check_function`, `check_map`, `check_constraint` and `check_problem` compare what something says of itself with
numbers. The conformance kit in `infimum.testing.conformance` runs on every installed plugin:

    pytest --pyargs infimum.testing.conformance --infimum-plugin NAME

Only that package and the pytest plugin need pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infimum.lazy import look_up

if TYPE_CHECKING:
    from infimum.testing.functions import check_function
    from infimum.testing.maps import check_map
    from infimum.testing.problems import check_problem
    from infimum.testing.report import Finding, Report
    from infimum.testing.sets import check_constraint

__all__ = ["Finding", "Report", "check_constraint", "check_function", "check_map", "check_problem"]

_HOMES = {
    "Finding": "report",
    "Report": "report",
    "check_constraint": "sets",
    "check_function": "functions",
    "check_map": "maps",
    "check_problem": "problems",
}


def __getattr__(name: str) -> object:
    # Imported at first use: every pytest run loads the plugin in this package, and most of them want nothing of it.
    return look_up(__name__, _HOMES, name)
