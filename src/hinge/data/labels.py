"""Which column holds the labels, and labels as int64 or text whatever they were stored as."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence

import numpy as np

from hinge.errors import DataError
from hinge.typing import Array

TARGET_NAMES = ("target", "label", "class", "y", "species", "category")
MISSING_LABELS = frozenset({"", "nan", "na", "n/a", "null", "?"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST = 1000
ASK_FOR_TARGET = "Say which column holds the labels with target=NAME or target=INDEX (--target on the command line)."


def few_classes(n_rows: int) -> int:
    """Return how many distinct numbers a column may hold and still look like labels."""
    return max(20, math.isqrt(n_rows))


def find_target(target: str | int, names: Sequence[str], *, where: str) -> int:
    """Return the position of the column that `target` names; a name that matches wins over an index."""
    if isinstance(target, str) and target in names:
        return names.index(target)
    if isinstance(target, str) and not _INTEGER.fullmatch(target.strip()):
        raise DataError(
            f"there is no column {target!r}",
            where=where,
            remedy=f"{did_you_mean(target, names)}The columns are {listed(names)}.",
        )
    index = int(target)
    if not -len(names) <= index < len(names):
        raise DataError(
            f"there is no column with index {index}: the {len(names):,} columns count from 0",
            where=where,
            remedy=f"The columns are {listed(names)}.",
        )
    return index % len(names)


def named_target(names: Sequence[str]) -> int | None:
    """Return the position of the first column named like a target, or None."""
    folded = [name.casefold() for name in names]
    return next((folded.index(name) for name in TARGET_NAMES if name in folded), None)


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a sentence such as `Did you mean 'petal'? ` with the space after it, or nothing."""
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return f"Did you mean {folded[close[0]]!r}? " if close else ""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message, the middle left out where there are many."""
    shown = [repr(name) for name in names]
    if len(shown) > most:
        shown = [*shown[: most - 2], "…", shown[-1]]
    return ", ".join(shown)


def looks_like_labels(texts: Sequence[str]) -> bool:
    """Tell whether an unnamed column may be the target: text or whole numbers, more than one but few."""
    distinct = set(texts)
    whole = all((value := _number(text)) is not None and value.is_integer() for text in distinct)
    if not whole and all(_number(text) is not None for text in distinct):
        return False
    most = few_classes(len(texts)) if whole else max(20, len(texts) // 2)
    return 2 <= len(distinct) <= most


def labels_from_text(texts: Sequence[str], *, column: str, where: str) -> Array:
    """Return labels read as text: int64 where all are whole numbers, else text. None may be missing."""
    distinct = set(texts)
    longest = max(map(len, distinct), default=0)
    if longest > _LONGEST:
        raise DataError(
            f"column {column!r} holds a label of {longest:,} characters",
            where=where,
            remedy=f"Labels have up to {_LONGEST:,} characters: choose another target, or check the quotes.",
        )
    if all(_INTEGER.fullmatch(text) for text in distinct):
        return np.array([int(text) for text in texts], dtype=np.int64)
    numbers = {text: _number(text) for text in distinct}
    values = [number for number in numbers.values() if number is not None]
    if len(values) < len(distinct):
        return np.array(texts, dtype=np.str_)
    if all(value.is_integer() and abs(value) < 2**53 for value in values):
        return np.array([numbers[text] for text in texts], dtype=np.float64).astype(np.int64)
    _refuse_continuous(len(set(values)), len(texts), column=column, where=where)
    return np.array(texts, dtype=np.str_)


def labels_from_array(values: Array, *, column: str, where: str) -> Array:
    """Return labels stored as an array: int64 where all are whole numbers, else text."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"the labels {column!r} have shape {values.shape}",
            where=where,
            remedy="Give one label per row; one-hot rows become labels with argmax(axis=1).",
        )
    if values.dtype.kind in "US":
        return _labels_from_strings(values, column=column, where=where)
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"the labels {column!r} have type {values.dtype}",
            where=where,
            remedy="Save labels as whole numbers or as text.",
        )
    if values.dtype.kind == "f":
        return _labels_from_floats(values, column=column, where=where)
    if values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise DataError(
            f"the labels {column!r} reach {int(values.max())}",
            where=where,
            remedy="Labels must fit into 64-bit signed integers: number the classes from 0.",
        )
    return values.astype(np.int64)


def _labels_from_strings(values: Array, *, column: str, where: str) -> Array:
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            values = np.char.decode(values, "latin-1")
    empty = np.flatnonzero(values == "")
    if len(empty):
        raise _missing_label(int(empty[0]), column, where)
    return values.astype(np.str_)


def _labels_from_floats(values: Array, *, column: str, where: str) -> Array:
    numbers = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise _missing_label(int(bad[0]), column, where)
    if np.all((np.trunc(numbers) == numbers) & (np.abs(numbers) < 2**53)):
        return numbers.astype(np.int64)
    _refuse_continuous(len(np.unique(numbers)), len(numbers), column=column, where=where)
    return np.array([str(number) for number in numbers.tolist()], dtype=np.str_)


def _missing_label(row: int, column: str, where: str) -> DataError:
    return DataError(
        f"the label {column!r} is missing",
        where=f"{where}, row {row} (counted from 0)",
        remedy="Every row needs a label: fill it in or remove the row.",
    )


def _refuse_continuous(n_distinct: int, n_rows: int, *, column: str, where: str) -> None:
    if n_distinct > few_classes(n_rows):
        raise DataError(
            f"column {column!r} holds {n_distinct:,} distinct fractions: it is continuous, not classes",
            where=where,
            remedy="hinge classifies: choose a target with labels, or group the numbers into classes first.",
        )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
