"""One door for all formats: what a file begins with decides, then how it is named."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hinge.data.csv import read_csv, read_csv_rows
from hinge.data.dataset import Dataset, UnlabelledRows, complete_dataset, complete_rows
from hinge.data.files import GZIP_MAGIC, first_bytes, reading
from hinge.data.idx import is_idx, is_idx_name, read_idx, read_idx_rows
from hinge.data.npy import NPY_MAGIC
from hinge.data.numpy_files import read_npy, read_npy_rows, read_npz, read_npz_rows
from hinge.errors import DataError, UsageError

FORMATS = {
    "csv": "text tables (.csv, .tsv, .txt, plain or .gz)",
    "npy": "NumPy arrays (.npy)",
    "npz": "NumPy archives (.npz)",
    "idx": "IDX files as MNIST has them (…-images-idx3-ubyte, plain or .gz), or a folder of them",
}
_TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
_ZIP_MAGIC = b"PK\x03\x04"
_FOREIGN = {
    b"PAR1": "a Parquet file",
    b"\x89HDF": "an HDF5 file",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"MATLAB ": "a MATLAB file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"ARROW1": "an Arrow file",
    b"%PDF": "a PDF document",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"(\xb5/\xfd": "a Zstandard file",
}


def read(
    path: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    header: bool | None = None,
    image_shape: Sequence[int] | None = None,
) -> Dataset:
    """Read labelled rows from a file or a folder of any known format.

    `target` is the label column's name or index in a table, the labels' key in an NPZ archive, or the labels'
    path beside NPY and IDX files. `header` tells whether a text table begins with a header line; None looks.
    `image_shape` says that rows are pictures of that shape.
    """
    with reading(path) as place:
        kind = _kind_of(place)
        _check_header_option(kind, header)
        if kind == "csv":
            dataset = read_csv(place, target=target, header=header)
        elif kind == "npy":
            dataset = read_npy(place, target=target)
        elif kind == "npz":
            dataset = read_npz(place, target=None if target is None else str(target))
        else:
            dataset = read_idx(place, target=None if target is None else str(target))
        return complete_dataset(dataset, image_shape)


def read_rows(
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str],
    target_name: str,
    header: bool | None = None,
) -> UnlabelledRows:
    """Read rows for a model that was trained on `feature_names`; their labels too where the file has them.

    Tables with a header are read by name, in the model's order; all other files by position.
    """
    with reading(path) as place:
        kind = _kind_of(place)
        _check_header_option(kind, header)
        if kind == "csv":
            rows = read_csv_rows(place, feature_names=feature_names, target_name=target_name, header=header)
        elif kind == "npy":
            rows = read_npy_rows(place, feature_names=feature_names, target_name=target_name)
        elif kind == "npz":
            rows = read_npz_rows(place)
        else:
            rows = read_idx_rows(place)
        return complete_rows(rows, feature_names)


def _kind_of(place: Path) -> str:
    """Return the key of FORMATS for an existing path."""
    if place.is_dir():
        return "idx"
    with open(place, "rb") as stream:
        head = stream.read(512)
    if not head:
        raise DataError("the file is empty", where=str(place), remedy="Give a file with rows.")
    compressed = head.startswith(GZIP_MAGIC)
    if compressed:
        head = first_bytes(place, 512)
    kind = None if compressed else _kind_by_magic(head)
    if kind:
        return kind
    if is_idx(head) or is_idx_name(place.name):
        return "idx"
    name = place.name.lower().removesuffix(".gz")
    if name.endswith(_TABLE_SUFFIXES):
        return "csv"
    foreign = next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), "")
    if not foreign and _looks_like_table(head):
        return "csv"
    damaged = {".npy": "a NumPy array", ".npz": "a NumPy archive"}.get(Path(name).suffix)
    if damaged and not foreign:
        what = f"it is named as {damaged} but " + ("compressed with gzip" if compressed else "does not begin as one")
        raise DataError(what, where=str(place), remedy="Save it again with numpy.save or numpy.savez.")
    raise DataError(
        f"this is {foreign}, which hinge does not read" if foreign else "the format of the file is unknown",
        where=str(place),
        remedy=f"hinge reads {'; '.join(FORMATS.values())}.",
    )


def _kind_by_magic(head: bytes) -> str | None:
    if head.startswith(NPY_MAGIC):
        return "npy"
    return "npz" if head.startswith((_ZIP_MAGIC, b"PK\x05\x06")) else None


def _looks_like_table(head: bytes) -> bool:
    """Tell whether a file of no known name begins with a line of separated cells."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff")
    line = next((line for line in re.split(r"[\r\n]+", text) if line.strip()), "")
    return "\0" not in text and line[0:1] not in tuple("{[<@%") and bool(re.search(r"[,;\t]", line))


def _check_header_option(kind: str, header: bool | None) -> None:
    if header is not None and kind != "csv":
        raise UsageError(
            f"header={header} was given, but {FORMATS[kind]} have no header line",
            remedy="Leave header out; it is for text tables only.",
        )
