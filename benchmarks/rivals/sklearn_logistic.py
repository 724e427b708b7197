"""scikit-learn's LogisticRegression: softmax regression by L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import LinearFit, installed

NAME = "LogisticRegression"
present = installed("sklearn")


def fit(X: np.ndarray, y: np.ndarray, *, C: float, threads: int) -> LinearFit:
    """Minimise C·Σ cross-entropy + ½‖W‖². Its threads are BLAS's."""
    from sklearn.linear_model import LogisticRegression

    model: Any = LogisticRegression(C=C)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_, model.predict)
