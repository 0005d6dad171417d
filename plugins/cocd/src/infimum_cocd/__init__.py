"""Coherent coordinate descent: stale difference quotients, reused as a gradient."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_cocd.coherent import Coherent
    from infimum_cocd.descent import Descent
    from infimum_cocd.modules import ModuleLosses, module_losses
    from infimum_cocd.optimizer import CoCD
    from infimum_cocd.theory import gain, staleness_bound

__all__ = ["CoCD", "Coherent", "Descent", "ModuleLosses", "gain", "module_losses", "staleness_bound"]

_HOMES = {
    "CoCD": "optimizer",
    "Coherent": "coherent",
    "Descent": "descent",
    "ModuleLosses": "modules",
    "gain": "theory",
    "module_losses": "modules",
    "staleness_bound": "theory",
}
_TORCH = ("CoCD", "ModuleLosses", "module_losses")


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if name in _TORCH and error.name == "torch":
            raise ImportError(
                f"infimum_cocd.{name} needs PyTorch, which is not installed: pip install 'infimum-cocd[torch]'"
            ) from error
        raise
