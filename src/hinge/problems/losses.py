"""Multiclass losses as functions, for people who learn and for checking other code.

Shapes are those of a first course: W is D×C, one column of weights a class; X is N×D, one row an example; y holds
N integers below C. Each loss returns the pair (value, gradient):

    value    = mean over rows of the loss + reg·ΣW²
    gradient = ∂value/∂W, shaped as W

and comes in three forms that agree to rounding: `impl="loops"` (for each row, for each class: hinge/ops/loops.py),
`"vectorized"` (NumPy: hinge/ops/vectorized.py) and `"native"` (the kernels that the estimators use). A bias is a column
of ones in X, as in most courses; the estimators have a true intercept.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from hinge.config import resolve_threads
from hinge.errors import DataError, UsageError
from hinge.ops import Backend, CpuBackend, Loss, ReferenceBackend, vectorized
from hinge.problems.gradient_check import GradientCheck, check_gradient
from hinge.problems.penalties import l2_penalty
from hinge.typing import Array, Codes, FloatArray, Rows

__all__ = [
    "GradientCheck",
    "check_gradient",
    "crammer_singer_hinge",
    "cross_entropy",
    "l2_penalty",
    "multiclass_hinge",
    "one_hot",
    "one_vs_rest_hinge",
    "softmax",
    "softmax_cross_entropy",
]

Implementation: TypeAlias = Literal["loops", "vectorized", "native"]


def softmax_cross_entropy(
    W: Array,
    X: Rows,
    y: Array,
    *,
    reg: float = 0.0,
    sample_weight: Array | None = None,
    impl: Implementation = "vectorized",
) -> tuple[float, FloatArray]:
    """Softmax regression: the loss of a row is log Σ_c exp(s_c) − s_y with scores s = x W."""
    return _loss_and_gradient(Loss("softmax"), W, X, y, reg, sample_weight, impl)


def multiclass_hinge(
    W: Array,
    X: Rows,
    y: Array,
    *,
    reg: float = 0.0,
    margin: float = 1.0,
    squared: bool = False,
    sample_weight: Array | None = None,
    impl: Implementation = "vectorized",
) -> tuple[float, FloatArray]:
    """The multiclass SVM of Weston and Watkins: the loss of a row is Σ_{c≠y} max(0, margin + s_c − s_y).

    `squared` squares each term. A term of exactly 0 has slope 0.
    """
    return _loss_and_gradient(Loss("weston_watkins", squared, margin), W, X, y, reg, sample_weight, impl)


def crammer_singer_hinge(
    W: Array,
    X: Rows,
    y: Array,
    *,
    reg: float = 0.0,
    margin: float = 1.0,
    squared: bool = False,
    sample_weight: Array | None = None,
    impl: Implementation = "vectorized",
) -> tuple[float, FloatArray]:
    """The multiclass SVM of Crammer and Singer: max(0, margin + max_{c≠y} s_c − s_y); equal rivals: the first one."""
    return _loss_and_gradient(Loss("crammer_singer", squared, margin), W, X, y, reg, sample_weight, impl)


def one_vs_rest_hinge(
    W: Array,
    X: Rows,
    y: Array,
    *,
    reg: float = 0.0,
    margin: float = 1.0,
    squared: bool = False,
    sample_weight: Array | None = None,
    impl: Implementation = "vectorized",
) -> tuple[float, FloatArray]:
    """One SVM a class against all others: max(0, margin − s_y) + Σ_{c≠y} max(0, margin + s_c)."""
    return _loss_and_gradient(Loss("one_vs_rest", squared, margin), W, X, y, reg, sample_weight, impl)


def softmax(scores: Array) -> FloatArray:
    """Return exp(s_c) / Σ exp(s) along the last axis; scores of any size are safe."""
    return vectorized.softmax(_as_float(scores, "scores"))


def one_hot(y: Array, n_classes: int | None = None) -> FloatArray:
    """Return N×C rows of zeros with a one at each row's class; C defaults to the largest label plus one."""
    labels = np.asarray(y)
    if n_classes is None:
        whole = labels.size > 0 and labels.dtype.kind in "iub"
        n_classes = max(int(labels.max()), 0) + 1 if whole else int(labels.size > 0)
    return vectorized.one_hot(_checked_labels(labels, labels.size, n_classes), n_classes)


def cross_entropy(probabilities: Array, y: Array) -> float:
    """Return the mean of −log p_y; a probability of 0 for the true class costs infinity."""
    p = _as_float(probabilities, "probabilities")
    if p.ndim != 2:
        raise DataError(f"shape {p.shape} is not N×C", where="probabilities", remedy="Pass one row an example.")
    if p.shape[0] == 0:
        raise DataError("there are no rows", where="probabilities", remedy="A mean needs at least one.")
    labels = _checked_labels(np.asarray(y), p.shape[0], p.shape[1])
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(labels)), labels]).mean())


def _loss_and_gradient(
    loss: Loss, W: Array, X: Rows, y: Array, reg: float, sample_weight: Array | None, impl: str
) -> tuple[float, FloatArray]:
    W = _as_float(W, "W")
    rows = _as_float(X.tocsr() if sparse.issparse(X) else X, "X")
    dtype = np.result_type(W.dtype, rows.dtype)
    W, rows = W.astype(dtype, copy=False), rows.astype(dtype, copy=False)
    if rows.ndim != 2 or W.ndim != 2 or rows.shape[1] != W.shape[0]:
        raise DataError(
            f"X of shape {rows.shape} and W of shape {W.shape} do not multiply",
            remedy="X is N×D, one row an example; W is D×C, one column a class.",
        )
    if W.shape[1] < 2:
        raise DataError("W has a single column", remedy="Give W one column for each of two or more classes.")
    if rows.shape[0] == 0:
        raise DataError("X has no rows", remedy="A mean over no rows does not exist; pass at least one.")
    labels = _checked_labels(np.asarray(y), rows.shape[0], W.shape[1])
    weight = _checked_weight(sample_weight, rows.shape[0], dtype)
    total = float(rows.shape[0]) if weight is None else float(weight.sum(dtype=np.float64))

    passes = _backend(impl).bind(rows, labels, weight, W.shape[1])
    value, gradient = passes.loss_and_gradient(loss, W.T)
    penalty, penalty_gradient = l2_penalty(W, reg)
    mean_gradient: FloatArray = (gradient.T / total + penalty_gradient).astype(dtype, copy=False)
    return value / total + penalty, mean_gradient


def _backend(impl: str) -> Backend:
    if impl == "native":
        return CpuBackend(resolve_threads(None))
    if impl in ("loops", "vectorized"):
        return ReferenceBackend(impl)
    raise UsageError(f"unknown impl {impl!r}", remedy="Use 'loops', 'vectorized' or 'native'.")


def _as_float(values: Array, name: str) -> Any:
    array: Any = values if sparse.issparse(values) else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise DataError(f"values of type {array.dtype} are not numbers", where=name, remedy="Pass real numbers.")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _checked_labels(labels: Array, n_rows: int, n_classes: int) -> Codes:
    if labels.shape != (n_rows,):
        raise DataError(f"shape {labels.shape} does not give {n_rows} rows a label each", where="y")
    if labels.size and (labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= n_classes):
        raise DataError(
            f"labels must be integers from 0 to {n_classes - 1}",
            where="y",
            remedy="Number the classes, for example by np.unique(y, return_inverse=True)[1].",
        )
    return labels.astype(np.int32)


def _checked_weight(sample_weight: Array | None, n_rows: int, dtype: Any) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight: FloatArray = _as_float(sample_weight, "sample_weight").astype(dtype)
    if weight.shape != (n_rows,) or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not weight.sum() > 0:
        raise DataError(f"weights must be {n_rows} finite numbers, none negative and not all 0", where="sample_weight")
    return weight
