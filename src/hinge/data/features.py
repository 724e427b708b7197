"""Rows as float32 or float64 matrices, the names of their columns, and pictures flattened into rows."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import numpy as np

from hinge.errors import DataError
from hinge.typing import Array

_CHANNELS = (1, 3, 4)
_NUMBERED = re.compile(r"(?:pixel|pix|px)[ _.-]?([0-9]{1,7})", re.IGNORECASE)
_PLACED = re.compile(r"(?:(?:pixel|pix|px)_)?([0-9]{1,5})[x_]([0-9]{1,5})", re.IGNORECASE)
_GENERATED = re.compile(r"column [0-9]+|pixel_[0-9]+_[0-9]+(_[0-9]+)?")


def column_names(count: int) -> tuple[str, ...]:
    """Return the names of columns that have none: column 1, column 2, …"""
    return tuple(f"column {index}" for index in range(1, count + 1))


def pixel_names(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return pixel_row_column (and _channel) for every value of a picture, in the order of its memory."""
    return tuple("pixel_" + "_".join(map(str, place)) for place in itertools.product(*map(range, shape)))


def are_generated(names: Sequence[str]) -> bool:
    """Tell whether all `names` were made up by a reader, so that only positions carry meaning."""
    return all(_GENERATED.fullmatch(name) for name in names)


def shape_from_names(names: Sequence[str]) -> tuple[int, int] | None:
    """Return (height, width) where the columns are named as the pixels of a picture, in reading order."""
    if len(names) < 4:
        return None
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    if all(numbered):
        numbers = [int(match[1]) for match in numbered if match]
        side = math.isqrt(len(names))
        in_order = numbers == list(range(numbers[0], numbers[0] + len(names))) and numbers[0] in (0, 1)
        return (side, side) if in_order and side * side == len(names) else None
    placed = [_PLACED.fullmatch(name) for name in names]
    if not all(placed):
        return None
    places = [(int(match[1]), int(match[2])) for match in placed if match]
    first, last = places[0], places[-1]
    height, width = last[0] - first[0] + 1, last[1] - first[1] + 1
    if first not in ((0, 0), (1, 1)) or height * width != len(names):
        return None
    expected = itertools.product(range(first[0], last[0] + 1), range(first[1], last[1] + 1))
    return (height, width) if places == list(expected) else None


def as_features(values: Array) -> Array:
    """Return real numbers as a C-ordered native float32 matrix where that is exact, else float64.

    float32 and float64 keep their type: whoever saved an array chose it.
    """
    kind, size = values.dtype.kind, values.dtype.itemsize
    exact = size <= (4 if kind == "f" else 2) or (kind in "iu" and _fits_float32(values))
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32 if exact else np.float64)


def narrowed(values: Array) -> Array:
    """Return float64 numbers as float32 where every one of them is the same number there."""
    narrow = np.empty(values.shape, dtype=np.float32)
    return narrow if store_exactly(values, narrow) else values


def store_exactly(values: Array, narrow: Array) -> bool:
    """Write float64 `values` into the float32 array `narrow`; tell whether that changed none of them."""
    with np.errstate(over="ignore", under="ignore"):
        narrow[...] = values
    return bool(np.array_equal(narrow, values))


def _fits_float32(values: Array) -> bool:
    return not values.size or (int(values.max()) <= 2**24 and int(values.min()) >= -(2**24))


def flat_pictures(values: Array, *, where: str) -> tuple[Array, tuple[int, ...] | None, tuple[str, ...]]:
    """Return rows, the picture's shape and notes; 2-D arrays are rows already.

    Channels come last: (n, 3, 32, 32) becomes rows of shape (32, 32, 3).
    """
    if values.ndim not in (2, 3, 4):
        raise DataError(
            f"the rows have {values.ndim} dimensions, shape {values.shape}",
            where=where,
            remedy="Give rows × features, or pictures as rows × height × width (× channels).",
        )
    notes: tuple[str, ...] = ()
    if values.ndim == 2:
        return values, None, notes
    if values.ndim == 4 and values.shape[1] in _CHANNELS and values.shape[3] not in _CHANNELS:
        values = np.moveaxis(values, 1, 3)
        notes = (f"pictures were stored channels first; rows are height × width × channels {values.shape[1:]}",)
    shape = values.shape[1:-1] if values.ndim == 4 and values.shape[3] == 1 else values.shape[1:]
    return values.reshape(values.shape[0], math.prod(values.shape[1:])), shape, notes


def names_for(n_features: int, shape: tuple[int, ...] | None) -> tuple[str, ...]:
    """Return made-up column names: pixels for pictures, else numbers."""
    return pixel_names(shape) if shape and math.prod(shape) == n_features else column_names(n_features)


def positions_for(
    feature_names: Sequence[str], target_name: str, width: int, *, where: str
) -> tuple[list[int], int | None, tuple[str, ...]]:
    """Return which of `width` nameless columns are a model's features, which one its target, and notes.

    A table as wide as the one that the model was trained on keeps its order; else the last column of one
    too many is the target.
    """
    count = len(feature_names)
    if width == count:
        return list(range(count)), None, ()
    if width != count + 1:
        raise DataError(
            f"rows have {width:,} columns where the model has {count:,} features",
            where=where,
            remedy="Give the model's columns in its order, with the target as one more column or without it.",
        )
    place = {name: index for index, name in enumerate(column_names(width))}
    if target_name in place and all(name in place for name in feature_names):
        target = place[target_name]
        features = [place[name] for name in feature_names]
    else:
        target, features = width - 1, list(range(count))
    return (
        features,
        target,
        (f"column {target + 1} of {width:,} was taken as the target, the others as features",),
    )
