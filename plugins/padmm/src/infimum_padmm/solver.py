"""The solver: Gauss-Seidel over the blocks, one multiplier and one penalty a row."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Lt

from infimum.errors import InfimumWarning, InputError
from infimum.solver import Finished, Metric, Slot, Solver
from infimum.status import Status
from infimum_padmm.data import mapping
from infimum_padmm.engine import KINDS, Engine, Kind, Settings
from infimum_padmm.margins import affordable, certified
from infimum_padmm.options import (
    GOLDEN,
    check_linearize,
    check_penalty,
    check_tau,
    check_weight,
    multipliers,
    penalties,
    weights,
)
from infimum_padmm.problem import BlockProblem
from infimum_padmm.rate import empty, note, rate
from infimum_padmm.report import CHEN

NAME = "padmm.padmm"
BALANCE_EVERY = 10
BALANCE_UNTIL = 200
UNEVEN = 10.0
"""How many times larger than the other one of the residuals may be before the penalties change."""
DIVERGED = 1e12


@dataclass(slots=True)
class PADMMState:
    """`x` packed, the stacked multipliers and residuals, (sub)gradients `xi`, the KKT defect `s`, and the penalties.

    `names` says of what: rows and blocks with their lengths; with the structure report and the certificate as plain
    data.
    """

    x: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    xi: np.ndarray
    s: np.ndarray
    beta: np.ndarray
    primal: float
    dual: float
    step: float
    kept: np.ndarray
    k: int
    names: dict[str, Any]


def _known(name: str) -> Metric:
    get = attrgetter(name)
    return Metric(lambda state: get(state) if state.k else None)


@dataclass(frozen=True)
class PADMM(Solver):
    """Minimize `sum_j f_j(x_j)` with `sum_j A_ij x_j = b_i` for every row i, by proximal ADMM with many blocks.

    With `r_i = sum_j A_ij x_j - b_i`, each iteration updates block after block, at the newest values of the others,

        `x_j <- argmin f_j(x) + sum_i [<lam_i, A_ij x> + beta_i/2 ||r_i + A_ij (x - x_j)||^2] + 1/2 ||x - x_j||_P^2`

    and then every multiplier, `lam_i <- lam_i + tau beta_i r_i`. Quadratic blocks are solved by factorizations that
    are made once for each set of penalties, and consecutive ones are merged into one product where they are small;
    blocks with a prox by one prox; smooth separable ones by Newton entry by entry; other smooth ones by L-BFGS to
    `min(1e-3, residual/10)`.

    Reports x at the end of the sweep; it fulfills the rows up to `primal_residual`. Iteration 0 is the start, with
    the multipliers given.

    `residual`, the larger of the two below, None at iteration 0, certifies a KKT point: `primal_residual` is
    `max_i ||r_i|| / (1 + ||b_i||)`, and `dual_residual = max_j ||s_j||` with `s_j` in `∂f_j(x_j) + sum_i A_ij^T lam_i`
    (the optimality of the subproblems gives the subgradient). `rate` estimates the rate of linear convergence from
    the lengths of the steps in the last half of the iterations.

    `result.extras` holds the multipliers, residuals by row and by block, penalties, the rate, the report of the
    structure, and the margins of `infimum_padmm.certificate` at the last penalties (None for tau other than 1, and for
    problems with large matrices).

    Parameters
    ----------
    beta : float, mapping of row to float, or "auto", default 1
        Penalties. One number serves all rows; rows that a mapping leaves out get 1. "auto" takes L/||A||^2 of each
        row's pivot if its gradient has a Lipschitz constant L > 0, else 1. Penalties by row can matter much.
    prox_weight : float or mapping of block to float, default 0
        Weight of 1/2 ||x - x_j||^2 in the subproblems: where a subproblem has no unique solution, or a sweep over
        three or more blocks of one row diverges.
    linearize : {"auto", "never", "always"}, default "auto"
        Whether the weights `Q_j = sum_i beta_i A_ij^T A_ij` of a subproblem are replaced by 1.0001 times their
        largest eigenvalue: where a prox needs it, never (then it is an error), or for every block.
    tau : float, default 1
        Step of the multipliers, in (0, (1 + sqrt 5)/2).
    adapt : bool, default False
        Double or halve all penalties every 10 iterations when the primal and dual residuals differ by more than a
        factor 10; from iteration 200 on they stay, which convergence asks for.
    multipliers : mapping of row to array, optional
        Multipliers to begin with, such as those of a run before.

    Raises
    ------
    InputError
        For a penalty, weight or tau out of range, an unknown row or block, a subproblem without a unique solution
        (with its smallest eigenvalue), or a prox under weights that are no multiple of the identity with
        `linearize="never"`.

    Notes
    -----
    Convergence is known for convex functions with one block a row, two blocks, or all but one strongly convex and
    beta small; row by row also for nonconvex functions if all of the row lies in the image of its pivot, whose
    function is smooth (`BlockProblem.report`). Where that is missing in a nonconvex problem, a warning names the row. A
    residual above 1e12 ends the run as diverged.

    References
    ----------
    "A proximal ADMM for multiblock problems with block anti-upper triangular constraints", ICML 2026, of which the
    abstract was at hand; W. Deng, W. Yin, J. Sci. Comput. 66 (2016); Y. Wang, W. Yin, J. Zeng, J. Sci. Comput. 78
    (2019); C. Chen, B. He, Y. Ye, X. Yuan, Math. Program. 155 (2016).
    """

    beta: float | dict[str, float] | Literal["auto"] = 1.0
    prox_weight: float | dict[str, float] = 0.0
    linearize: Literal["auto", "never", "always"] = "auto"
    tau: Annotated[float, Gt(0), Lt(GOLDEN)] = 1.0
    adapt: bool = False
    multipliers: dict[str, Any] | None = None

    families: ClassVar[tuple[str, ...]] = (BlockProblem.family,)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "residual": Metric(lambda state: max(state.primal, state.dual) if state.k else None),
        "primal_residual": _known("primal"),
        "dual_residual": _known("dual"),
        "step_norm": _known("step"),
        "rate": Metric(lambda state: rate(state.kept)),
    }
    State: ClassVar[type] = PADMMState

    def __post_init__(self) -> None:
        check_penalty(self.beta)
        check_weight(self.prox_weight)
        check_tau(self.tau)
        check_linearize(self.linearize)
        if not isinstance(self.adapt, bool):
            raise InputError(f"adapt is {self.adapt!r}; expected True or False")
        mapping(self.multipliers, "multipliers", "row: array")

    @classmethod
    def reference_problems(cls) -> Any:
        """Problems of the family, for the conformance kit."""
        from infimum_padmm.problems import references

        return references()

    def slots(self) -> tuple[Slot, ...]:
        blocks = tuple(Slot(kind, needs=needs, each=True, empty=None) for kind, needs in KINDS.items())
        return (*blocks, Slot("rows", needs=("block_rows",), at_least=1, at_most=1, empty=None))

    def check(self, parts: Any) -> None:
        engine = _engine(self, parts)
        engine.stages(penalties(engine.problem, self.beta))
        multipliers(engine.problem, self.multipliers)
        report = engine.problem.report()
        for text in report.warnings if report.nonconvex else ():
            warnings.warn(f"{NAME}: {text}; convergence of this nonconvex problem is not known", InfimumWarning, 3)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> PADMMState:
        engine = _engine(self, parts)
        problem, structure = engine.problem, engine.structure
        r = problem.stack.forward(start) - structure.b
        nothing, beta = np.zeros_like(start), penalties(problem, self.beta)
        names = {
            "rows": dict(zip(structure.rows, structure.lengths, strict=True)),
            "blocks": dict(zip(structure.blocks, structure.sizes, strict=True)),
            "report": problem.report().as_tree(),
            "certificate": self._certificate(engine, beta),
        }
        lam = multipliers(problem, self.multipliers)
        primal = _primal(engine, r)
        return PADMMState(start, lam, r, nothing, nothing, beta, primal, 0.0, 0.0, empty(), 0, names)

    def step(self, parts: Any, state: PADMMState) -> PADMMState:
        engine = _engine(self, parts)
        beta = self._balanced(engine, state) if self.adapt else state.beta
        tolerance = min(1e-3, 0.1 * max(state.primal, state.dual)) if state.k else 1e-3
        x, lam, r, xi = engine.sweep(beta, self.tau, state.x, state.lam, state.r, state.xi, tolerance)
        s = engine.dual(beta, x, lam, xi)
        primal, dual = _primal(engine, r), float(engine.dual_norms(s).max(initial=0.0))
        if max(primal, dual) > DIVERGED:
            raise Finished(_diverged(engine, max(primal, dual), state.k), Status.diverged)
        step = _length(x - state.x)
        kept, names = note(state.kept, state.k + 1, step), state.names
        if beta is not state.beta:
            names = {**names, "certificate": self._certificate(engine, beta)}
        return PADMMState(x, lam, r, xi, s, beta, primal, dual, step, kept, state.k + 1, names)

    def _certificate(self, engine: Engine, beta: np.ndarray) -> dict[str, Any] | None:
        """Margins of sufficient decrease as plain data; None where they say nothing (tau is not 1) or cost much."""
        if self.tau != 1.0 or not affordable(engine.structure):
            return None
        found = certified(engine.problem, beta, engine.settings.weights, engine.kinds, self.linearize)
        return {"margins": found.margins, "holds": found.holds}

    def _balanced(self, engine: Engine, state: PADMMState) -> np.ndarray:
        if not state.k or state.k % BALANCE_EVERY or state.k >= BALANCE_UNTIL or not (state.primal and state.dual):
            return state.beta
        pull = 1.0 + float(np.abs(state.xi).max(initial=0.0))
        uneven = state.primal / (state.dual / pull)
        if 1.0 / UNEVEN <= uneven <= UNEVEN:
            return state.beta
        return state.beta * (2.0 if uneven > UNEVEN else 0.5)

    def extras(self, state: PADMMState) -> dict[str, Any]:
        """Multipliers, residuals by row and by block, penalties, rate, structure report and certificate."""
        rows, blocks = state.names["rows"], state.names["blocks"]
        lam, r, s = _split(state.lam, rows), _split(state.r, rows), _split(state.s, blocks)
        return {
            "multipliers": lam,
            "primal_residuals": {name: float(np.linalg.norm(one)) for name, one in r.items()},
            "dual_residuals": {name: float(np.linalg.norm(one)) for name, one in s.items()},
            "beta": dict(zip(rows, (float(one) for one in state.beta), strict=True)),
            "rate": rate(state.kept),
            "structure": state.names["report"],
            "certificate": state.names["certificate"],
        }


def _split(v: np.ndarray, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
    out, at = {}, 0
    for name, n in lengths.items():
        out[name], at = v[at : at + n].copy(), at + n
    return out


def _length(v: np.ndarray) -> float:
    return float(np.sqrt(v @ v))


def _primal(engine: Engine, r: np.ndarray) -> float:
    return float((engine.norms(r) / engine.row_scales).max(initial=0.0))


def _engine(solver: PADMM, parts: Any) -> Engine:
    """The compiled sweep, kept beside the parts that it calls: it is made of nothing else."""
    found: Engine | None = vars(parts).get("padmm_engine")
    if found is None:
        problem = parts.rows.block_rows()
        kinds: dict[str, tuple[Kind, Any]] = {}
        for kind in KINDS:
            for part in getattr(parts, kind):
                kinds[part.on] = (kind, part)
        if missing := [name for name in problem.structure.blocks if name not in kinds]:
            raise InputError(f"{NAME}: block '{missing[0]}' stands in no slot")
        settings = Settings(weights(problem, solver.prox_weight), solver.linearize)
        found = parts.padmm_engine = Engine(problem, kinds, settings)
    return found


def _diverged(engine: Engine, residual: float, k: int) -> str:
    report = engine.problem.report()
    # A sweep over three or more blocks explains a divergence better than what else is missing.
    named = sorted(report.warnings, key=lambda text: CHEN not in text)
    why = f": {named[0]}" if named else ""
    return (
        f"the residual is {residual:.3g} at iteration {k + 1}{why}; give prox_weight (this problem: up to "
        f"{report.prox_weight:.3g} times beta, less often suffices) or another beta"
    )
