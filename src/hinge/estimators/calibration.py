"""From scores to probabilities by one number: p = softmax(s/T), with T fitted on scores of rows that were held out.

Dividing by T changes no order, so the most probable class is the predicted one. The cost of a = 1/T, the mean of
log Σ_c exp(a·s_c) − a·s_y, is convex; Newton's method finds its minimum.

Paper: Guo, Pleiss, Sun & Weinberger, ICML 2017 (temperature scaling).
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedKFold

from hinge.errors import DataError
from hinge.ops.vectorized import softmax
from hinge.typing import Array, Codes, FloatArray

FOLDS = 5
COLDEST, HOTTEST = 1e-6, 1e6  # of the scores' own scale


def held_out_parts(codes: Codes, weight: FloatArray | None, seed: int) -> list[Array]:
    """Return the rows of each fold; every class that counts stands on both sides of every cut."""
    counted = np.bincount(codes if weight is None else codes[weight > 0])
    fewest = int(counted[counted > 0].min())
    if fewest < 2:
        raise DataError(
            "calibration holds rows of each class out, and a class has a single row",
            where="y",
            remedy="Add rows of the rare classes, or leave calibrate=None.",
        )
    folds = StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=seed)
    rows = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0)
    return [rows[held] for _, held in folds.split(rows[:, None], codes[rows])]


def fit_temperature(scores: FloatArray, codes: Codes, weight: FloatArray | None) -> float:
    """Return the T that makes softmax(scores/T) likeliest for these classes; scores are N×C."""
    scores = scores.astype(np.float64)
    scale = float(np.abs(scores - scores.mean(axis=1, keepdims=True)).mean()) or 1.0
    scores = scores / scale
    v = np.ones(len(codes)) if weight is None else weight.astype(np.float64)
    own = scores[np.arange(len(codes)), codes]
    a = 1.0
    for _ in range(100):
        p = softmax(a * scores)
        mean = (p * scores).sum(axis=1)
        slope = float(v @ (mean - own))
        bend = float(v @ ((p * np.square(scores)).sum(axis=1) - np.square(mean)))
        moved = a - slope / bend if bend > 0 else a
        moved = min(max(moved, 0.25 * a, COLDEST), 4 * a, HOTTEST)
        if abs(moved - a) <= 1e-12 * a:
            break
        a = moved
    return scale / a
