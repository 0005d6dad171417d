"""What a run returns: the points, why it ended, what it cost, how exact it was; prints, saves and loads."""

from __future__ import annotations

import html
import importlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from infimum import arrays
from infimum.checkpoint import load_tree, save_tree
from infimum.errors import InputError
from infimum.run.stop import dump_reasons, load_reasons
from infimum.status import Status
from infimum.stopping.base import Reason
from infimum.trace import Trace
from infimum.versions import version_of

_FILE = "result"
_APART = {"x.npz": ("x", "best_x", "tail_x"), "trace.npz": ("trace",), "extras.npz": ("extras",)}
"""Files of arrays beside `result.json`."""


@dataclass(eq=False)
class Result:
    """The outcome of a run, in the user's sense and form.

    Attributes
    ----------
    x : array, or dict of arrays for a problem with blocks
        The solver's own solution at the last finite iteration.
    best_x : like x
        The best point seen at a check: the smallest value among points within `feasibility_tol`, else the least
        violated one. None for a problem that does not rank points.
    tail_x : like x
        Mean of the points of the last half to three quarters of the run, where it was kept: by default for a plan
        with a stochastic part, whose last point is noise around it. None otherwise.
    tail_value : float or None
        The objective at `tail_x`.
    value, best_value : float or None
        The objective at `x` and at `best_x`.
    best_iteration : int or None
        When `best_x` was seen.
    violation : float or None
        Largest violation of the constraints at `x`; None without constraints.
    status : Status
        converged, target_reached, stalled, limit, nonfinite, diverged, infeasible, interrupted or failed.
    message : str
        Why, with the numbers.
    fired : tuple of Reason
        Every stopping rule that fired at the last check, with its values.
    iterations : int
    elapsed : float
        Seconds of wall clock.
    evaluations : dict
        Evaluations of the user's functions, in points: `{term: {capability: n}}`.
    calls : dict
        Calls that the solver made: `{slot: {capability: n}}`.
    monitored : dict
        Evaluations for the record only, which no budget counts.
    exactness : str
        The worst of the parts.
    trace : Trace
    metrics : dict
        Metrics at the last check.
    plan : str
        What was put together, as text.
    details : dict
        The plan as data.
    seed : int
    versions : dict
        Python, infimum and the distributions that took part.
    notes : list of str
        What the host decided itself, such as a default limit.
    reference : float or None
        Known optimal value of the problem (`Problem.reference`), which comparisons measure against.
    extras : dict
        What components have to tell beyond numbers, by component name: plain trees from `Solver.extras(state)` and
        from the `extras()` of stopping rules' trackers.
    error : BaseException or None
        For status `failed`; a loaded result has none (its text stands in `message`).
    """

    x: Any
    best_x: Any
    value: float | None
    best_value: float | None
    violation: float | None
    status: Status
    message: str
    fired: tuple[Reason, ...]
    iterations: int
    elapsed: float
    evaluations: dict[str, dict[str, int]]
    calls: dict[str, dict[str, int]]
    monitored: dict[str, dict[str, int]]
    exactness: str
    trace: Trace | None
    metrics: dict[str, float]
    plan: str
    details: dict[str, Any]
    seed: int
    versions: dict[str, str]
    best_iteration: int | None = None
    tail_x: Any = None
    tail_value: float | None = None
    reference: float | None = None
    notes: list[str] = field(default_factory=list)
    extras: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    dump: Callable[[Any], Any] | None = field(default=None, repr=False)
    """Turns `x` into plain data for `save`, where it is none (a module)."""

    @property
    def success(self) -> bool:
        """True for `converged` and `target_reached` only."""
        return self.status.success

    @property
    def fun(self) -> float | None:
        """SciPy's name for `value`."""
        return self.value

    @property
    def nit(self) -> int:
        """SciPy's name for `iterations`."""
        return self.iterations

    @property
    def nfev(self) -> int:
        """Evaluations of values, summed over terms."""
        return sum(row.get("value", 0) for row in self.evaluations.values())

    @property
    def njev(self) -> int:
        """Evaluations of gradients, summed over terms."""
        return sum(row.get("gradient", 0) for row in self.evaluations.values())

    def rows(self) -> list[tuple[str, str]]:
        """What `print` shows, as (name, text)."""
        out = [("status", f"{self.status}: {self.message}")]
        if self.value is not None:
            out.append(("value", f"{self.value:.10g}"))
        if self.best_value is not None and self.best_value != self.value:
            out.append(("best value", f"{self.best_value:.10g} at iteration {self.best_iteration}"))
        if self.tail_value is not None:
            out.append(("tail value", f"{self.tail_value:.10g} at the mean of the late points"))
        if self.violation is not None:
            out.append(("violation", f"{self.violation:.3g}"))
        out.append(("x", _summary(self.x)))
        out.append(("iterations", f"{self.iterations} in {self.elapsed:.3g} s"))
        out.append(("evaluations", _counts(self.evaluations)))
        if self.monitored:
            out.append(("for the record", _counts(self.monitored)))
        out.append(("exactness", self.exactness))
        out.append(("seed", str(self.seed)))
        return out

    def __str__(self) -> str:
        head = self.plan.splitlines()[0].removeprefix("plan: ")
        body = [f"  {name:<15} {text}" for name, text in self.rows()]
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([head, *body, *notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = html.escape(self.plan.splitlines()[0].removeprefix("plan: "))
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self.rows()
        )
        return f"<table><caption>{head}</caption>{cells}</table>"

    def plot(self, metric: str | None = None, *, x: str | None = None, ax: Any = None) -> Any:
        """The curve of a metric, by matplotlib (extra `report`).

        Parameters
        ----------
        metric : str, optional
            A column of the trace; by default its first metric, the objective where there is one.
        x : str, optional
            "iterations" (the default), "seconds", "all evaluations", or a capability whose evaluations were counted.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new one by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            If nothing was recorded, there is no such metric or axis, or matplotlib is not installed.
        """
        # A room above this one, found at first use as the front finds its names.
        plots = importlib.import_module("infimum.reporting.plots")
        return plots.plot_result(self, metric, x=x, ax=ax)

    def save(self, folder: str | Path, *, replace: bool = False) -> Path:
        """Write `result.json`, `x.npz` and `trace.npz` into `folder` (made if needed). Arrays and plain data, no
        pickles; `extras.npz` only where the extras hold arrays.

        Parameters
        ----------
        folder : path
        replace : bool, default False
            Whether to replace a result that is there.

        Raises
        ------
        InputError
            If `folder` already holds a result, or `x` is no plain data.
        """
        folder = Path(folder)
        for name in (f"{_FILE}.json", *_APART):
            if not replace and (folder / name).exists():
                raise InputError(f"{folder} already holds a {name}; choose another folder")
        tree = {name: getattr(self, name) for name in _PLAIN}
        if self.dump is not None:
            for name in _APART["x.npz"]:
                tree[name] = None if tree[name] is None else self.dump(tree[name])
        tree["status"] = str(self.status)
        tree["fired"] = dump_reasons(self.fired)
        tree["trace"] = None if self.trace is None else dict(self.trace)
        save_tree(folder, _FILE, tree, _APART)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read what `save` wrote. Points that are no arrays come back as the plain data that they were saved as.

        Raises
        ------
        InputError
            If there is no result in `folder`, or it is damaged or of another version.
        """
        tree = load_tree(Path(folder), _FILE)
        try:
            fired = load_reasons(tree.pop("fired"))
            trace = tree.pop("trace")
            status = Status(tree.pop("status"))
            return cls(**tree, status=status, fired=fired, trace=None if trace is None else Trace(trace))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{Path(folder) / _FILE}.json holds no result of this version ({error})") from None


_PLAIN = tuple(one.name for one in fields(Result) if one.name not in ("status", "fired", "trace", "error", "dump"))
"""What is saved as it stands."""


def versions(*modules: str) -> dict[str, str]:
    """Versions of Python, of infimum and NumPy, and of the distributions that hold `modules`."""
    wanted = {"infimum", "numpy", *(module.partition(".")[0].replace("_", "-") for module in modules)}
    found = {name: _version(name) for name in sorted(wanted)}
    return {"python": platform.python_version()} | {name: one for name, one in found.items() if one is not None}


_version = cache(version_of)
"""Kept for the process: reading a distribution's metadata takes longer than many a run."""


def _counts(table: Mapping[str, Mapping[str, int]]) -> str:
    if not table:
        return "none"
    return "; ".join(f"{owner}: {', '.join(f'{n} {name}' for name, n in row.items())}" for owner, row in table.items())


def _summary(x: Any) -> str:
    if isinstance(x, Mapping):
        shown = [f"{name}: {_summary(one)}" for name, one in list(x.items())[:3]]
        return ", ".join(shown) + (f", … ({len(x)} entries)" if len(x) > 3 else "")
    if arrays.is_array(x):
        flat = x.reshape(-1)
        numbers = ", ".join(f"{float(one):.4g}" for one in flat[:5])
        dots = ", …" if flat.shape[0] > 5 else ""
        return f"[{numbers}{dots}]  {arrays.describe(x)}"
    # A module tells of its layers on many lines.
    text = " ".join(repr(x).split())
    return text if len(text) <= 80 else text[:79] + "…"
