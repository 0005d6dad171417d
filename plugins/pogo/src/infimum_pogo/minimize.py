"""`minimize_stiefel`: POGO on one function, for users of NumPy and of torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from infimum.arrays import Array, is_array, is_complex, namespace
from infimum.errors import InputError, did_you_mean
from infimum.functions.base import Function
from infimum_pogo.checks import INITS, admitted, check_word
from infimum_pogo.solver import Pogo
from infimum_pogo.stiefel import Stiefel, as_batch, as_form, to_complex, to_real

NAME = "minimize_stiefel"
OPTIONS = ("base", "momentum", "nesterov", "betas", "eps", "weight_decay", "landing", "safe")


def minimize_stiefel(
    f: Callable[[Array], Any],
    X0: Array,
    *,
    jac: Callable[[Array], Array] | bool | None = None,
    rows: bool | str = True,
    lr: Any = 0.1,
    max_iter: int = 1000,
    tol: float = 1e-6,
    stopping: Any = None,
    start: str = "check",
    seed: int | None = None,
    callback: Callable[[Any], Any] | None = None,
    verbose: bool = False,
    **options: Any,
) -> Any:
    """Minimize a function of matrices with orthonormal rows or columns by POGO.

    Parameters
    ----------
    f : callable
        `f(X) -> float` for X in the form of X0; with torch a scalar tensor, whose gradient autograd makes.
    X0 : array, shape (p, n) or (b, p, n)
        Start, NumPy or torch, real or complex. Not changed.
    jac : callable or True, optional
        `jac(X) -> array like X`, the gradient: df/dRe + i df/dIm for complex X (twice the conjugate Wirtinger
        derivative, as in torch). True where f returns value and gradient. Needed with NumPy.
    rows : bool or "auto", default True
        Orthonormal rows (p <= n), columns, or along the shorter side.
    lr : float, "auto" or a schedule, default 0.1
        Step size; with base="vadam" 1 to 3 is usual.
    max_iter : int, default 1000
    tol : float, default 1e-6
        The run has converged when ||R||_F, the norm of the relative gradient, is at most this.
    stopping : str or rule, optional
        In place of max_iter and tol.
    start : {"check", "project", "ignore"}, default "check"
        What happens to an X0 that is not orthonormal.
    seed, callback, verbose : optional
        See `infimum.solve`.
    **options
        Further options of `pogo.pogo`: base, momentum, nesterov, betas, eps, weight_decay, landing, safe.

    Returns
    -------
    infimum.result.Result
        `x` in the form of X0; `metrics` at the end, `trace`, `status`, …

    Raises
    ------
    InputError
        For a function without gradient, and whatever does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum_pogo import minimize_stiefel
    >>> C = np.diag([5.0, 4.0, 1.0])
    >>> X0 = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 2)))[0].T
    >>> result = minimize_stiefel(lambda X: -np.sum(X * (X @ C)) / 2, X0, jac=lambda X: -X @ C, seed=0)
    >>> round(result.value, 4)
    -4.5
    """
    from infimum import Composite, solve

    unknown = next((name for name in options if name not in OPTIONS), None)
    if unknown is not None:
        raise InputError(f"{NAME} has no option '{unknown}'; {did_you_mean(unknown, OPTIONS)}")
    X0 = X0.detach() if hasattr(X0, "detach") else X0 if is_array(X0) else np.asarray(X0)
    check_word(start, "start", INITS, NAME)
    _check_start(X0)
    other = admitted(as_batch(X0, rows, "X0"), start, "X0")
    first = X0 if other is None else as_form(other, X0, rows, "X0")
    packed = is_complex(X0)
    problem = Composite(
        {"objective": _function(f, jac, X0, packed)},
        constraints={"stiefel": Stiefel(rows, packed)},  # type: ignore[arg-type]
        start=to_real(first) if packed else first,
        name=getattr(f, "__name__", "").strip("<>"),
    )
    rule = f"max_iter({max_iter}) | grad_norm({tol!r})" if stopping is None else stopping
    solver = Pogo(lr=lr, start="ignore", **options)
    result = solve(problem, solver=solver, stopping=rule, seed=seed, callback=callback, verbose=verbose)
    if not packed:
        return result
    back = {name: getattr(result, name) for name in ("x", "best_x", "tail_x")}
    return replace(result, **{name: None if one is None else to_complex(one) for name, one in back.items()})


def _check_start(X0: Array) -> None:
    kind = namespace(X0).isdtype(X0.dtype, ("real floating", "complex floating"))
    if not kind:
        raise InputError(f"{NAME}: X0 holds {X0.dtype} entries; expected real or complex floating-point numbers")


def _function(f: Any, jac: Any, X0: Array, packed: bool) -> Function:
    """The function with its gradient, of packed points where X is complex."""
    if not callable(f):
        raise InputError(f"{NAME}: f={f!r}; expected a callable f(X) -> float")
    both = _both(f, jac, X0)
    if not packed:
        return Function(value=lambda X: float(both(X, False)[0]), value_and_gradient=lambda X: both(X, True))

    def packed_both(x: Array) -> tuple[float, Array]:
        value, gradient = both(to_complex(x), True)
        return value, to_real(gradient)

    return Function(value=lambda x: float(both(to_complex(x), False)[0]), value_and_gradient=packed_both)


def _both(f: Any, jac: Any, X0: Array) -> Callable[[Array, bool], tuple[float, Any]]:
    if jac is True:

        def pair(X: Array, _: bool) -> tuple[float, Any]:
            value, gradient = f(X)
            return _number(value), gradient

        return pair
    if callable(jac):
        return lambda X, slope: (_number(f(X)), jac(X) if slope else None)
    if jac not in (None, False):
        raise InputError(f"{NAME}: jac={jac!r}; expected the gradient as a callable, or True where f returns both")
    if isinstance(X0, np.ndarray):
        raise InputError(
            f"{NAME}: f has no gradient; pass jac=, or write f with torch and start from a tensor, whose gradient "
            "autograd makes"
        )
    return lambda X, slope: _differentiated(f, X, slope)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        shape = getattr(value, "shape", None)
        got = type(value).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise InputError(f"{NAME}: f(X) gave {got}; expected a number") from error


def _differentiated(f: Any, X: Any, slope: bool) -> tuple[float, Any]:
    import torch

    if not slope:
        with torch.no_grad():
            return _number(f(X)), None
    with torch.enable_grad():
        leaf = X.detach().requires_grad_(True)
        value = f(leaf)
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
            raise InputError(
                f"{NAME}: f(X) gave {value!r:.80}; expected a scalar tensor that depends on X, or pass jac="
            )
        (gradient,) = torch.autograd.grad(value, leaf)
    return float(value.detach()), gradient.detach()
