"""The conformance kit: what every plugin must pass, run on everything that is installed.

    pytest --pyargs infimum.testing.conformance
    pytest --pyargs infimum.testing.conformance --infimum-plugin NAME

It needs pytest (`pip install pytest`); jsonschema and torch are used where they are installed. What it does not know
by itself, a component's target says in plain attributes (or class methods without arguments):

- `examples`: a sequence of mappings of options, where the defaults alone do not build it; each is tested;
- `reference_problems` of a solver: specifications of problems as in a run file, where it takes none of the kit's own;
- `reference_functions` of an oracle: functions by name, each made by a call without arguments;
- `supports`: which of "numpy", "torch", "float32" it works with; all of them by default.

A test that meets something that a component does not claim is skipped with the reason. See
`infimum.testing.pytest_plugin` for leaving tests out, with a reason.
"""

from __future__ import annotations
