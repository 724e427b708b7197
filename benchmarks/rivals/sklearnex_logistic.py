"""scikit-learn-intelex's LogisticRegression: softmax regression by L-BFGS on oneDAL's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import LinearFit, installed

NAME = "sklearnex LogisticRegression"
present = installed("sklearnex")


def fit(X: Any, y: np.ndarray, *, C: float, threads: int, tol: float = 1e-4, max_iter: int = 10_000) -> LinearFit:
    """Minimise C·Σ cross-entropy + ½‖W‖²."""
    from sklearnex.linear_model import LogisticRegression

    model: Any = LogisticRegression(C=C, solver="lbfgs", tol=tol, max_iter=max_iter, n_jobs=threads)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_)
