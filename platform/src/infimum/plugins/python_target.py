"""Import `python:module:attribute` from the user's own code, with the folder of the run file first on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from infimum.errors import InputError, UnknownNameError, did_you_mean
from infimum.plugins.failure import explain
from infimum.plugins.records import TARGET, public_names

PREFIX = "python:"

_asleep: dict[str, dict[str, ModuleType]] = {}
"""Modules imported for one folder, by folder, while another folder has its turn in `sys.modules`."""
_imported: dict[str, set[str]] = {}
"""Names that came into `sys.modules` during a folder's turn."""
_awake = ""
"""The folder whose modules are in `sys.modules`."""


def import_python(reference: str, base: Path | None = None) -> Any:
    """The object that `python:module:attribute` names.

    Parameters
    ----------
    reference : str
        With the prefix `python:`.
    base : path, optional
        Folder that comes first on `sys.path` during the import.

    Raises
    ------
    InputError
        If the text has another form, the module is not found (says where it was looked for), it raises when imported
        (says where), or its name is taken by an installed module.
    UnknownNameError
        If the module has no such attribute.
    """
    text = reference.removeprefix(PREFIX)
    if not TARGET.fullmatch(text) or ".py:" in text:
        wanted = "python:package.module:attribute, such as python:my_module:my_problem"
        said = f"'{reference}' is no reference to Python code; write {wanted}"
        raise InputError(f"{said} (the module without '.py')" if ".py:" in text or "/" in text else said)
    name, _, path = text.partition(":")
    found: Any = _module(name, base.resolve() if base is not None else None, reference)
    for step in path.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            file = getattr(sys.modules.get(name), "__file__", None) or name
            hint = did_you_mean(step, public_names(found))
            raise UnknownNameError(f"'{reference}': {file} has no '{step}'; {hint}") from None
    return found


def _module(name: str, base: Path | None, reference: str) -> ModuleType:
    if base is None:
        return _import(name, base, reference)
    known = sys.modules.get(name)
    if known is not None and _awake == str(base) and _lives_in(known, base):
        return known
    top = name.partition(".")[0]
    with _folder(base):
        loaded = sys.modules.get(top)
        if loaded is not None and top != "__main__" and _file_in(base, top) and not _lives_in(loaded, base):
            _refuse_taken(top, loaded, base, reference)
            # Another folder's module of the same name, imported by the user's own program.
            for one in [one for one in sys.modules if one == top or one.startswith(top + ".")]:
                del sys.modules[one]
        return _import(name, base, reference)


def _import(name: str, base: Path | None, reference: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise InputError(_not_found(missing, base, reference)) from None
        raise InputError(f"'{reference}': module '{name}' raised {explain(error, name)}") from error


def _not_found(missing: str, base: Path | None, reference: str) -> str:
    if base is None:
        return f"'{reference}': module '{missing}' was not found on sys.path ({_search_path()})"
    said = f"'{reference}': module '{missing}' was not found in {base} nor on sys.path"
    here = [one.stem for one in sorted(base.glob("*.py"))]
    return f"{said}; {did_you_mean(missing, here)}" if here else said


def _search_path() -> str:
    return ", ".join(entry or "the current folder" for entry in sys.path)


def _refuse_taken(top: str, loaded: ModuleType, base: Path, reference: str) -> None:
    file = getattr(loaded, "__file__", None) or "built in"
    installed = top in sys.stdlib_module_names or {"site-packages", "dist-packages"} & set(Path(file).parts)
    if installed:
        raise InputError(
            f"'{reference}': an installed module ({file}) has the name of {_file_in(base, top)}; rename the latter"
        )


def _file_in(base: Path, top: str) -> Path | None:
    candidates = (base / top / "__init__.py", base / f"{top}.py")
    return next((file for file in candidates if file.is_file()), None)


def _lives_in(module: ModuleType, base: Path) -> bool:
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", ()))
    return any(Path(place).resolve().is_relative_to(base) for place in places)


@contextmanager
def _folder(base: Path) -> Iterator[None]:
    """Give `base` its turn: first on `sys.path`, its modules in `sys.modules`, those of the last folder put to sleep.

    Two folders may both have a `helpers.py`; each keeps its own, and the same object every time.
    """
    global _awake
    here = str(base)
    if _awake and _awake != here:
        theirs = Path(_awake)
        _asleep[_awake] = {
            name: sys.modules.pop(name)
            for name, module in list(sys.modules.items())
            if name in _imported.get(_awake, ()) and _lives_in(module, theirs)
        }
    for name, module in _asleep.pop(here, {}).items():
        sys.modules.setdefault(name, module)
    _awake = here
    before = set(sys.modules)
    sys.path.insert(0, here)
    importlib.invalidate_caches()  # the file may be younger than the finder's listing of the folder
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)
        _imported.setdefault(here, set()).update(set(sys.modules) - before)
