"""What many runs give: a sequence of members, each with its result or the reason why there is none."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, overload

from infimum.errors import InputError
from infimum.result import Result
from infimum.status import Status

CRASHED, TIMEOUT, INVALID = "crashed", "timeout", "invalid"
"""Status words of a member beside those of a run: its process died; it took too long; it could not start."""
LOST = (CRASHED, TIMEOUT, INVALID, *map(str, (Status.failed, Status.nonfinite, Status.interrupted)))
"""Statuses that `--retry-failed` runs again."""


@dataclass(frozen=True, eq=False)
class Member:
    """One run among many.

    Attributes
    ----------
    name : str
        Unique short label: what differs, then `#k` for repetition k where there are several.
    problem, solver : str
        Labels of the problem and of the method.
    values : dict
        The varied values by their place in the run file: `{"solver.step": 0.1}`.
    repetition : int
        Number of this run among those of one seed.
    config : dict
        The resolved run file of this member; empty for one that was stated by objects.
    status : str
        A status word of infimum, or `crashed`, `timeout`, `invalid`.
    error : str or None
        In one line, why there is no good result.
    traceback : str or None
        Where, as far as it is known.
    seconds : float
        Wall time of the solve without evaluations for the record, where the host knows them; else of the member.
    cached : bool
        Whether the result was taken from an earlier run.
    folder : Path or None
        Its run folder.
    id : str
        What the member is among many: the same for the same statement, whatever the order.
    notes : tuple of str
        What to know about it, such as a time limit that ended a cached run.
    """

    name: str
    problem: str
    solver: str
    values: dict[str, Any]
    repetition: int
    config: dict[str, Any] = field(repr=False)
    status: str
    error: str | None = None
    traceback: str | None = field(default=None, repr=False)
    seconds: float = 0.0
    cached: bool = False
    folder: Path | None = None
    id: str = ""
    notes: tuple[str, ...] = ()
    kept: Result | None = field(default=None, repr=False)
    """The result itself, where there is no folder to read it from."""

    @property
    def result(self) -> Result | None:
        """The result, read from the run's folder at first use; None where there is none."""
        if self.kept is None and self.folder is not None and (self.folder / "result.json").is_file():
            object.__setattr__(self, "kept", Result.load(self.folder))
        return self.kept

    @property
    def success(self) -> bool:
        """True for `converged` and `target_reached` only."""
        return self.status in (Status.converged, Status.target_reached)

    @property
    def lost(self) -> bool:
        """Whether it crashed, failed, took too long, turned non-finite, was interrupted or could not start."""
        return self.status in LOST

    def row(self) -> dict[str, Any]:
        """Numbers of this member for tables and frames."""
        result = self.result
        row: dict[str, Any] = {"name": self.name, "problem": self.problem, "solver": self.solver}
        row |= {path: _cell(value) for path, value in self.values.items() if path not in row}
        row |= {"repetition": self.repetition, "status": self.status}
        counts: dict[str, int] = {}
        for terms in result.evaluations.values() if result is not None else ():
            for capability, n in terms.items():
                counts[capability] = counts.get(capability, 0) + n
        for name in ("value", "best_value", "violation", "iterations"):
            row[name] = getattr(result, name, None)
        row |= {"seconds": self.seconds, **{f"calls.{name}": n for name, n in counts.items()}}
        return row | {"cached": self.cached, "error": self.error}


def _cell(value: Any) -> Any:
    """A varied value in one cell."""
    if isinstance(value, dict) and isinstance(value.get("use"), str):
        options = ", ".join(f"{name}={one}" for name, one in value.items() if name != "use")
        return f"{value['use']}({options})" if options else value["use"]
    return str(value) if isinstance(value, dict | list) else value


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Member]):
    """Several runs, in the order in which they were stated. `Sweep` and `Comparison` are made of it.

    Attributes
    ----------
    name : str
    members : tuple of Member
    varied : tuple of str
        Places in the run file whose values differ.
    folder : Path or None
        Where everything is saved.
    seed : int or None
    notes : tuple of str
        What was decided for the user.
    """

    kind: ClassVar[str] = "runs"

    name: str
    members: tuple[Member, ...]
    varied: tuple[str, ...] = ()
    folder: Path | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Member, ...]: ...
    @overload
    def __getitem__(self, index: str) -> Member: ...
    def __getitem__(self, index: int | slice | str) -> Member | tuple[Member, ...]:
        """A member by position or by name."""
        if isinstance(index, str):
            for member in self.members:
                if member.name == index:
                    return member
            from infimum.errors import did_you_mean

            raise KeyError(f"no member '{index}'; {did_you_mean(index, [one.name for one in self.members])}")
        return self.members[index]

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def counts(self) -> dict[str, int]:
        """Status word to the number of members that ended so."""
        found: dict[str, int] = {}
        for member in self.members:
            found[member.status] = found.get(member.status, 0) + 1
        return found

    @property
    def complete(self) -> bool:
        """Whether no member was left out or interrupted."""
        return all(member.status != Status.interrupted for member in self.members)

    def rows(self) -> list[dict[str, Any]]:
        """One mapping a member; see `to_frame` for the columns."""
        return [member.row() for member in self.members]

    def to_frame(self) -> Any:
        """A pandas data frame with one row a member.

        Returns
        -------
        pandas.DataFrame
            Columns name, problem, solver, the varied values, repetition, status, value, best_value, violation,
            iterations, seconds, `calls.value`, `calls.gradient`, …, cached and error.

        Raises
        ------
        InputError
            Without pandas.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame needs pandas: pip install pandas  (rows() gives the same as a list)") from None
        return pandas.DataFrame(self.rows())

    def table(self, form: str = "text") -> str:
        """The members as a table.

        Parameters
        ----------
        form : {"text", "markdown", "html"}
        """
        from infimum.many.tables import member_table, render

        return render(*member_table(self.rows()), form)

    def plot(self, metric: str | None = None, *, x: str | None = None, ax: Any = None) -> Any:
        """Curves of the members by matplotlib, or bands where they are repetitions; parameters as in `Result.plot`.

        Returns
        -------
        matplotlib.axes.Axes
            Where the members are of several problems, which get a picture each, the first.
        """
        # A room above this one, found at first use as the front finds its names.
        plots = importlib.import_module("infimum.reporting.plots")
        return plots.plot_runs(self, metric, x=x, ax=ax)

    def report(self, path: str | Path = "report.html", **options: Any) -> Path:
        """Write one HTML page (or, by `format`, pictures) about all members."""
        import infimum

        return Path(infimum.report([self], out=path, **options))

    def save(self, folder: str | Path) -> Path:
        """Write everything into a new folder of many runs, which `load` reads.

        Raises
        ------
        InputError
            If the folder already holds something, or a result is no plain data.
        """
        from infimum.many.store import Store, member_line

        target = Path(folder)
        if self.folder is not None:
            if target.exists() and any(target.iterdir()):
                raise InputError(f"{target} is not empty; choose another folder")
            shutil.copytree(self.folder, target, dirs_exist_ok=True)
            return target
        store = Store.create(target, self.header())
        for member in self.members:
            if member.result is not None:
                member.result.save(store.member_folder(member.id))
            store.add(member_line(member))
        return target

    def header(self) -> dict[str, Any]:
        """What `many.json` says beside the members."""
        return {
            "kind": self.kind,
            "name": self.name,
            "varied": list(self.varied),
            "seed": self.seed,
            "notes": list(self.notes),
            "order": [member.id for member in self.members],
        }

    @classmethod
    def load(cls, folder: str | Path) -> Runs:
        """Read a folder of many runs: a `Sweep` or a `Comparison`, whatever it holds.

        Raises
        ------
        InputError
            If there are none in it.
        """
        from infimum.many.loading import load_many

        return load_many(Path(folder))

    def without_folder(self, known: Mapping[str, Result] | None = None) -> Runs:
        """The same with every result in memory (of those in `known`, by id, as they are) and no folder behind it."""
        there = known or {}
        members = [replace(one, kept=there.get(one.id) or one.result, folder=None) for one in self.members]
        return replace(self, members=tuple(members), folder=None)

    def __repr__(self) -> str:
        said = ", ".join(f"{n} {status}" for status, n in self.counts().items())
        where = f", in {self.folder}" if self.folder is not None else ""
        return f"{type(self).__name__} '{self.name}': {len(self)} runs ({said}){where}"

    def __str__(self) -> str:
        return f"{self!r}\n{self.table()}"

    def _repr_html_(self) -> str:
        import html

        return f"<p>{html.escape(repr(self))}</p>{self.table('html')}"
