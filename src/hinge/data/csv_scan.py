"""The slow, exact way through a text table: it reads what is sound and names the line of what is not."""

from __future__ import annotations

import array
import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hinge.data.csv_layout import MISSING, SEPARATORS, Layout, is_number
from hinge.data.labels import MISSING_LABELS
from hinge.data.text import Text
from hinge.errors import DataError
from hinge.typing import Array


@dataclass(frozen=True)
class Cells:
    """The parsed cells: a column per feature asked for, and the target's texts (empty where missing)."""

    numbers: Array
    labels: tuple[str, ...] | None


def scan(text: Text, layout: Layout, numeric: Sequence[int], target: int | None, *, label_needed: bool) -> Cells:
    """Read the table row by row, or raise DataError for its first damaged row."""
    values = array.array("d")
    labels: list[str] = []
    reader = csv.reader(
        text.lines(), delimiter=layout.separator, strict=True, skipinitialspace=layout.separator != "\t"
    )
    header_left = layout.header
    line = text.first_line
    try:
        for row in reader:
            here, line = line, text.first_line + reader.line_num
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if header_left:
                header_left = False
                continue
            if len(row) != len(layout.names):
                raise _ragged(text, layout, row, here)
            values.extend(_row_numbers(text, layout, row, numeric, here))
            if target is not None:
                labels.append(_label(text, layout, row[target], target, here, label_needed))
    except csv.Error as error:
        raise DataError(
            f"a quoted cell is not written as it should be ({error})",
            where=text.where(line),
            remedy='A quote that opens must close before the next separator; write a quote inside as "".',
        ) from error
    numbers = np.frombuffer(values, dtype=np.float64) if values else np.empty(0)
    n_rows = len(numbers) // len(numeric) if numeric else len(labels)
    return Cells(numbers.reshape(n_rows, len(numeric)), tuple(labels) if target is not None else None)


def _row_numbers(text: Text, layout: Layout, row: Sequence[str], numeric: Sequence[int], line: int) -> list[float]:
    cells = [row[index] for index in numeric]
    try:
        numbers = list(map(float, cells))
        # A finite sum proves all finite at a fraction of the cost; Python also reads 1_000 as a number.
        finite = math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers))
        if finite and "_" not in "".join(cells):
            return numbers
    except ValueError:
        pass
    bad = next(index for index in numeric if not is_number(row[index]))
    raise _bad_cell(text, layout, row[bad], bad, line)


def _label(text: Text, layout: Layout, cell: str, target: int, line: int, needed: bool) -> str:
    label = cell.strip()
    if label.casefold() not in MISSING_LABELS:
        return label
    if needed:
        raise DataError(
            f"the label is missing (the cell holds {label!r})" if label else "the label is missing",
            where=text.where(line, layout.names[target]),
            remedy="Every row needs a label: fill it in or remove the row.",
        )
    return ""


def _ragged(text: Text, layout: Layout, row: Sequence[str], line: int) -> DataError:
    return DataError(
        f"there are {len(row):,} cells where the first line has {len(layout.names):,}",
        where=text.where(line),
        remedy=f"Every row must have the same number of cells, divided by a {SEPARATORS[layout.separator]}.",
    )


def _bad_cell(text: Text, layout: Layout, cell: str, column: int, line: int) -> DataError:
    shown = cell if len(cell) <= 40 else cell[:37] + "…"
    where = text.where(line, layout.names[column])
    if cell.strip().casefold() in MISSING:
        return DataError(
            f"the value is missing (the cell holds {shown!r})" if cell.strip() else "the value is missing",
            where=where,
            remedy="Fill it in, or remove the row or the column.",
        )
    try:
        what = f"{shown!r} is not a finite number" if not math.isfinite(float(cell)) else f"{shown!r} is not a number"
    except ValueError:
        what = f"{shown!r} is not a number"
    remedy = "Features are numbers: turn this column into numbers, remove it, or choose it as the target."
    if is_number(cell.replace(",", ".", 1)):
        remedy = "Write decimal numbers with a point, not with a comma."
    return DataError(what, where=where, remedy=remedy)
