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
    convex: bool = False
    """Whether it holds for convex functions and sets only."""


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


def _times(hessian: Any) -> Any:
    return lambda x, v: (hessian(x) @ v.reshape(-1)).reshape(v.shape)


def _projected(project: Any) -> Any:
    return lambda v, t: project(v)


def _projected_step(project: Any) -> Any:
    return lambda x, d: project(x + d)


RULES: tuple[Rule, ...] = (
    Rule("value", ("value_and_gradient",), "first of value_and_gradient", _first),
    Rule("gradient", ("value_and_gradient",), "second of value_and_gradient", _second),
    Rule("value", ("values",), "batch of one", _row),
    Rule("value_and_gradient", ("value", "gradient"), "value and gradient", _pair),
    Rule("hvp", ("hessian",), "Hessian times vector", _times),
    Rule("prox", ("project",), "projection", _projected),
    Rule("prox_conjugate", ("prox",), "Moreau", _moreau, convex=True),
    Rule("step", ("project",), "projected step", _projected_step),
)


def barred(body: Any) -> frozenset[str]:
    """Capabilities that no rule gives for `body`, since it is declared not to be convex."""
    if getattr(body, "convex", None) is not False:
        return frozenset()
    return frozenset(rule.supplies for rule in RULES if rule.convex)


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a capability is had: the capabilities it rests on, and the labels of the rules in between."""

    name: str
    leaves: frozenset[str]
    labels: tuple[str, ...] = ()
    rule: Rule | None = None
    below: tuple[Derivation, ...] = ()
    """How the needs of the rule are had, in its order."""


def derive(name: str, offers: Collection[str], without: frozenset[str] = frozenset()) -> Derivation | None:
    """How `name` follows from `offers`: as it is, or by rules that pass through nothing in `without`; None if not."""
    if name in offers:
        return Derivation(name, frozenset({name}))
    for rule in RULES:
        if rule.supplies != name or without & set(rule.needs) or name in without:
            continue
        below = [derive(need, offers, without | {name}) for need in rule.needs]
        found = tuple(one for one in below if one is not None)
        if len(found) == len(below):
            leaves = frozenset().union(*(one.leaves for one in found))
            labels = tuple(label for one in found for label in one.labels)
            return Derivation(name, leaves, (*labels, rule.label), rule, found)
    return None


def obtain(found: Derivation, get: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
    """The callable of a derived capability, made from those that `get` gives for its leaves."""
    if found.rule is None:
        return get(found.name)
    return found.rule.make(*(obtain(one, get) for one in found.below))
