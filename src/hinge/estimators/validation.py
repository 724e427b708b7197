"""The only place where what a user passes to an estimator is judged. Every refusal says what, where and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from hinge.errors import DataError
from hinge.typing import Array, FloatArray, Rows

FLOATS = [np.float64, np.float32]
BLOCK_VALUES = 1 << 20


def checked_rows(estimator: Any, X: Any, *, reset: bool) -> Rows:
    """Return X as float32 or float64 rows, dense or CSR, finite and of the width that the estimator knows."""
    try:
        rows = validate_data(estimator, X, reset=reset, dtype=FLOATS, accept_sparse="csr", ensure_all_finite=False)
    except ValueError as error:
        raise DataError(str(error)) from error
    _require_finite(rows, getattr(estimator, "feature_names_in_", None))
    return rows


def checked_rows_and_labels(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Rows, Array]:
    """Return rows as `checked_rows` does, and labels of equal length that name classes."""
    if y is not None:
        _require_labels(np.asarray(y))
    try:
        rows, labels = validate_data(
            estimator, X, y, reset=reset, dtype=FLOATS, accept_sparse="csr", ensure_all_finite=False
        )
    except ValueError as error:
        raise DataError(str(error)) from error
    _require_finite(rows, getattr(estimator, "feature_names_in_", None))
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise DataError(
            f"y holds measurements rather than classes ({error})",
            remedy="hinge classifies: pass class labels, or bin the values first.",
        ) from error
    return rows, labels


def checked_weights(sample_weight: Any, X: Rows) -> FloatArray | None:
    """Return row weights in X's type, or None if all rows weigh the same 1."""
    if sample_weight is None:
        return None
    try:
        weight: FloatArray = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    except ValueError as error:
        raise DataError(str(error), where="sample_weight") from error
    if not weight.sum(dtype=np.float64) > 0:
        raise DataError("all weights are 0", where="sample_weight", remedy="Give at least one row a weight.")
    return None if np.all(weight == 1) else weight


def class_codes(y: Array, classes: Array) -> Array:
    """Return the position of each label in the sorted `classes`; a label that is not there is an error."""
    codes = np.searchsorted(classes, y)
    codes = np.minimum(codes, len(classes) - 1)
    unknown = np.flatnonzero(classes[codes] != y)
    if len(unknown):
        raise DataError(
            f"label {y[unknown[:1]].tolist()[0]!r} is not among the {len(classes)} known classes",
            where=f"y, row {unknown[0]}",
            remedy="Name every class in `classes` at the first call of partial_fit.",
        )
    return codes.astype(np.int32)


def require_two_classes(classes: Array) -> None:
    """Raise DataError for fewer than two classes."""
    if len(classes) < 2:
        held = f"there is only one class, {classes.tolist()[0]!r}" if len(classes) else "there is no class"
        raise DataError(f"{held}; a classifier needs two", where="y", remedy="Add rows of another class.")


def require_weight_in_each_class(y: Array, classes: Array, weight: FloatArray | None) -> None:
    """Raise DataError if all rows of a class weigh nothing: its intercept would have to be −∞."""
    if weight is None:
        return
    empty = np.flatnonzero(np.bincount(class_codes(y, classes), weights=weight, minlength=len(classes)) <= 0)
    if len(empty):
        raise DataError(
            f"class {classes[empty[:1]].tolist()[0]!r} has no row of positive weight",
            where="sample_weight",
            remedy="Leave the rows of this class out, or give one of them a weight.",
        )


def _require_finite(rows: Rows, names: Array | None) -> None:
    values: Any = rows.data if sparse.issparse(rows) else rows
    # A sum is finite only if all its terms are; only overflow needs the second look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):
            return
    first, count = _first_not_finite(values)
    if not count:
        return
    value = values[first]
    if sparse.issparse(rows):
        (entry,) = first
        row, column = int(np.searchsorted(rows.indptr, entry, side="right")) - 1, int(rows.indices[entry])
    else:
        row, column = first
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    label = f" ({names[column]!r})" if names is not None else ""
    raise DataError(
        f"Input X contains {what}" + (f" and {count - 1} more values that are not finite" if count > 1 else ""),
        where=f"X, row {row}, column {column}{label}",
        remedy="Drop these rows, or fill them in, for example by sklearn.impute.SimpleImputer.",
    )


def _first_not_finite(values: Array) -> tuple[tuple[int, ...], int]:
    """Return where the first such value is and how many there are, in blocks: values may be more than memory holds."""
    first: tuple[int, ...] = ()
    count = 0
    rows = max(1, BLOCK_VALUES // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        bad = ~np.isfinite(values[start : start + rows])
        found = int(np.count_nonzero(bad))
        if found and not count:
            row, *rest = (int(k) for k in np.unravel_index(int(bad.argmax()), bad.shape))
            first = (start + row, *rest)
        count += found
    return first, count


def _require_labels(y: Array) -> None:
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        what = "NaN" if np.isnan(y.flat[row]) else "infinity (inf)"
        raise DataError(f"Input y contains {what}", where=f"y, row {row}", remedy="Drop the rows that have no label.")
