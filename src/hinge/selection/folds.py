"""Folds: which rows are held out, and what predictions for them are worth."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold, check_cv

from hinge.errors import DataError, UsageError
from hinge.estimators.validation import class_codes
from hinge.typing import Array, FloatArray, Rows

DEFAULT_FOLDS = 5

Fold: TypeAlias = tuple[Array, Array]
"""The rows to train on and the rows held out."""

Scorer: TypeAlias = Callable[[Any, Rows, Array, FloatArray | None], float]
"""Takes a fitted classifier, held-out rows, their labels and weights."""


def make_folds(cv: Any, X: Rows, y: Array, classes: Array, weight: FloatArray | None) -> list[Fold]:
    """Return the folds of `cv`: None, a number of stratified folds, a splitter, or pairs of positions.

    None means five, or as many as the smallest class has rows. Rows of weight 0 are in no stratified fold.
    """
    if cv is None or isinstance(cv, int | np.integer):
        folds = _stratified(None if cv is None else int(cv), y, classes, weight)
    else:
        folds = [
            (_positions(a, len(y)), _positions(b, len(y))) for a, b in check_cv(cv, y, classifier=True).split(X, y)
        ]
    if not folds:
        raise UsageError("cv makes no folds", remedy="Use a number of folds, or a splitter with at least one.")
    for k, (train, held) in enumerate(folds):
        _require_usable(k, train, held, y, classes, weight)
    return folds


def _stratified(cv: int | None, y: Array, classes: Array, weight: FloatArray | None) -> list[Fold]:
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    codes = class_codes(y[rows], classes)
    fewest = int(np.bincount(codes, minlength=len(classes)).min())
    count = min(DEFAULT_FOLDS, fewest) if cv is None else cv
    if fewest < 2 or count > fewest:
        label = classes.tolist()[int(np.bincount(codes, minlength=len(classes)).argmin())]
        raise DataError(
            f"class {label!r} has n_samples={fewest}, too few for {max(count, 2)} folds",
            where="y",
            remedy="Add rows of this class, leave it out, or use fewer folds.",
        )
    if count < 2:
        raise UsageError(f"cv={cv!r}", remedy="Use at least 2 folds.")
    return [(rows[a], rows[b]) for a, b in StratifiedKFold(count).split(rows[:, None], codes)]


def _positions(part: Any, n: int) -> Array:
    part = np.asarray(part)
    part = np.flatnonzero(part) if part.dtype == bool else part.astype(np.intp)
    if part.ndim != 1 or (len(part) and not -n <= int(part.min()) <= int(part.max()) < n):
        raise DataError(f"a fold names a row that is not among the {n}", where="cv", remedy="Use positions of rows.")
    positions: Array = np.where(part < 0, part + n, part)
    return positions


def _require_usable(k: int, train: Array, held: Array, y: Array, classes: Array, weight: FloatArray | None) -> None:
    if not len(held) or (weight is not None and not weight[held].any()):
        raise DataError("no row of positive weight is held out", where=f"fold {k}", remedy="Use another cv.")
    counted = train if weight is None else train[weight[train] > 0]
    missing = np.setdiff1d(classes, y[counted])
    if len(missing):
        raise DataError(
            f"no training row has class {missing.tolist()[0]!r}",
            where=f"fold {k}",
            remedy="Use stratified folds, fewer of them, or leave the rows of this class out.",
        )


def make_scorer(scoring: Any) -> Scorer | None:
    """Return a scorer by scikit-learn's name or of the user's own; None stands for accuracy."""
    if scoring is None:
        return None
    if isinstance(scoring, str):
        try:
            scoring = get_scorer(scoring)
        except ValueError as error:
            raise UsageError(
                f"scoring={scoring!r}", remedy="Use a name of sklearn.metrics.get_scorer_names()."
            ) from error
    if not callable(scoring):
        raise UsageError(
            f"scoring={scoring!r}", remedy="Use the name of a scikit-learn scorer, or scorer(estimator, X, y)."
        )
    weighs = "sample_weight" in inspect.signature(scoring).parameters

    def score(model: Any, X: Rows, y: Array, weight: FloatArray | None) -> float:
        options = {"sample_weight": weight} if weighs and weight is not None else {}
        return float(scoring(model, X, y, **options))

    return score
