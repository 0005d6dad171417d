"""Sixteen parts of scikit-learn's digits as images: `python plugins/enmf/runs/digit_parts.py [FILE.png]`."""

from __future__ import annotations

import sys

from sklearn.datasets import load_digits

from infimum_enmf import ExteriorNMF, save_parts

if __name__ == "__main__":
    model = ExteriorNMF(16, time_budget=20.0).fit(load_digits().data)
    file = save_parts(model.components_.T, (8, 8), sys.argv[1] if len(sys.argv) > 1 else "digit-parts.png")
    sys.stdout.write(
        f"{file}: relative error {model.relative_error_:.6f} ({model.status_}), "
        f"no factorization of rank 16 is below {model.svd_lower_bound_:.6f}\n"
    )
