"""One thread for linear algebra: several test processes share few cores, and sums keep their order."""

from __future__ import annotations

import os

# Libraries read these when they are loaded, which no test has done yet; child processes inherit them.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
