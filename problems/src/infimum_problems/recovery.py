"""Recovery of structure: a sparse vector from few equations, a low-rank matrix from corrupted entries."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le
from scipy import sparse

from infimum.constraints import Affine
from infimum.errors import InputError
from infimum.functions import L1, NuclearNorm
from infimum.problem import Composite
from infimum_problems.pictures import Picture, corrupted, level, load_picture

CORRUPTION = 0.05


def basis_pursuit(
    rows: Annotated[int, Ge(1)] = 80,
    columns: Annotated[int, Ge(1)] = 200,
    nonzeros: Annotated[int, Ge(0)] = 8,
    seed: Annotated[int, Ge(0)] = 0,
) -> Composite:
    """The sparsest-looking solution of few equations: minimize `||x||_1` over `A x = b`.

    A has independent normal entries (variance 1 / rows), and b = A x* for a drawn x* with few entries, of size 1 to 2
    and random signs. Nothing is measured; the numbers come from the seed. Where a multiplier y with
    `A^T y = sign(x*)` on the support of x* and `|A^T y| < 1` elsewhere proves x* to be the only solution, the problem
    knows its optimal value `||x*||_1`; with the defaults it does.

    Parameters
    ----------
    rows, columns : int, default 80 and 200
        Shape of A; rows <= columns.
    nonzeros : int, default 8
        Entries of x* that are not 0, at most `rows`.
    seed : int, default 0
        Of A and x*.

    Returns
    -------
    Composite
        Term `norm` (prox) and constraint `equations` (project); x has shape (columns,).

    Raises
    ------
    InputError
        For sizes that do not fit.
    """
    if not 0 <= nonzeros <= rows <= columns:
        raise InputError(
            f"problems.basis_pursuit: nonzeros={nonzeros}, rows={rows}, columns={columns}; expected nonzeros <= rows "
            "<= columns"
        )
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) / rows**0.5
    support = rng.choice(columns, size=nonzeros, replace=False)
    truth = np.zeros(columns)
    truth[support] = rng.choice([-1.0, 1.0], size=nonzeros) * rng.uniform(1.0, 2.0, size=nonzeros)
    return Composite(
        {"norm": L1()},
        constraints={"equations": Affine(A, A @ truth)},
        start=np.zeros(columns),
        reference=float(np.abs(truth).sum()) if _is_only_solution(A, truth) else None,
        name="basis pursuit",
    )


def _is_only_solution(A: np.ndarray, x: np.ndarray) -> bool:
    """Whether the least multiplier that fits the signs of x certifies it."""
    on = x != 0
    chosen = A[:, on]
    if np.linalg.matrix_rank(chosen) < chosen.shape[1]:
        return False
    y = np.linalg.lstsq(chosen.T, np.sign(x[on]), rcond=None)[0]
    return bool(np.max(np.abs(A[:, ~on].T @ y), initial=0.0) < 1.0 - 1e-9)


def robust_pca(
    data: Picture = "china",
    penalty: Annotated[float, Gt(0)] | None = None,
    size: Annotated[int, Ge(2)] | None = None,
    corruption: Annotated[float, Ge(0), Le(1)] | None = None,
    seed: Annotated[int, Ge(0)] = 0,
) -> Composite:
    """A matrix as low rank plus sparse: minimize `||L||_* + penalty ||S||_1` over `L + S = M`.

    M is a sample picture of scikit-learn (gray values from 0 to 1) in which some pixels are replaced by random gray, or
    your own matrix (Candès, Li, Ma, Wright, "Robust principal component analysis?", 2011).

    Parameters
    ----------
    data : {"china", "flower", "digits"} or mapping, default "china"
        A photograph, a sheet of handwritten digits, or your own matrix: `{file: M.npy}` (also CSV, NPZ, PNG).
    penalty : float, optional
        Weight of the l1 norm, > 0. None means 1 / sqrt(max(rows, columns)), for which recovery is proved.
    size : int, optional
        At most so many rows and columns, around the center. None means 32 for a bundled picture, all of your own.
    corruption : float, optional
        Share of the entries that are replaced. None means 0.05 for a bundled picture and none for your own.
    seed : int, default 0
        Of the corruption.

    Returns
    -------
    Composite
        Blocks `low_rank` and `sparse`, of the shape of M, with the terms `nuclear` and `l1` on them (both with a prox)
        and the constraint `sum` (project). The start is L = M, S = 0.

    Raises
    ------
    InputError
        For a matrix that cannot be used, a penalty that is not positive, or a share outside of 0 to 1.
    """
    what = "problems.robust_pca"
    clean = load_picture(data, size, what)
    M = corrupted(clean, level(corruption, data, CORRUPTION), seed)
    weight = max(M.shape) ** -0.5 if penalty is None else penalty
    if not 0 < weight < float("inf"):
        raise InputError(f"{what}: penalty={penalty!r}; expected a finite number > 0")
    one = sparse.eye_array(M.size)
    return Composite(
        {"nuclear": NuclearNorm(), "l1": L1(weight)},
        constraints={"sum": Affine(sparse.hstack([one, one]), M.reshape(-1))},
        blocks={"low_rank": M.shape, "sparse": M.shape},
        on={"nuclear": "low_rank", "l1": "sparse"},
        start={"low_rank": M, "sparse": np.zeros_like(M)},
        name="robust PCA",
    )
