"""Features and a target: data sets of scikit-learn, or the user's own CSV, NPY or NPZ file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from infimum.errors import InputError, did_you_mean

Own = dict[str, str | int]
"""The user's own data: `file`, and which of its columns or arrays."""

Data = Literal["breast_cancer", "diabetes"] | Own
"""A data set that comes with scikit-learn, or the user's own: `{"file": path, "target": column}`.

The file is CSV, NPY or NPZ. The first line of a CSV file is a header when none of its cells is a number. `target` is a
column by name or by number (from 0; negative from the end), or the key of an array in an NPZ file whose only other
array holds the features. All other columns are features.
"""


def load(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Features, shape (n, d), and target, shape (n,), of numbers or (from a CSV file) of text labels.

    Raises
    ------
    InputError
        For an unknown name, a missing file or column, an empty table, or a feature that is NaN, inf or no number.
    """
    if isinstance(data, str):
        return _bundled(data)
    path = locate(data, ("file", "target"), ("file", "target"), "{file: X.csv, target: column name or number}")
    file, target = str(data["file"]), data["target"]
    readers = {".csv": _read_csv, ".npy": _read_npy, ".npz": _read_npz}
    features, chosen = readers[_format(path, file)](path, file, target)
    if 0 in features.shape:
        n, d = features.shape
        raise InputError(f"data file '{file}' is empty: {n} rows and {d} features beside the target")
    return features, chosen


def load_matrix(data: Own, more: tuple[str, ...] = ()) -> np.ndarray:
    """The whole table of a file, shape (n, d): `{"file": path}`, with `"key"` for an NPZ file of several arrays.

    Messages name the formats in `more` too.
    """
    path = locate(data, ("file", "key"), ("file",), "{file: X.csv}")
    file, key = str(data["file"]), data.get("key")
    if _format(path, file, more) == ".csv":
        names, rows = _rows(path, file)
        labels = names or [str(i) for i in range(len(rows[0][1]))] if rows else []
        table = np.array([[_cell(cell, file, line, labels[j]) for j, cell in enumerate(row)] for line, row in rows])
    else:
        stored = _arrays(path, file)
        table = _table(stored if isinstance(stored, np.ndarray) else _member(stored, key, "key", file), file)
    if not table.size:
        raise InputError(f"data file '{file}' is empty")
    return table


def load_column(data: Own) -> np.ndarray:
    """One column of numbers of a file, shape (n,): `{"file": path, "target": column}`.

    `target` may be left out where the file holds a single column or array.
    """
    path = locate(data, ("file", "target"), ("file",), "{file: X.csv, target: column name or number}")
    file, target = str(data["file"]), data.get("target")
    if _format(path, file) == ".csv":
        _, column = _read_csv(path, file, 0 if target is None else target, alone=target is None)
        if column.dtype.kind != "f":
            raise InputError(f"data file '{file}': the column holds text, such as {str(column[0])!r}; expected numbers")
        return column
    stored = _arrays(path, file)
    if isinstance(stored, dict):
        whole = isinstance(target, int) and len(stored) == 1
        stored, target = _member(stored, None if whole else target, "target", file), target if whole else None
    table = _table(stored[:, None] if stored.ndim == 1 else stored, file)
    if target is None and table.shape[1] != 1:
        raise InputError(f"data file '{file}' holds {table.shape[1]} columns; choose one with target:")
    return table[:, _column(target or 0, [], table.shape[1], file)]


def locate(data: Own, keys: tuple[str, ...], required: tuple[str, ...], expected: str) -> Path:
    """The path of the user's file.

    Raises
    ------
    InputError
        Unless `data` has the `required` ones of the `keys` and no others, and the file is there.
    """
    file = data.get("file")
    if not set(required) <= set(data) <= set(keys) or None in data.values() or not isinstance(file, str):
        raise InputError(f"data={data!r}; expected {expected}")
    path = Path(file).expanduser()
    if not path.is_file():
        where = path.parent.resolve()
        there = sorted(one.name for one in where.iterdir() if one.is_file()) if where.is_dir() else []
        hint = did_you_mean(path.name, there[:20]) if there else "that folder has no files"
        raise InputError(f"data file '{file}' is not in {where}; {hint}")
    return path


def _format(path: Path, name: str, more: tuple[str, ...] = ()) -> str:
    known = (".csv", ".npy", ".npz")
    if path.suffix.lower() not in known:
        raise InputError(f"data file '{name}' ends in '{path.suffix}'; expected one of {', '.join((*known, *more))}")
    return path.suffix.lower()


def check_penalty(penalty: float, what: str) -> None:
    """Raise `InputError` unless `penalty` is a finite number >= 0."""
    if not 0 <= penalty < float("inf"):
        raise InputError(f"{what}: penalty={penalty!r}; expected a finite number >= 0")


def numbers(target: np.ndarray, what: str) -> np.ndarray:
    """The target as floats, for regression."""
    if target.dtype.kind == "f":
        return target
    raise InputError(f"{what}: the target holds text, such as {str(target[0])!r}; regression needs numbers")


def signs(target: np.ndarray, what: str) -> np.ndarray:
    """The target as -1 and +1, for classification: the smaller label is -1."""
    labels = np.unique(target)
    if len(labels) != 2:
        shown = ", ".join(str(one) for one in labels[:5]) + (", …" if len(labels) > 5 else "")
        raise InputError(f"{what}: the target has {len(labels)} different values ({shown}); expected two classes")
    return np.where(target == labels[1], 1.0, -1.0)


def standardized(features: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1; a constant column becomes 0."""
    spread = features.std(axis=0)
    # Rounding leaves a constant column with a spread of the order of the precision.
    constant = spread <= 1e-12 * np.abs(features).max(axis=0, initial=0.0)
    return np.where(constant, 0.0, (features - features.mean(axis=0)) / np.where(constant, 1.0, spread))


def _bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    known = get_args(get_args(Data)[0])
    if name not in known:
        own = "your own data are {file: X.csv, target: column}"
        raise InputError(f"data '{name}' is not known ({did_you_mean(name, known)}); {own}")
    from sklearn import datasets

    features, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(features, dtype=float), np.asarray(target, dtype=float)


def _rows(path: Path, name: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Column names (none without a header) and the other rows, each with its line and of the same length."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"data file '{name}' cannot be read: {error}") from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"data file '{name}' is empty")
    width = len(rows[0][1])
    names = [cell.strip() for cell in rows[0][1]]
    if any(_number(cell) is not None for cell in names):
        names = []
    else:
        rows = rows[1:]
    for line, row in rows:
        if len(row) != width:
            raise InputError(f"data file '{name}', line {line}: {len(row)} cells; expected {width} as in line 1")
    return names, rows


def _read_csv(path: Path, name: str, target: str | int, alone: bool = False) -> tuple[np.ndarray, np.ndarray]:
    names, rows = _rows(path, name)
    width = len(names) or len(rows[0][1])
    if alone and width != 1:
        raise InputError(f"data file '{name}' holds {width} columns; choose one with target:")
    column = _column(target, names, width, name)
    labels = names or [str(i) for i in range(width)]
    features = np.empty((len(rows), width - 1))
    for i, (line, row) in enumerate(rows):
        features[i] = [_cell(row[j], name, line, labels[j]) for j in range(width) if j != column]
    chosen = [row[column].strip() for _, row in rows]
    if all(cell and _number(cell) is None for cell in chosen):
        return features, np.array(chosen)
    cells = [_cell(cell, name, line, labels[column]) for cell, (line, _) in zip(chosen, rows, strict=True)]
    return features, np.array(cells, dtype=float)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _cell(cell: str, name: str, line: int, column: str) -> float:
    value = _number(cell)
    if value is None or not np.isfinite(value):
        found = "is empty" if not cell.strip() else f"holds '{cell.strip()}'"
        raise InputError(
            f"data file '{name}', line {line}, column '{column}' {found}; expected a finite number "
            "(fill or drop missing values, encode text as numbers)"
        )
    return value


def _column(target: str | int, names: list[str], width: int, name: str) -> int:
    """Number of the column that `target` means."""
    if isinstance(target, str) and target in names:
        return names.index(target)
    if isinstance(target, str):
        hint = did_you_mean(target, names) if names else "its first line is no header, so give a number from 0"
        raise InputError(f"data file '{name}' has no column '{target}'; {hint}")
    if not -width <= target < width:
        raise InputError(f"data file '{name}' has {width} columns; target {target} is none of them")
    return target % width


def _read_npy(path: Path, name: str, target: str | int) -> tuple[np.ndarray, np.ndarray]:
    return _split(_arrays(path, name), name, target)


def _read_npz(path: Path, name: str, target: str | int) -> tuple[np.ndarray, np.ndarray]:
    stored = _arrays(path, name)
    others = [key for key in stored if key != target]
    if isinstance(target, int) and len(stored) == 1:
        return _split(stored[others[0]], name, target)
    if target not in stored:
        raise InputError(f"data file '{name}' has no array '{target}'; {did_you_mean(str(target), stored)}")
    if len(others) != 1:
        raise InputError(f"data file '{name}' must hold one array of features beside '{target}', it holds: {others}")
    features, chosen = _table(stored[others[0]], name), np.asarray(stored[target])
    if chosen.shape != (features.shape[0],):
        raise InputError(f"data file '{name}': '{others[0]}' is {features.shape}, '{target}' is {chosen.shape}")
    if chosen.dtype.kind not in "US":
        chosen = _table(chosen[:, None], name)[:, 0]
    return features, chosen


def _arrays(path: Path, name: str) -> Any:
    try:
        stored = np.load(path, allow_pickle=False)
        return stored if isinstance(stored, np.ndarray) else {key: stored[key] for key in stored.files}
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"data file '{name}' cannot be read: {error}") from None


def _member(stored: dict[str, np.ndarray], key: Any, word: str, name: str) -> np.ndarray:
    """An array of an NPZ file: the one called `key` (the option `word`), or the only one."""
    if key is None and len(stored) == 1:
        return next(iter(stored.values()))
    if key is None:
        raise InputError(f"data file '{name}' holds {', '.join(stored) or 'nothing'}; choose one with {word}:")
    if key not in stored:
        raise InputError(f"data file '{name}' has no array '{key}'; {did_you_mean(str(key), stored)}")
    return stored[key]


def _split(table: np.ndarray, name: str, target: str | int) -> tuple[np.ndarray, np.ndarray]:
    table = _table(table, name)
    column = _column(target, [], table.shape[1], name)
    return np.delete(table, column, axis=1), table[:, column]


def _table(table: np.ndarray, name: str) -> np.ndarray:
    """A two-dimensional array of finite floats."""
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise InputError(f"data file '{name}' holds {table.shape} of {table.dtype}; expected a table of real numbers")
    table = table.astype(float)
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        raise InputError(f"data file '{name}', row {row}, column {column} holds {table[row, column]}; counted from 0")
    return table
