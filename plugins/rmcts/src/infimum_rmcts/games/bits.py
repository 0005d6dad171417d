"""Bitboards: sets of cells as 64-bit integers, many boards at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Boards = NDArray[np.uint64]


def bit(cell: int) -> np.uint64:
    """The board with one cell."""
    return np.uint64(1 << cell)


def board(cells: Iterable[int]) -> np.uint64:
    """The board with these cells."""
    return np.uint64(sum(1 << one for one in cells))


def cells(boards: Boards, bits: Boards) -> NDArray[np.bool_]:
    """Which of the cells in `bits`, shape (A,), each board holds: shape (m, A)."""
    return np.asarray((boards[:, None] & bits) != 0)


def aligned(boards: Boards, strides: Boards, length: int) -> NDArray[np.bool_]:
    """Which boards hold `length` cells in a row along one of the strides; rows must not run over the edge."""
    # Strides along the first axis: reducing over it is quick, however many boards there are.
    run, have, along = boards[None], 1, strides[:, None]
    while have < length:
        jump = min(have, length - have)
        run = run & (run >> (along * np.uint64(jump)))
        have += jump
    return np.asarray(run.any(axis=0))


def shift(boards: Boards, by: int) -> Boards:
    """Move all cells by `by`, up or down."""
    return boards << np.uint64(by) if by > 0 else boards >> np.uint64(-by)


def drawing(rows: list[list[int]], marks: str, own: Any, other: Any, letters: tuple[str, str]) -> str:
    """A position as text; `rows` holds cell numbers from the top, `marks` a last line."""
    lines = []
    for row in rows:
        signs = [letters[0] if int(own) >> c & 1 else letters[1] if int(other) >> c & 1 else "." for c in row]
        lines.append(" ".join(signs))
    return "\n".join([*lines, marks] if marks else lines)
