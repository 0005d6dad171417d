"""Rows and blocks of the constraints: their order, what each row's last block can reach, and the report of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from infimum.errors import InputError
from infimum.functions.maps import LinearMap, Map, ScaledIdentity

IMAGE_TOLERANCE = 1e-8
"""Relative residual up to which a column lies in the image of another matrix."""
LARGEST_DENSE = 4_000_000
"""Entries up to which one matrix is factored densely for a report."""
LARGEST_WHOLE = 1_000_000
"""Entries up to which all rows are stacked for it: every run makes a report, and its rank takes two decompositions."""


class StructureError(InputError):
    """No order of the blocks gives every row a last block of its own, or the given order does not.

    Attributes
    ----------
    rows : tuple of str
        The rows that stand in each other's way.
    """

    def __init__(self, message: str, rows: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(rows)


@dataclass(frozen=True, slots=True)
class Structure:
    """Everything about the constraints `sum_j A_ij x_j = b_i` that does not depend on the functions.

    Attributes
    ----------
    blocks, rows : tuple of str
        Names, in the order given.
    sizes, lengths : tuple of int
        Entries of each block and of each row.
    entries : tuple of dict of int to Map
        For each row, its nonzero A_ij by the index of the block.
    rhs : tuple of array
        The right-hand sides b_i.
    order : tuple of int
        Blocks in the order of updates.
    pivots : tuple of int
        For each row, its last block in that order: a different one for every row.
    """

    blocks: tuple[str, ...]
    rows: tuple[str, ...]
    sizes: tuple[int, ...]
    lengths: tuple[int, ...]
    entries: tuple[Mapping[int, Map], ...]
    rhs: tuple[np.ndarray, ...]
    order: tuple[int, ...]
    pivots: tuple[int, ...]

    @property
    def starts(self) -> np.ndarray:
        """Where each block begins in the packed vector, with the total at the end."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=int)]).astype(int)

    @property
    def row_starts(self) -> np.ndarray:
        """Where each row begins in the stacked rows, with the total at the end."""
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=int)]).astype(int)

    @property
    def b(self) -> np.ndarray:
        """The stacked right-hand sides."""
        return np.concatenate(self.rhs) if self.rhs else np.zeros(0)

    @property
    def has_operators(self) -> bool:
        """Whether some A_ij is known by its products only."""
        return any(is_operator(map_) for row in self.entries for map_ in row.values())

    def column(self, block: int) -> dict[int, Map]:
        """The nonzero A_ij of a block, by the index of the row."""
        return {i: row[block] for i, row in enumerate(self.entries) if block in row}


def is_operator(map_: Map) -> bool:
    """Whether a map is neither a number nor a matrix."""
    if isinstance(map_, ScaledIdentity):
        return False
    operator = getattr(map_, "operator", None)
    return not isinstance(operator, np.ndarray) and not sparse.issparse(operator)


def matrix_of(map_: Map, size: int) -> Any:
    """The matrix of a map with `size` columns, sparse where it is; an operator is applied to the identity."""
    if isinstance(map_, ScaledIdentity):
        return map_.scale * sparse.eye_array(size, format="csr")
    return map_.operator if isinstance(map_, LinearMap) and not is_operator(map_) else map_.rows(np.eye(size)).T


def dense_of(map_: Map, size: int) -> np.ndarray:
    """The matrix of a map as a dense array."""
    A = matrix_of(map_, size)
    return np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=float)


def peel(blocks: int, rows: Sequence[frozenset[int]]) -> tuple[list[int], dict[int, int], list[int]]:
    """An order of the blocks in which every row ends in a block of its own, found from the last block on.

    A block that occurs in at most one remaining row can come last, and takes that row with it. Taking any such block
    is never wrong: it stays free when others are taken. Among several, the one given last is taken, so an
    order that is good already stays as it is.

    Parameters
    ----------
    blocks : int
        How many there are.
    rows : sequence of frozenset of int
        The blocks of each row.

    Returns
    -------
    order : list of int
        Empty if there is none.
    pivots : dict of int to int
        Row to its last block.
    stuck : list of int
        Rows of which every block occurs in another one of them: empty where an order exists.
    """
    left, free = dict(enumerate(rows)), set(range(blocks))
    order: list[int] = []
    pivots: dict[int, int] = {}
    count = [sum(j in row for row in rows) for j in range(blocks)]
    while free:
        ready = [j for j in free if count[j] <= 1]
        if not ready:
            # Blocks that no remaining row holds would be ready, so only these rows are in the way.
            return [], {}, sorted(left)
        j = max(ready)
        free.remove(j)
        order.insert(0, j)
        for i in [i for i, row in left.items() if j in row]:
            pivots[i] = j
            for one in left.pop(i):
                count[one] -= 1
    return order, pivots, []


def ordered(
    blocks: Sequence[str], rows: Sequence[str], members: Sequence[frozenset[int]], given: Sequence[str] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Order and pivots: the order given, if it is good, else one that is found.

    Raises
    ------
    StructureError
        If two rows end in the same block, with an order that would do, or if there is none.
    """
    order, pivots, stuck = peel(len(blocks), members)
    if given is not None:
        return _as_given(blocks, rows, members, given, order)
    if stuck:
        names = [rows[i] for i in stuck]
        raise StructureError(
            f"no order of the blocks gives every row a last block of its own: in the rows {', '.join(names)} every "
            f"block occurs at least twice. Give one of these rows a block z of its own (z = its sum, by -1 in that row)"
            ", or stack them into one row",
            names,
        )
    return tuple(order), tuple(pivots[i] for i in range(len(rows)))


def _as_given(
    blocks: Sequence[str],
    rows: Sequence[str],
    members: Sequence[frozenset[int]],
    given: Sequence[str],
    found: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    names = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else None
    if names is None or len(names) != len(blocks) or set(map(str, names)) != set(blocks):
        raise InputError(f"order={given!r}: expected every block once: {', '.join(blocks)}")
    order = [list(blocks).index(name) for name in given]
    place = {j: k for k, j in enumerate(order)}
    pivots = [max(row, key=lambda j: place[j]) for row in members]
    taken: dict[int, int] = {}
    for i, j in enumerate(pivots):
        if j in taken:
            better = f"order={[blocks[k] for k in found]} does" if found else "no other order does better"
            raise StructureError(
                f"rows '{rows[taken[j]]}' and '{rows[i]}' both end in block '{blocks[j]}' in the order given; every "
                f"row needs a last block of its own: {better}",
                (rows[taken[j]], rows[i]),
            )
        taken[j] = i
    return tuple(order), tuple(pivots)


@dataclass(frozen=True, slots=True)
class RowImage:
    """What the last block of a row can reach.

    Attributes
    ----------
    row, pivot : str
    images : dict of str to float or None
        For each other block, `||(I - Π) A_ij||_F / ||A_ij||_F` with Π the projection on the image of the pivot's
        matrix; None where that is too large to be computed.
    rhs : float or None
        The same for b_i.
    smooth : bool
        Whether the function of the pivot has a Lipschitz gradient.
    """

    row: str
    pivot: str
    images: Mapping[str, float | None]
    rhs: float | None
    smooth: bool

    @property
    def worst(self) -> float:
        """The largest residual, b_i included."""
        return max([0.0, *(one for one in (*self.images.values(), self.rhs) if one is not None)])

    @property
    def reaches(self) -> bool:
        """Whether everything in the row is known to lie in the image of its pivot."""
        return self.known and self.worst <= IMAGE_TOLERANCE

    @property
    def known(self) -> bool:
        """Whether every residual was computed."""
        return None not in (*self.images.values(), self.rhs)


def row_image(structure: Structure, i: int, smooth: bool) -> RowImage:
    """Which blocks of row i, and whether b_i, lie in the image of the row's pivot."""
    pivot, entries = structure.pivots[i], structure.entries[i]
    others = {structure.blocks[j]: j for j in entries if j != pivot}
    name = structure.rows[i]
    if _onto(entries[pivot]):
        return RowImage(name, structure.blocks[pivot], dict.fromkeys(others, 0.0), 0.0, smooth)
    if structure.lengths[i] * structure.sizes[pivot] > LARGEST_DENSE:
        return RowImage(name, structure.blocks[pivot], dict.fromkeys(others), None, smooth)
    basis = image_basis(dense_of(entries[pivot], structure.sizes[pivot]))
    residuals: dict[str, float | None] = {
        key: outside(basis, dense_of(entries[j], structure.sizes[j])) for key, j in others.items()
    }
    return RowImage(name, structure.blocks[pivot], residuals, outside(basis, structure.rhs[i][:, None]), smooth)


def _onto(map_: Map) -> bool:
    return isinstance(map_, ScaledIdentity) or bool(map_.tight)


def image_basis(A: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the image of A."""
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    return U[:, s > max(A.shape) * np.finfo(float).eps * s[0]] if s.size and s[0] > 0 else U[:, :0]


def outside(basis: np.ndarray, A: np.ndarray) -> float:
    """The share of A, in the Frobenius norm, that lies outside of the span of `basis`."""
    size = float(np.linalg.norm(A))
    return 0.0 if size == 0.0 else float(np.linalg.norm(A - basis @ (basis.T @ A))) / size


def whole_matrix(structure: Structure) -> dict[str, float | int] | None:
    """What theory of the stacked matrix A asks for: its rank, and whether the last block column reaches the others.

    Returns
    -------
    dict or None
        `rank`, `rows`, `columns`, and `distance`: the share of the other block columns outside of the image of the
        last one. None where A is too large.
    """
    starts, row_starts = structure.starts, structure.row_starts
    rows, columns = int(row_starts[-1]), int(starts[-1])
    if not rows or rows * columns > LARGEST_WHOLE:
        return None
    A = np.zeros((rows, columns))
    for i, row in enumerate(structure.entries):
        for j, map_ in row.items():
            A[row_starts[i] : row_starts[i + 1], starts[j] : starts[j + 1]] = dense_of(map_, structure.sizes[j])
    last = structure.order[-1]
    tail = np.zeros(columns, dtype=bool)
    tail[starts[last] : starts[last + 1]] = True
    rank = int(np.linalg.matrix_rank(A))
    return {
        "rank": rank,
        "rows": rows,
        "columns": columns,
        "distance": outside(image_basis(A[:, tail]), A[:, ~tail]),
    }
