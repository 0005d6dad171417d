"""Where observers write, and how they ask for libraries that need not be there."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infimum.errors import InputError

if TYPE_CHECKING:
    from infimum.run.run import Run


def in_folder(run: Run, path: str) -> Path:
    """A path below the run's folder; the present folder where it has none."""
    folder = getattr(run, "folder", None)
    return Path(path) if folder is None else Path(folder) / path


def is_inside(path: str) -> bool:
    """Whether `in_folder` gives a place below the run's folder."""
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def needed(module: str, extra: str) -> Any:
    """A module of an optional library.

    Raises
    ------
    InputError
        If it is not installed; names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = getattr(error, "name", None) or module
        what = f"pip install 'infimum[{extra}]'"
        raise InputError(f"{module} cannot be imported ('{name}' is missing); {what} brings it") from error
