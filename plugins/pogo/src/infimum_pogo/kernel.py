"""One step of POGO on a batch, with every array allocated once: six batched products and few passes beside them.

A = X X^H,  B = X D^H,  R = 1/2 (A D - B X),  S = R R^H
eta = min(lr, safe / ||S||_F^(1/2))                 the step guard; ||R||_2 <= ||S||_F^(1/2)
M = X - eta R,  C = A + eta^2 S = M M^H             exactly: the cross terms cancel
X' = ((1 + l) I - l C) M
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.arrays import Array, namespace
from infimum_pogo.geometry import adjoint, sturdy
from infimum_pogo.landing import best_lambda
from infimum_pogo.small import Narrow, is_large, is_small, plain, unscaled

SAFE = 0.5
"""Largest eta ||R||_2 under the guard. The defect after landing is then at most 3/4 of its fourth power, 0.05, and
the next step brings it to 0.002; sqrt(2) is where rank collapses."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a step did.

    Attributes
    ----------
    wanted : float or array, shape (b,)
        The step size before the guard.
    squares : array, shape (b,)
        `||R R^H||_F` of each matrix; of NumPy where a tensor lent its memory.
    shortened : int or tensor
        How many matrices took a shorter step.
    """

    wanted: Any
    squares: Any
    shortened: Any

    def reach(self) -> float:
        """The largest step wanted, lr ||R||_2 (its bound)."""
        return float((self.wanted * self.squares**0.5).max()) if len(self.squares) else 0.0


class Scratch:
    """Arrays for batches of one shape, layout in memory, dtype and device."""

    def __init__(self, X: Array) -> None:
        xp = namespace(X)
        b, p, _n = X.shape
        where = {} if xp is np else {"device": X.device}
        self.A, self.B, self.S = (xp.empty((b, p, p), dtype=X.dtype, **where) for _ in range(3))
        self.R, self.M, self.out = (xp.empty_like(X) for _ in range(3))
        self.eye = xp.eye(p, dtype=X.dtype, **where)


class Desk:
    """The scratch arrays in use, by shape, dtype and device; the oldest of too many go."""

    def __init__(self, most: int = 32) -> None:
        self.most = most
        self._kept: dict[Any, Any] = {}

    def scratch(self, X: Array, kind: type) -> Any:
        turned = X.shape[-1] > 1 and (X.strides if isinstance(X, np.ndarray) else X.stride())[-1] != 1
        key = (kind, tuple(X.shape), turned, X.dtype, getattr(X, "device", None))
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= self.most:
                del self._kept[next(iter(self._kept))]
            found = self._kept[key] = kind(X)
        return found


class _Desks(threading.local):
    def __init__(self) -> None:
        self.desk = Desk(4)


_DESKS = _Desks()


def own_desk() -> Desk:
    """This thread's desk, for callers who keep none."""
    return _DESKS.desk


# What overflows is told by the caller, in words, or ends a run as nonfinite.
_quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")


@_quiet
def directions(X: Array, D: Array, desk: Desk) -> Any:
    """The first half of a step: A, R and S; nothing is moved. Returns what `move` goes on with."""
    if is_small(X):
        narrow: Narrow = desk.scratch(X, Narrow)
        narrow.directions(X, D)
        return narrow
    lent, against = (plain(X), plain(D)) if is_large(X) else (X, D)
    s: Scratch = desk.scratch(lent, Scratch)
    if isinstance(lent, np.ndarray):
        _numpy_directions(lent, against, s)
    else:
        _torch_directions(lent, against, s)
    return s


def squares(s: Any) -> Array:
    """`||R R^H||_F` of each matrix, shape (b,): between ||R||_2^2 and ||R||_F^2."""
    if isinstance(s, Narrow):
        return s.squares()
    if isinstance(s.S, np.ndarray):
        flat = s.S.reshape(len(s.S), -1)
        flat = flat.view(flat.real.dtype)
        return unscaled(np.sqrt(np.vecdot(flat, flat)), flat)
    return _norms(s.S)


def _norms(S: Any) -> Any:
    """Norms of tensors; fourth powers of gradients overflow early, so they are summed in a wider dtype."""
    if S.device.type != "cpu":  # Not every device has one.
        return namespace(S).linalg.vector_norm(sturdy(S), axis=(-2, -1))
    import torch

    return torch.linalg.vector_norm(S, dim=(-2, -1), dtype=torch.complex128 if S.is_complex() else torch.float64)


@_quiet
def move(
    X: Array, s: Any, lr: Any, safe: float | None = SAFE, optimal: bool = False, out: Array | None = None
) -> tuple[Array, Taken]:
    """The second half: leap along -R by at most lr, and land.

    Parameters
    ----------
    X : array, shape (b, p, n)
    s : what `directions` returned for this X
    lr : float, or array of shape (b,)
        One for all, or one for each matrix.
    safe : float, optional
        Bound of eta ||R||_2 for each matrix; None takes lr for all.
    optimal : bool, default False
        Land by the best step instead of 1/2.
    out : array, optional
        Where the new matrices go, X itself if you like; a new array otherwise.
    """
    seen = squares(s)
    lent = isinstance(seen, np.ndarray) and not isinstance(X, np.ndarray)
    if lent:
        lr = plain(lr)
    eta = lr if safe is None else guarded(seen, lr, safe)
    if isinstance(s, Narrow):
        moved = s.move(X, eta, optimal, out)
    elif lent:
        moved = X.new_empty(X.shape) if out is None else out
        there = plain(X)
        _numpy_move(there, s, eta, optimal, there if moved is X else plain(moved))
    else:
        run = _numpy_move if isinstance(X, np.ndarray) else _torch_move
        moved = run(X, s, eta, optimal, out)
    if lent and out is not None:
        _changed(out)
    return moved, Taken(lr, seen, 0 if safe is None else (eta < lr).sum())


def _changed(tensor: Any) -> None:
    """Tell autograd of a change that NumPy made, so that a backward pass through an old graph is refused."""
    import torch

    torch.autograd.graph.increment_version(tensor)


def guarded(seen: Array, lr: Any, safe: float) -> Array:
    """`min(lr, safe / ||S||_F^(1/2))` of each matrix."""
    if isinstance(seen, np.ndarray):
        return np.minimum(safe / np.sqrt(seen), np.asarray(lr, seen.dtype))
    return seen.rsqrt().mul_(safe).clamp_(max=lr)


def pogo_step(
    X: Array,
    D: Array,
    lr: Any,
    *,
    safe: float | None = SAFE,
    landing: str = "half",
    out: Array | None = None,
    desk: Desk | None = None,
) -> Array:
    """One step of POGO from X against the direction D.

    Parameters
    ----------
    X, D : array, shape (b, p, n), p <= n
        Real or complex, NumPy or torch. D is the gradient or what a base optimizer made of it.
    lr : float
        Step size.
    safe : float or None, default 0.5
        Each matrix takes the step min(lr, safe / ||R||), which keeps it within reach of the landing; None trusts lr.
    landing : {"half", "optimal"}, default "half"
        Landing step 1/2, or the one that leaves the smallest defect (`best_lambda`).
    out : array, optional
        Where the result goes; X itself if you like.

    Returns
    -------
    array, shape (b, p, n)

    Source: POGO (arXiv 2602.14656); the arrangement of the products and the guard are our own.
    """
    s = directions(X, D, desk or own_desk())
    return move(X, s, lr, safe, landing == "optimal", out)[0]


def _numpy_directions(X: np.ndarray, D: np.ndarray, s: Scratch) -> None:
    np.matmul(X, adjoint(X), out=s.A)
    np.matmul(X, adjoint(D), out=s.B)
    np.matmul(s.A, D, out=s.R)
    np.matmul(s.B, X, out=s.M)
    s.R -= s.M
    s.R *= 0.5
    np.matmul(s.R, adjoint(s.R), out=s.S)


def _numpy_move(X: np.ndarray, s: Scratch, eta: Any, optimal: bool, out: np.ndarray | None) -> np.ndarray:
    wide = eta[:, None, None] if isinstance(eta, np.ndarray) else eta
    np.multiply(s.R, wide, out=s.M)
    np.subtract(X, s.M, out=s.M)
    s.S *= wide
    s.S *= wide
    s.A += s.S
    step: Any = best_lambda(s.A - s.eye)[:, None, None] if optimal else 0.5
    s.A *= -step
    s.A += (1.0 + step) * s.eye
    return np.matmul(s.A, s.M, out=out)


def _torch_product(P: Any, V: Any, out: Any) -> Any:
    """out <- P V; batched products want an output that is contiguous, so transposed ones are transposed throughout."""
    import torch

    if out.is_contiguous():
        return torch.bmm(P, V, out=out)
    torch.bmm(V.mT, P.mT, out=out.mT)
    return out


def _torch_directions(X: Any, D: Any, s: Scratch) -> None:
    import torch

    torch.bmm(X, X.mH, out=s.A)
    torch.bmm(X, D.mH, out=s.B)
    _torch_product(s.A, D, s.R)
    if s.R.is_contiguous():
        s.R.baddbmm_(s.B, X, beta=0.5, alpha=-0.5)
    else:
        s.R.mT.baddbmm_(X.mT, s.B.mT, beta=0.5, alpha=-0.5)
    torch.bmm(s.R, s.R.mH, out=s.S)


def _torch_move(X: Any, s: Scratch, eta: Any, optimal: bool, out: Any) -> Any:
    import torch

    if isinstance(eta, torch.Tensor):
        wide = eta.to(X.dtype).view(-1, 1, 1)
        torch.addcmul(X, s.R, wide, value=-1, out=s.M)
        s.A.addcmul_(s.S, wide * wide)
    else:
        torch.sub(X, s.R, alpha=eta, out=s.M)
        s.A.add_(s.S, alpha=eta * eta)
    if optimal:
        step = best_lambda(s.A - s.eye).to(X.dtype).view(-1, 1, 1)
        s.A.mul_(-step).add_((1.0 + step) * s.eye)
    else:
        s.A.mul_(-0.5).diagonal(dim1=-2, dim2=-1).add_(1.5)
    if out is None:
        return torch.bmm(s.A, s.M)
    if out.is_contiguous() or out.mT.is_contiguous():
        return _torch_product(s.A, s.M, out)
    return out.copy_(_torch_product(s.A, s.M, s.out))
