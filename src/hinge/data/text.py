"""The text of a table as clean UTF-8 bytes: no byte order mark, one kind of line end, no blank edges."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hinge.data.files import read_everything
from hinge.errors import DataError

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Text:
    """The lines of a file: `body` starts at line `first_line` (from 1) and has `n_lines` lines."""

    path: Path
    body: bytes
    first_line: int
    n_lines: int

    def lines(self) -> Iterator[str]:
        """Iterate over the lines, each with its line end."""
        return iter(io.TextIOWrapper(io.BytesIO(self.body), encoding="utf-8", newline="\n"))

    def where(self, line: int, column: str = "") -> str:
        """Return the place that an error message names."""
        place = f"{self.path}, line {line:,}"
        return f"{place}, column {column!r}" if column else place


def load_text(path: Path) -> Text:
    """Read `path`, plain or gzip, and raise DataError with the line where it is not UTF-8 text."""
    body = read_everything(path)
    if body.startswith(_UTF16_MARKS):
        raise DataError(
            "this is UTF-16 text", where=str(path), remedy="Save it as UTF-8 (in a spreadsheet: CSV UTF-8)."
        )
    if body.startswith(_UTF8_MARK):
        body = body[len(_UTF8_MARK) :]
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    _check_characters(path, body)
    start = _end_of_blank_lines(body)
    first_line = 1 + body.count(b"\n", 0, start)
    body = body[start:].rstrip(b"\n ") if start or body.endswith((b"\n", b" ")) else body
    if not body or body.isspace():
        raise DataError("the file is empty", where=str(path), remedy="Give a file with a header and rows.")
    return Text(path=path, body=body, first_line=first_line, n_lines=body.count(b"\n") + 1)


def _check_characters(path: Path, body: bytes) -> None:
    nul = body.find(b"\0")
    if nul >= 0:
        raise DataError(
            "there is a NUL byte, so this is not a text file",
            where=_place(path, body, nul),
            remedy="Give a text table saved as UTF-8, or another file if this one is damaged.",
        )
    if body.isascii():
        return
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"the byte 0x{body[error.start]:02x} is not UTF-8",
            where=_place(path, body, error.start),
            remedy="Save the file as UTF-8; if it is not a text file, it is damaged or of another format.",
        ) from error


def _place(path: Path, body: bytes, position: int) -> str:
    line = body.count(b"\n", 0, position) + 1
    return f"{path}, line {line:,}"


def _end_of_blank_lines(body: bytes) -> int:
    """Return where the first line that is not blank begins."""
    start = 0
    while (end := body.find(b"\n", start)) >= 0 and not body[start:end].strip():
        start = end + 1
    return start
