"""What the host knows of a plugin and of a component before importing it."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Literal

from infimum.errors import PluginError, did_you_mean
from infimum.plugins.failure import explain

Status = Literal["found", "active", "disabled", "incompatible", "failed", "shadowed"]
"""`found`: its metadata fit, it has not been imported (only `discover` leaves it so)."""

TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""Form of a target: `package.module:attribute`."""
SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*")
"""Form of the names of plugins, components and kinds."""


def words(kind: str) -> str:
    """A component kind as it stands in sentences: `stopping_rule` becomes `stopping rule`."""
    return kind.replace("_", " ")


def article(noun: str) -> str:
    """The noun with "a" or "an" before it."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


@dataclass(frozen=True, slots=True)
class Component:
    """Something that a plugin registered.

    Attributes
    ----------
    name : str
        Qualified name, `plugin.name`.
    kind : str
        "problem", "oracle", "constraint", "solver", "stopping_rule", "schedule", …
    target : str
        `package.module:attribute`, imported by `load`.
    summary, label : str
        A line and a word for lists; may be empty.
    plugin, distribution : str
        Who registered it.
    """

    name: str
    kind: str
    target: str
    summary: str = ""
    label: str = ""
    plugin: str = ""
    distribution: str = ""

    @property
    def bare(self) -> str:
        """The name without its plugin."""
        return self.name.rpartition(".")[2]

    def load(self) -> Any:
        """Import the target.

        Raises
        ------
        PluginError
            If the import fails or the attribute does not exist; names the plugin and the place.
        """
        module_name, _, path = self.target.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise PluginError(self._import_failed(error, module_name)) from error
        for step in path.split("."):
            if not hasattr(found, step):
                raise PluginError(
                    f"{self._who()} points to '{self.target}', but '{module_name}' has no '{step}'; "
                    + did_you_mean(step, public_names(found))
                )
            found = getattr(found, step)
        return found

    def _who(self) -> str:
        return f"{words(self.kind)} {self.name} of plugin {self.plugin}"

    def _import_failed(self, error: BaseException, module: str) -> str:
        root = module.partition(".")[0]
        said = f"{self._who()} could not be imported: {explain(error, root)}"
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and missing.partition(".")[0] != root:
            said += f"; module '{missing}' is not installed: pip install --upgrade {self.distribution or self.plugin}"
        return said


@dataclass(slots=True)
class PluginRecord:
    """A plugin and what became of it.

    Attributes
    ----------
    name : str
        Namespace of its components: the name of its entry point.
    distribution, version : str
        The installed distribution.
    status : {"found", "active", "disabled", "incompatible", "failed", "shadowed"}
        What became of it.
    reason : str
        Why it is not active; empty when it is.
    module : str
        The light module that its entry point names.
    requires : str
        The range of infimum versions that it declares, such as ">=0.1,<1"; empty when it declares none.
    components : tuple of Component
        What it registered; empty until loaded.
    warnings : tuple of str
        What is wrong with it although it works; errors under strict loading.
    """

    name: str
    distribution: str
    version: str
    status: Status = "found"
    reason: str = ""
    module: str = ""
    requires: str = ""
    components: tuple[Component, ...] = ()
    warnings: tuple[str, ...] = ()
    entry: EntryPoint | None = field(default=None, repr=False, compare=False)

    def set_aside(self, status: Status, reason: str) -> None:
        self.status, self.reason, self.components = status, reason, ()

    @property
    def broken(self) -> bool:
        """Whether it was set aside although the user did not ask for that."""
        return self.status in ("incompatible", "failed", "shadowed")

    @property
    def faults(self) -> tuple[str, ...]:
        """What strict loading refuses: the reason unless the user disabled the plugin, and its warnings."""
        lines = (f"{self.status}: {self.reason}",) if self.broken else ()
        return tuple(
            f"plugin {self.name} ({self.distribution} {self.version}) {line}"
            for line in (*lines, *(f"warning: {text}" for text in self.warnings))
        )


def public_names(thing: Any) -> list[str]:
    """What a module or a class has to offer, for messages."""
    return [name for name in vars(thing) if not name.startswith("_")] if hasattr(thing, "__dict__") else []
