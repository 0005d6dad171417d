"""The sweep over all blocks: subproblems chosen once, factored once for each set of penalties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg as sl
from scipy import sparse

from infimum.errors import InputError
from infimum_padmm.bodies import flat
from infimum_padmm.metric import SAFETY, Gram, gram
from infimum_padmm.problem import BlockProblem
from infimum_padmm.quadratics import Form, add, as_dense
from infimum_padmm.schedule import schedule
from infimum_padmm.stages import General, One, Place, Proxes, Run, Smooth, definite

Kind = Literal["quadratic", "prox", "smooth", "general"]
Linearize = Literal["auto", "never", "always"]
KINDS: dict[Kind, tuple[str, ...]] = {
    "quadratic": ("quadratic",),
    "prox": ("prox",),
    "smooth": ("gradient", "curvatures"),
    "general": ("value_and_gradient",),
}
"""Ways to solve a subproblem, in the order of preference, with the capabilities that each needs."""
KEPT = 6
"""Sets of penalties whose factorizations are kept."""
LOOSE = 1e-6
"""Proximal weight of a block that no row holds, where its minimizer is not solved for at once."""
FUSED = 400
"""Entries of consecutive quadratic blocks up to which their updates become one dense product."""
DENSE = 1500
"""Entries of a quadratic block up to which its matrix is factored densely even where it is sparse."""


def linearizes(kind: Kind, q: Gram, linearize: Linearize) -> bool:
    """Whether a block's Q is replaced by a multiple of the identity: where its subproblem needs that, or always.

    L-BFGS takes Q as it is.
    """
    fits = {"quadratic": q.scalar is not None or q.matrix is not None, "prox": q.scalar is not None}
    fits |= {"smooth": q.diagonal is not None, "general": True}
    return not fits[kind] or (linearize == "always" and kind != "general")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the factorizations depend on beside the penalties.

    Attributes
    ----------
    weights : array, shape (n,)
        Proximal weight of each block.
    linearize : {"auto", "never", "always"}
    """

    weights: np.ndarray
    linearize: Linearize = "auto"


class Engine:
    """Sweeps over the blocks of a problem.

    Parameters
    ----------
    problem : BlockProblem
    parts : mapping of str to (str, object)
        For each block how its subproblem is solved, and what has the capabilities for it.
    settings : Settings
    """

    def __init__(self, problem: BlockProblem, parts: Mapping[str, tuple[Kind, Any]], settings: Settings) -> None:
        self.problem, self.structure, self.settings = problem, problem.structure, settings
        self.stack = problem.stack
        self.b = problem.structure.b
        self._starts, self._row_starts = self.structure.starts, self.structure.row_starts
        self.kinds = [parts[name][0] for name in self.structure.blocks]
        self.calls = [parts[name][1] for name in self.structure.blocks]
        self.forms: dict[int, Form] = {
            j: part.quadratic() for j, (kind, part) in enumerate(zip(self.kinds, self.calls, strict=True))
            if kind == "quadratic"
        }  # fmt: skip
        self.linear = {j: form.c for j, form in self.forms.items()}
        self.lengths = np.array(self.structure.lengths, dtype=int)
        self.row_scales = 1.0 + self.norms(self.b)
        """`1 + ||b_i||` by row."""
        self._compiled: dict[bytes, list[Any]] = {}

    def set_rhs(self, i: int, b: np.ndarray) -> None:
        """Another right-hand side of row i, for this engine alone."""
        at = self.structure.row_starts
        self.b = self.b.copy()
        self.b[at[i] : at[i + 1]] = b
        self.row_scales = 1.0 + self.norms(self.b)

    def spread(self, beta: np.ndarray) -> np.ndarray:
        """Penalties by row as penalties by entry of the stacked rows."""
        return np.repeat(beta, self.lengths)

    def stages(self, beta: np.ndarray) -> list[Any]:
        """The updates of a sweep at these penalties, compiled once."""
        key = beta.tobytes()
        if key not in self._compiled:
            if len(self._compiled) >= KEPT:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[key] = self._compile(beta)
        return self._compiled[key]

    def sweep(
        self, beta: np.ndarray, tau: float, x: np.ndarray, lam: np.ndarray, r: np.ndarray, xi: np.ndarray, tol: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """One iteration: all blocks, then all multipliers; new `(x, lam, r, xi)`.

        `xi` holds a (sub)gradient of each block's function at its x, for quadratic blocks after `dual` only.
        """
        x, xi = x.copy(), xi.copy()
        weights = self.spread(beta)
        w = lam + weights * r
        for stage in self.stages(beta):
            stage(x, w, xi, tol)
        r = self.stack.forward(x) - self.b
        return x, lam + (tau * weights) * r, r, xi

    def dual(self, beta: np.ndarray, x: np.ndarray, lam: np.ndarray, xi: np.ndarray) -> np.ndarray:
        """`xi + A^T lam`, which is zero at a KKT point; the quadratic blocks' xi are filled in."""
        for stage in self.stages(beta):
            if hasattr(stage, "certify"):
                stage.certify(x, xi)
        out: np.ndarray = xi + self.stack.adjoint(lam)
        return out

    def norms(self, r: np.ndarray) -> np.ndarray:
        """Norms by row."""
        return _norms(r, self._row_starts)

    def by_row(self, v: np.ndarray) -> dict[str, np.ndarray]:
        """Copies of the parts of a stacked vector, by row."""
        at = self._row_starts
        return {name: v[at[i] : at[i + 1]].copy() for i, name in enumerate(self.structure.rows)}

    def dual_norms(self, s: np.ndarray) -> np.ndarray:
        """Norms by block."""
        return _norms(s, self._starts)

    def relinear(self, block: int, c: np.ndarray) -> None:
        """Another linear part of a quadratic block, in everything that is compiled."""
        self.linear[block] = c
        for stages in self._compiled.values():
            for stage in stages:
                if isinstance(stage, Run | One) and block in stage.place.blocks:
                    stage.relinear([self.linear[j] for j in stage.place.blocks])

    def _compile(self, beta: np.ndarray) -> list[Any]:
        quadratic = [kind == "quadratic" for kind in self.kinds]
        groups = schedule(self.structure, quadratic)
        grams = [gram(self.structure, j, beta) for j in range(len(self.kinds))]
        stages: list[Any] = []
        for group in groups:
            if quadratic[group[0]]:
                stages += self._quadratics(group, beta, grams)
            else:
                proxes = [j for j in group if self.kinds[j] == "prox"]
                if proxes:
                    stages.append(self._proxes(proxes, beta, grams))
                stages += [self._smooth(j, beta, grams[j]) for j in group if self.kinds[j] != "prox"]
        return stages

    def _weight(self, j: int) -> float:
        """The proximal weight of a block; one that no row holds is minimized at once, or by long proximal steps."""
        weight = float(self.settings.weights[j])
        if weight or self.structure.column(j):
            return weight
        name, kind = self.structure.blocks[j], self.kinds[j]
        if kind == "quadratic":
            return 0.0 if self.problem.modulus(name) > 0 else LOOSE
        own = set(KINDS[kind]) <= self.problem.body(name).capabilities
        return LOOSE if own else 1.0  # What samples around a point must not be asked to look far away.

    def _quadratics(self, group: Sequence[int], beta: np.ndarray, grams: Sequence[Gram]) -> list[Any]:
        small = [j for j in group if not self._linearized(j, grams[j])]
        if len(small) == len(group) and sum(self.structure.sizes[j] for j in group) <= FUSED:
            return [self._run(group, beta)]
        return [
            self._run([j], beta) if j in small and self.structure.sizes[j] <= FUSED else self._one(j, beta, grams[j])
            for j in group
        ]

    def _linearized(self, j: int, q: Gram) -> bool:
        return linearizes(self.kinds[j], q, self.settings.linearize)

    def _run(self, group: Sequence[int], beta: np.ndarray) -> Run:
        place = Place(self.structure, group, beta)
        K = place.stack.matrix
        if K is None:
            K = np.stack([place.stack.forward(one) for one in np.eye(place.stack.shape[1])], axis=1)
        dense = np.asarray(K.toarray() if sparse.issparse(K) else K)
        place.stack.matrix = dense
        coupling = dense.T @ (place.beta[:, None] * dense)
        H = sl.block_diag(*(self.forms[j].dense() for j in group))
        sizes = [self.structure.sizes[j] for j in group]
        ends = np.cumsum(sizes)
        T = H + np.diag(np.repeat([self._weight(j) for j in group], sizes))
        base = T.copy()
        for n, end, j in zip(sizes, ends, group, strict=True):
            mine = slice(end - n, end)
            T[mine, :end] += coupling[mine, :end]
            definite(self.structure.blocks[j], T[mine, mine], base[mine, mine], coupling[mine, mine])
        return Run(place, H, T, [self.linear[j] for j in group])

    def _one(self, j: int, beta: np.ndarray, q: Gram) -> One:
        place, form, size = Place(self.structure, [j], beta), self.forms[j], self.structure.sizes[j]
        linearized = self._linearized(j, q)
        if linearized and self.settings.linearize == "never":
            raise self._too_large(j)
        Q = SAFETY * q.bound if linearized else q.times_identity(size)
        base = add(form.H, self._weight(j), size)
        return One(place, form.product, _solver(self.structure.blocks[j], base, Q, size), [self.linear[j]])

    def _too_large(self, j: int) -> InputError:
        return InputError(
            f"block '{self.structure.blocks[j]}' is held by an operator and has {self.structure.sizes[j]} entries: its "
            "A^T A is not formed; give a matrix, or linearize='auto'"
        )

    def _proxes(self, group: Sequence[int], beta: np.ndarray, grams: Sequence[Gram]) -> Proxes:
        scales, calls = [], []
        for j in group:
            scales.append(self._scale(j, grams[j]))
            calls.append(flat(self.calls[j].prox, self.problem.layout.shapes[self.structure.blocks[j]]))
        sizes = [self.structure.sizes[j] for j in group]
        return Proxes(Place(self.structure, group, beta), calls, sizes, scales)

    def _scale(self, j: int, q: Gram) -> float:
        if q.scalar is not None and not self._linearized(j, q):
            return q.scalar + self._weight(j)
        if self.settings.linearize == "never":
            raise InputError(
                f"block '{self.structure.blocks[j]}': its rows weigh it by A^T A that is no multiple of the identity, "
                "so its prox does not solve the subproblem; linearize='auto' replaces A^T A by its largest eigenvalue"
            )
        return SAFETY * q.bound + self._weight(j)

    def _smooth(self, j: int, beta: np.ndarray, q: Gram) -> Smooth | General:
        place, part, size = Place(self.structure, [j], beta), self.calls[j], self.structure.sizes[j]
        shape = self.problem.layout.shapes[self.structure.blocks[j]]
        if self.kinds[j] == "smooth":
            linearized = self._linearized(j, q)
            if linearized and self.settings.linearize == "never":
                raise InputError(
                    f"block '{self.structure.blocks[j]}': its rows weigh it by A^T A that is not diagonal; "
                    "linearize='auto' replaces it by its largest eigenvalue"
                )
            metric = np.full(size, SAFETY * q.bound) if linearized else np.array(q.diagonal)
            return Smooth(place, flat(part.gradient, shape), flat(part.curvatures, shape), metric + self._weight(j))
        return General(place, _flat_pair(part.value_and_gradient, shape), self._weight(j))


def _flat_pair(call: Any, shape: tuple[int, ...]) -> Any:
    if len(shape) == 1:
        return call

    def flattened(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = call(x.reshape(shape))
        return value, np.asarray(slope).reshape(-1)

    return flattened


def _solver(block: str, base: Any, Q: Any, size: int) -> Any:
    """A kept solve with `M = base + Q`: a number, a sparse LU or a dense Cholesky factorization."""
    M = add(base, Q, size)
    if isinstance(M, float):
        definite(block, *(np.full((1, 1), one) for one in (M, base, Q)))
        return lambda y: y / M
    if sparse.issparse(M) and size > DENSE:
        from scipy.sparse.linalg import splu

        symmetric = {"SymmetricMode": True}
        factor = splu(sparse.csc_array(M), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
        if not (np.array_equal(factor.perm_r, factor.perm_c) and np.all(factor.U.diagonal() > 0)):
            raise InputError(f"block '{block}': H + Q + P is not positive definite; raise beta or add prox_weight")
        return factor.solve
    dense = as_dense(M, size)
    try:
        cholesky = sl.cho_factor(dense)
    except sl.LinAlgError:
        definite(block, dense, as_dense(base, size), as_dense(Q, size))
        raise
    return lambda y: sl.cho_solve(cholesky, y, check_finite=False)


def _norms(v: np.ndarray, starts: np.ndarray) -> np.ndarray:
    if v.size == 0:
        return np.zeros(0)
    return np.sqrt(np.add.reduceat(v * v, starts[:-1]))


def choose(problem: BlockProblem) -> dict[str, tuple[Kind, Any]]:
    """How each block's subproblem is solved, by what the block offers itself."""
    out: dict[str, tuple[Kind, Any]] = {}
    for name in problem.structure.blocks:
        body = problem.body(name)
        kinds = [kind for kind, needs in KINDS.items() if set(needs) <= body.capabilities]
        if not kinds:
            raise InputError(
                f"block '{name}' offers {sorted(body.capabilities)}; expected a prox, a quadratic form, "
                "elementwise curvatures beside the gradient, or value_and_gradient"
            )
        out[name] = kinds[0], body
    return out
