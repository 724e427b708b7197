"""Who is taken for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hinge.errors import DataError
from hinge.typing import Array


@dataclass(frozen=True)
class Confusion:
    """`counts[i, j]` rows of class `labels[i]` were predicted as `labels[j]`."""

    labels: Array
    counts: Array

    @property
    def normalized(self) -> Array:
        """Return each row of counts as shares of its true class; a class without rows has shares of 0."""
        totals = self.counts.sum(axis=1, keepdims=True)
        shares: Array = self.counts / np.maximum(totals, 1)
        return shares

    @property
    def accuracy(self) -> float:
        """Return the share of rows on the diagonal."""
        return float(np.trace(self.counts) / max(int(self.counts.sum()), 1))

    @property
    def recall(self) -> Array:
        """Return, per class, the share of its rows that were found."""
        shares: Array = np.diagonal(self.normalized)
        return shares

    @property
    def precision(self) -> Array:
        """Return, per class, the share of its predictions that were right; 0 where it was never predicted."""
        shares: Array = np.diagonal(self.counts) / np.maximum(self.counts.sum(axis=0), 1)
        return shares

    def worst_pairs(self, most: int = 5) -> list[tuple[object, object, int]]:
        """Return up to `most` (true, predicted, count), the most frequent confusions first."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(wrong, axis=None, kind="stable")[::-1][:most]
        pairs = [np.unravel_index(k, wrong.shape) for k in order]
        return [(self.labels[i], self.labels[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]


def confusion(y_true: Array, y_predicted: Array, labels: Array | None = None) -> Confusion:
    """Count predictions by true class; `labels` fixes the order, else all labels seen, sorted."""
    y_true, y_predicted = np.asarray(y_true), np.asarray(y_predicted)
    if y_true.shape != y_predicted.shape or y_true.ndim != 1:
        raise DataError(
            f"labels of shape {y_true.shape} cannot be compared with predictions of shape {y_predicted.shape}",
            remedy="Pass two one-dimensional arrays of equal length.",
        )
    seen = np.unique(np.concatenate([y_true, y_predicted]))
    order = seen if labels is None else np.asarray(labels)
    position = {label: k for k, label in enumerate(order.tolist())}
    unknown = [label for label in seen.tolist() if label not in position]
    if unknown:
        raise DataError(f"label {unknown[0]!r} is not among the given labels", remedy="Add it to `labels`.")
    true = np.array([position[v] for v in y_true.tolist()], dtype=np.intp)
    predicted = np.array([position[v] for v in y_predicted.tolist()], dtype=np.intp)
    counts = np.zeros((len(order), len(order)), dtype=np.int64)
    np.add.at(counts, (true, predicted), 1)
    return Confusion(order, counts)
