"""Names of a package that are imported at first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any


def look_up(package: str, homes: Mapping[str, str], name: str) -> Any:
    """What a package's `__getattr__` is asked for: imported from its module, and kept in the package.

    Parameters
    ----------
    package : str
    homes : mapping of str to str
        Public name to the module, below the package, that holds it.
    name : str

    Raises
    ------
    AttributeError
        If the package has no such name.
    """
    if name not in homes:
        raise AttributeError(f"module '{package}' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
    setattr(sys.modules[package], name, value)
    return value
