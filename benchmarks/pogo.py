"""What a step of POGO costs, how near to orthonormal it stays, and what it reaches, beside its rivals.

    python benchmarks/pogo.py [--only steps buckets gaps guard reach pca mlp] [--device cuda] [--repeats 9]

Times are CPU time of one thread (wall clock with --device other than cpu), medians of interleaved repeats. Ratios hold
within one table. A peer that is not installed is reported as NOT SHOWN.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from pogo_digits import mlp, online_pca  # noqa: E402

from infimum.errors import NonFiniteError  # noqa: E402
from infimum_pogo import POGO, Landing, RiemannianSGD, gaps, polar  # noqa: E402

torch.set_num_threads(1)
SHAPES = ((1, 64, 256), (1, 256, 512), (64, 32, 32), (1024, 16, 32), (4096, 4, 8), (16384, 3, 3))
DEVICE_SHAPES = (*SHAPES, (16384, 4, 8), (16384, 16, 32), (64, 512, 512))
GEOOPT = importlib.util.find_spec("geoopt") is not None
Step = Callable[[], Any]


def start(shape: tuple[int, ...], seed: int = 0, device: str = "cpu") -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return polar(torch.randn(shape, generator=generator)).to(device)


def timed(calls: dict[str, Step], repeats: int, device: str = "cpu", block: float = 0.02) -> dict[str, float]:
    """Milliseconds of each call: medians of interleaved blocks of at least `block` seconds each.

    A block keeps the caches warm for what it measures, as training that does nothing else would.
    """
    clock = time.thread_time if device == "cpu" else time.perf_counter
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None

    def spent(call: Step, count: int) -> float:
        wait()
        begun = clock()
        for _ in range(count):
            call()
        wait()
        return (clock() - begun) / count

    counts: dict[str, int] = {}
    for name, call in calls.items():
        call()
        counts[name] = max(1, math.ceil(block / max(spent(call, 2), 1e-6)))
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            found[name].append(spent(call, counts[name]))
    return {name: 1e3 * float(np.median(some)) for name, some in found.items()}


# Steps


def bare(X: torch.Tensor, D: torch.Tensor) -> Step:
    """The six batched products of a step and nothing else."""
    b, p, _ = X.shape
    A, B, S = (X.new_empty(b, p, p) for _ in range(3))
    R, Y, Z = (torch.empty_like(X) for _ in range(3))

    def run() -> None:
        torch.bmm(X, X.mT, out=A)
        torch.bmm(X, D.mT, out=B)
        torch.bmm(A, D, out=R)
        torch.bmm(B, X, out=Y)
        torch.bmm(R, R.mT, out=S)
        torch.bmm(S, R, out=Z)

    return run


def trained(p: torch.Tensor, optimizer: Any, C: torch.Tensor) -> Step:
    """One step on the linear loss <p, C>, forward and backward pass with it."""

    def run() -> None:
        optimizer.zero_grad()
        (p * C).sum().backward()
        optimizer.step()

    return run


def parametrized(X: torch.Tensor, C: torch.Tensor) -> Step:
    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(X.mT.contiguous())

    holder = torch.nn.utils.parametrizations.orthogonal(Holder().to(X.device), orthogonal_map="matrix_exp")
    optimizer = torch.optim.Adam(holder.parameters(), lr=1e-3)

    def run() -> None:
        optimizer.zero_grad()
        (holder.weight * C.mT).sum().backward()
        optimizer.step()

    return run


def steps(args: argparse.Namespace) -> None:
    """The time of a step."""
    print(
        "\nStep time. bare: the six batched products alone, against optimizer.step(); the others with the linear loss,"
    )
    print("its backward pass and the step, as multiples of POGO with base sgd.")
    names = ("vadam", "optimal landing", "Landing", "Riemannian QR (ours)", "geoopt RSGD QR", "matrix_exp + Adam")
    print(f"{'b, p, n':>16} {'bare ms':>8} {'step ms':>8} {'step/bare':>9} {'all ms':>8}  " + "  ".join(names))
    for shape in SHAPES[: args.rows] if args.device == "cpu" else DEVICE_SHAPES:
        X, C = start(shape, device=args.device), torch.randn(shape, generator=torch.Generator().manual_seed(1))
        C = (C / math.sqrt(shape[1] * shape[2])).to(args.device)

        def parameter(X: torch.Tensor = X) -> Any:
            return torch.nn.Parameter(X.clone())

        alone = parameter()
        alone.grad = C.clone()
        only = POGO([alone], lr=0.1, base="sgd")
        p, q, r, s, t = (parameter() for _ in range(5))
        calls = {
            "bare": bare(X, C),
            "step": only.step,
            "POGO": trained(p, POGO([p], lr=0.1, base="sgd"), C),
            "vadam": trained(q, POGO([q], lr=0.1), C),
            "optimal landing": trained(r, POGO([r], lr=0.1, base="sgd", landing="optimal"), C),
            "Landing": trained(s, Landing([s], lr=0.1), C),
            "Riemannian QR (ours)": trained(t, RiemannianSGD([t], lr=0.1), C),
        }
        if GEOOPT:
            import geoopt

            g = geoopt.ManifoldParameter(X.mT.contiguous(), manifold=geoopt.Stiefel(canonical=False))
            calls["geoopt RSGD QR"] = trained(g, geoopt.optim.RiemannianSGD([g], lr=0.1), C.mT.contiguous())
        if args.device == "cpu" or shape[0] * shape[1] ** 2 <= 2**24:
            calls["matrix_exp + Adam"] = parametrized(X, C)
        ms = timed(calls, args.repeats, args.device)
        ratios = "  ".join(
            f"{ms[name] / ms['POGO']:>{len(name)}.2f}" if name in ms else f"{'NOT SHOWN':>{len(name)}}"
            for name in names
        )
        share = ms["step"] / ms["bare"]
        print(f"{shape!s:>16} {ms['bare']:8.3f} {ms['step']:8.3f} {share:9.2f} {ms['POGO']:8.3f}  {ratios}")


def buckets(args: argparse.Namespace) -> None:
    """A thousand parameters against one."""
    print("\n1000 separate parameters (1, 4, 8) against one of (1000, 4, 8): optimizer.step(), ms")
    many = [torch.nn.Parameter(start((1, 4, 8), k, args.device)) for k in range(1000)]
    one = torch.nn.Parameter(torch.cat([p.detach() for p in many]))
    for k, p in enumerate(many):
        p.grad = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(k)).to(args.device)
    one.grad = torch.cat([p.grad for p in many])
    for base in ("sgd", "vadam"):
        calls = {
            "stacked": POGO([one], lr=0.1, base=base).step,
            "separate": POGO(many, lr=0.1, base=base).step,
        }
        if base == "sgd":
            calls["no bucket"] = POGO(many, lr=0.1, base=base, bucket=False).step
        ms = timed(calls, 2 * args.repeats + 1, args.device)
        told = ", ".join(f"{name} {value:.2f}" for name, value in ms.items())
        print(f"  {base}: {told}; separate/stacked {ms['separate'] / ms['stacked']:.2f}")


# Problems of the guard and the gaps


class Task:
    """A loss of one batch of matrices, its start and its optimum where that is known."""

    def __init__(self, name: str, X0: torch.Tensor, loss: Callable[[torch.Tensor], torch.Tensor], best: float) -> None:
        self.name, self.X0, self.loss, self.best = name, X0, loss, best

    def relative(self, X: torch.Tensor) -> float:
        """(F - F*) / |F*| at the nearest orthonormal matrices."""
        with torch.no_grad():
            return (float(self.loss(polar(X.double()))) - self.best) / abs(self.best)


def procrustes_task(b: int, p: int, n: int, iterations: int, name: str) -> tuple[Task, int]:
    """1/2 ||A X - B||^2 with B = A X0 + noise; the optimum is the polar factor of A^T B."""
    rng = torch.Generator().manual_seed(5)
    A = 0.4 * torch.randn(b, p, p, generator=rng, dtype=torch.float64) / math.sqrt(p) + torch.eye(
        p, dtype=torch.float64
    )
    B = A @ polar(torch.randn(b, p, n, generator=rng, dtype=torch.float64))
    B = B + 0.1 * torch.randn(b, p, n, generator=rng, dtype=torch.float64)
    best = 0.5 * float((A @ polar(A.mT @ B) - B).square().sum())

    def loss(X: torch.Tensor) -> torch.Tensor:
        return 0.5 * (A.to(X.dtype) @ X - B.to(X.dtype)).square().sum()

    return Task(name, start((b, p, n), 9), loss, best), iterations


def pca_task() -> tuple[Task, int]:
    """-1/2 tr(X C X^T), largest eigenvalue 8, condition number 1000."""
    rng = torch.Generator().manual_seed(6)
    Q = polar(torch.randn(300, 300, generator=rng, dtype=torch.float64))
    C = (8.0 * Q * torch.logspace(0, -3, 300, dtype=torch.float64)) @ Q.mT
    best = -0.5 * float(torch.linalg.eigvalsh(C)[-60:].sum())
    X0 = start((1, 60, 300), 10)
    return Task("PCA 60x300", X0, lambda X: -0.5 * (X * (X @ C.to(X.dtype))).sum(), best), 300


def tasks() -> list[tuple[Task, int]]:
    return [
        procrustes_task(16, 32, 48, 200, "Procrustes 16x32x48"),
        pca_task(),
        procrustes_task(4096, 4, 8, 60, "4096 of 4x8"),
        procrustes_task(1024, 16, 32, 60, "1024 of 16x32"),
    ]


def descend(
    task: Task, make: Callable[[Any], Any], iterations: int, falling: bool, watch: bool = True
) -> dict[str, Any]:
    """A run with fixed or falling (cosine) step size: losses, and the gaps on the way if they are watched."""
    p = torch.nn.Parameter(task.X0.clone())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = make(p)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations) if falling else None
    first, worst = float(task.loss(p.detach())), 0.0
    for _ in range(iterations):
        optimizer.zero_grad()
        task.loss(p).backward()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                optimizer.step()
        except (ArithmeticError, NonFiniteError):
            return {"nan": True}
        except Exception as error:
            if "NaN" not in str(error):
                raise
            return {"nan": True}
        if schedule is not None:
            schedule.step()
        worst = max(worst, float(gaps(p.detach()).max())) if watch else worst
        if not math.isfinite(worst):
            return {"nan": True}
    last = float(task.loss(p.detach()))
    out = {"nan": not math.isfinite(last), "worst": worst, "end": float(gaps(p.detach()).max())}
    share = optimizer.diagnostics().guard_share if isinstance(optimizer, POGO) else math.nan
    return {
        **out,
        "fall": (last - task.best) / (first - task.best),
        "relative": task.relative(p.detach()),
        "guard": share,
    }


def gap_table(args: argparse.Namespace) -> None:
    """How far from orthonormal, at lr 0.1."""
    print("\nGap ||X X^T - I||, float32: the largest at fixed lr 0.1, and at the end of a falling lr from 0.1")
    print(f"{'':22} {'POGO max':>9} {'POGO end':>9} {'Landing max':>11} {'Landing end':>11}")
    for task, iterations in tasks():
        made = {
            "POGO": lambda p: POGO([p], lr=0.1, base="sgd", momentum=0.0),
            "Landing": lambda p: Landing([p], lr=0.1),
        }
        fixed = {name: descend(task, make, iterations, False) for name, make in made.items()}
        falls = {name: descend(task, make, iterations, True) for name, make in made.items()}
        shown = [fixed["POGO"]["worst"], falls["POGO"]["end"], fixed["Landing"]["worst"], falls["Landing"]["end"]]
        print(f"{task.name:22} {shown[0]:9.1e} {shown[1]:9.1e} {shown[2]:11.1e} {shown[3]:11.1e}")


def guard(args: argparse.Namespace) -> None:
    """Large step sizes with and without the guard."""
    rates = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
    print(
        "\nStep guard, base sgd, falling lr: share of the loss above the optimum that is left, (share of steps that the"
    )
    print("guard shortened); NaN where a run leaves the finite numbers. Second line: without the guard.")
    print(f"{'lr':22} " + " ".join(f"{lr:>16}" for lr in rates))
    for task, iterations in tasks():
        for safe in (0.5, None):
            cells = []
            for lr in rates:
                made = descend(
                    task, lambda p, lr=lr, safe=safe: POGO([p], lr=lr, base="sgd", safe=safe), iterations, True
                )
                share = f" ({made['guard']:.1%})" if safe and not made["nan"] else ""
                cells.append("NaN" if made["nan"] else f"{made['fall']:.1e}{share}")
            print(f"{task.name if safe else '  without':22} " + " ".join(f"{cell:>16}" for cell in cells))


def reach(args: argparse.Namespace) -> None:
    """What is reached, with step size and momentum tuned for each."""
    print(
        "\nRelative gap (F - F*)/|F*| at equal iterations, falling lr, float32 runs: the best of the step sizes tried,"
    )
    print("and of momentum .3 and .6, for each")
    names = ("POGO sgd", "POGO vadam", "Landing", "Riemannian QR (ours)", "geoopt RSGD QR")
    print(f"{'':22} {'steps':>5} " + " ".join(f"{name:>22}" for name in names))
    longer = procrustes_task(4096, 4, 8, 240, "4096 of 4x8")
    for task, iterations in [*tasks(), longer]:
        cells = []
        for name in names:
            found = [(descend(task, _maker(name, *s), iterations, True, watch=False), s) for s in _settings(name)]
            good = [(one["relative"], s) for one, s in found if not one["nan"]]
            cells.append("{:.1e} ({:g}, {:g})".format(min(good)[0], *min(good)[1]) if good else "NOT SHOWN")
        print(f"{task.name:22} {iterations:5} " + " ".join(f"{cell:>22}" for cell in cells), flush=True)


def _settings(name: str) -> list[tuple[float, float]]:
    """Pairs of lr and momentum to try; none for a peer that is not installed."""
    if "geoopt" in name and not GEOOPT:
        return []
    rates = (1.0, 3.0, 10.0) if "vadam" in name else (0.4, 0.8, 1.6, 3.2)
    return [(lr, momentum) for lr in rates for momentum in ((0.9,) if "vadam" in name else (0.3, 0.6))]


def _maker(name: str, lr: float, momentum: float) -> Callable[[Any], Any]:
    if name == "geoopt RSGD QR":
        return lambda p: Geoopt(p, lr, momentum)
    return {
        "POGO sgd": lambda p: POGO([p], lr=lr, base="sgd", momentum=momentum),
        "POGO vadam": lambda p: POGO([p], lr=lr, betas=(momentum, 0.999)),
        "Landing": lambda p: Landing([p], lr=lr, momentum=momentum),
        "Riemannian QR (ours)": lambda p: RiemannianSGD([p], lr=lr, momentum=momentum),
    }[name]


class Geoopt(torch.optim.SGD):
    """geoopt's Riemannian SGD on the transposed matrices."""

    def __init__(self, p: Any, lr: float, momentum: float) -> None:
        super().__init__([p], lr=lr)
        import geoopt

        self.twin = geoopt.ManifoldParameter(p.detach().mT.contiguous(), manifold=geoopt.Stiefel(canonical=False))
        self.inner = geoopt.optim.RiemannianSGD([self.twin], lr=lr, momentum=momentum)

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        p = self.param_groups[0]["params"][0]
        self.inner.param_groups[0]["lr"] = self.param_groups[0]["lr"]
        self.twin.grad = p.grad.mT.contiguous()
        self.inner.step()
        with torch.no_grad():
            p.copy_(self.twin.mT)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "steps": steps,
    "buckets": buckets,
    "gaps": gap_table,
    "guard": guard,
    "reach": reach,
    "pca": online_pca,
    "mlp": mlp,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    print(f"torch {torch.__version__}, device {args.device}, 1 thread; geoopt {'installed' if GEOOPT else 'NOT SHOWN'}")
    for name in args.only:
        PARTS[name](args)


if __name__ == "__main__":
    main()
