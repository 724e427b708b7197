"""scikit-learn's LinearSVC, which is LIBLINEAR: in float64 and on one thread.

It penalises its intercepts like the weight of a column of ones; so does hinge with fit_intercept="penalized".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import LinearFit, installed

NAME = "LinearSVC"
present = installed("sklearn")


def fit(
    X: Any, y: np.ndarray, *, C: float, threads: int, tol: float = 1e-4, max_iter: int = 1000, **options: Any
) -> LinearFit:
    """Minimise C·Σ loss + ½‖W‖² + ½‖b‖².

    The loss is the one-vs-rest squared hinge, or with multi_class="crammer_singer" theirs, which is not squared.
    """
    from sklearn.svm import LinearSVC

    model: Any = LinearSVC(C=C, tol=tol, max_iter=max_iter, random_state=0, **options)
    model.fit(X, y)
    return LinearFit(model.coef_, model.intercept_)
