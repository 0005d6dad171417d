"""The scikit-learn estimator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from infimum.errors import InputError
from infimum_enmf.checks import check_number, check_whole, checked_matrix, checked_rank, refuse_negative
from infimum_enmf.diagnostics import kkt_residual, tolerance
from infimum_enmf.mapping import balance
from infimum_enmf.matrix import Array, Matrix
from infimum_enmf.stages import Machine, State, resolve
from infimum_enmf.weights import nonnegative_least_squares

LOOK = 10
"""Rounds of the descent between two looks at the KKT residual and at the change of the error."""


class ExteriorNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nonnegative matrix factorization X ~ W H by the exterior method.

    Samples are the rows of X, W = transform(X) and H = components_, so U = W and V = H^T of the rest of this package.
    Deterministic: there is no random start.

    Parameters
    ----------
    n_components : int, optional
        Rank, 1 to min(m, n); min(m, n) by default.
    preset : {"default", "fast", "paper"}, default "default"
        As in `Exterior`.
    rotation_steps, rotation_tol, rho, mapping_steps, entry_steps, inner : optional
        As in `Exterior`: given ones go before the preset's.
    max_iter : int, default 1000
        Rounds of the descent.
    tol : float, default 1e-6
        The descent ends when the relative error fell by less than this share of itself over 10 rounds.
    kkt_tol : float, default 1e-5
        The descent ends when the KKT residual is below it.
    time_budget : float, optional
        Seconds of wall clock for `fit`, all stages together; only the SVD runs to its end whatever the time. The
        factors are feasible at every moment. The weights that `fit_transform` returns take the time of a `transform`
        on top.
    target_error : float, optional
        Relative error at which everything ends, in whatever stage.

    Attributes
    ----------
    components_ : ndarray, (r, n)
    reconstruction_err_ : float
        ||X - W H||_F, W the best weights (within the time budget).
    relative_error_ : float
    svd_lower_bound_ : float
        What no factorization of this rank can beat, relative to ||X||.
    is_global_ : bool
        Whether the error meets that bound to 1e-8 (float32: 1e-4).
    kkt_residual_ : float
    n_iter_ : int
        Rounds of the descent.
    stage_times_, stage_steps_ : dict
        Seconds and steps of each stage; `weights` is the fit of W to the final components.
    status_ : str
        `global`, `kkt`, `target`, `stalled`, `max_iter`, `time_budget`, or `time_budget_before_feasible` where the time
        ended before the factors had entered the orthant, so that negative entries were cut off.
    n_components_, n_features_in_, feature_names_in_
        As usual.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from infimum_enmf import ExteriorNMF
    >>> model = ExteriorNMF(16, time_budget=5.0).fit(load_digits().data)
    >>> model.components_.shape
    (16, 64)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        preset: str = "default",
        rotation_steps: int | None = None,
        rotation_tol: float | None = None,
        rho: float | None = None,
        mapping_steps: int | None = None,
        entry_steps: int | None = None,
        inner: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        kkt_tol: float = 1e-5,
        time_budget: float | None = None,
        target_error: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.preset = preset
        self.rotation_steps = rotation_steps
        self.rotation_tol = rotation_tol
        self.rho = rho
        self.mapping_steps = mapping_steps
        self.entry_steps = entry_steps
        self.inner = inner
        self.max_iter = max_iter
        self.tol = tol
        self.kkt_tol = kkt_tol
        self.time_budget = time_budget
        self.target_error = target_error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> ExteriorNMF:
        """Factorize X, (m, n), entries >= 0; y is ignored.

        Raises
        ------
        InputError
            For negative entries (how many, and where the first one stands), an all-zero X, a rank that does not fit.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Factorize X and return W, the same as `transform(X)` would give; (m, r)."""
        return self._weights(self._fit(X))

    def _fit(self, X: Any) -> Matrix:
        began = time.perf_counter()
        data = Matrix(checked_matrix(self._validated(X, reset=True)))
        machine = self._machine(data)
        at, self.stage_times_, self.status_ = self._run(data, machine, began)
        U, V = balance(at.U, at.V)
        self.n_components_ = self._n_features_out = machine.rank
        self.components_ = np.ascontiguousarray(V.T)
        self.n_iter_ = int(getattr(at.work, "rounds", 0)) if at.stage == "descent" else 0
        self.stage_steps_ = {**dict(at.taken), "descent": self.n_iter_}
        last = time.perf_counter()
        W = self._weights(data, U, lambda: self._late(began))
        self.stage_times_["weights"] = time.perf_counter() - last
        self.reconstruction_err_ = data.error(W, V)
        self.relative_error_ = self.reconstruction_err_ / data.norm
        self.svd_lower_bound_ = float(at.bound or 0.0) / data.norm
        self.is_global_ = self.relative_error_ - self.svd_lower_bound_ <= tolerance(data.dtype)
        self.kkt_residual_ = kkt_residual(data, W, V)
        return data

    def _machine(self, data: Matrix) -> Machine:
        """The stages, from parameters that have been checked."""
        rank = min(data.shape) if self.n_components is None else self.n_components
        check_whole("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_number("kkt_tol", self.kkt_tol)
        for name in ("time_budget", "target_error"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name))
        names = ("rotation_steps", "rotation_tol", "rho", "mapping_steps", "entry_steps", "inner")
        options = resolve(self.preset, **{name: getattr(self, name) for name in names})
        return Machine(data, checked_rank(rank, data.shape, "n_components"), options)

    def _late(self, began: float) -> bool:
        return self.time_budget is not None and time.perf_counter() - began >= self.time_budget

    def _run(self, data: Matrix, machine: Machine, began: float) -> tuple[State, dict[str, float], str]:
        last = time.perf_counter()
        times: dict[str, float] = {}
        m, n = data.shape
        zeros = [np.zeros((size, machine.rank), data.dtype) for size in (m, n)]
        at, status, marked = machine.begin(*zeros), "", np.inf
        while not status:
            stage = at.stage if at.stage != "start" else "svd"
            at = machine.advance(at)
            now = time.perf_counter()
            times[stage] = times.get(stage, 0.0) + now - last
            last = now
            rounds = getattr(at.work, "rounds", 0) if at.stage == "descent" else None
            if rounds and rounds % LOOK == 0:
                status = self._settled(data, at, marked)
                marked = at.error
            status = self._ended(data, at, began, rounds) or status
        return at, times, status

    def _ended(self, data: Matrix, at: State, began: float, rounds: int | None) -> str:
        if at.settled or at.error <= 1e-14 * data.norm:
            return "global"
        if self.target_error is not None and at.error <= self.target_error * data.norm:
            return "target"
        if self._late(began):
            return "time_budget" if at.stage == "descent" else "time_budget_before_feasible"
        return "max_iter" if rounds is not None and rounds >= self.max_iter else ""

    def _settled(self, data: Matrix, at: State, marked: float) -> str:
        if kkt_residual(data, at.U, at.V) <= self.kkt_tol:
            return "kkt"
        return "stalled" if at.error >= (1.0 - self.tol) * marked else ""

    def transform(self, X: Any) -> Array:
        """Weights of samples: nonnegative least squares on `components_`, each row for itself; (m, r)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self._weights(Matrix(X))

    def inverse_transform(self, X: Any) -> Array:
        """W H of weights X, (m, r); (m, n)."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise InputError(f"X has {X.shape[1]} columns; expected one for each of {self.n_components_} components")
        return np.asarray(X @ self.components_)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        try:
            refuse_negative(X)
        except InputError as error:
            # The beginning is what scikit-learn's own estimators say and its checks look for.
            raise InputError(f"Negative values in data passed to {type(self).__name__}: {error}") from None
        return X

    def _weights(self, data: Matrix, start: Array | None = None, ended: Callable[[], bool] = lambda: False) -> Array:
        H = self.components_.astype(np.float64)
        XB = data.times(self.components_.T).astype(np.float64)
        return nonnegative_least_squares(XB, H @ H.T, start=start, ended=ended).astype(data.dtype)
