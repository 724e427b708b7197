"""scikit-learn's LinearSVC: LIBLINEAR's dual coordinate descent, in float64 and on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import LinearFit, installed

NAME = "LinearSVC"
present = installed("sklearn")


def fit(X: np.ndarray, y: np.ndarray, *, C: float, threads: int) -> LinearFit:
    """Minimise C·Σ one-vs-rest squared hinge + ½‖W‖² + ½‖b‖²: unlike hinge it penalises the intercepts."""
    from sklearn.svm import LinearSVC

    model: Any = LinearSVC(C=C, random_state=0)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_, model.predict)


def fit_crammer_singer(X: np.ndarray, y: np.ndarray, *, C: float, threads: int) -> LinearFit:
    """Minimise C·Σ Crammer–Singer hinge + ½‖W‖² + ½‖b‖²."""
    from sklearn.svm import LinearSVC

    model: Any = LinearSVC(C=C, multi_class="crammer_singer", random_state=0)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_, model.predict)
