"""Tables of results: aligned text for people, the same rows in full for the result file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measurement import Spread

ABSENT = "–"


def text(value: object) -> str:
    return str(value)


def milliseconds(value: Spread) -> str:
    low, high = value.quartiles
    return f"{_digits(value.median * 1e3)} ({_digits(low * 1e3)}–{_digits(high * 1e3)})"


def seconds(value: Spread | float) -> str:
    if not isinstance(value, Spread):
        return _digits(value)
    low, high = value.quartiles
    return f"{_digits(value.median)} ({_digits(low)}–{_digits(high)})"


def times(value: Spread) -> str:
    low, high = value.quartiles
    return f"{value.median:.2f}× ({low:.2f}–{high:.2f})"


def decimals(places: int) -> Callable[[Any], str]:
    return lambda value: f"{value:,.{places}f}"


def significant(digits: int) -> Callable[[Any], str]:
    return lambda value: f"{value:.{digits}g}"


def percent(value: float) -> str:
    return f"{value:.0%}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Column:
    """A column of the printed table: the row's key, its heading and how its values read."""

    key: str
    heading: str
    form: Callable[[Any], str] = text


OTHERS = Column("others", "others", percent)
OTHERS_NOTE = "others: the most that other processes took of the processors in any round that counts."


@dataclass(frozen=True)
class Table:
    """Rows of one measurement. Keys that no column shows are for the result file alone."""

    title: str
    columns: Sequence[Column]
    rows: list[dict[str, Any]]
    notes: Sequence[str] = field(default_factory=tuple)

    def as_text(self) -> str:
        cells = [[column.heading for column in self.columns]]
        cells += [[_cell(row, column) for column in self.columns] for row in self.rows]
        widths = [max(len(line[k]) for line in cells) for k in range(len(self.columns))]
        lines = [_line(line, widths) for line in cells]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([self.title, *lines, *self.notes])

    def as_json(self) -> dict[str, Any]:
        rows = [{key: _plain(value) for key, value in row.items()} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def _cell(row: Mapping[str, Any], column: Column) -> str:
    value = row.get(column.key)
    if value is None:
        return ABSENT
    return value if isinstance(value, str) else column.form(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "  ".join([first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))])


def _plain(value: Any) -> Any:
    return value.as_json() if isinstance(value, Spread) else value
