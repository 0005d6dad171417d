"""What the command line says about many runs, put into the file's tree."""

from __future__ import annotations

import os

from infimum.runfile.reader import read_value
from infimum.runfile.tree import Node, Place, RunFileError, RunFileIssue


def vary_from_text(tree: Node, text: str, number: int, issues: list[RunFileIssue]) -> None:
    """Put `place=value,value,…` of the command line into the tree."""
    where = Place(f"<command line, --sweep {number}: '{text}'>")
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        message = "what varies has the form place=value,value,..., such as solver.step=1e-3,1e-2"
        issues.append(RunFileIssue((), where, message))
        return
    try:
        node = read_value(values if values.lstrip()[:1] in "[{" else f"[{values}]", where, base=os.getcwd())
    except RunFileError as error:
        issues += error.issues
        return
    sweep = tree.value.setdefault("sweep", Node({}, where, where, tree.base))
    if not isinstance(sweep.value, dict):
        return
    for way in ("product", "zip", "components"):
        held = sweep.child(way)
        if held is not None and isinstance(held.value, dict):
            held.value.pop(name.strip(), None)
            if not held.value:
                del sweep.value[way]
    product = sweep.value.setdefault("product", Node({}, where, where, tree.base))
    if isinstance(product.value, dict):
        product.value[name.strip()] = node


def set_budget(tree: Node, text: str, issues: list[RunFileIssue]) -> None:
    """Put `name=amount` of the command line into the tree."""
    where = Place(f"<command line, --budget '{text}'>")
    name, equals, amount = text.partition("=")
    compare = tree.child("compare")
    if not equals:
        message = "a budget has the form name=amount, such as iterations=1000, seconds=10 or gradient=200"
        issues.append(RunFileIssue((), where, message))
    elif compare is not None and isinstance(compare.value, dict):
        node = Node({name.strip(): read_value(amount, where)}, where, where, tree.base)
        compare.value["budget"] = node
