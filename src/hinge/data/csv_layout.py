"""How a text table is laid out: its separator, whether the first line is a header, and its column names."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hinge.data.features import column_names
from hinge.data.labels import listed
from hinge.data.text import Text
from hinge.errors import DataError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "?", "-"})
_SAMPLE_ROWS = 1000
_SAMPLE_CHARACTERS = 1 << 20
_INDEX_NAMES = ("", "Unnamed: 0")


@dataclass(frozen=True)
class Layout:
    """A table's columns: `unnamed` may be a row index, `empty` are left over from separators at line ends."""

    separator: str
    header: bool
    names: tuple[str, ...]
    unnamed: tuple[int, ...]
    empty: tuple[int, ...]
    sample: tuple[tuple[str, ...], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was decided, for the user."""
        return () if self.header else ("no header line: columns are numbered from 1",)


def find_layout(text: Text, header: bool | None = None, known_names: Sequence[str] = ()) -> Layout:
    """Return the layout of `text`; `known_names` that all stand in the first line make it a header."""
    lines = _sample_lines(text)
    separator = _find_separator(text, lines, one_column_will_do=len(known_names) == 1)
    rows = [row for row in _cells(lines, separator) if "".join(row).strip()]
    if len(lines) < text.n_lines and len(rows) > 2:
        rows.pop()  # it may be cut in the middle of a quoted cell
    rows = [[cell.strip() for cell in row] for row in rows]
    first, width = rows[0], len(rows[0])
    if header is None:
        header = (bool(known_names) and set(known_names) <= set(first)) or _has_header(first, rows[1:])
    body = rows[1:] if header else rows
    raw = first if header else list(column_names(width))
    blank = tuple(index for index, name in enumerate(raw) if name in _INDEX_NAMES)
    last = width - 1
    trailing = bool(body) and (not header or last in blank) and all(not "".join(row[last:]) for row in body)
    names = tuple(name or f"column {index}" for index, name in enumerate(raw, start=1))
    _check_unique(text, names)
    return Layout(
        separator=separator,
        header=header,
        names=names,
        unnamed=tuple(index for index in blank if not (trailing and index == last)),
        empty=(last,) if trailing else (),
        sample=tuple(tuple(row) for row in body),
    )


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a number, NaN and infinity not counted."""
    try:
        return abs(float(cell)) != float("inf") and "_" not in cell and cell.casefold().strip() not in MISSING
    except ValueError:
        return False


def _sample_lines(text: Text) -> list[str]:
    lines: list[str] = []
    characters = 0
    for line in itertools.islice(text.lines(), _SAMPLE_ROWS):
        lines.append(line)
        characters += len(line)
        if characters > _SAMPLE_CHARACTERS and len(lines) > 3:
            break
    return lines


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    return list(csv.reader(lines, delimiter=separator, skipinitialspace=separator != "\t"))


def _find_separator(text: Text, lines: Sequence[str], *, one_column_will_do: bool) -> str:
    """Return the separator that cuts the lines most evenly; of equals, the one that finds most numbers."""
    best: tuple[tuple[float, float], str] | None = None
    for separator in SEPARATORS:
        try:
            rows = [row for row in _cells(lines[:20], separator) if "".join(row).strip()]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        even = sum(len(row) == width for row in rows) / len(rows)
        numbers = sum(is_number(cell) for row in rows[-10:] for cell in row) / sum(map(len, rows[-10:]))
        if best is None or (even, numbers) > best[0]:
            best = (even, numbers), separator
    if best is None and one_column_will_do:
        return ","
    if best is None:
        raise DataError(
            "the first line has only one column; comma, semicolon and tab were tried as separators",
            where=text.where(text.first_line),
            remedy="Give a table with a feature and the target at least, its cells divided by one of these.",
        )
    return best[1]


def _has_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    words = [index for index, cell in enumerate(first) if cell.casefold() not in MISSING and not is_number(cell)]
    numbers = [cell for cell in first if is_number(cell)]
    if not numbers:
        return bool(words)
    for index in words:
        below = [row[index] for row in rows if index < len(row) and row[index].casefold() not in MISSING]
        if below and all(map(is_number, below)):
            return True
    if numbers != [str(index) for index in range(len(numbers))]:
        return False
    if not words:
        return len(numbers) >= 4  # 0,1,2 may well be a row of data
    return not any(index < len(row) and row[index] == first[index] for row in rows for index in words)


def _check_unique(text: Text, names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"the header names {listed(repeated)} more than once",
            where=text.where(text.first_line),
            remedy="Give every column its own name, or pass header=False if the first line is a row of data.",
        )
