"""Change points by CUSUM: run lengths, false alarms, delays against other detectors, suffixes, and speed.

    python benchmarks/cpd.py [--streams 1000] [--repeats 7] [--seeds 12] [--first-seed 100] [--focus 0] [--smollm2]

Everything is on independent normal samples, or on made-up harmless texts of one length; seeds are fixed. `--focus N`
runs FOCuS (package changepoint-online) on N streams, at about a third of a millisecond a sample. `--smollm2` reads the
texts by SmolLM2-135M too (some minutes). A package that is absent is reported as NOT SHOWN. One thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from infimum_cpd import CharNGram, CusumDetector, EntropyDetector, Reference, SmolLM2, arl0, compare, cusum
from infimum_cpd.smollm2 import TEMPLATE
from infimum_cpd.statistic import first_alarm, glr_onset, last_zero_onset
from infimum_cpd.synthetic import KINDS, library_text, split_corpus, texts_with_suffix
from infimum_cpd.theory import threshold_for

Statistic = Callable[[np.ndarray], np.ndarray]
"""Streams (streams, n) to a statistic of the same shape, whose rise is an alarm."""
N, CHANGE, SHIFTS = 400, 200, (0.5, 1.0, 2.0)
SYSTEM = (
    "You are a careful assistant for Python programmers. Answer from the documentation of the standard library, name "
    "the section you rely on, show a short example where it helps, and say so plainly when you are not sure."
)


def run_lengths(streams: int) -> None:
    print(f"\nMean run length without a change: Siegmund's formula and {streams} simulated streams")
    print(f"{'h':>5} {'k':>5} {'formula':>9} {'simulated':>16} {'ratio':>6}")
    rng = np.random.default_rng(0)
    for h, k in ((3.0, 0.25), (4.0, 0.5), (5.0, 0.5), (3.0, 1.0), (5.0, 0.0), (10.0, 0.0)):
        n = int(12 * arl0(h, k))
        run = np.concatenate([first_alarm(cusum(rng.standard_normal((50, n)), k), h) for _ in range(streams // 50)]) + 1
        error = run.std() / np.sqrt(run.size)
        print(f"{h:>5} {k:>5} {arl0(h, k):>9.1f} {run.mean():>9.1f} ± {error:>4.1f} {run.mean() / arl0(h, k):>6.3f}")


def false_alarms(streams: int) -> None:
    print(f"\nStreams of {streams} with a false alarm in 1000 samples, where 5 % is stated (k = 0.5)")
    last = "with the h of a known reference"
    print(f"{'samples':<12} {'reference':<12} {'warm-up':>8} {'h':>6} {'alarms':>7} {last:>32}")
    rng = np.random.default_rng(1)
    plain = threshold_for(0.05, 1000)
    laws: dict[str, Callable[..., np.ndarray]] = {
        "normal": lambda n: rng.standard_normal(n),
        "chi2(16)": lambda n: rng.chisquare(16, n),
        "log chi2(16)": lambda n: np.log(rng.chisquare(16, n)),
    }
    for name, draw in laws.items():
        for robust in (True, False):
            for n in (32, 64, 200, 1000):
                tops = np.array(
                    [cusum(Reference.of(draw(n), robust).standardize(draw(1000))).max() for _ in range(streams)]
                )
                h = threshold_for(0.05, 1000, samples=n, robust=robust)
                kind = "median, MAD" if robust else "mean, std"
                print(
                    f"{name:<12} {kind:<12} {n:>8} {h:>6.2f} {(tops >= h).mean():>7.1%} {(tops >= plain).mean():>32.1%}"
                )


def window(width: int) -> Statistic:
    def means(z: np.ndarray) -> np.ndarray:
        sums = np.cumsum(z, axis=1)
        sums[:, width:] -= sums[:, :-width].copy()
        sums[:, : width - 1] = -np.inf
        return sums / width

    return means


def streaming(make: Callable[[], object], read: Callable[[object], float]) -> Statistic:
    """A detector of another library, one sample at a time, by the statistic that it compares with its threshold."""

    def run(z: np.ndarray) -> np.ndarray:
        out = np.empty_like(z)
        for i, row in enumerate(z):
            detector = make()
            for t, one in enumerate(row):
                detector.update(float(one))  # type: ignore[attr-defined]
                out[i, t] = read(detector)
        return out

    return run


def delays(streams: int, focus: int) -> None:
    print(
        f"\nMean delay (missed), median onset error by likelihood ratio / by last zero; {streams} streams of {N}, shift"
    )
    print(f"at {CHANGE}, every threshold from streams without a change so that 5 % of them alarm")
    methods: dict[str, tuple[Statistic, int]] = {
        f"CUSUM k={k:g}": (lambda z, k=k: cusum(z, k), streams) for k in (0.0, 0.25, 0.5, 1.0)
    }
    methods |= {f"window {width}": (window(width), streams) for width in (5, 20, 50)}
    few = min(streams, 300)
    if find_spec("river"):
        from river.drift import PageHinkley

        make = lambda: PageHinkley(min_instances=1, delta=0.25, threshold=np.inf, mode="up")  # noqa: E731
        methods["PageHinkley (river)"] = (streaming(make, lambda d: d._sum_increase - d._min_increase), few)  # type: ignore[attr-defined]
    else:
        print("PageHinkley (river)    NOT SHOWN: river is absent")
    if focus and find_spec("changepoint_online"):
        from changepoint_online import Focus, Gaussian

        methods["FOCuS"] = (streaming(lambda: Focus(Gaussian(loc=0)), lambda d: d.statistic()), focus)  # type: ignore[attr-defined]
    else:
        print("FOCuS                  NOT SHOWN: give --focus N, with changepoint-online installed")
    print(f"{'method':<22}" + "".join(f"{f'shift {one}':>28}" for one in SHIFTS))
    for name, (statistic, count) in methods.items():
        rng = np.random.default_rng(2)
        h = float(np.quantile(statistic(rng.standard_normal((count, N))).max(axis=1), 0.95))
        print(
            f"{name:<22}" + "".join(f"{_delay(name, statistic, h, rng, count, one):>28}" for one in SHIFTS), flush=True
        )


def _delay(name: str, statistic: Statistic, h: float, rng: np.random.Generator, count: int, shift: float) -> str:
    z = rng.standard_normal((count, N))
    z[:, CHANGE:] += shift
    w = statistic(z)
    alarms = first_alarm(w, h)
    right = np.flatnonzero(alarms >= CHANGE)
    missed = (alarms < 0).mean()
    text = f"{(alarms[right] - CHANGE).mean():.1f}" + (f" ({missed:.0%})" if missed >= 0.01 else "")
    if name.startswith("CUSUM"):
        glr = np.median([abs(glr_onset(z[i], alarms[i]) - CHANGE) for i in right])
        zero = np.median([abs(last_zero_onset(w[i], alarms[i]) - CHANGE) for i in right])
        text += f", {glr:.0f} / {zero:.0f}"
    return text


def suffixes(seeds: int, first: int) -> None:
    train, corpus = split_corpus(library_text())
    model = CharNGram(train)
    for kind in KINDS:
        tables = []
        for seed in range(first, first + seeds):
            x = texts_with_suffix(model, corpus, kind, 60, np.random.default_rng(seed))
            tables.append(compare(EntropyDetector(model, x.system), x.harmless, x.suspicious, [x.start] * 60))
        print(
            f"\nSuffixes '{kind}': means over seeds {first} to {first + seeds - 1} (range of the AUROC), "
            "60 + 60 texts of 280 characters each"
        )
        print(f"{'method':<22} {'AUROC':>6} {'range':>13} {'F1':>6} {'found at 5 %':>13} {'in suffix':>10}")
        for name in tables[0].rows:
            rows = [one.rows[name] for one in tables]
            area = [one["auroc"] for one in rows]
            inside = f"{np.mean([one['inside'] for one in rows]):>10.1%}" if "inside" in rows[0] else ""
            found = np.mean(
                [(bad > np.quantile(good, 0.95)).mean() for good, bad in (one.scores[name] for one in tables)]
            )
            span = f"{min(area):.3f}–{max(area):.3f}"
            f1 = np.mean([one["f1"] for one in rows])
            print(f"{name:<22} {np.mean(area):>6.3f} {span:>13} {f1:>6.3f} {found:>13.1%} {inside}")


def by_smollm2(count: int = 40) -> None:
    train, corpus = split_corpus(library_text())
    model, reader = CharNGram(train), SmolLM2()
    for kind in KINDS:
        x = texts_with_suffix(model, corpus, kind, count, np.random.default_rng(0))
        table = compare(EntropyDetector(reader, SYSTEM, template=TEMPLATE), x.harmless, x.suspicious, [x.start] * count)
        print(f"\nSuffixes '{kind}' of the character model, read by SmolLM2-135M: {count} + {count} texts\n{table}")


def recomputed(stream: list[float], baseline: list[float], k: float) -> float:
    """The largest W, with the baseline's mean, variance, median and MAD made anew for every token, in plain Python."""
    w = top = 0.0
    for one in stream:
        mean = sum(baseline) / len(baseline)
        _variance = sum([(x - mean) ** 2 for x in baseline]) / len(baseline)
        center = _median(baseline)
        scale = max(1.4826 * _median([abs(x - center) for x in baseline]), 1e-6)
        w = max(0.0, w + (one - center) / scale - k)
        top = max(top, w)
    return top


def recomputed_numpy(stream: list[float], baseline: list[float], k: float) -> float:
    """The same with NumPy doing the baseline."""
    w = top = 0.0
    for one in stream:
        x = np.asarray(baseline)
        _mean, _variance, center = x.mean(), x.var(), np.median(x)
        scale = max(1.4826 * np.median(np.abs(x - center)), 1e-6)
        w = max(0.0, w + (one - center) / scale - k)
        top = max(top, w)
    return float(top)


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else 0.5 * (ordered[half - 1] + ordered[half])


def speed(repeats: int) -> None:
    rng = np.random.default_rng(3)
    streams, baseline = rng.standard_normal((100, 280)), rng.standard_normal(400)
    fixed = Reference.of(baseline)
    few, listed = streams[:5].tolist(), baseline.tolist()
    detector = CusumDetector(reference=fixed, h=1e9)

    def stream_one() -> None:
        for one in few[0]:
            detector.update(one)

    timed: dict[str, tuple[Callable[[], object], int]] = {
        "whole streams": (lambda: cusum(Reference.of(baseline).standardize(streams), 0.5), streams.size),
        "update()": (stream_one, 280),
        "recomputed baseline": (lambda: [recomputed(one, listed, 0.5) for one in few], 5 * 280),
        "the same by NumPy": (lambda: [recomputed_numpy(one, listed, 0.5) for one in few], 5 * 280),
    }
    if find_spec("river"):
        from river.drift import PageHinkley

        timed["PageHinkley (river)"] = (lambda: [p.update(one) for p in [PageHinkley()] for one in few[0]], 280)
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeats):
        for name, (call, count) in timed.items():
            began = time.process_time()
            call()
            seconds[name].append((time.process_time() - began) / count)
    whole = cusum(fixed.standardize(streams[:5]), 0.5).max(axis=1)
    difference = np.abs(whole - [recomputed(one, listed, 0.5) for one in few]).max()
    print("\n100 streams of 280 samples, a baseline of 400: microseconds of CPU a sample")
    print(f"(median of {repeats}, interleaved; the results differ by {difference:.0e} at most)")
    slow = seconds["recomputed baseline"]
    for name, times in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(slow, times, strict=True))
        print(f"{name:<22} {1e6 * statistics.median(times):>10.3f}   {ratio:>8.0f} × the recomputed baseline")
    if not find_spec("river"):
        print("PageHinkley (river)    NOT SHOWN: river is absent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1000, help="simulated streams (default 1000)")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of each timing (default 7)")
    parser.add_argument("--seeds", type=int, default=12, help="seeds of the suffix tables (default 12)")
    parser.add_argument(
        "--first-seed",
        type=int,
        default=100,
        help="the first of them; 0 to 7 were seen while it was made (default 100)",
    )
    parser.add_argument("--only-suffixes", action="store_true", help="the suffix tables and nothing else")
    parser.add_argument("--focus", type=int, default=0, help="streams for FOCuS (default 0: not shown)")
    parser.add_argument("--smollm2", action="store_true", help="read the texts by SmolLM2 too")
    given = parser.parse_args()
    if not given.only_suffixes:
        speed(given.repeats)
        run_lengths(given.streams)
        false_alarms(given.streams)
        delays(given.streams, given.focus)
    suffixes(given.seeds, given.first_seed)
    if given.smollm2:
        by_smollm2()


if __name__ == "__main__":
    main()
