"""Text tables: polars reads them; where it cannot, the row-by-row scan names the line that is at fault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hinge.data.csv_layout import Layout, find_layout
from hinge.data.csv_scan import Cells, scan
from hinge.data.dataset import Dataset, UnlabelledRows
from hinge.data.features import are_generated, narrowed, positions_for, shape_from_names, store_exactly
from hinge.data.files import memory_for, plain_stem
from hinge.data.labels import (
    ASK_FOR_TARGET,
    MISSING_LABELS,
    did_you_mean,
    find_target,
    labels_from_text,
    listed,
    looks_like_labels,
    named_target,
)
from hinge.data.text import Text, load_text
from hinge.errors import DataError
from hinge.typing import Array

if TYPE_CHECKING:
    import polars

_BLOCK_CELLS = 1 << 22


def read_csv(path: Path, *, target: str | int | None = None, header: bool | None = None) -> Dataset:
    """Read labelled rows from a text table with or without a header line."""
    text = load_text(path)
    layout = find_layout(text, header)
    usable = [index for index in range(len(layout.names)) if index not in layout.empty]
    column, reason = _choose_target(text, layout, usable, target)
    numeric = [index for index in usable if index != column]
    cells = _parse(text, layout, numeric, column, label_needed=True)
    labels = cells.labels or ()
    if reason == "the last column" and not looks_like_labels(labels):
        raise DataError(
            f"no column is named like a target, and the last, {layout.names[column]!r}, is not like labels",
            where=str(path),
            remedy=f"{ASK_FOR_TARGET} The columns are {listed(layout.names)}.",
        )
    numeric, numbers, notes = _without_index(layout, numeric, cells.numbers)
    names = tuple(layout.names[index] for index in numeric)
    y = labels_from_text(labels, column=layout.names[column], where=str(path))
    return Dataset(
        name=plain_stem(path),
        X=numbers,
        y=y,
        feature_names=names,
        target_name=layout.names[column],
        source=str(path),
        image_shape=shape_from_names(names),
        notes=(f"target: column {layout.names[column]!r} ({reason})", *layout.notes, *notes),
    )


def read_csv_rows(
    path: Path, *, feature_names: Sequence[str], target_name: str, header: bool | None = None
) -> UnlabelledRows:
    """Read the columns that a model needs: by name where there is a header, else by position."""
    text = load_text(path)
    layout = find_layout(text, header, known_names=feature_names)
    usable = [index for index in range(len(layout.names)) if index not in layout.empty]
    told = {name for index, name in enumerate(layout.names) if index not in layout.unnamed}
    named = layout.header and not (are_generated(feature_names) and told.isdisjoint(feature_names))
    if named:
        features, target, notes = _columns_by_name(text, layout, usable, feature_names, target_name)
    else:
        usable = [index for index in usable if index not in layout.unnamed]
        places, place, notes = positions_for(feature_names, target_name, len(usable), where=str(path))
        features, target = [usable[index] for index in places], None if place is None else usable[place]
    cells = _parse(text, layout, features, target, label_needed=False)
    y, label_notes = _optional_labels(text, layout, cells, target)
    return UnlabelledRows(X=cells.numbers, y=y, source=str(path), notes=(*layout.notes, *notes, *label_notes))


def _choose_target(text: Text, layout: Layout, usable: list[int], target: str | int | None) -> tuple[int, str]:
    if target is not None:
        return find_target(target, layout.names, where=str(text.path)), "as given"
    found = named_target(layout.names) if layout.header else None
    return (usable[-1], "the last column") if found is None else (found, "by its name")


def _columns_by_name(
    text: Text, layout: Layout, usable: list[int], feature_names: Sequence[str], target_name: str
) -> tuple[list[int], int | None, tuple[str, ...]]:
    place = {layout.names[index]: index for index in usable}
    missing = [name for name in feature_names if name not in place]
    if missing:
        hints = "".join(did_you_mean(name, list(place)) for name in missing[:1])
        raise DataError(
            f"{len(missing):,} of the model's columns are missing: {listed(missing)}",
            where=text.where(text.first_line),
            remedy=f"{hints}Add them, or rename those that hold them; the file has {listed(list(place))}.",
        )
    extra = [name for name in place if name not in feature_names and name != target_name]
    notes = (f"columns the model does not know were left out: {listed(extra)}",) if extra else ()
    target = None if target_name in feature_names else place.get(target_name)
    return [place[name] for name in feature_names], target, notes


def _optional_labels(
    text: Text, layout: Layout, cells: Cells, target: int | None
) -> tuple[Array | None, tuple[str, ...]]:
    if target is None or cells.labels is None:
        return None, ()
    missing = sum(label.casefold() in MISSING_LABELS for label in cells.labels)
    name = layout.names[target]
    if missing:
        return None, (f"column {name!r} lacks {missing:,} of {len(cells.labels):,} labels and was left out",)
    return labels_from_text(cells.labels, column=name, where=str(text.path)), ()


def _parse(text: Text, layout: Layout, numeric: list[int], target: int | None, *, label_needed: bool) -> Cells:
    if not numeric:
        raise DataError(
            "there is no feature column beside the target",
            where=str(text.path),
            remedy="Give a table with at least one column of numbers, or choose another target.",
        )
    with memory_for(12 * text.n_lines * len(numeric), where=str(text.path)):
        cells = _parse_fast(text, layout, numeric, target, label_needed=label_needed)
        if cells is None:
            exact = scan(text, layout, numeric, target, label_needed=label_needed)
            cells = Cells(narrowed(exact.numbers), exact.labels)
    if len(cells.numbers) == 0:
        raise DataError(
            "there is a header line but no rows",
            where=str(text.path),
            remedy="Add rows, or pass header=False if the first line is a row of data.",
        )
    return cells


def _parse_fast(
    text: Text, layout: Layout, numeric: list[int], target: int | None, *, label_needed: bool
) -> Cells | None:
    """Return what polars reads, or None where anything is unusual and the scan has to look."""
    import polars as pl

    wanted = set(numeric)
    schema = {str(j): pl.Float64 if j in wanted else pl.String for j in range(len(layout.names))}
    separator = layout.separator.encode()
    if text.n_lines == layout.header or not _quotes_are_simple(text.body, separator):
        return None
    if text.body.endswith(separator):  # polars overlooks one empty cell too many on the last line
        return None
    try:
        frame = pl.read_csv(
            text.body,
            has_header=False,
            skip_rows=int(layout.header),
            separator=layout.separator,
            schema=schema,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    numbers = frame.select([str(index) for index in numeric])
    if frame.height != text.n_lines - layout.header or sum(numbers.null_count().row(0)):
        return None
    if _may_be_ragged(frame):
        return None
    labels = None
    if target is not None:
        column = frame.get_column(str(target))
        labels = tuple(cell.strip() if cell else "" for cell in column.to_list())
        distinct = set(labels)
        if label_needed and any(label.casefold() in MISSING_LABELS for label in distinct):
            return None
    matrix = _matrix(numbers)
    return None if matrix is None else Cells(matrix, labels)


def _quotes_are_simple(body: bytes, separator: bytes) -> bool:
    """Tell whether quotes only open and close whole cells; in odd places polars reads them leniently."""
    quotes = body.count(b'"')
    if not quotes:
        return True
    opening = body.count(separator + b'"') + body.count(b'\n"') + body.startswith(b'"')
    closing = body.count(b'"' + separator) + body.count(b'"\n') + body.endswith(b'"')
    return quotes == 2 * opening == 2 * closing


def _may_be_ragged(frame: polars.DataFrame) -> bool:
    """Tell whether the last column lacks a value somewhere, as it does after a row that is too short."""
    return bool(frame.to_series(frame.width - 1).null_count())


def _matrix(frame: polars.DataFrame) -> Array | None:
    """Return the numbers as float32 where that is exact, else float64; None where one is not finite."""
    narrow = np.empty(frame.shape, dtype=np.float32)
    step = max(1, _BLOCK_CELLS // frame.width)
    for start in range(0, frame.height, step):
        block = frame.slice(start, step).to_numpy(order="c")
        if not np.isfinite(block).all():
            return None
        if not store_exactly(block, narrow[start : start + step]):
            del narrow
            whole = frame.to_numpy(order="c", writable=True)
            return whole if np.isfinite(whole).all() else None
    return narrow


def _without_index(layout: Layout, numeric: list[int], numbers: Array) -> tuple[list[int], Array, tuple[str, ...]]:
    """Leave out unnamed columns that number the rows, as pandas writes them."""
    dropped = [j for j, index in enumerate(numeric) if index in layout.unnamed and _numbers_rows(numbers[:, j], index)]
    notes = [f"column {numeric[j] + 1} has no name and numbers the rows: left out" for j in dropped]
    if dropped:
        numbers = np.delete(numbers, dropped, axis=1)
        numeric = [index for j, index in enumerate(numeric) if j not in dropped]
    if numbers.shape[1] > 1 and 0 in numeric and len(numbers) > 2:
        first = numbers[:, numeric.index(0)]
        if np.array_equal(first, np.arange(len(first)) + first[0]) and first[0] in (0, 1):
            notes.append(f"column {layout.names[0]!r} counts the rows: remove it if it is no property of them")
    return numeric, numbers, tuple(notes)


def _numbers_rows(values: Array, position: int) -> bool:
    if np.array_equal(values, np.arange(len(values))):
        return True
    # Rows that were drawn or shuffled keep the numbers they had.
    whole = bool(np.all((values >= 0) & (np.trunc(values) == values)))
    return position == 0 and whole and len(np.unique(values)) == len(values)
