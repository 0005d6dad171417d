"""What section 4 of the paper and Weitzman's theorem say, on a Gaussian process whose kernel and costs are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from scipy.stats import norm

from infimum_costbo import log_ei, log_ei_per_cost, pbgi
from infimum_costbo.judge import Judge, Terms
from infimum_costbo.observations import Observations, Record
from infimum_costbo.surrogate import Hyper, Posterior

POINTS = 61
GRID = np.linspace(0.0, 1.0, POINTS)
HYPER = Hyper(1.0, np.array([0.12]), 1e-6)
KERNEL = Posterior.between(HYPER, GRID[:, None])
FACTOR = np.linalg.cholesky(KERNEL + 1e-9 * np.eye(POINTS))


def sample(seed: int) -> Any:
    return FACTOR @ np.random.default_rng(seed).standard_normal(POINTS)


def belief(f: Any, chosen: list[int], left: Any) -> tuple[Any, Any]:
    """Posterior mean and standard deviation, by the textbook's formula."""
    cross = KERNEL[np.ix_(chosen, left)]
    weights = np.linalg.solve(KERNEL[np.ix_(chosen, chosen)] + HYPER.noise * np.eye(len(chosen)), cross)
    variance = HYPER.amplitude - np.einsum("ij,ij->j", weights, cross)
    return f[chosen] @ weights, np.sqrt(np.maximum(variance, 1e-12))


def run(f: Any, cost: Any, lam: float, acquisition: str, steps: int) -> dict[str, Any]:
    """A trajectory without stopping: at each step both forms of the rule, and the gain of what was chosen."""
    chosen = [5, 25, 45]
    out: dict[str, list[Any]] = {name: [] for name in ("by_index", "by_gain", "best", "paid", "expected", "price")}
    paid = 0.0
    for _ in range(steps):
        left = np.setdiff1d(np.arange(POINTS), chosen)
        mean, sd = belief(f, chosen, left)
        best, price = float(f[chosen].min()), cost[left]
        g, eipc = pbgi(mean, sd, price, lam), log_ei_per_cost(mean, sd, best, price)
        k = int(np.argmin(g) if acquisition == "pbgi" else np.argmax(eipc))
        out["by_index"].append(bool(g.min() >= best))
        out["by_gain"].append(bool(eipc.max() <= math.log(lam)))
        out["best"].append(best)
        out["paid"].append(paid)
        out["expected"].append(float(np.exp(log_ei(mean[k], sd[k], best))))
        out["price"].append(lam * float(price[k]))
        chosen.append(int(left[k]))
        paid += float(price[k])
    out["best"].append(float(f[chosen].min()))
    return out


COSTS = {"uniform": np.ones(POINTS), "linear": (1 + 20 * GRID) / 11, "waves": 1.1 + np.sin(18 * GRID)}


def test_the_posterior_is_the_one_of_the_textbook() -> None:
    f, chosen, left = sample(0), [5, 25, 45, 20], np.array([0, 6, 30, 60])
    model = Posterior(GRID[chosen][:, None], f[chosen], HYPER)
    assert np.allclose(model.at(GRID[left][:, None]), belief(f, chosen, left), rtol=1e-6)


def test_both_forms_of_the_rule_stop_at_the_same_time() -> None:
    agreed = total = 0
    times = set()
    for seed in range(20):
        f = sample(seed)
        for cost in COSTS.values():
            for acquisition in ("pbgi", "logeipc"):
                for lam in (0.1, 0.01):
                    out = run(f, cost, lam, acquisition, 12)
                    stops = [next((k for k, one in enumerate(out[n]) if one), -1) for n in ("by_index", "by_gain")]
                    agreed += stops[0] == stops[1] and out["by_index"] == out["by_gain"]
                    total += 1
                    times.add(stops[0])
    assert agreed == total == 240
    assert len(times) > 8


@pytest.mark.parametrize("acquisition", ["pbgi", "logeipc"])
def test_no_step_before_the_stop_costs_more_than_it_is_expected_to_bring(acquisition: str) -> None:
    lam, first, last, spent, least = 0.05, [], [], [], math.inf
    for seed in range(100):
        out = run(sample(1000 + seed), COSTS["linear"], lam, acquisition, 8)
        stop = next((k for k, one in enumerate(out["by_gain"]) if one), 8)
        ratios = [e / p for e, p in zip(out["expected"][:stop], out["price"][:stop], strict=True)]
        least = min([least, *ratios])
        first.append(out["best"][0])
        last.append(out["best"][stop])
        spent.append(sum(out["price"][:stop]))
    assert least >= 1.0
    # A supermartingale: stopping by the rule is better on average than stopping at once, and the cost is bounded by
    # what was gained. Both by more than five standard errors here.
    margin = np.array(first) - np.array(last) - np.array(spent)
    assert margin.mean() > 5 * margin.std(ddof=1) / math.sqrt(len(margin))
    assert 0.0 < np.mean(spent) <= np.mean(first) - np.mean(last)


def test_realized_improvements_are_those_that_were_expected() -> None:
    away = []
    for seed in range(100):
        out = run(sample(3000 + seed), COSTS["uniform"], 0.05, "pbgi", 6)
        away.append(out["best"][0] - out["best"][-1] - sum(out["expected"]))
    assert abs(np.mean(away)) < 4 * np.std(away, ddof=1) / math.sqrt(len(away))


def test_independent_boxes_are_opened_as_dynamic_programming_would() -> None:
    """Weitzman: with independent boxes the index is optimal. 200 instances of three normal boxes on a fine grid."""
    values = np.linspace(-6.0, 6.0, 1201)
    edges = np.concatenate([[-math.inf], (values[1:] + values[:-1]) / 2, [math.inf]])
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(200):
        mean, sd, cost = rng.normal(0, 0.7, 3), rng.uniform(0.2, 1.2, 3), rng.uniform(0.02, 0.5, 3)
        lam = float(rng.uniform(0.2, 1.5))
        laws = np.diff(norm.cdf(edges[None], mean[:, None], sd[:, None]), axis=1)
        index = pbgi(mean, sd, cost, lam)
        optimal = _boxes(values, laws, lam * cost, None)
        ours = _boxes(values, laws, lam * cost, index)
        assert np.all(ours >= optimal - 1e-12)
        assert np.max(ours - optimal) < 2e-5
        gains.append(np.max(values[700] - optimal[700]))
    assert np.median(gains) > 0.1


def _boxes(values: Any, laws: Any, price: Any, index: Any) -> Any:
    """Expected best value plus price for every best value so far, by the index or (None) optimally."""
    left: dict[frozenset[int], Any] = {frozenset(): values}
    for size in (1, 2, 3):
        for boxes in (s for s in map(frozenset, _subsets(3)) if len(s) == size):
            opened = {k: price[k] + _after(left[boxes - {k}], laws[k]) for k in boxes}
            if index is None:
                left[boxes] = np.minimum(values, np.min(list(opened.values()), axis=0))
            else:
                k = min(boxes, key=lambda one: index[one])
                left[boxes] = np.where(index[k] >= values, values, opened[k])
    return left[frozenset({0, 1, 2})]


def _after(value: Any, law: Any) -> Any:
    """E[value(min(b, f))] for every b on the grid."""
    below = np.cumsum(law * value) - law * value
    return below + value * (1.0 - (np.cumsum(law) - law))


def _subsets(n: int) -> list[tuple[int, ...]]:
    return [tuple(k for k in range(n) if bits >> k & 1) for bits in range(2**n)]


LINE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(-2.0, 2.0)}


def observed(values: Any, points: Any, scale: float = 1.0, shift: float = 0.0) -> Observations:
    records = [
        Record(k, {"x": float(p[0]), "y": float(p[1])}, scale * float(v) + shift, 1.0 + float(p[0]))
        for k, (v, p) in enumerate(zip(values, points, strict=True))
    ]
    return Observations(LINE, records)


def test_units_and_origin_of_the_objective_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    points = np.stack([rng.random(12), rng.uniform(-2, 2, 12)], axis=1)
    values = (points[:, 0] - 0.3) ** 2 + 0.2 * (points[:, 1] - 0.5) ** 2
    plain = Judge(Terms(0.02, "user_attr:s", None))
    moved = Judge(Terms(0.02 * 50, "user_attr:s", None))
    for n in range(6, 13):
        a = plain.look(observed(values[:n], points[:n]))
        b = moved.look(observed(values[:n], points[:n], 50.0, 7.0))
        assert a.stop == b.stop
        assert b.log_eipc - math.log(50.0) == pytest.approx(a.log_eipc, abs=1e-4)
        assert b.price == pytest.approx(a.price, rel=1e-3)


def test_extreme_lam() -> None:
    levels = [f"c{k}" for k in range(12)]
    space = {"c": CategoricalDistribution(levels)}
    rng = np.random.default_rng(1)
    records = [Record(k, {"c": one}, float(rng.normal()), 1.0) for k, one in enumerate(levels)]
    greedy, patient = Judge(Terms(1e9)), Judge(Terms(1e-300))
    stops = []
    for n in range(1, 13):
        seen = Observations(space, records[:n])
        stops.append((greedy.look(seen).stop, patient.look(seen).stop))
    assert [one[0] for one in stops] == [False] * 3 + [True] * 9
    assert [one[1] for one in stops] == [False] * 11 + [True]
    assert patient.history[-1].reason == "every point is evaluated"
