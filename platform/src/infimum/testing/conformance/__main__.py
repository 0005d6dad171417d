"""`python -m infimum.testing.conformance`: the kit, or what to install for it."""

from __future__ import annotations

import sys


def main() -> int:
    """Run pytest on this package with the arguments of the command line."""
    try:
        import pytest
    except ModuleNotFoundError:
        sys.stderr.write("the conformance kit runs on pytest, which is not installed: pip install pytest\n")
        return 2
    return int(pytest.main(["--pyargs", "infimum.testing.conformance", *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
