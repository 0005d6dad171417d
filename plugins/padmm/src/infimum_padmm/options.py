"""Options as users give them, made out for a problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum_padmm.data import mapping, number, vector
from infimum_padmm.engine import Linearize
from infimum_padmm.problem import BlockProblem

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0
Penalty = float | Mapping[str, float] | Literal["auto"]
Weight = float | Mapping[str, float]


def check_penalty(beta: Any) -> None:
    """Raise `InputError` unless every penalty is a finite number > 0."""
    if isinstance(beta, str):
        if beta != "auto":
            raise InputError(f"beta={beta!r}: expected a number > 0, {{row: number}} or 'auto'")
        return
    for name, value in _named(beta, "beta", "row"):
        number(value, name, "a finite number > 0 (1 is a good start)")


def check_weight(weight: Any) -> None:
    """Raise `InputError` unless every proximal weight is a finite number >= 0."""
    for name, value in _named(weight, "prox_weight", "block"):
        number(value, name, "a finite number >= 0", strict=False)


def check_tau(tau: float) -> None:
    """Raise `InputError` unless 0 < tau < (1 + sqrt 5)/2."""
    expected = f"0 < tau < {GOLDEN:.4f} (1 is the usual one)"
    if number(tau, "tau", expected) >= GOLDEN:
        raise InputError(f"tau is {tau}; expected {expected}")


def check_linearize(linearize: Any) -> None:
    """Raise `InputError` unless it is one of the words."""
    if linearize not in get_args(Linearize):
        raise InputError(f"linearize={linearize!r}: expected one of {', '.join(map(repr, get_args(Linearize)))}")


def penalties(problem: BlockProblem, beta: Penalty) -> np.ndarray:
    """Penalties by row; rows that a mapping leaves out get 1."""
    rows = problem.structure.rows
    if isinstance(beta, str):
        return np.array([problem.penalty(i) for i in range(len(rows))], dtype=float)
    if isinstance(beta, Mapping):
        return _by_name(beta, rows, 1.0, "beta", "row")
    return np.full(len(rows), float(beta))


def weights(problem: BlockProblem, weight: Weight) -> np.ndarray:
    """Proximal weights by block; blocks that a mapping leaves out get 0."""
    blocks = problem.structure.blocks
    if isinstance(weight, Mapping):
        return _by_name(weight, blocks, 0.0, "prox_weight", "block")
    return np.full(len(blocks), float(weight))


def _named(given: Any, option: str, what: str) -> list[tuple[str, Any]]:
    """What messages call each number of an option, and the number."""
    if not isinstance(given, Mapping):
        return [(option, given)]
    return [(f"{option} of {what} '{key}'", value) for key, value in mapping(given, option, f"{what}: number").items()]


def _by_name(given: Mapping[str, float], names: Sequence[str], default: float, option: str, what: str) -> np.ndarray:
    for key in given:
        if key not in names:
            raise InputError(f"{option}={{'{key}': …}}: there is no such {what}; {did_you_mean(key, list(names))}")
    return np.array([float(given.get(name, default)) for name in names])


def multipliers(problem: BlockProblem, given: Mapping[str, Any] | None) -> np.ndarray:
    """The stacked multipliers to begin with; zero for rows that are left out."""
    structure = problem.structure
    lam = np.zeros(int(structure.row_starts[-1]))
    for key, value in mapping(given, "multipliers", "row: array").items():
        if key not in structure.rows:
            raise InputError(f"multipliers={{'{key}': …}}: no such row; {did_you_mean(key, list(structure.rows))}")
        i = structure.rows.index(key)
        mine = slice(structure.row_starts[i], structure.row_starts[i + 1])
        lam[mine] = vector(value, f"the multiplier of row '{key}'", structure.lengths[i])
    return lam
