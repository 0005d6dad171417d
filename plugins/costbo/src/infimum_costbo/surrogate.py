"""A Gaussian process whose hyperparameters scikit-learn fits, with a posterior that also gives gradients.

scikit-learn fits by maximum likelihood within bounds; with a dozen points that is too sure of itself, so a log-normal
prior stands on every hyperparameter.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from infimum_costbo.normal import Array

FLOOR: Final = 1e-6
"""Smallest standard deviation, in units of the standardized objective."""
ALPHA: Final = 1e-10
"""Added to the diagonal beside the noise."""
_OPTIONS: Final = {"ftol": 1e-6, "gtol": 1e-3}
_BOUNDS: Final = {"amplitude": (1e-2, 1e2), "length": (3e-2, 3e1), "noise": (1e-6, 1e-1)}


class Penalized(GaussianProcessRegressor):  # type: ignore[misc]
    """scikit-learn's regressor for one kernel (constant x Matern-5/2 + white), with normal priors on the logarithms.

    Its likelihood is evaluated here without kernel objects, which take five times as long as the arithmetic.
    """

    def __init__(self, kernel: Any, optimizer: Any, center: Array, spread: Array) -> None:
        super().__init__(kernel=kernel, alpha=ALPHA, optimizer=optimizer, copy_X_train=False)
        self.center, self.spread = center, spread

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        if theta is None:
            return self.log_marginal_likelihood_value_
        value, slope = log_likelihood(self.X_train_, self.y_train_, theta)
        away = (theta - self.center) / self.spread
        value -= 0.5 * float(away @ away)
        return (value, slope - away / self.spread) if eval_gradient else value


def log_likelihood(X: Array, y: Array, theta: Array) -> tuple[float, Array]:
    """Log marginal likelihood and its gradient by theta, the logarithms of amplitude, lengths and noise."""
    amplitude, lengths, noise = math.exp(theta[0]), np.exp(theta[1:-1]), math.exp(theta[-1])
    K, rate = matern(X / lengths, X / lengths, amplitude)
    own = K.copy()
    own.flat[:: len(X) + 1] += noise + ALPHA
    L = cholesky(own, lower=True, check_finite=False)
    solved = cho_solve((L, True), np.column_stack([y, np.eye(len(X))]), check_finite=False)
    alpha, inverse = solved[:, 0], solved[:, 1:]
    value = -0.5 * float(y @ alpha) - float(np.log(np.diag(L)).sum()) - 0.5 * len(X) * math.log(2.0 * math.pi)
    weights = np.outer(alpha, alpha) - inverse
    pulled = -weights * rate
    # sum_ab pulled_ab (x_a - x_b)^2 for each feature, without arrays of three axes.
    by_length = ((X * X).T @ pulled.sum(1) - np.einsum("aj,aj->j", X, pulled @ X)) / lengths**2
    by_ends = [0.5 * float(np.einsum("ab,ab->", weights, K)), 0.5 * noise * float(np.trace(weights))]
    return value, np.concatenate([by_ends[:1], by_length, by_ends[1:]])


def matern(A: Array, B: Array, amplitude: float) -> tuple[Array, Array]:
    """Matern-5/2 covariance of points in units of the lengths, and its derivative by half the squared distance."""
    squared = (A * A).sum(1)[:, None] + (B * B).sum(1) - 2.0 * (A @ B.T)
    r = np.sqrt(5.0 * np.maximum(squared, 0.0))
    decay = amplitude * np.exp(-r)
    return decay * (1.0 + r + r * r / 3.0), -(5.0 / 3.0) * decay * (1.0 + r)


@dataclass(frozen=True)
class Hyper:
    """Hyperparameters of the Matern-5/2 kernel on standardized targets."""

    amplitude: float
    lengths: Array
    noise: float

    @property
    def theta(self) -> Array:
        return np.asarray(np.log(np.concatenate([[self.amplitude], self.lengths, [self.noise]])))


def _clipped(theta: Array, bounds: Array) -> Array:
    return np.clip(theta, bounds[:, 0], bounds[:, 1])


def fit(X: Array, y: Array, warm: Hyper | None = None, *, cold: bool = True, steps: int = 50) -> Hyper:
    """Hyperparameters of largest posterior density.

    Parameters
    ----------
    X : array of float, shape (n, features)
    y : array of float, shape (n,)
        Standardized.
    warm : Hyper, optional
        Where to start: the last fit of a growing set is close.
    cold : bool, default True
        Start from the prior's center too.
    steps : int, default 50
        Most iterations of L-BFGS-B from the prior's center; a quarter of them from the last fit.
    """
    width = X.shape[1]
    center = np.log(np.concatenate([[1.0], np.full(width, 0.5 * math.sqrt(width)), [1e-4]]))
    spread = np.concatenate([[1.0], np.full(width, 1.0), [2.0]])

    def optimizer(objective: Any, start: Array, bounds: Array) -> tuple[Array, float]:
        # Differences of 1e-4 in the log posterior are far below what a dozen points can tell.
        starts = [(start, steps)] if cold or warm is None else []
        starts += [] if warm is None else [(_clipped(warm.theta, bounds), steps // 4)]
        found = [
            minimize(objective, one, jac=True, method="L-BFGS-B", bounds=bounds, options=_OPTIONS | {"maxiter": most})
            for one, most in starts
        ]
        best = min(found, key=lambda one: float(one.fun))
        return best.x, float(best.fun)

    kernel = ConstantKernel(1.0, _BOUNDS["amplitude"]) * Matern(
        np.exp(center[1:-1]).clip(*_BOUNDS["length"]), _BOUNDS["length"], nu=2.5
    ) + WhiteKernel(1e-4, _BOUNDS["noise"])
    with warnings.catch_warnings():
        # A hyperparameter at its bound is no news to the user of a sampler.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Penalized(kernel, optimizer, center, spread).fit(X, y)
    theta = np.exp(model.kernel_.theta)
    return Hyper(float(theta[0]), theta[1:-1], float(theta[-1]))


class Posterior:
    """The process given data: mean and standard deviation anywhere, with their gradients.

    Parameters
    ----------
    X : array of float, shape (n, features)
    y : array of float, shape (n,)
    hyper : Hyper
        On targets standardized by `center` and `scale`.
    center, scale : float
    """

    def __init__(self, X: Array, y: Array, hyper: Hyper, center: float = 0.0, scale: float = 1.0) -> None:
        self.X, self.y, self.hyper, self.center, self.scale = X, y, hyper, center, scale
        K = self.kernel(X) + (hyper.noise + ALPHA) * np.eye(len(X))
        self._L = cholesky(K, lower=True)
        self._alpha = cho_solve((self._L, True), (y - center) / scale)

    def kernel(self, Z: Array) -> Array:
        """Covariance of f at Z with f at the data, shape (m, n)."""
        return self._profile(Z)[0]

    def _profile(self, Z: Array) -> tuple[Array, Array]:
        """Covariance, and its derivative by half the squared scaled distance."""
        return matern(Z / self.hyper.lengths, self.X / self.hyper.lengths, self.hyper.amplitude)

    def at(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f, shapes (m,) and (m,)."""
        k = self.kernel(Z)
        half = solve_triangular(self._L, k.T, lower=True, check_finite=False)
        variance = self.hyper.amplitude - np.einsum("ij,ij->j", half, half)
        sd = np.maximum(np.sqrt(np.maximum(variance, 0.0)), FLOOR)
        return self.center + self.scale * (k @ self._alpha), self.scale * sd

    def with_gradient(self, Z: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and sd, and their gradients by the features, shapes (m, features)."""
        k, rate = self._profile(Z)
        weights = cho_solve((self._L, True), k.T, check_finite=False).T
        variance = self.hyper.amplitude - np.einsum("ij,ij->i", weights, k)
        sd = np.maximum(np.sqrt(np.maximum(variance, 0.0)), FLOOR)
        by_mean = self._pull(Z, rate * self._alpha)
        by_sd = -self._pull(Z, rate * weights) / sd[:, None]
        scale = self.scale
        return self.center + scale * (k @ self._alpha), scale * sd, scale * by_mean, scale * by_sd

    def _pull(self, Z: Array, weights: Array) -> Array:
        """sum_i weights_i (z - x_i) / lengths^2 for every row z."""
        return np.asarray((Z * weights.sum(1)[:, None] - weights @ self.X) / self.hyper.lengths**2)

    def covariance(self, Z: Array) -> Array:
        """Joint posterior covariance of f at Z, shape (m, m)."""
        half = solve_triangular(self._L, self.kernel(Z).T, lower=True, check_finite=False)
        return np.asarray(self.scale**2 * (self.between(self.hyper, Z) - half.T @ half))

    @staticmethod
    def between(hyper: Hyper, Z: Array) -> Array:
        """Prior covariance of f at Z, shape (m, m)."""
        return Posterior(Z, np.zeros(len(Z)), hyper).kernel(Z)

    def believing(self, Z: Array) -> Posterior:
        """The process after its own mean was observed at Z: same mean, less spread (the constant liar)."""
        mean, _ = self.at(Z)
        return Posterior(
            np.concatenate([self.X, Z]), np.concatenate([self.y, mean]), self.hyper, self.center, self.scale
        )
