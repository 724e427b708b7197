"""The shapes in which data sets travel, and the last check that every reader's result passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hinge.errors import DataError, UsageError
from hinge.typing import Array

_BLOCK_CELLS = 1 << 22


@dataclass(frozen=True)
class Dataset:
    """Labelled rows: `X[i]` belongs to class `y[i]`.

    `image_shape` is the shape of one row seen as a picture, e.g. (28, 28) or (32, 32, 3), or None.
    `test` holds rows and labels that the publisher set aside, e.g. MNIST's t10k files, or None.
    `notes` tells what the reader decided on its own, e.g. which column it took as the target.
    """

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str = "target"
    source: str = ""
    image_shape: tuple[int, ...] | None = None
    test: tuple[Array, Array] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnlabelledRows:
    """Rows to predict, columns in the model's order; `y` holds their labels where the file has them."""

    X: Array
    y: Array | None = None
    source: str = ""
    notes: tuple[str, ...] = ()


def complete_dataset(dataset: Dataset, image_shape: Sequence[int] | None = None) -> Dataset:
    """Return `dataset` with `image_shape` applied, or raise DataError where it cannot be learnt from."""
    where = dataset.source or dataset.name
    check_features(dataset.X, dataset.feature_names, where=where)
    _check_lengths(dataset.X, dataset.y, where=where)
    classes = np.unique(dataset.y)
    if len(classes) < 2:
        shown = classes[0].item()
        raise DataError(
            f"there is only one class: all {len(dataset.y):,} labels {dataset.target_name!r} are {shown!r}",
            where=where,
            remedy="At least two classes are needed: choose another target, or add rows of another class.",
        )
    if dataset.test is not None:
        rows, labels = dataset.test
        check_features(rows, dataset.feature_names, where=f"{where}, test rows")
        _check_lengths(rows, labels, where=f"{where}, test rows")
    if image_shape is None:
        return dataset
    return replace(dataset, image_shape=_checked_shape(image_shape, dataset.X.shape[1], where))


def complete_rows(rows: UnlabelledRows, feature_names: Sequence[str]) -> UnlabelledRows:
    """Return `rows`, or raise DataError where a model with these features could not predict them."""
    check_features(rows.X, feature_names, where=rows.source)
    if rows.y is not None:
        _check_lengths(rows.X, rows.y, where=rows.source)
    return rows


def check_features(X: Array, feature_names: Sequence[str], *, where: str) -> None:
    """Raise DataError unless `X` has rows, columns of these names, and finite numbers only."""
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        lacking = "rows" if X.ndim == 2 and X.shape[0] == 0 else "feature columns"
        raise DataError(f"there are no {lacking}", where=where, remedy="Give at least one row and one feature.")
    if X.shape[1] != len(feature_names):
        raise DataError(
            f"rows have {X.shape[1]:,} features where {len(feature_names):,} are expected",
            where=where,
            remedy="Give rows with the same columns as the data that the model was trained on.",
        )
    step = max(1, _BLOCK_CELLS // X.shape[1])
    for start in range(0, X.shape[0], step):
        finite = np.isfinite(X[start : start + step])
        if not finite.all():
            row, column = (int(index) for index in np.argwhere(~finite)[0])
            raise DataError(
                f"the value in column {feature_names[column]!r} is {float(X[start + row, column])}",
                where=f"{where}, row {start + row} (counted from 0)",
                remedy="Every feature must be a finite number: fill in or remove the rows that lack one.",
            )


def _check_lengths(X: Array, y: Array, *, where: str) -> None:
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise DataError(
            f"there are {X.shape[0]:,} rows but {y.shape[0] if y.ndim else 0:,} labels",
            where=where,
            remedy="Give exactly one label for each row.",
        )


def _checked_shape(image_shape: Sequence[int], n_features: int, where: str) -> tuple[int, ...]:
    shape = tuple(int(size) for size in image_shape)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise UsageError(
            f"image_shape={shape} is not the shape of a picture",
            remedy="Give (height, width) or (height, width, channels).",
        )
    if math.prod(shape) != n_features:
        raise DataError(
            f"image_shape={shape} has {math.prod(shape):,} values but each row has {n_features:,} features",
            where=where,
            remedy="Give a shape whose product is the number of features.",
        )
    return shape
