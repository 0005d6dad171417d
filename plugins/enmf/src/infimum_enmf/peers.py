"""scikit-learn's NMF as a solver of the family, for comparisons under the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from infimum.solver import Metric, Slot, Solver
from infimum_enmf.checks import check_whole, check_word
from infimum_enmf.matrix import Array
from infimum_enmf.solver import FIT, REFERENCE


@dataclass(frozen=True)
class SklearnNMF(Solver):
    """`sklearn.decomposition.non_negative_factorization` in pieces, from the run's start or one of its own.

    Parameters
    ----------
    method : {"cd", "mu"}, default "cd"
        Coordinate descent or multiplicative update (Frobenius loss).
    init_by : {"start", "nndsvd", "nndsvda", "random"}, default "start"
        Where the first iteration begins: at the start of the run, or at scikit-learn's own.
    chunk : int, default 1
        Iterations of scikit-learn in one iteration here; more of them cost less.
    """

    method: Literal["cd", "mu"] = "cd"
    init_by: Literal["start", "nndsvd", "nndsvda", "random"] = "start"
    chunk: Annotated[int, Ge(1)] = 1

    families: ClassVar[tuple[str, ...]] = ("nmf",)
    reference_problems: ClassVar[Sequence[Mapping[str, Any]]] = REFERENCE
    metrics: ClassVar[Mapping[str, Metric]] = {}

    def __post_init__(self) -> None:
        check_word("method", self.method, ("cd", "mu"))
        check_word("init_by", self.init_by, ("start", "nndsvd", "nndsvda", "random"))
        check_whole("chunk", self.chunk, 1)

    def slots(self) -> tuple[Slot, ...]:
        return (FIT,)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": start, "seed": int(rng.integers(2**31)), "begun": False}

    def step(self, parts: Any, state: dict[str, Any]) -> dict[str, Any]:
        from sklearn.decomposition import non_negative_factorization

        X, x = parts.fit.origin.X, state["x"]
        own = self.init_by != "start" and not state["begun"]
        U: Array | None = None if own else np.array(x["U"], order="C")
        H: Array | None = None if own else np.array(x["V"].T, order="C")
        W, H, _ = non_negative_factorization(
            X,
            U,
            H,
            n_components=x["U"].shape[1],
            init=self.init_by if own else "custom",
            solver=self.method,
            tol=0.0,
            max_iter=self.chunk,
            random_state=state["seed"],
        )
        return {**state, "x": {"U": W, "V": np.ascontiguousarray(H.T)}, "begun": True}
