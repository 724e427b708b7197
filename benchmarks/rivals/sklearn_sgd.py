"""scikit-learn's SGDClassifier: one-vs-rest plain hinge by stochastic gradient descent, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import LinearFit, installed

NAME = "SGDClassifier"
present = installed("sklearn")


def fit(X: np.ndarray, y: np.ndarray, *, C: float, threads: int) -> LinearFit:
    """Minimise the mean one-vs-rest hinge plus alpha/2·‖W‖², which is C = 1/(alpha·N)."""
    from sklearn.linear_model import SGDClassifier

    model: Any = SGDClassifier(loss="hinge", alpha=1 / (C * len(y)), n_jobs=threads, random_state=0)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_, model.predict)
