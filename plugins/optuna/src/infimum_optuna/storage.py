"""Storages by URL or path: any database that SQLAlchemy reaches, journal files, or an object of Optuna's."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infimum.errors import InputError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_URL = re.compile(r"^(sqlite|postgresql|mysql|mariadb|oracle|mssql|cockroachdb)(\+\w+)?://")
_DRIVERS = {"postgresql": ("psycopg", "psycopg2", "pg8000"), "mysql": ("MySQLdb", "pymysql")}
"""Modules behind a URL that names no driver, by preference: any of them serves."""
_SUFFIXES = (".log", ".journal")
JOURNAL = "journal:"


def is_storage(source: Any) -> bool:
    """Whether a text is the URL of a database, `journal:PATH`, or the path of a journal file. Imports nothing."""
    if not isinstance(source, str):
        return False
    source = source.partition("#")[0]
    return bool(_URL.match(source)) or source.startswith(JOURNAL) or _is_journal(source)


def _is_journal(path: str) -> bool:
    """Whether a file begins as Optuna's journals do."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            first = json.loads(file.readline(100_000))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "op_code" in first


def open_storage(storage: Any = None, *, create: bool = True) -> BaseStorage:
    """A storage of Optuna's.

    Parameters
    ----------
    storage : str, path or optuna.storages.BaseStorage, optional
        `sqlite:///file.db`, `postgresql://user:password@host/db`, `mysql+pymysql://…`; `journal:PATH`, or a path that
        ends with `.log` or `.journal`, for a journal file; None for memory.
    create : bool, default True
        False refuses a file that does not exist and makes no tables.

    Raises
    ------
    InputError
        If it is none of these, its driver is missing, or it cannot be reached.
    """
    from optuna.storages import BaseStorage, InMemoryStorage

    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if isinstance(storage, os.PathLike):
        storage = f"{JOURNAL}{os.fspath(storage)}"
    if not isinstance(storage, str):
        raise InputError(f"storage={storage!r}: {_FORMS}")
    if _URL.match(storage):
        return _database(storage, create)
    if storage.startswith(JOURNAL) or storage.endswith(_SUFFIXES) or _is_journal(storage):
        return _journal(Path(storage.removeprefix(JOURNAL)).expanduser(), create)
    raise InputError(f"storage={storage!r}: {_FORMS}")


_FORMS = (
    "expected a URL such as sqlite:///study.db or postgresql://user@host/db, journal:PATH, a path that ends with "
    ".log or .journal, or a storage object of Optuna"
)


def _journal(path: Path, create: bool) -> BaseStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if not path.exists():
        if not create:
            raise InputError(f"storage: there is no file {path}")
        if not path.absolute().parent.is_dir():
            raise InputError(f"storage: there is no folder {path.absolute().parent} for {path.name}")
    elif path.stat().st_size and not _is_journal(str(path)):
        raise InputError(f"storage: {path} is no journal of Optuna; choose another file")
    with quiet():
        return JournalStorage(JournalFileBackend(str(path)))


def _database(url: str, create: bool) -> BaseStorage:
    from optuna.storages import RDBStorage

    shown = hidden(url)
    kind = url.partition(":")[0].partition("+")[0]
    file = url.partition(":///")[2].partition("?")[0] if kind == "sqlite" else ""
    if file and not create and not os.path.exists(file):
        raise InputError(f"storage {shown}: there is no file {file}")
    try:
        with quiet():
            return RDBStorage(_with_driver(url), skip_table_creation=not create)
    except ImportError as error:
        hint = f"pip install 'infimum-optuna[{kind}]'" if kind in _DRIVERS else f"install one of SQLAlchemy for {kind}"
        raise InputError(f"storage {shown}: no driver is installed ({error.__cause__ or error}); {hint}") from None
    except Exception as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"storage {shown} cannot be opened: {said.replace(url, shown)}") from error


def _with_driver(url: str) -> str:
    """The URL with a driver that is installed, where it names none."""
    kind, _, rest = url.partition("://")
    installed = [one for one in _DRIVERS.get(kind, ()) if find_spec(one) is not None]
    return f"{kind}+{installed[0].lower()}://{rest}" if installed else url


def hidden(url: str) -> str:
    """A URL without its password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna neither logs that it made something nor warns that what was asked for by name is experimental."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)
