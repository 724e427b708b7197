"""scikit-learn's LogisticRegression: softmax regression by L-BFGS or by Newton's method with conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import LinearFit, installed

NAME = "LogisticRegression"
present = installed("sklearn")


def fit(
    X: Any, y: np.ndarray, *, C: float, threads: int, solver: str = "lbfgs", tol: float = 1e-4, max_iter: int = 10_000
) -> LinearFit:
    """Minimise C·Σ cross-entropy + ½‖W‖². Its threads are BLAS's."""
    from sklearn.linear_model import LogisticRegression

    model: Any = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=max_iter)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_)
