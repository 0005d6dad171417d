"""Exact derivations that the plan makes itself: what follows from what, by rules that are data."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """`supplies` follows exactly from `needs`; `make` turns the callables of the needs into the new one."""

    supplies: str
    needs: tuple[str, ...]
    label: str
    make: Callable[..., Callable[..., Any]]


def _pair(value: Any, gradient: Any) -> Any:
    return lambda x: (value(x), gradient(x))


def _moreau(prox: Any) -> Any:
    return lambda v, s: v - s * prox(v / s, 1.0 / s)


def _first(pair: Any) -> Any:
    return lambda x: pair(x)[0]


def _second(pair: Any) -> Any:
    return lambda x: pair(x)[1]


def _row(values: Any) -> Any:
    return lambda x: values(x[None, ...])[0]


def _projected(project: Any) -> Any:
    return lambda v, t: project(v)


def _projected_step(project: Any) -> Any:
    return lambda x, d: project(x + d)


RULES: tuple[Rule, ...] = (
    Rule("value", ("value_and_gradient",), "first of value_and_gradient", _first),
    Rule("gradient", ("value_and_gradient",), "second of value_and_gradient", _second),
    Rule("value", ("values",), "batch of one", _row),
    Rule("value_and_gradient", ("value", "gradient"), "value and gradient", _pair),
    Rule("prox", ("project",), "projection", _projected),
    Rule("prox_conjugate", ("prox",), "Moreau", _moreau),
    Rule("step", ("project",), "projected step", _projected_step),
)


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a capability is had: the capabilities it rests on, and the labels of the rules in between."""

    name: str
    leaves: frozenset[str]
    labels: tuple[str, ...] = ()
    rule: Rule | None = None


def derive(name: str, offers: Collection[str], _open: frozenset[str] = frozenset()) -> Derivation | None:
    """How `name` follows from `offers`: as it is, or by rules; None if it does not."""
    if name in offers:
        return Derivation(name, frozenset({name}))
    for rule in RULES:
        if rule.supplies != name or _open & set(rule.needs) or name in _open:
            continue
        below = [derive(need, offers, _open | {name}) for need in rule.needs]
        if all(one is not None for one in below):
            found = [one for one in below if one is not None]
            leaves = frozenset().union(*(one.leaves for one in found))
            labels = tuple(label for one in found for label in one.labels)
            return Derivation(name, leaves, (*labels, rule.label), rule)
    return None


def obtain(name: str, offers: Collection[str], get: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
    """The callable of `name`, made from those that `get` gives; `derive(name, offers)` must not be None."""
    found = derive(name, offers)
    if found is None:
        raise KeyError(name)
    if found.rule is None:
        return get(name)
    return found.rule.make(*(obtain(need, offers, get) for need in found.rule.needs))
