"""The JSON Schema of run files, against its own dialect and against what the reader takes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from infimum.runfile import RunFile, run_file_schema
from infimum.runfile.reader import read_text

RUNS = sorted((Path(__file__).parents[2] / "problems" / "runs").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(run_file_schema())


def test_it_is_a_schema_and_plain_json() -> None:
    schema = run_file_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


def test_every_reference_in_it_leads_somewhere() -> None:
    schema = run_file_schema()
    text = json.dumps(schema)
    names = {part.partition('"')[0] for part in text.split('"$ref": "#/$defs/')[1:]}
    assert names
    assert names <= set(schema["$defs"])


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_ready_run_files_fit_it(validator, path: Path) -> None:
    validator.validate(read_text(path.read_text(), str(path)).plain)
    validator.validate(RunFile.load(path).resolved())


@pytest.mark.parametrize(
    "text",
    [
        "problem: lasso",
        "problem: {use: problems.lasso, penalty: 0.1}\nsolver: proximal_gradient\n",
        "problem: {use: 'python:m:f', n: 5}\nx0: [1, 2.5]\n",
        "problem: lasso\nx0: {file: x.npz, key: x}\nseed: 3\ntrace: {max_rows: 10}\noutput: {dir: out}\n",
        "problem: lasso\noracles: auto\nconstraints: [{use: core.box, lower: 0}, nonnegative]\n",
        "problem: lasso\noracles: {loss: {use: zeroth.forward_difference, eps: 1e-6}}\nconstraints: {c: core.box}\n",
        "problem: lasso\nstopping: {any: [{max_iter: 10}, {all: [{grad_norm: 1e-6}, {not: {max_iter: 3}}]}]}\n",
        "problem: lasso\nstopping: ['max_iter(3)', {core.rel_change: {tol: 1e-9, patience: 10}}]\n",
        "problem: lasso\nsolver: {use: proximal_gradient, step: {use: core.power, initial: 1, exponent: 0.6}}\n",
        "extends: base.yaml\nproblem: {penalty: 3}\nsolver: {step: 0.1}\n",
    ],
)
def test_right_files_fit(validator, text: str) -> None:
    validator.validate(read_text(text, "f.yaml").plain)


@pytest.mark.parametrize(
    "text",
    [
        "seed: 1",
        "problem: {penalty: 3}",
        "problem: lasso\nsead: 1",
        "problem: {use: problems.lasso, penalti: 1}",
        "problem: {use: problems.lasso, penalty: -1}",
        "problem: {use: problems.nowhere}",
        "problem: lasso\nsolver: {use: splitting.proximal_gradient, step: fast}",
        "problem: lasso\nseed: -1",
        "problem: lasso\nseed: 1.5",
        "problem: lasso\nx0: nowhere",
        "problem: lasso\nx0: [a]",
        "problem: lasso\nstopping: {max_iterations: 3}",
        "problem: lasso\nconstraints: [{use: core.box, lover: 0}]",
        "problem: lasso\ntrace: {rows: 3}",
        "problem: lasso\nname: a/b",
    ],
)
def test_wrong_files_do_not(validator, text: str) -> None:
    assert not validator.is_valid(read_text(text, "f.yaml").plain)
