"""Versions of everything that takes part, for bug reports."""

from __future__ import annotations

import platform
from importlib import metadata

_LIBRARIES = ("numpy", "scipy", "pluggy", "pydantic", "scikit-learn", "torch", "cvxpy", "optuna")


def show_versions() -> dict[str, str]:
    """Python, infimum, its plugins and the libraries they lean on, by name; what is not installed is left out.

    Nothing is imported for it.
    """
    out = {"python": platform.python_version(), "system": platform.system()}
    plugins = sorted({entry.dist.name for entry in metadata.entry_points(group="infimum") if entry.dist is not None})
    found = {name: version_of(name) for name in ("infimum", *plugins, *_LIBRARIES)}
    return out | {name: one for name, one in found.items() if one is not None}


def version_of(distribution: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
