"""One thread for linear algebra: several test processes share few cores, and sums keep their order."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Libraries read these when they are loaded, which no test has done yet; child processes inherit them.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes into the user's own cache of finished runs, nor finds anything there."""
    before = os.environ.get("INFIMUM_CACHE")
    os.environ["INFIMUM_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["INFIMUM_CACHE"]
    else:
        os.environ["INFIMUM_CACHE"] = before
