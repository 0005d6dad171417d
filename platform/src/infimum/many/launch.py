"""Runs an agenda: folders, keys, engine, progress, and the objects that come out."""

from __future__ import annotations

import logging
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infimum.errors import InputError
from infimum.many.cache import Cache
from infimum.many.engines import Settings, cores
from infimum.many.execute import Job, interleaved, with_folder
from infimum.many.loading import load_many
from infimum.many.members import INVALID, Runs
from infimum.many.outcomes import outcome
from infimum.many.planned import Agenda, Planned
from infimum.many.planning import Memo
from infimum.many.progress import Bar
from infimum.many.references import settled
from infimum.many.store import HEADER, Store
from infimum.many.task import Task
from infimum.runfile.budget import Terms

log = logging.getLogger("infimum")


@dataclass(frozen=True, eq=False)
class Options:
    """How many runs are run; the same for sweeps and comparisons. See `infimum.sweep`."""

    jobs: int | None = None
    engine: str | None = None
    timeout: float | None = None
    threads: int = 1
    folder: str | Path | None = None
    resume: bool = False
    retry_failed: bool = False
    fresh: bool = False
    cache: bool | str | Path = True
    progress: bool = False

    @property
    def kept(self) -> Cache | None:
        """The cache that is used."""
        if not isinstance(self.cache, bool | str | Path):
            raise InputError(f"cache={self.cache!r}: expected True, False or a folder")
        return None if self.cache is False else Cache(None if self.cache is True else self.cache)

    @property
    def memo(self) -> Memo | None:
        """Where run files that were found in order are remembered."""
        return None if self.kept is None or self.fresh else Memo(self.kept.folder / "agendas")

    def settings(self, agenda: Agenda) -> Settings:
        """Where and how many at a time.

        Raises
        ------
        InputError
            For several at a time where seconds are compared.
        """
        timed = agenda.terms is not None and agenda.terms.budget == "seconds"
        if timed and self.jobs not in (None, 1):
            raise InputError(f"jobs={self.jobs}: runs at equal seconds are run one at a time; leave jobs out")
        if timed and self.engine not in (None, "loky", "threading"):
            raise InputError(f"engine={self.engine}: runs at equal seconds are run on this machine; leave engine out")
        jobs = 1 if timed else self.jobs
        if jobs is None:
            jobs = max(1, min(cores(), len(agenda.members)))
        # Objects that were given with jobs=1 need no pickling; a process guards against crashes otherwise.
        here = self.engine is None and self.timeout is None and (self.jobs == 1 or (jobs == 1 and not timed))
        return Settings(jobs, self.engine, self.timeout, self.threads, here)


def launch(agenda: Agenda, kind: str, options: Options) -> Runs:
    """Run everything and give it back; on Ctrl-C what there is.

    Raises
    ------
    InputError, StorageError
    """
    settings = options.settings(agenda)
    agenda = _with_references(agenda, options)
    cache = options.kept
    known: dict[str, Any] = {}
    keys = {}
    if agenda.seeded:
        keys = {one.id: Cache.key(one.config, one.repetition, known) for one in agenda.members if one.config}
    temporary = tempfile.mkdtemp(prefix="infimum-") if options.folder is None else None
    folder = Path(temporary if temporary is not None else options.folder)  # type: ignore[arg-type]
    try:
        store = _store(folder, agenda, kind, options)
        tasks = [_task(one, agenda, settings, keys.get(one.id)) for one in agenda.members if one.refused is None]
        if agenda.terms is not None:
            tasks = list(interleaved(tasks))
        with Bar(len(agenda.members), agenda.name, shown=options.progress) as bar:
            job = Job(
                with_folder(tasks, store),
                store,
                settings,
                keys=keys,
                cache=cache,
                retry=options.retry_failed,
                fresh=options.fresh,
                tell=bar.tell,
                results=None if temporary is None else {},
            )
            _refuse(agenda, store, bar)
            job.run()
        if job.notes:
            header = _header(agenda, kind)
            store.write_header({**header, "notes": [*header["notes"], *job.notes]})
        runs = load_many(folder)
        return runs if job.results is None else runs.without_folder(job.results)
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _with_references(agenda: Agenda, options: Options) -> Agenda:
    """The agenda with the best values that solvers are to find: they run first, in a folder of their own."""
    if not agenda.references or agenda.terms is None:
        return agenda
    folder = None if options.folder is None else Path(options.folder) / "references"
    alone = replace(agenda, members=agenda.references, references=(), terms=None, varied=())
    runs = launch(alone, Runs.kind, replace(options, folder=folder, progress=False))
    terms, notes = settled(agenda.terms, runs)
    return replace(agenda, terms=terms, references=(), notes=tuple(notes))


def _store(folder: Path, agenda: Agenda, kind: str, options: Options) -> Store:
    """A new folder, or the one to go on in."""
    header = _header(agenda, kind)
    if not (options.resume and (folder / HEADER).exists()):
        return Store.create(folder, header)
    store = Store(folder)
    before = store.header()
    if before["kind"] != kind:
        raise InputError(f"{folder} holds a {before['kind']}; a {kind} cannot go on there")
    store.write_header(header)
    return store


def _header(agenda: Agenda, kind: str) -> dict[str, Any]:
    names = ("name", "problem", "solver", "values", "repetition")
    header: dict[str, Any] = {
        "kind": kind,
        "name": agenda.name,
        "varied": list(agenda.varied),
        "seed": agenda.seed,
        "notes": [*([] if agenda.seeded else [f"no seed was given: {agenda.seed} was drawn"]), *agenda.notes],
        "order": [one.id for one in agenda.members],
        "members": {one.id: {name: one.line[name] for name in names} for one in agenda.members},
    }
    return header | (_terms(agenda.terms) if agenda.terms is not None else {})


def _terms(terms: Terms) -> dict[str, Any]:
    return {
        "budget": terms.budget,
        "amount": terms.amount,
        "targets": list(terms.targets),
        "measure": terms.measure,
        "references": terms.references,
        "origins": terms.origins,
    }


def _task(one: Planned, agenda: Agenda, settings: Settings, key: str | None) -> Task:
    timed = agenda.terms is not None and agenda.terms.budget == "seconds"
    return Task(
        id=one.id,
        config=one.config or None,
        path=agenda.path,
        stated=_sendable(one, settings),
        repetition=one.repetition,
        key=key,
        warm=f"{one.problem}\n{one.solver}" if timed else None,
        line=one.line,
    )


def _sendable(one: Planned, settings: Settings) -> dict[str, Any] | bytes | None:
    """Arguments as they go to where the member is solved.

    Raises
    ------
    InputError
        If they cannot be sent to another process.
    """
    if one.stated is None or settings.here:
        return one.stated
    import cloudpickle

    try:
        sent: bytes = cloudpickle.dumps(one.stated)
    except Exception as error:
        raise InputError(
            f"{one.name} cannot be sent to another process ({type(error).__name__}: {error}); give jobs=1 to run "
            "here, or state it by names and python: references"
        ) from error
    return sent


def _refuse(agenda: Agenda, store: Store, bar: Bar) -> None:
    """Lines of the members that cannot start."""
    done = store.lines()
    for one in agenda.members:
        if one.refused is not None and one.id not in done:
            line = {**one.line, "id": one.id, "key": None, **outcome(INVALID, one.refused)}
            store.add(line)
            bar.tell(line)


def latest_folder(agenda: Agenda, kind: str) -> Path:
    """The newest folder of this name to go on in.

    Raises
    ------
    InputError
        If there is none.
    """
    above = Path(agenda.output) / agenda.name
    for folder in sorted(above.iterdir() if above.is_dir() else (), reverse=True):
        if (folder / HEADER).is_file() and Store(folder).header()["kind"] == kind:
            return folder
    raise InputError(f"there is no {kind} to go on with in {above}; name its folder with --output")
