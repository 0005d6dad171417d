"""TD(0) and LSTD on arrays, by the conventions of scikit-learn."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from infimum.errors import InputError
from infimum_tdexp import checks, kernel
from infimum_tdexp.lstd import accumulate, solved
from infimum_tdexp.recorded import Stream
from infimum_tdexp.schedules import BETA, usual
from infimum_tdexp.transitions import Array, Batch

WHAT = "TDPolicyEvaluator"


class TDPolicyEvaluator(BaseEstimator):  # type: ignore[misc]
    """Linear values of a policy from transitions: exponential steps, or least squares.

    Parameters
    ----------
    gamma : float, default 0.99
        Discount, in [0, 1).
    method : {"td", "lstd"}, default "td"
        "lstd" is statistically better, for d^2 numbers a transition.
    eta0 : float, default 1.0
        First step size, for features of norm at most 1.
    beta : float, default 10.0
        The last step of T is `eta0 beta/T`; T where beta is larger.
    lam : float, default 0.0
        Regularization; biases the values.
    epochs : int, default 1
        Passes of `fit` over the transitions, with one schedule over all of them.
    scale_features : bool, default True
        Divide features by the largest norm seen in the first call, where that exceeds 1; `coef_` is in the units of
        the given features all the same.

    Attributes
    ----------
    coef_ : array, shape (d,)
        Weights: values are `X @ coef_`.
    n_transitions_ : int
        Transitions that were learned from.
    n_features_in_ : int

    Notes
    -----
    `fit` starts anew and knows how many transitions there are; `partial_fit` goes on, with horizons that double
    (`tdexp.doubling`). There is no intercept: add a constant feature.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum_tdexp import TDPolicyEvaluator
    >>> states = np.eye(2)[np.arange(2001) % 2]          # 0, 1, 0, 1, …
    >>> rewards = np.append(1.0 - np.arange(2000) % 2, 0.0)  # 1 after state 0
    >>> found = TDPolicyEvaluator(gamma=0.5).fit(states, rewards)
    >>> np.round(found.predict(np.eye(2)), 2).tolist()
    [1.33, 0.67]
    """

    def __init__(
        self,
        gamma: float = 0.99,
        method: Literal["td", "lstd"] = "td",
        eta0: float = 1.0,
        beta: float = BETA,
        lam: float = 0.0,
        epochs: int = 1,
        scale_features: bool = True,
    ) -> None:
        self.gamma = gamma
        self.method = method
        self.eta0 = eta0
        self.beta = beta
        self.lam = lam
        self.epochs = epochs
        self.scale_features = scale_features

    def fit(self, X: Any, y: Any = None, next_X: Any = None, terminated: Any = None) -> Self:
        """Learn from transitions, from zero.

        Parameters
        ----------
        X : array, shape (N, d), or Stream
            Features of the states; a `Stream` holds everything.
        y : array, shape (N,)
            Rewards.
        next_X : array, shape (N, d), optional
            Features of the states that followed; without it the rows of X follow each other, and the last one only
            serves as the last next state.
        terminated : array of bool, shape (N,), optional
            Where the state that followed is terminal. Not where an episode was cut off.

        Raises
        ------
        InputError
            For options or arrays that do not fit, or weights that diverge.
        """
        return self._learn(X, y, next_X, terminated, whole=True)

    def partial_fit(self, X: Any, y: Any = None, next_X: Any = None, terminated: Any = None) -> Self:
        """Go on with further transitions, once each; parameters are those of `fit`."""
        return self._learn(X, y, next_X, terminated, whole=False)

    def predict(self, X: Any) -> Array:
        """The values of states, shape (N,)."""
        check_is_fitted(self, "coef_")
        values: Array = validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_
        return values

    def _learn(self, X: Any, y: Any, next_X: Any, terminated: Any, *, whole: bool) -> Self:
        self._check()
        fresh = whole or not hasattr(self, "n_transitions_")
        if isinstance(X, Stream):
            phi, psi, rewards = self._recorded(X, (y, next_X, terminated), fresh)
        else:
            phi, psi, rewards = self._arrays(X, y, next_X, terminated, fresh)
        largest = checks.longest(phi)
        if largest > 1 + 1e-12 and not self.scale_features:
            raise InputError(f"{WHAT}: max ||phi|| = {largest:.4g} > 1: pass scale_features=True, or scale them")
        if fresh:
            self._begin(phi.shape[1], max(1.0, largest))
        batch = Batch.of((phi / self._scale)[:, None], (psi / self._scale)[:, None], rewards[:, None])
        self._absorb(batch, self.epochs if whole else 1, len(rewards) * self.epochs if whole else None)
        return self

    def _check(self) -> None:
        checks.discount(self.gamma, WHAT)
        checks.positive(self.eta0, "eta0", WHAT)
        checks.positive(self.beta, "beta", WHAT)
        checks.whole(self.epochs, "epochs", WHAT)
        checks.non_negative(self.lam, "lam", WHAT)
        if self.method not in ("td", "lstd"):
            raise InputError(f"{WHAT}: method={self.method!r}; expected 'td' or 'lstd'")

    def _recorded(self, X: Stream, beside: tuple[Any, ...], fresh: bool) -> tuple[Array, Array, Array]:
        if any(one is not None for one in beside):
            raise InputError(f"{WHAT}: a Stream holds rewards and next states; give nothing beside it")
        if X.gamma != self.gamma:
            raise InputError(f"{WHAT}: gamma={self.gamma}, but that of the stream is {X.gamma}")
        validate_data(self, X.phi, reset=fresh)
        return X.phi, X.psi, X.rewards

    def _arrays(self, X: Any, y: Any, next_X: Any, terminated: Any, fresh: bool) -> tuple[Array, Array, Array]:
        """Features, `gamma phi' - phi` and rewards of transitions that were given as arrays."""
        if y is None:
            raise InputError(f"{WHAT} requires y to be passed, but the target y is None: it holds the rewards")
        phi, rewards = validate_data(
            self, X, y, reset=fresh, dtype=np.float64, y_numeric=True, ensure_min_samples=2 if next_X is None else 1
        )
        rows = len(phi)
        after = phi[1:] if next_X is None else validate_data(self, next_X, reset=False, dtype=np.float64)
        if next_X is None:
            phi, rewards = phi[:-1], rewards[:-1]
        if after.shape != phi.shape:
            raise InputError(f"{WHAT}: next_X must have the shape of X, {phi.shape}, got {after.shape}")
        ended = np.zeros(rows, dtype=bool) if terminated is None else np.asarray(terminated)
        if ended.shape != (rows,) or ended.dtype != bool:
            raise InputError(
                f"{WHAT}: terminated must hold a boolean for each of {rows} rows, got {checks.shown(terminated)}"
            )
        follow = np.where(ended[: len(phi), None], 0.0, self.gamma) * after
        return phi, follow - phi, np.asarray(rewards, dtype=np.float64)

    def _begin(self, d: int, scale: float) -> None:
        self._scale = scale
        self._W, self._A, self._b = np.zeros((1, d)), 1e-6 * np.eye(d)[None], np.zeros((1, d))
        self.n_transitions_ = 0

    def _absorb(self, batch: Batch, epochs: int, horizon: int | None) -> None:
        """Learn from a batch; `horizon` is None where more may come."""
        N, done = len(batch.reward), self.n_transitions_
        if self.method == "lstd":
            accumulate(self._A, self._b, batch)
            self._W = solved(self._A, self._b)
        else:
            schedule = usual(horizon, self.eta0, self.beta)
            with np.errstate(over="ignore", invalid="ignore"):
                for epoch in range(epochs):
                    kernel.learn(self._W, batch, [schedule(done + epoch * N + k) for k in range(N)], self.lam)
            if not np.abs(self._W).max() <= kernel.LIMIT:
                raise InputError(
                    f"{WHAT}: the weights passed {kernel.LIMIT:g}: eta0={self.eta0:g} is too large for these features"
                )
        self.n_transitions_ = done + N
        self.coef_ = self._W[0] / self._scale
